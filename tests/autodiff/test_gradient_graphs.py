"""Gradient graphs as a whole: golden ones, and that nothing in them is computed in vain or twice.

pytest tests/autodiff/test_gradient_graphs.py --update-golden          writes golden/ anew
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.autodiff.networks import (
    NETWORKS,
    Network,
    attention,
    batch_norm,
    gradient,
    max_pool,
    recurrent,
    stacked,
)
from tracejit import lax
from tracejit.backends.tvm.passes.loops.fuse_scans import fuse_scans
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.ops.scanning import SCAN
from tracejit.traversal import in_order

GOLDEN = Path(__file__).parent / "golden"

# What costs nothing to have twice.
_FREE = ("BroadcastInDim", "Constant", "GetTupleElement", "Iota", "Parameter", "Reshape", "Tuple")


def networks(*chosen: Callable[[], Network]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("network", chosen, ids=lambda network: network.__name__)


@networks(batch_norm, max_pool, stacked, recurrent)
def test_golden_graph(network: Callable[[], Network], request: pytest.FixtureRequest) -> None:
    text = gradient(network).as_text()
    path = GOLDEN / f"{network.__name__}.hlo"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_layers_have_ops_of_their_own() -> None:
    def count(network: Callable[[], Network]) -> Counter[str]:
        return Counter(i.op.name for i in in_order([gradient(network).module.entry.root]))

    normalised, pooled = count(batch_norm), count(max_pool)
    assert normalised["BatchNormTraining"] == normalised["BatchNormGrad"] == 1
    assert pooled["ReduceWindow"] == pooled["SelectAndScatter"] == 1
    assert count(attention)["DotGeneral"] == 5 + 2 * 5 - 3


@networks(*NETWORKS)
def test_nothing_is_computed_twice(network: Callable[[], Network]) -> None:
    assert not repeated(whole(network))


@networks(*NETWORKS)
def test_nothing_is_computed_in_vain(network: Callable[[], Network]) -> None:
    """What a loop stacks is read; all else in a graph its root needs."""
    order = in_order(whole(network))
    read = {(i.operands[0], i.attributes["index"]) for i in order if i.op is GET_TUPLE_ELEMENT}
    for scan in (i for i in order if i.op is SCAN):
        stacked = len(scan.element_shapes) - scan.attributes["num_carries"]
        assert [n for n in range(stacked) if (scan, n) not in read] == []


def whole(network: Callable[[], Network]) -> list[Instruction]:
    """The roots of a gradient in which Scans that take the same steps are one."""
    return fuse_scans([gradient(network).module.entry.root])


def repeated(roots: list[Instruction]) -> list[Instruction]:
    """The instructions that compute what another one has computed, in loops' bodies too."""
    number: dict[Instruction, int] = {}
    known: dict[Any, int] = {}
    found = []
    for instruction in in_order(roots):
        key: Any = instruction
        if instruction.op.name != "Parameter" and not instruction.has_effect:
            attributes = {k: _comparable(v) for k, v in instruction.attributes.items()}
            operands = tuple(number[o] for o in instruction.operands)
            key = (instruction.op, operands, instruction.shape, tuple(sorted(attributes.items())))
        if key in known and instruction.op.name not in _FREE:
            found.append(instruction)
        number[instruction] = known.setdefault(key, len(known))
        for computation in instruction.computations:
            found += repeated([computation.root])
    return found


def _comparable(value: Any) -> Any:
    if isinstance(value, Computation):
        return id(value)
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, value.tobytes()
    return value if isinstance(value, str) else repr(value)


def test_loops_and_branches_leave_out_what_nobody_asks_for() -> None:
    """The cotangent of a captured matrix would take one more product in each step."""

    def scanned(x: Any, matrix: Any) -> Any:
        return np.sum(lax.scan(lambda h, _: (matrix @ np.sin(h), None), x, None, length=4)[0])

    def branched(x: Any, matrix: Any) -> Any:
        return lax.cond(x[0] > 0, lambda x: np.sin(matrix @ x).sum(), lambda x: x.sum(), x)

    x, matrix = np.array([0.5, 0.2, -0.3]), np.arange(9.0).reshape(3, 3)
    for function, least in ((scanned, 1), (branched, 2)):
        text = tj.jit(tj.grad(function)).lower(x, matrix).as_text()
        assert text[text.index("_gradient") :].count(" dot(") == least, function
        np.testing.assert_allclose(
            tj.grad(function)(x, matrix), tj.jacfwd(function)(x, matrix), 1e-12
        )
        both = tj.grad(function, (0, 1))(x, matrix)
        np.testing.assert_allclose(both[0], tj.grad(function)(x, matrix), 1e-12)


def test_what_is_repeated_is_noticed() -> None:
    def twice() -> Network:
        return (lambda x: np.sum(np.sin(x) * np.sin(x))), (np.ones(3),)

    assert {i.op.name for i in repeated([gradient(twice).module.entry.root])} >= {"Sin"}
