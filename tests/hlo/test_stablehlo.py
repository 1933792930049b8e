"""StableHLO text: MLIR verifies it, and what XLA makes of it computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tests.evaluation import given
from tests.hlo.mlir import hlo_of_stablehlo, verify_stablehlo
from tests.judge import run_xla
from tests.samples.base import Sample
from tests.samples.cases import draw_joint, every_sample, joint_module
from tests.samples.comparing import compare
from tests.samples.values import element_types
from tracejit import ops, tree
from tracejit.backends.numpy import evaluate
from tracejit.equality import same_graph
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Computation, Instruction, Module
from tracejit.hlo import parse, to_stablehlo
from tracejit.hlo.stablehlo import stablehlo
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.verifier import verify

F32, S32 = ElementType.F32, ElementType.S32
X = Shape(F32, (2, 3))


# Samples of what the dialect lacks, with what the error says.
LACKING = {
    ("CollectivePermute", "slices"): "has slice_sizes, which StableHLO lacks",
    ("CustomCall", "tuple operand, token"): "StableHLO text opens tuples",
    ("RngGetAndUpdateState", ""): "reads a state",
}
# Functions outside the graph are handed the text of a configuration, which MLIR writes anew.
OUTSIDE = {"CustomCall"}


def lacking(sample: Sample) -> bool:
    return (sample.op, sample.label) in LACKING


def expressible(sample: Sample) -> bool:
    return not lacking(sample)


def test_every_op_has_a_form_or_a_reason_why_not() -> None:
    assert stablehlo.missing() == []


def through_stablehlo(module: Module) -> Module:
    """What XLA reads in the module's StableHLO text."""
    text = to_stablehlo(module)
    verify_stablehlo(text)
    return verify(parse(hlo_of_stablehlo(text)))


def check(sample: Sample, run: Callable[..., Any]) -> None:
    types = element_types(sample)
    module = joint_module(sample, types)
    made = through_stablehlo(module)
    if same_graph(made, module) or sample.op in OUTSIDE:
        return  # that the interpreter computes what XLA does is another test's
    arrays = draw_joint(sample, types)
    pairs = zip(
        tree.leaves(evaluate(module.entry, arrays)), tree.leaves(run(made, *arrays)), strict=True
    )
    problems = [compare(sample, np.asarray(a), np.asarray(b)) for a, b in pairs]
    assert not any(problems), problems


@pytest.mark.parametrize("sample", every_sample(expressible))
def test_sample(sample: Sample) -> None:
    check(sample, lambda module, *arrays: evaluate(module.entry, arrays))


@pytest.mark.exhaustive
@pytest.mark.parametrize("sample", every_sample(expressible))
def test_sample_run_by_xla(sample: Sample) -> None:
    check(sample, run_xla)


def main(root: Instruction, *parameters: Instruction) -> Module:
    return verify(Module("example", Computation("main", parameters, root)))


def test_a_whole_module() -> None:
    x = given("f32[2,3]")
    doubled = computation("double", lambda v: ops.add(v, v), X)
    total = ops.reduce_sum(ops.call(doubled, [x]), (1,))
    assert to_stablehlo(main(ops.tuple_([total, x]), x)) == (
        "module @example {\n"
        "  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {\n"
        "    %1 = func.call @double(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
        '    %2 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>\n'
        '    %6 = "stablehlo.reduce"(%1, %2) <{dimensions = array<i64: 1>}> ({\n'
        "    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):\n"
        "      %5 = stablehlo.add %arg3, %arg4 : tensor<f32>\n"
        "      stablehlo.return %5 : tensor<f32>\n"
        "    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n"
        "    func.return %6, %arg0 : tensor<2xf32>, tensor<2x3xf32>\n"
        "  }\n"
        "  func.func private @double(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
        "    %1 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>\n"
        "    func.return %1 : tensor<2x3xf32>\n"
        "  }\n"
        "}\n"
    )


def test_tuples_are_opened() -> None:
    pair = TupleShape((X, TupleShape((Shape(S32), TupleShape(())))))
    p = ops.parameter(0, pair)
    inner = ops.get_tuple_element(p, 1)
    number = ops.get_tuple_element(inner, 0)
    module = main(ops.tuple_([inner, ops.tuple_([ops.get_tuple_element(p, 0), number])]), p)
    text = to_stablehlo(module)
    verify_stablehlo(text)
    assert "@main(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) -> " in text
    assert "func.return %arg1, %arg0, %arg1" in text


def test_a_while_of_a_tuple() -> None:
    x, n = given("f32[2,3]"), given("s32[]", 1)
    state = TupleShape((Shape(S32), X))

    def positive(s: Instruction) -> Instruction:
        return ops.gt(ops.get_tuple_element(s, 0), ops.constant(np.int32(0)))

    def halved(s: Instruction) -> Instruction:
        count = ops.sub(ops.get_tuple_element(s, 0), ops.constant(np.int32(1)))
        value = ops.get_tuple_element(s, 1)
        return ops.tuple_([count, ops.mul(value, ops.full_like(value, 0.5))])

    looped = ops.while_(
        computation("positive", positive, state),
        computation("halved", halved, state),
        ops.tuple_([n, x]),
    )
    module = main(ops.get_tuple_element(looped, 1), x, n)
    text = to_stablehlo(module)
    verify_stablehlo(text)
    arrays = [np.full((2, 3), 16, np.float32), np.array(3, np.int32)]
    made = run_xla(parse(hlo_of_stablehlo(text)), *arrays)
    assert (made == 2).all()


