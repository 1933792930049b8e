"""The judge of graphs allows what XLA may do with zeros, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.building import computation
from tests.fuzz import refused
from tests.fuzz.comparing import leaves
from tests.fuzz.judging import judge_graph
from tests.fuzz.noise import disagreements
from tests.fuzz.verdict import verdict
from tests.judge import run_xla
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import constant
from tracejit.shapes import ElementType, Shape

DENORMAL = np.array([6.6e-39, 1.0], np.float32)


def entry_of(root: Instruction, *parameters: Instruction) -> Computation:
    return Computation("entry", parameters, ops.tuple_([root]))


def positive() -> Computation:
    """Whether halves are above zero."""
    x = ops.parameter(0, Shape(ElementType.F32, (2,)))
    half = ops.mul(x, ops.full_like(x, 0.5))
    return entry_of(ops.gt(half, ops.full_like(half, 0)), x)


def angle_of_sum() -> Computation:
    """The angle of a point whose two coordinates are a sum of zeros that are all negative."""
    x = ops.parameter(0, Shape(ElementType.F64, (16,)))
    numbers = ops.DotDimensionNumbers((0,), (1,))
    factors = ops.full(Shape(ElementType.F64, (3, 16, 3)), -1.4)
    total = ops.dot_general(x, factors, numbers)
    return entry_of(ops.sinh(ops.atan2(total, total)), x)


def found(entry: Computation, given: np.ndarray, actual: Sequence[float], by_xla: bool) -> bool:
    expected = leaves(evaluate(entry, [given]))
    made = np.array(actual, expected[0].dtype).reshape(expected[0].shape)
    return bool(disagreements(entry, [given], [made], expected, by_xla))


def test_xla_takes_denormal_numbers_for_zeros() -> None:
    assert not found(positive(), DENORMAL, [False, True], True)
    assert found(positive(), DENORMAL, [True, False], True)
    assert found(positive(), DENORMAL, [False, True], False), "compiled code keeps them"


def test_the_sign_of_a_sum_of_zeros_is_free() -> None:
    flat = [0.0] * 8
    assert not found(angle_of_sum(), np.zeros(16), [*flat, float(np.sinh(-np.pi))], False)
    assert found(angle_of_sum(), np.zeros(16), [*flat, 1000.0], False)


def test_graphs_that_xla_computes_with_other_zeros() -> None:
    for entry in (positive(), angle_of_sum()):
        for seed in range(3):
            outcome = judge_graph(Module("zeros", entry), seed)
            assert not outcome.failed, outcome.text


def test_a_constant_denormal_number() -> None:
    x = constant(DENORMAL)
    entry = entry_of(ops.gt(ops.add(x, x), ops.full_like(x, 0)))
    assert not judge_graph(Module("constants", entry), 0).failed


def test_what_ends_the_process_is_not_given_to_xla() -> None:
    """A size is as good as a constant: XLA divides it by zero while it compiles."""
    x = ops.parameter(0, Shape(ElementType.F32, (4,)))
    size = ops.get_dimension_size(ops.set_dimension_size(x, constant(2, ElementType.S32), 0), 0)
    for divisor, deadly in ((0, True), (3, False)):
        entry = entry_of(ops.rem(size, constant(divisor, ElementType.S32)), x)
        module = Module("divided", entry)
        assert refused.is_deadly(module) is deadly
        assert judge_graph(module, 0).kind == ("refused" if deadly else "agreed")


def test_cut_windows_of_few_bits_are_not_given_to_xla() -> None:
    for element_type, padding, deadly in (
        (ElementType.U2, (1, -1), True),
        (ElementType.U2, (1, 0), False),
        (ElementType.U8, (1, -1), False),
    ):
        x = ops.parameter(0, Shape(element_type, (3,)))
        entry = entry_of(ops.reduce_window_by("min", x, [1], padding=[padding]), x)
        module = Module("cut", entry)
        assert refused.is_deadly(module) is deadly
        assert judge_graph(module, 0).kind == ("refused" if deadly else "agreed")


def test_initial_values_that_xla_takes_more_than_once() -> None:
    ones = ops.full(Shape(ElementType.S16, (67, 16)), 1)
    x = ops.parameter(0, Shape(ElementType.S16, (67, 16)))
    factor = constant(7, ElementType.S16)
    times = ops.scalar_computation("mul", ElementType.S16)
    entry = entry_of(ops.reduce(ops.mul(x, ones), factor, times, [0]), x)
    assert not judge_graph(Module("stages", entry), 0).failed
    short = ops.parameter(0, Shape(ElementType.S16, (8,)))
    entry = entry_of(ops.reduce(short, factor, times, [0]), short)
    assert found(entry, np.ones(8, np.int16), [49], True)


def test_bits_of_rounded_numbers_say_nothing() -> None:
    x = ops.parameter(0, Shape(ElementType.BF16, (2,)))
    narrow = ElementType.F8E4M3FN
    given = np.array([1.5, -2.25], x.array_shape.dtype)
    product = entry_of(ops.bitcast_convert_type(ops.mul(x, x), narrow), x)
    assert not found(product, given, [72.0] * 4, False)
    assert found(entry_of(ops.bitcast_convert_type(x, narrow), x), given, [72.0] * 4, False)


def test_computed_nan_have_any_bits() -> None:
    x = ops.parameter(0, Shape(ElementType.F16))
    words = ElementType.U16
    angle = entry_of(ops.bitcast_convert_type(ops.atanh(x), words), x)
    for bits in (0x7E00, 0xFE00, 0x7FFF, 0xFFFF):
        assert not found(angle, np.array(2, np.float16), [bits], True)
    nan = np.array(np.nan, np.float16)
    assert found(entry_of(ops.bitcast_convert_type(x, words), x), nan, [0xFFFF], True)


def test_rounding_inside_of_a_loop() -> None:
    """What little is left of a difference, a thousand times, in every step."""
    scalar = Shape(ElementType.F32)
    init = ops.tuple_([constant(2, ElementType.S32), ops.parameter(0, scalar)])

    def step(state: Instruction) -> Instruction:
        number, x = ops.elements_of(state)
        rest = ops.sub(ops.exp(x), ops.full_like(x, 2.718281))
        less = ops.sub(number, constant(1, ElementType.S32))
        return ops.tuple_(
            [less, ops.add(ops.full_like(x, 1), ops.mul(rest, ops.full_like(x, 1e3)))]
        )

    def holds(state: Instruction) -> Instruction:
        return ops.gt(ops.get_tuple_element(state, 0), constant(0, ElementType.S32))

    body, condition = (computation("called", f, init.shape) for f in (step, holds))
    last = ops.get_tuple_element(ops.while_(condition, body, init), 1)
    entry = entry_of(last, *init.operands[1:])
    one = np.array(1, np.float32)
    (expected,) = leaves(evaluate(entry, [one]))
    assert not found(entry, one, [float(expected) * 1.05], False)
    assert found(entry, one, [float(expected) * 100], False)


def test_what_chance_leaves_alone_in_six_runs() -> None:
    """Six rounded numbers may all lie below what they are, but not below half of that."""
    given = np.linspace(1, 2, 6, dtype=np.float32)
    x = ops.parameter(0, Shape(ElementType.F32, (6,)))
    double = ops.mul(x, ops.full_like(x, 2))
    for factor, is_free in ((2, True), (1, False)):
        entry = entry_of(ops.lt(double, constant(factor * given)), x)
        assert found(entry, given, [True] * 6, False) is not is_free


def test_what_is_said_of_single_ops_holds_in_graphs() -> None:
    x = ops.parameter(0, Shape(ElementType.F64))
    entry = entry_of(ops.sub(ops.log1p(x), ops.full_like(x, 0.5)), x)
    given = np.array(0.7)
    off = float(np.log1p(0.7)) * (1 + 3e-14) - 0.5
    assert not found(entry, given, [off], True)
    assert found(entry, given, [off], False), "compiled code is as exact as ever"


def test_unknown_numbers_reach_predicates() -> None:
    """A reduction over nothing but one element, whose initial value XLA drops."""
    x = ops.parameter(0, Shape(ElementType.PRED, (5,)))
    total = ops.reduce(x, constant(True), ops.scalar_computation("or", ElementType.PRED), [])
    assert not judge_graph(Module("dropped", entry_of(total, x)), 0).failed


def test_places_beyond_what_signed_indices_can_number() -> None:
    """Of 135 elements s8 numbers the first 128: XLA writes to none, since 134 is negative there."""
    numbers = ops.ScatterDimensionNumbers((), (0,), (0,), 0)
    total = ops.scalar_computation("add", ElementType.S32)
    for size in (135, 128):
        x = ops.parameter(0, Shape(ElementType.S32, (size,)))
        place, update = constant(np.int8(3)), constant(np.int32(7))
        made = ops.scatter(x, ops.reshape(place, (1,)), update, total, numbers)
        given = np.zeros(size, np.int32)
        (expected,) = leaves(evaluate(entry_of(made, x), [given]))
        assert expected[3] == 7
        assert found(entry_of(made, x), given, [0] * size, True) is (size == 128)
        assert found(entry_of(made, x), given, [0] * size, False)


def test_nan_among_many_numbers_is_lost() -> None:
    for size, is_lost in ((4096, True), (4095, False)):
        x = ops.parameter(0, Shape(ElementType.F32, (size,)))
        numbers = np.ones(size, np.float32)
        numbers[7] = np.nan
        assert found(entry_of(ops.reduce_min(x, [0]), x), numbers, [1], True) is not is_lost
        assert found(entry_of(ops.reduce_min(x, [0]), x), numbers, [1], False)
        assert found(entry_of(ops.reduce_min(x, [0]), x), np.ones(size, np.float32), [2], True)


def test_extremes_of_complex_numbers_with_equal_real_parts() -> None:
    shape = Shape(ElementType.C64, (2,))
    lhs, rhs = ops.parameter(0, shape), ops.parameter(1, shape)
    given = [np.array([1 + 2j, 3], np.complex64), np.array([1, 4], np.complex64)]
    for operation in (ops.max, ops.min):
        entry = entry_of(operation(lhs, rhs), lhs, rhs)
        (expected,) = leaves(evaluate(entry, given))
        for other in (1 + 2j, 1):
            made = np.array([other, expected[1]], np.complex64)
            assert not disagreements(entry, given, [made], [expected])
        wrong = np.array([expected[0], 7 - expected[1]], np.complex64)
        assert disagreements(entry, given, [wrong], [expected])


def test_sines_below_the_axis_overflow_where_an_exponential_is_denormal() -> None:
    z = ops.parameter(0, Shape(ElementType.C64, (2,)))
    entry = entry_of(ops.sin(z), z)
    module = Module("sines", entry)
    given = np.array([1 - 87.3j, 1 - 87.5j], np.complex64)
    expected = leaves(evaluate(entry, [given]))
    (made,) = run_xla(module, given)
    assert np.isfinite(expected[0]).all()
    assert list(np.isfinite(made)) == [True, False]
    assert not disagreements(entry, [given], [made], expected)
    assert disagreements(entry, [given], [made], expected, False), "compiled code has no such limit"
    assert disagreements(entry, [given], [2 * expected[0]], expected)


def test_computed_nan_have_any_place_in_an_order() -> None:
    x = ops.parameter(0, Shape(ElementType.F32, (3,)))
    given = np.array([-1, 4, -2], np.float32)
    numbers = np.array([np.nan, 2, np.nan], np.float32)
    roots = entry_of(ops.sort(ops.sqrt(x)), x)
    assert not found(roots, given, [np.nan, 2, np.nan], False)
    assert found(entry_of(ops.sort(x), x), numbers, [np.nan, 2, np.nan], False)


def test_places_of_computed_nan_have_any_order() -> None:
    x = ops.parameter(0, Shape(ElementType.F32, (4,)))
    given = np.array([-1, 4, -2, 9], np.float32)

    def entry(numbers: Instruction) -> Computation:
        places = ops.get_tuple_element(ops.top_k(numbers, 3), 1)
        return entry_of(ops.get_tuple_element(ops.top_k(places, 1), 1), x)

    assert not found(entry(ops.sqrt(x)), given, [0], False)
    assert not found(entry(ops.sqrt(x)), given, [2], False)
    assert not found(entry(x), given, [0], False)
    assert found(entry(x), given, [2], False)


def test_a_fused_product_does_not_overflow() -> None:
    x = ops.parameter(0, Shape(ElementType.F32, (2,)))
    given = np.array([-3e38, 2], np.float32)
    two = ops.full_like(x, 2)
    entry = entry_of(ops.sub(ops.mul(x, two), x), x)
    assert not found(entry, given, [-3e38, 2], False)
    assert found(entry, given, [-3e38, 3], False)


def test_xla_has_zeros_of_a_type_without_them() -> None:
    """An iota of one element, and a sum of one: the judge leaves these out, and no longer ones."""
    kind = ElementType.F8E8M0FNU
    for size in (1, 3):
        x = ops.parameter(0, Shape(kind, (size,)))
        total = ops.reduce_sum(x, [0])
        counted = ops.iota(Shape(kind, (size,)), 0)
        entry = Computation("entry", (x,), ops.tuple_([total, counted]))
        assert judge_graph(Module("sums", entry), 0).kind == "agreed"
        given = np.ones(size, kind.dtype)
        sums = leaves(evaluate(entry, [given]))
        theirs = leaves(run_xla(Module("sums", entry), given))
        differ = [str(a) != str(b) for a, b in zip(sums, theirs, strict=True)]
        assert differ == [size == 1] * 2


def test_zeros_of_a_sort_that_need_not_be_stable() -> None:
    shape = Shape(ElementType.F64, (40,))
    for is_stable in (False, True):
        entry = computation(
            "entry",
            lambda x, s=is_stable: ops.tuple_([ops.sort(x, is_stable=s)]),
            shape,
        )
        given = np.concatenate([np.zeros(20), -np.zeros(19), np.ones(1)])
        (expected,) = leaves(evaluate(entry, [given]))
        wrong = np.concatenate([expected[:39][::-1], expected[39:]])
        assert bool(verdict(entry, "Sort", [given], [wrong], [expected], True)) is is_stable
        assert verdict(entry, "Sort", [given], [wrong], [expected], False)
