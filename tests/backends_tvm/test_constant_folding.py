"""Values that depend on no argument, and cost something, are computed while compiling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.passes.canonicalize import constant_folding
from tracejit.backends.tvm.passes.canonicalize.constant_folding import fold_constants
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, elements_of
from tracejit.traversal import in_order


def roots(function: Any, *given: Any) -> tuple[list[Instruction], list[Instruction]]:
    root = tj.jit(function).lower(*given).module.entry.root
    before = list(elements_of(root)) if root.op.opcode == "tuple" else [root]
    return before, fold_constants(before)


def ops(instructions: list[Instruction]) -> set[str]:
    return {i.op.opcode for i in in_order(instructions)}


def table(x: Any) -> Any:
    angles = np.arange(50) / 50 * 2.0j * np.pi
    return np.exp(angles)[::2].real * x, np.sqrt(np.arange(25.0) + 1)


def test_tables_are_constants() -> None:
    x = np.linspace(1, 2, 25)
    before, after = roots(table, x)
    assert "exponential" in ops(before)
    assert not {"exponential", "sqrt", "divide"} & ops(after)
    assert after[1].op is CONSTANT
    for right, ours in zip(table(x), tj.jit(table)(x), strict=True):
        np.testing.assert_allclose(ours, right, 1e-14)


def test_what_is_cheap_stays() -> None:
    before, after = roots(lambda x: x + np.arange(50) * 2, np.ones(50))
    assert ops(after) == ops(before)


def test_only_what_is_repeated_is_kept() -> None:
    def function(x: Any) -> Any:
        return x + np.broadcast_to(np.sin(np.arange(30.0)), (20, 30))

    _, after = roots(function, np.ones((20, 30)))
    sizes = {i.array_shape.size for i in in_order(after) if i.op is CONSTANT}
    assert sizes == {30}


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_BYTES_IN_ALL"])
def test_large_ones_are_computed_in_the_call(limit: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constant_folding, limit, 100)
        before, after = roots(lambda x: x * np.sin(np.arange(30.0)), np.ones(30))
        assert ops(after) == ops(before)


def test_nan_and_division_by_zero_are_values() -> None:
    def function(x: Any) -> Any:
        return x * (np.arange(4.0) / np.arange(-1.0, 3.0)), np.log(np.arange(-1.0, 3.0))

    with np.errstate(all="ignore"):
        expected = function(np.ones(4))
    for right, ours in zip(expected, tj.jit(function)(np.ones(4)), strict=True):
        np.testing.assert_allclose(ours, right, 1e-15)


def test_numbers_stay_numbers() -> None:
    """One element of a table is of rank 0, and begins a sum."""

    def shifted(x: Any) -> Any:
        return tj.lax.reduce(x, np.exp(np.arange(3.0))[1], tj.lax.add, (0,))

    x = np.linspace(1, 2, 25)
    before, after = roots(shifted, x)
    assert [i.array_shape for i in after] == [i.array_shape for i in before]
    np.testing.assert_allclose(tj.jit(shifted)(x), np.sum(x) + np.e, 1e-14)