def nested(depth: int) -> Computation:
    """Conditionals, one within the other."""
    body = computation("innermost", ops.neg, Shape(F32))
    for level in range(depth):

        def choose(x: Instruction, inner: Computation = body) -> Instruction:
            positive = ops.gt(x, ops.constant(np.float32(0)))
            return ops.conditional(positive, x, inner, x, inner)

        body = computation(f"level{level}", choose, Shape(F32))
    return body


@pytest.mark.parametrize("depth", [1, 3, 40])
def test_nested_conditionals_stay_small(depth: int) -> None:
    module = Module("nested", nested(depth))
    text = to_stablehlo(module)
    verify_stablehlo(text)
    assert len(text) < 1500 * (depth + 1)
    array = np.float32(3)
    assert evaluate(parse(hlo_of_stablehlo(text)).entry, [array]) == evaluate(module.entry, [array])


def test_two_thousand_computations_in_a_chain() -> None:
    body = computation("first", ops.neg, Shape(F32))
    for _ in range(2000):
        body = computation("next", lambda x, b=body: ops.call(b, [x]), Shape(F32))
    text = to_stablehlo(Module("chain", body))
    verify_stablehlo(text)
    assert text.count("func.func") == 2001


def test_ten_thousand_instructions() -> None:
    last = x = given("f32[]")
    for _ in range(10_000):
        last = ops.neg(last)
    assert to_stablehlo(main(last, x)).count("stablehlo.negate") == 10_000


CONSTANTS = [
    np.array([1.5, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 0.1], np.float32),
    np.array([1e300, 5e-324, np.nan, 0.1]),
    np.array([[True, False], [False, False]]),
    np.array([complex(np.nan, 1), complex(-0.0, np.inf)], np.complex64),
    np.array([-(2**63), 2**63 - 1]),
    np.array([2**64 - 1], np.uint64),
    np.zeros((0, 3), np.float16),
    np.linspace(-3, 3, 100),
    np.arange(100, dtype=np.int16).reshape(4, 25),
    np.arange(100) % 3 == 0,
    np.arange(-8, 8).astype(ElementType.S4.dtype).repeat(4),
    np.linspace(-9, 9, 60).astype(ElementType.F8E4M3FN.dtype),
    np.linspace(-9, 9, 60).astype(ElementType.BF16.dtype),
    (np.linspace(-9, 9, 60) * (1 + 2j)).astype(np.complex64),
    np.full((5, 7), -0.0),
]


@pytest.mark.parametrize("array", CONSTANTS, ids=range(len(CONSTANTS)))
def test_constants_to_the_bit(array: np.ndarray) -> None:
    x = ops.constant(array)
    text = to_stablehlo(main(x))
    verify_stablehlo(text)
    made = evaluate(parse(hlo_of_stablehlo(text)).entry, [])
    nan = array != array
    assert made.dtype == array.dtype
    assert np.array_equal(made != made, nan)
    assert made[~nan].tobytes() == array[~nan].tobytes()


def test_names_are_told_apart() -> None:
    x = given("f32[2,3]")
    one = computation("main", ops.neg, X)
    other = computation("main", ops.abs, X)
    text = to_stablehlo(main(ops.call(one, [ops.call(other, [x])]), x))
    verify_stablehlo(text)
    assert text.count("@main(") == 1


def test_of_a_jitted_function() -> None:
    lowered = tj.jit(lambda x: tj.numpy.tanh(x).sum()).lower(np.ones(3, np.float32))
    verify_stablehlo(lowered.as_text("stablehlo"))
    with pytest.raises(ArgumentError, match="must be 'hlo' or 'stablehlo', not 'mhlo'"):
        lowered.as_text("mhlo")


@pytest.mark.parametrize("name", ["s1", "u1"])
def test_single_bits_are_no_truth_values(name: str) -> None:
    x = ops.parameter(0, Shape(ElementType(name), (2,)))
    module = Module("bits", Computation("entry", (x,), ops.neg(x)))
    with pytest.raises(UnsupportedError, match=f"the dialect has no {name}; its i1 is pred"):
        to_stablehlo(module)


@pytest.mark.parametrize("sample", every_sample(lacking))
def test_what_the_dialect_lacks_is_named(sample: Sample) -> None:
    module = joint_module(sample, element_types(sample))
    message = f"to_stablehlo: {sample.op} .*{LACKING[sample.op, sample.label]}"
    with pytest.raises(UnsupportedError, match=message):
        to_stablehlo(module)
