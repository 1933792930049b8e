"""Canonicalisation: the graph after each rewrite, and that values keep every bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import computation
from tests.fuzz.comparing import leaves
from tests.samples.values import special_values
from tests.tolerances import same_bits
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order
from tracejit.verifier import verify

with importing_tvm():
    from tracejit.backends.tvm.passes.canonicalize.canonicalize import canonicalize

F32, F64, S32, PRED, C64 = (
    ElementType.F32,
    ElementType.F64,
    ElementType.S32,
    ElementType.PRED,
    ElementType.C64,
)
Build = Callable[[Instruction], Instruction]


def full(x: Instruction, value: complex) -> Instruction:
    return ops.full_like(x, value)


def simplified(entry: Computation) -> Computation:
    """The computation with a simpler root, which keeps the rules."""
    (root,) = canonicalize([entry.root])
    made = Computation(entry.name, entry.parameters, root)
    verify(Module("simple", made))
    return made


def opcodes(entry: Computation) -> list[str]:
    return [i.op.opcode for i in in_order([entry.root]) if i.op.opcode != "parameter"]


def values(shape: Shape) -> np.ndarray:
    """Every special value, then the first again, to fill the shape."""
    return np.resize(special_values(shape.element_type), shape.dimensions)


# name: (element type, dimensions, graph, opcodes that are left)
CASES: dict[str, tuple[ElementType, tuple[int, ...], Build, list[str]]] = {
    "x + 0": (S32, (20,), lambda x: ops.add(x, full(x, 0)), []),
    "x + -0": (F32, (20,), lambda x: ops.add(x, full(x, -0.0)), []),
    "-0 + x": (F32, (20,), lambda x: ops.add(full(x, -0.0), x), []),
    "x + +0": (F32, (20,), lambda x: ops.add(x, full(x, 0.0)), ["constant", "broadcast", "add"]),
    "x - 0": (F32, (20,), lambda x: ops.sub(x, full(x, 0.0)), []),
    "x - -0": (
        F32,
        (20,),
        lambda x: ops.sub(x, full(x, -0.0)),
        ["constant", "broadcast", "subtract"],
    ),
    "x 1": (F32, (20,), lambda x: ops.mul(x, full(x, 1)), []),
    "1 x": (S32, (20,), lambda x: ops.mul(full(x, 1), x), []),
    "x 0": (F32, (20,), lambda x: ops.mul(x, full(x, 0)), ["constant", "broadcast", "multiply"]),
    "x and true": (PRED, (4,), lambda x: ops.mul(x, full(x, 1)), []),
    "complex x 1": (
        C64,
        (49,),
        lambda x: ops.mul(x, full(x, 1)),
        ["constant", "broadcast", "multiply"],
    ),
    "x / 1": (F32, (20,), lambda x: ops.div(x, full(x, 1)), []),
    "x / -8": (
        F32,
        (20,),
        lambda x: ops.div(x, full(x, -8)),
        ["constant", "broadcast", "multiply"],
    ),
    "x / 3": (F64, (20,), lambda x: ops.div(x, full(x, 3)), ["constant", "broadcast", "divide"]),
    "x / tiny": (
        F32,
        (20,),
        lambda x: ops.div(x, full(x, 2.0**-126)),
        ["constant", "broadcast", "divide"],
    ),
    "integer x / 8": (
        S32,
        (20,),
        lambda x: ops.div(x, full(x, 8)),
        ["constant", "broadcast", "divide"],
    ),
    "-(-x)": (F32, (20,), lambda x: ops.neg(ops.neg(x)), []),
    "x if c else x": (F32, (20,), lambda x: ops.select(ops.lt(x, x), x, x), []),
    "x if true else -x": (
        F32,
        (20,),
        lambda x: ops.select(ops.full(Shape(PRED, (20,)), True), x, ops.neg(x)),
        [],
    ),
    "reshape of reshape": (
        F32,
        (2, 3),
        lambda x: ops.reshape(ops.reshape(x, (6,)), (3, 2)),
        ["reshape"],
    ),
    "reshape there and back": (
        F32,
        (2, 3),
        lambda x: ops.reshape(ops.reshape(x, (6,)), (2, 3)),
        [],
    ),
    "broadcast of broadcast": (
        F32,
        (3,),
        lambda x: ops.broadcast_in_dim(ops.broadcast_in_dim(x, (2, 3), (1,)), (2, 4, 3), (0, 2)),
        ["broadcast"],
    ),
    "transpose there and back": (
        F32,
        (2, 3),
        lambda x: ops.transpose(ops.transpose(x, (1, 0)), (1, 0)),
        [],
    ),
    "transpose of transpose": (
        F32,
        (2, 3, 4),
        lambda x: ops.transpose(ops.transpose(x, (1, 2, 0)), (0, 2, 1)),
        ["transpose"],
    ),
    "transpose of ones": (
        F32,
        (2, 1, 3),
        lambda x: ops.transpose(x, (1, 0, 2)),
        ["reshape"],
    ),
    "reverse of one": (F32, (1, 3), lambda x: ops.rev(x, (0,)), []),
    "whole slice": (F32, (4,), lambda x: ops.slice_(x, (0,), (4,)), []),
    "pad by nothing": (F32, (4,), lambda x: ops.pad(x, ops.constant(1, F32), [(0, 0, 0)]), []),
    "pad and crop": (
        F32,
        (4,),
        lambda x: ops.pad(x, ops.constant(1, F32), [(1, -1, 0)]),
        ["constant", "pad"],
    ),
    "constants": (
        F32,
        (4,),
        lambda x: ops.add(x, ops.exp(ops.constant(np.array([1, 2, 3, 4], np.float32)))),
        ["constant", "add"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rewrite(name: str) -> None:
    element_type, dimensions, build, wanted = CASES[name]
    shape = Shape(element_type, dimensions)
    entry = computation(build, shape)
    simple = simplified(entry)
    assert opcodes(simple) == wanted
    x = values(shape)
    for ours, theirs in zip(
        leaves(evaluate(simple, [x])), leaves(evaluate(entry, [x])), strict=True
    ):
        assert not same_bits(ours, theirs)


def test_equal_instructions_become_one() -> None:
    def build(x: Instruction) -> Instruction:
        return ops.add(ops.exp(ops.neg(x)), ops.exp(ops.neg(x)))

    assert opcodes(simplified(computation(build, Shape(F32, (3,))))) == [
        "negate",
        "exponential",
        "add",
    ]


def test_the_constants_that_rewrites_make_become_one() -> None:
    def build(x: Instruction) -> Instruction:
        return ops.sub(ops.div(x, full(x, 2)), ops.div(ops.exp(x), full(x, 2)))

    left = opcodes(simplified(computation(build, Shape(F64))))
    assert sorted(left) == ["constant", "exponential", "multiply", "multiply", "subtract"]


def test_zeros_of_different_sign_stay_apart() -> None:
    def build(x: Instruction) -> Instruction:
        return ops.tuple_([ops.max(x, full(x, 0.0)), ops.max(x, full(x, -0.0))])

    left = opcodes(simplified(computation(build, Shape(F32, (3,)))))
    assert left.count("maximum") == 2


def test_a_deep_graph_is_no_deep_recursion() -> None:
    def build(x: Instruction) -> Instruction:
        for _ in range(5000):
            x = ops.add(x, x)
        return x

    assert len(opcodes(simplified(computation(build, Shape(F32, (3,)))))) == 5000
