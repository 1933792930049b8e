"""Stencils of stencils: stored between, but in blocks of rows, and what they always were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tracejit as tj
from tests.backends_tvm.block_graphs import defined, simple
from tracejit.api import interpret
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.control import WHILE
from tracejit.ops.layout import slice_in_dim
from tracejit.runtime import importing_tvm
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.analysis.bounds_inference import (
        can_be_cut,
        made_rows,
        needed_rows,
        uniform_rows,
    )
    from tracejit.backends.tvm.ir.machine import Machine
    from tracejit.backends.tvm.passes.tile.overlapped_tiling import tile_stencils

# Blocks of some KiB, of arrays of at least 16 KiB.
SMALL = Machine(64, 1, l2=2048)
RNG = np.random.default_rng(0)
FIELD = RNG.standard_normal((150, 40)).astype(np.float32)


def step(u: Any) -> Any:
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return 0.2 * around + 0.3 * u[1:-1, 1:-1]


def shrinking(u: Any) -> Any:
    for _ in range(3):
        u = step(u)
    return u


def padded(u: Any) -> Any:
    for _ in range(3):
        u = np.pad(step(u), 1, constant_values=0.5)
    return u


def periodic(u: Any) -> Any:
    for _ in range(3):
        u = np.exp(-u) + np.roll(u, 1, 0) + np.roll(u, -2, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    return u


def in_place(u: Any) -> Any:
    u = u.copy()
    for _ in range(3):
        u[1:-1, 1:-1] = step(u)
    return u


def with_edges(u: Any) -> Any:
    """Rows that are joined of others, and columns that are turned."""
    for _ in range(2):
        inner = np.concatenate([u[:1, 1:-1] * 2, step(u), u[-1:, 1:-1]])
        u = np.concatenate([u[:, :1], inner[:, ::-1], u[:, -1:]], 1)
    return u


def of_several(u: Any) -> Any:
    """Rows and columns of their own, a scalar, places, and another array."""
    flow = np.sin(u) + np.arange(40) + u.mean(0) + u[:, :1] * u.sum()
    flow = flow[1:] - flow[:-1]
    return np.where(flow[1:, 1:] > 0, flow[:-1, 1:], u[1:-1, :-1]) * 2


def rows_of_rows(u: Any) -> Any:
    """Three dimensions, of which the last are transposed and joined on the way."""
    cube = np.tanh(u.reshape(150, 5, 8)).transpose(0, 2, 1)
    cube = (cube[1:] * cube[:-1] + cube[1:] + np.cos(cube[:-1])).reshape(149, 40)
    return cube[2:] + cube[1:-1] + cube[:-2]


FUNCTIONS: Sequence[Callable[[Any], Any]] = [
    shrinking,
    padded,
    periodic,
    in_place,
    with_edges,
    of_several,
    rows_of_rows,
]


def blocked(module: Module) -> Module:
    entry = module.entry
    (root,) = tile_stencils([entry.root], SMALL)
    return Module("test", Computation(entry.name, entry.parameters, root))


def loops(module: Module) -> int:
    return sum(i.op is WHILE for i in in_order([module.entry.root]))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_blocks_make_the_same(function: Callable[[Any], Any]) -> None:
    module = simple(function, FIELD)
    made = blocked(module)
    assert loops(made) == 1
    np.testing.assert_allclose(
        interpret(defined(made), FIELD), interpret(module, FIELD), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("function", FUNCTIONS)
def test_compiled_blocks(function: Callable[[Any], Any]) -> None:
    made = tj.compile(blocked(simple(function, FIELD)))
    wanted = function(FIELD.astype(np.float64))
    np.testing.assert_allclose(made(FIELD), wanted, rtol=1e-4, atol=1e-4)


@given(st.integers(3, 400), st.integers(3, 60), st.sampled_from(FUNCTIONS[:4]))
def test_any_sizes(rows: int, columns: int, function: Callable[[Any], Any]) -> None:
    if function is shrinking:
        rows, columns = rows + 4, columns + 4
    field = np.random.default_rng(rows).standard_normal((rows, columns))
    module = simple(function, field)
    np.testing.assert_allclose(
        interpret(defined(blocked(module)), field), interpret(module, field), rtol=1e-12, atol=1e-12
    )


def test_what_is_needed_as_a_whole_stays_whole() -> None:
    def sorted_between(u: Any) -> Any:
        return step(np.sort(step(u), 0))

    def turned(u: Any) -> Any:
        return step(step(u)[::-1])

    for function in (sorted_between, turned, step):
        assert loops(blocked(simple(function, FIELD))) == 0
    assert loops(blocked(simple(shrinking, FIELD[:50]))) == 0


@given(
    st.sampled_from(FUNCTIONS),
    st.integers(0, 140),
    st.integers(1, 20),
)
def test_some_rows_are_those_of_all(
    function: Callable[[Any], Any], first: int, length: int
) -> None:
    module = simple(function, FIELD)
    root = module.entry.root
    size = root.array_shape.dimensions[0]
    first = min(first, size - 1)
    rows = first, min(first + length, size)
    region = {i for i in in_order([root]) if can_be_cut(i)}

    def leaf(instruction: Instruction, rows: tuple[int, int] | None) -> Instruction:
        return instruction if rows is None else slice_in_dim(instruction, *rows, 1, 0)

    made = made_rows(root, needed_rows(root, rows, region), region, leaf)
    assert made.array_shape.dimensions == (rows[1] - rows[0], *root.array_shape.dimensions[1:])
    part = Module("part", Computation("part", module.entry.parameters, made))
    whole = interpret(module, FIELD)
    np.testing.assert_allclose(
        interpret(part, FIELD), whole[rows[0] : rows[1]], rtol=1e-6, atol=1e-6
    )


def test_rows_that_are_made_alike() -> None:
    root = simple(padded, FIELD).entry.root
    region = {i for i in in_order([root]) if can_be_cut(i)}
    assert uniform_rows(root, region) == (3, 147)


def test_a_long_chain_is_not_computed_again_and_again() -> None:
    """Eight steps as eight kernels: as one, each element was computed some hundred times."""

    def chain(u: Any) -> Any:
        for _ in range(8):
            u = step(u)
        return u

    made = tj.jit(chain).lower(FIELD).compile()
    assert len(made.explain().kernels) == 8
    np.testing.assert_allclose(made(FIELD), chain(FIELD), rtol=1e-5, atol=1e-5)


def test_a_large_chain_works_in_a_small_room() -> None:
    field = np.random.default_rng(1).standard_normal((2500, 1800)).astype(np.float32)
    made = tj.jit(padded).lower(field).compile()
    assert made.explain().workspace_bytes < 4 << 20
    np.testing.assert_allclose(made(field), padded(field), rtol=1e-5, atol=1e-5)
