"""Scan as the specification describes it, and derivatives of loops that it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import compiled
from tests.building import computation
from tests.evaluation import given
from tests.judge import parse_xla, run_xla
from tracejit import ops
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError, TracejitError
from tracejit.graph import Computation, Instruction, Module
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize
    from tracejit.backends.tvm.passes.loops.fuse_scans import fuse_scans

SCALAR = Shape(ElementType.F32)


def example(x: Instruction, c: Instruction) -> Instruction:
    """f(x, c) -> (y, c')"""
    return ops.tuple_([ops.mul(x, c), ops.add(x, c)])


def example_module(is_reverse: bool) -> Module:
    inputs, init = given("f32[3]"), given("f32[]", 1)
    step = computation("f", example, SCALAR, SCALAR)
    root = ops.scan([inputs], [init], step, 0, is_reverse)
    return Module("example", Computation("entry", (inputs, init), root))


@pytest.mark.parametrize("is_reverse", [False, True])
def test_example_of_three_steps(is_reverse: bool) -> None:
    """([y0, y1, y2], c2) of [a, b, c] and i."""
    x, i = np.array([2, 3, 5], np.float32), np.float32(7)
    module = example_module(is_reverse)
    expected, carry = np.empty(3, np.float32), i
    for n in (2, 1, 0) if is_reverse else (0, 1, 2):
        expected[n], carry = x[n] * carry, x[n] + carry
    arguments = [x, np.array(i)]
    for ys, final in (
        tj.interpret(module, *arguments),
        compiled(module.entry)(arguments),
        run_xla(module, *arguments),
    ):
        np.testing.assert_array_equal(ys, expected)
        assert final == carry


def test_xla_reads_the_text() -> None:
    text = str(example_module(True))
    assert "scan(" in text
    assert "dimensions={0}, num_carries=1, is_reverse=true" in parse_xla(text)
    assert "scan" in str(tj.hlo.parse(parse_xla(text)))


def identity(*values: Instruction) -> Instruction:
    return ops.tuple_(values)


REFUSALS = [
    ([], ["f32[]"], 0, [], ArgumentError, "length must say how many steps"),
    (["f32[3]"], ["f32[]"], 1, [""], ShapeError, r"out of range for input 0 f32\[3\]"),
    (["f32[3]", "f32[4]"], [], 0, ["", ""], ShapeError, r"input 0 f32\[3\], input 1 f32\[4\]"),
    (["f32[3,2]"], ["f32[]"], 0, ["f32[3]", "f32[]"], TracejitError, "scan: computation"),
]


@pytest.mark.parametrize(("inputs", "inits", "dimension", "taken", "error", "message"), REFUSALS)
def test_operands_that_do_not_fit(
    inputs: Sequence[str],
    inits: Sequence[str],
    dimension: int,
    taken: Sequence[str],
    error: type[Exception],
    message: str,
) -> None:
    shapes = [given(t).shape for t in taken if t] or [SCALAR] * (len(inputs) + len(inits))
    step = computation("step", identity, *shapes)
    operands = [given(t, n) for n, t in enumerate([*inputs, *inits])]
    with pytest.raises(error, match=message):
        ops.scan(operands[: len(inputs)], operands[len(inputs) :], step, dimension)


def test_carries_keep_their_shapes() -> None:
    def widened(x: Instruction, c: Instruction) -> Instruction:
        return ops.tuple_([x, ops.broadcast(c, (2,))])

    step = computation("step", widened, SCALAR, SCALAR)
    with pytest.raises(ShapeError, match=r"returns \(f32\[2\]\), inits are \(f32\[\]\)"):
        ops.scan([given("f32[3]")], [given("f32[]", 1)], step)


def test_the_computation_returns_a_tuple() -> None:
    step = computation("step", ops.add, SCALAR, SCALAR)
    with pytest.raises(ShapeError, match="must return a tuple of outputs and 1 carries"):
        ops.scan([given("f32[3]")], [given("f32[]", 1)], step)


def test_dimension_must_not_be_negative() -> None:
    step = computation("step", identity, SCALAR, SCALAR)
    with pytest.raises((AttributeValueError, ShapeError), match="scan_dimension -1"):
        ops.scan([given("f32[3]")], [given("f32[]", 1)], step, -1)


def recurrent(unroll: bool | int, reverse: bool) -> Callable[..., Any]:
    """A loss of a small recurrent network, whose weights come from outside the loop."""

    def loss(w: np.ndarray, u: np.ndarray, h: np.ndarray, xs: np.ndarray) -> Any:
        def step(
            state: tuple[np.ndarray, int], x: np.ndarray
        ) -> tuple[tuple[np.ndarray, int], np.ndarray]:
            h, count = state
            new = np.tanh(w @ h + u @ x) * (count + 1)
            return (new, count + 1), new.sum() * 2

        (last, _), ys = tj.lax.scan(step, (h, 0), xs, reverse=reverse, unroll=unroll)
        return (ys**2).sum() + last.sum()

    return loss


@pytest.mark.parametrize("reverse", [False, True])
def test_gradient_of_a_loop_is_that_of_its_steps(reverse: bool) -> None:
    """First and second derivatives, those of the loop compiled."""
    rng = np.random.default_rng(0)
    w, u, xs = rng.normal(size=(3, 3)) / 9, rng.normal(size=(3, 2)) / 9, rng.normal(size=(4, 2))
    arguments = (w, u, np.ones(3), xs)
    by_unroll = []
    for unroll in (True, 2):
        loss = recurrent(unroll, reverse)
        first = tj.grad(loss, argnums=(0, 1, 2, 3))
        second = tj.grad(lambda *a, first=first: sum((g**2).sum() for g in first(*a)))
        run = tj.jit if unroll == 2 else lambda f: f
        by_unroll.append([*run(first)(*arguments), run(second)(*arguments)])
    for unrolled, looped in zip(*by_unroll, strict=True):
        np.testing.assert_allclose(looped, unrolled, rtol=1e-10)


def test_a_derivative_takes_each_step_once_and_back() -> None:
    """Its Scan for the carries of every step takes the place of the first one."""
    loss = recurrent(2, False)
    arguments = (np.eye(3), np.ones((3, 2)), np.ones(3), np.ones((4, 2)))
    module = tj.jit(tj.value_and_grad(loss, argnums=(0, 3))).lower(*arguments).module
    (root,) = fuse_scans(canonicalize([module.entry.root]))
    assert sum(i.op.opcode == "scan" for i in in_order([root])) == 2


def test_what_no_step_changes_is_not_kept_at_every_step() -> None:
    loss = recurrent(2, False)
    arguments = (np.eye(3), np.ones((3, 2)), np.ones(3), np.ones((100, 2)))
    text = str(tj.jit(tj.grad(loss)).lower(*arguments).module)
    assert "f64[100,3]" in text
    assert "f64[100,3,3]" not in text
