"""Contractions hoisted out of a Scan: which are, and that only roundings change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.compiled import check
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.reduction import REDUCE
from tracejit.ops.scanning import SCAN
from tracejit.runtime import importing_tvm
from tracejit.traversal import in_order
from tracejit.verifier import verify

with importing_tvm():
    from tracejit.backends.tvm.ir.limits import Limits
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
    from tracejit.backends.tvm.passes.loops.scan_contractions import hoist_scan_contractions

STEPS, ROWS, INNER, COLUMNS = 5, 3, 4, 6


def drawn(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed + sum(shape))
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def traced(function: Callable[..., Any], *arguments: Any) -> Computation:
    return tj.jit(function).lower(*arguments).module.entry


def rewritten(function: Callable[..., Any], *arguments: Any) -> Instruction:
    entry = traced(function, *arguments)
    (root,) = hoist_scan_contractions(canonicalize([entry.root]), Limits())
    verify(Module("test", Computation("entry", entry.parameters, root)))
    return root


def inside(root: Instruction, op: Any) -> int:
    """How many of these a step has, in all Scans together."""
    steps = [i.attributes["to_apply"].root for i in in_order([root]) if i.op is SCAN]
    return sum(i.op is op for step in steps for i in in_order([step]))


def outside(root: Instruction, op: Any) -> int:
    return sum(i.op is op for i in in_order([root]))


def agrees(function: Callable[..., Any], *arguments: Any) -> None:
    leaves = [np.asarray(a) for a in tj.tree.leaves(arguments)]
    check(traced(function, *arguments), leaves)


def multiplied_slices(xs: Any, w: Any, s: Any) -> Any:
    return tj.lax.scan(lambda c, x: (np.tanh(c + x @ w), c * 2), s, xs)


def multiplied_by_slices(xs: Any, w: Any, s: Any) -> Any:
    return tj.lax.scan(lambda c, x: (np.tanh(c + (w.T @ x.T).T), c), s, xs, reverse=True)


def multiplied_outputs(xs: Any, w: Any, s: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return c * 0.5 + x, ((c * x) @ w, w.T @ c.T)

    return tj.lax.scan(step, xs[0], xs)


def summed_products(xs: Any, w: Any, s: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        c, total, turned, sums = state
        c = np.tanh(c + x)
        return (c, total + x.T @ c, (c * x).T @ x + turned, sums + c.sum(axis=0)), c

    zero = np.ones((INNER, INNER), xs.dtype)
    return tj.lax.scan(step, (xs[0], zero, zero.T * 2, xs[0, 0]), xs)


FREED = [
    (multiplied_slices, 0, 1),
    (multiplied_by_slices, 0, 1),
    (multiplied_outputs, 0, 2),
    (summed_products, 0, 2),
]


@pytest.mark.parametrize(("function", "left", "made"), FREED)
def test_products_leave_the_steps(function: Callable[..., Any], left: int, made: int) -> None:
    arguments = drawn(STEPS, ROWS, INNER), drawn(INNER, COLUMNS), drawn(ROWS, COLUMNS)
    root = rewritten(function, *arguments)
    assert inside(root, DOT_GENERAL) == left
    assert outside(root, DOT_GENERAL) == made
    agrees(function, *arguments)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int32, np.int8, np.complex64], ids=lambda t: t.__name__
)
def test_element_types(dtype: Any) -> None:
    def function(xs: Any, w: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            c, total = state
            c = c + x
            return (c, total + x.T @ c), (c @ w, x @ w)

        return tj.lax.scan(step, (xs[0], xs[0].T @ xs[1]), xs)

    agrees(function, drawn(STEPS, ROWS, INNER, dtype=dtype), drawn(INNER, COLUMNS, dtype=dtype))


def test_sums_follow_what_is_stacked() -> None:
    root = rewritten(summed_products, drawn(STEPS, ROWS, INNER), drawn(1, 1), drawn(1, 1))
    assert inside(root, REDUCE) == 0


def test_what_is_read_stays() -> None:
    def total_is_read(xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            c, total = state
            total = total + x.T @ c
            return (np.tanh(c + x), total), total[0]

        return tj.lax.scan(step, (xs[0], np.zeros((INNER, INNER))), xs)

    def product_is_read(xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            c, total = state
            product = x.T @ c
            return (np.tanh(c + x @ product), total + product), product

        return tj.lax.scan(step, (xs[0], np.zeros((INNER, INNER))), xs)

    def state_is_multiplied(xs: Any) -> Any:
        return tj.lax.scan(lambda c, x: (np.tanh(c @ c.T @ x), c[0]), xs[0], xs)

    xs = drawn(STEPS, ROWS, INNER)
    for function, left in ((total_is_read, 1), (product_is_read, 2), (state_is_multiplied, 2)):
        assert inside(rewritten(function, xs), DOT_GENERAL) == left
        agrees(function, xs)


def test_memory_is_limited() -> None:
    xs = drawn(STEPS, 1, dtype=np.float32)

    def broad(xs: Any, w: Any) -> Any:
        return tj.lax.scan(lambda c, x: (c + (x @ w).sum(), c), np.float32(0), xs)

    wide = np.ones((1, 200_000), np.float32)
    assert inside(rewritten(broad, xs, wide), DOT_GENERAL) == 1
    assert inside(rewritten(broad, xs, wide[:, :1000]), DOT_GENERAL) == 0


def test_one_step_and_none() -> None:
    for count in (0, 1):
        arguments = drawn(count, ROWS, INNER), drawn(INNER, COLUMNS), drawn(ROWS, COLUMNS)
        agrees(multiplied_slices, *arguments)


def test_training_step_of_a_recurrent_network() -> None:
    def loss(weights: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = np.tanh(x @ weights["in"] + h @ weights["state"] + weights["bias"])
            return h, h @ weights["out"]

        start = np.zeros((ROWS, COLUMNS))
        return np.sum(tj.lax.scan(step, start, xs)[1] ** 2)

    weights = {
        "bias": drawn(COLUMNS),
        "in": drawn(INNER, COLUMNS),
        "out": drawn(COLUMNS, 2),
        "state": drawn(COLUMNS, COLUMNS) / COLUMNS,
    }
    xs = drawn(STEPS, ROWS, INNER)
    root = rewritten(tj.grad(loss), weights, xs)
    # Forward h @ w, and backward its transpose, are all that the steps multiply.
    assert inside(root, DOT_GENERAL) <= 3
    agrees(tj.grad(loss), weights, xs)


@settings(max_examples=15, deadline=None)
@given(
    letters=st.permutations("abc"),
    other=st.permutations("bcd"),
    reverse=st.booleans(),
    contracted=st.sets(st.sampled_from("bc"), min_size=1),
    kind=st.sampled_from(["slice", "output", "sum"]),
    swapped=st.booleans(),
)
def test_every_order_of_dimensions(
    letters: list[str],
    other: list[str],
    reverse: bool,
    contracted: set[str],
    kind: str,
    swapped: bool,
) -> None:
    """Batch dimensions, several contracting ones, free ones, in any order and on either side."""
    sizes = {"a": 2, "b": 3, "c": 4, "d": 5}
    result = "".join(c for c in "abcd" if c not in contracted)
    left, right = "".join(letters), "".join(other)
    w = drawn(*(sizes[c] for c in right))
    xs = drawn(STEPS, *(sizes[c] for c in left))
    ys = drawn(STEPS, *(sizes[c] for c in right), seed=1)

    def product(one: Any, two: Any) -> Any:
        if swapped:
            return np.einsum(f"{right},{left}->{result}", two, one)
        return np.einsum(f"{left},{right}->{result}", one, two)

    def function(xs: Any, ys: Any, w: Any) -> Any:
        def step(state: Any, pair: Any) -> Any:
            x, y = pair
            moving, total = state
            if kind == "slice":
                return (moving + x, np.sin(total + product(x, w))), moving
            if kind == "output":
                return (moving + x, total), product(moving, w)
            return (moving + x, total + product(moving, y)), y

        start = np.zeros([sizes[c] for c in result])
        return tj.lax.scan(step, (xs[0], start), (xs, ys), reverse=reverse)

    assert inside(rewritten(function, xs, ys, w), DOT_GENERAL) == 0
    agrees(function, xs, ys, w)
