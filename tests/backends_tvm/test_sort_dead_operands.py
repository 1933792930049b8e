"""Sorts do not carry operands whose results nothing uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.backends.tvm.passes.canonicalize.sort_dead_operands import (
    eliminate_dead_sort_operands,
)
from tracejit.graph import Instruction
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.reduction import SORT, sort, sort_order
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order

KEYS = Shape(ElementType.F32, (9,))
NUMBERS = Shape(ElementType.S32, (9,))


def sorts(roots: Any) -> list[Instruction]:
    return [i for i in in_order(roots) if i.op is SORT]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("used", "kept"), [([0], 1), ([1], 2), ([0, 2], 2), ([2, 1], 3)])
def test_what_is_neither_used_nor_compared_is_left_out(
    used: list[int], kept: int, descending: bool
) -> None:
    keys, first, second = (parameter(i, s) for i, s in enumerate([KEYS, NUMBERS, KEYS]))
    types = [i.array_shape.element_type for i in (keys, first, second)]
    order = sort_order(*types, descending=descending)
    whole = elements_of(sort([keys, first, second], order, 0, is_stable=True))
    roots = [whole[number] for number in used]
    made = eliminate_dead_sort_operands(roots)
    assert [len(s.operands) for s in sorts(made)] == [kept]
    assert [r.shape for r in made] == [r.shape for r in roots]
    rng = np.random.default_rng(0)
    given = (
        rng.integers(0, 4, 9).astype(np.float32),
        np.arange(9, dtype=np.int32),
        rng.standard_normal(9).astype(np.float32),
    )
    parameters = (keys, first, second)
    expected, found = (_run(parameters, r, given) for r in (roots, made))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def _run(parameters: Any, roots: list[Instruction], given: Any) -> Any:
    entry = tj.graph.Computation("main", parameters, tuple_(roots))
    return tj.interpret(tj.graph.Module("main", entry), *given)


def test_a_sort_that_is_used_as_a_whole_stays() -> None:
    whole = sort([parameter(0, KEYS), parameter(1, NUMBERS)], None, 0)
    assert eliminate_dead_sort_operands([whole]) == [whole]


def test_distinct_elements_are_sorted_alone() -> None:
    x = np.random.default_rng(0).integers(0, 40, 300)
    compiled = tj.jit(lambda v: np.unique(v, size=40)).lower(x).compile()  # type: ignore[call-overload]
    # Then the places of the first of each, as a selection.
    made, _ = (k for k in compiled.explain().kernels if "sort" in k.name)
    assert made.bytes_read == x.nbytes
    np.testing.assert_array_equal(compiled(x), np.unique(x))
