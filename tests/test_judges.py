"""The judges themselves: each sees the mistake it is there to see."""

from __future__ import annotations

import numpy as np
import pytest

from tests.autodiff.gradients import check_gradients
from tests.judge import parse_xla, run_xla
from tests.samples.values import BEYOND_XLA, special_values, usual_values
from tests.tolerances import RELATIVE, differences, same_bits
from tracejit import ops
from tracejit.autodiff.reverse import Cotangents, differentiate
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.elementwise_unary import SIN
from tracejit.shapes import ElementType, Shape


def transposed(element_type: ElementType, sizes: tuple[int, ...]) -> Module:
    x = ops.parameter(0, Shape(element_type, sizes))
    return Module(
        "transposed", Computation("main", (x,), ops.transpose(x, range(len(sizes))[::-1]))
    )


@pytest.mark.parametrize("element_type", [t for t in ElementType if t not in BEYOND_XLA], ids=str)
def test_every_element_type_crosses_the_border(element_type: ElementType) -> None:
    rng = np.random.default_rng(0)
    for sizes in ((2, 3), (), (0, 3), (1,)):
        array = usual_values(rng, sizes, element_type)
        result = run_xla(transposed(element_type, sizes), array)
        assert not same_bits(result, array.T)
    values = special_values(element_type)
    assert not same_bits(run_xla(transposed(element_type, values.shape), values), values)


def test_tuples_come_back_as_tuples() -> None:
    x = ops.parameter(0, Shape(ElementType.BF16, (2,)))
    y = ops.parameter(1, Shape(ElementType.S4, ()))
    module = Module("pair", Computation("main", (x, y), ops.tuple_([y, x, ops.neg(y)])))
    arrays = [np.array([1, 2]).astype(x.array_shape.dtype), np.array(3).astype(y.array_shape.dtype)]
    assert [r.tolist() for r in run_xla(module, *arrays)] == [3, [1, 2], -3]


def test_a_computation_called_main_is_not_the_entry() -> None:
    inner, x = (ops.parameter(0, Shape(ElementType.F32)) for _ in range(2))
    main = Computation("main", (inner,), ops.neg(inner))
    module = Module("m", Computation("entry", (x,), ops.add(x, ops.call(main, [x]))))
    assert run_xla(module, np.float32(3)) == 0


def test_arguments_of_the_wrong_type_or_shape_are_refused() -> None:
    module = transposed(ElementType.F32, (2, 3))
    with pytest.raises(AssertionError, match="float64 given"):
        run_xla(module, np.zeros((2, 3)))
    with pytest.raises(AssertionError, match=r"\(3, 2\) given"):
        run_xla(module, np.zeros((3, 2), np.float32))


def test_xla_refuses_what_is_not_hlo() -> None:
    with pytest.raises(RuntimeError, match="Syntax error"):
        parse_xla("HloModule m\nENTRY e { x = f32[] frobnicate() }")


@pytest.mark.parametrize("element_type", RELATIVE, ids=str)
def test_tolerances_are_a_few_units_in_the_last_place(element_type: ElementType) -> None:
    numbers = [1.0, 3.0, -100.0]
    if element_type.is_small_float:
        numbers = [1.0, 1.5, -1.0] if element_type.is_signed else [1.0, 2.0, 4.0]
    expected = np.array(numbers).astype(element_type.dtype)
    tolerance = RELATIVE[element_type]
    far = (expected * (1 + 2.5 * tolerance)).astype(expected.dtype)
    assert not differences(expected, expected)
    assert "3 of 3 elements differ" in differences(far, expected)
    assert not differences(far, expected, relative=3 * tolerance)
    assert "first at [0]" in differences(far, expected, relative=0.0)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([np.nan], [1.0]),
        ([1.0], [np.nan]),
        ([np.inf], [np.finfo(np.float64).max]),
        ([-np.inf], [np.inf]),
        ([complex(1, np.nan)], [complex(1, 1)]),
        ([1], [2]),
        ([True], [False]),
        ([1.0], [[1.0]]),
        ([1.0], [1]),
    ],
)
def test_differences_are_seen(actual: list[complex], expected: list[complex]) -> None:
    assert differences(np.array(actual), np.array(expected))
    assert same_bits(np.array(actual), np.array(expected))


def test_what_counts_as_equal() -> None:
    tiny = np.finfo(np.float32).tiny
    assert not differences(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))
    assert not differences(np.zeros(1, np.float32), np.array([tiny / 2])), (
        "denormal numbers are flushed"
    )
    assert not differences(np.array([1e-9]), np.array([0.0]), scale=1e6)
    assert differences(np.array([1e-9]), np.array([0.0]))
    assert same_bits(np.array([-0.0]), np.array([0.0]))
    payload = (np.array([np.nan]).view(np.uint64) | np.uint64(1)).view(np.float64)
    assert not same_bits(payload, np.array([np.nan]))


def test_gradient_check_accepts_what_is_right() -> None:
    check_gradients(lambda x, y: ops.mul(ops.sin(x), y), [np.array([0.3, 1.2]), np.ones(2)])
    check_gradients(ops.sin, [np.array([0.3 + 1j])])


@pytest.mark.parametrize(
    "wrong", [lambda x: x, lambda x: ops.sin(x), lambda x: ops.neg(ops.cos(x))], ids=range(3)
)
def test_gradient_check_sees_a_wrong_rule(wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
        assert callable(wrong)
        return [ops.mul(cotangent, wrong(instruction.operands[0]))]

    monkeypatch.setitem(differentiate._rules, SIN, rule)
    with pytest.raises(AssertionError, match="order 1: the derivative is"):
        check_gradients(ops.sin, [np.array([0.3, 1.2])])


def test_gradient_check_sees_a_rule_that_is_right_at_one_point(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
        # cos(0.3), whatever the operand.
        return [ops.mul(cotangent, ops.full_like(cotangent, np.cos(0.3)))]

    monkeypatch.setitem(differentiate._rules, SIN, rule)
    with pytest.raises(AssertionError, match="order 1: the derivative is"):
        check_gradients(ops.sin, [np.array([0.3])])


def test_gradient_check_sees_a_conjugate(monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(instruction: Instruction, cotangent: Instruction) -> Cotangents:
        return [ops.mul(cotangent, ops.conj(ops.cos(instruction.operands[0])))]

    monkeypatch.setitem(differentiate._rules, SIN, rule)
    with pytest.raises(AssertionError, match="order 1"):
        check_gradients(ops.sin, [np.array([0.3 + 1j])])
