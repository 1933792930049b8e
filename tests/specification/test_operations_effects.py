"""The page "Operation semantics": dynamic sizes, calls to functions, queues, random bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tracejit as tj
from tests.judge import parse_xla
from tests.specification.running import (
    F32,
    PRED,
    S32,
    Build,
    computation,
    expect,
    f32,
    s32,
    scalars,
)
from tracejit.builder import XlaBuilder
from tracejit.graph import Computation
from tracejit.queues import Queue, feeds
from tracejit.shapes import TOKEN, ElementType, Shape, TupleShape
from tracejit.targets import register_custom_call

ONE_TO_TEN = np.arange(1, 11, dtype=np.float32)


def reduction(name: str, init: float) -> Build:
    combine = scalars(lambda b, x, y: getattr(b, name)(x, y), F32, F32)
    return lambda b, v, size: b.reduce(
        b.set_dimension_size(v, size, 0), b.constant(f32(init)), combine, (0,)
    )


@pytest.mark.parametrize(
    ("name", "size", "wanted"),
    [("add", 5, 1 + 2 + 3 + 4 + 5), ("mul", 5, 120), ("add", 6, 1 + 2 + 3 + 4 + 5 + 6)],
)
def test_set_dimension_size_leaves_out_what_is_beyond(name: str, size: int, wanted: int) -> None:
    init = 0 if name == "add" else 1
    expect(reduction(name, init), [ONE_TO_TEN, s32(size)], f32(wanted))


def test_setting_a_size_keeps_the_bound() -> None:
    made = computation(
        lambda b, v, n: b.set_dimension_size(v, n, dimension=0), Shape(F32, (10,)), Shape(S32)
    )
    assert made.root.array_shape.dimensions == (10,)


def test_get_dimension_size() -> None:
    expect(lambda b, v: b.get_dimension_size(v, 0), [ONE_TO_TEN], s32(10))
    expect(
        lambda b, v, n: b.get_dimension_size(b.set_dimension_size(v, n, 0), 0),
        [ONE_TO_TEN, s32(4)],
        s32(4),
    )


@pytest.fixture
def myfunc() -> None:
    @register_custom_call("specification.myfunc", replace=True)
    def function(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        assert x.tolist() == [1, 2]
        assert y.tolist() == [[10, 20, 30], [40, 50, 60]]
        z = np.zeros((3, 3), np.float32)
        z[0, 0] = x[1] + y[1, 0]
        return z


@pytest.mark.usefixtures("myfunc")
def test_custom_call_calls_the_users_function() -> None:
    wanted = np.zeros((3, 3), np.float32)
    wanted[0, 0] = 2 + 40
    expect(
        lambda b, x, y: b.custom_call("specification.myfunc", [x, y], Shape(F32, (3, 3))),
        [f32([1, 2]), f32([[10, 20, 30], [40, 50, 60]])],
        wanted,
    )


def composite() -> Computation:
    decomposition = computation(lambda b, x: b.add(x, x), Shape(F32))
    attributes = "{n = 1 : i32, tensor = dense<1> : tensor<i32>}"
    return computation(
        lambda b: b.composite_call(
            decomposition, [b.constant(f32(3))], "foo.bar", attributes, version=1
        )
    )


def test_composite_call_is_its_decomposition() -> None:
    made = composite()
    assert tj.interpret(made) == f32(6)
    assert tj.compile(made)() == f32(6)


def test_composite_call_is_written_as_a_call_with_attributes() -> None:
    text = tj.hlo.to_text(tj.graph.Module("composite", composite()))
    for printed in (text, parse_xla(text)):
        assert "is_composite=true" in printed
        assert 'composite.name="foo.bar"' in printed
        assert "composite.attributes={n = 1 : i32, tensor = dense<1> : tensor<i32>}" in printed
        assert 'composite.version="1"' in printed


@pytest.fixture
def queues() -> Iterator[tuple[Queue, Queue]]:
    mine, results = Queue("in", timeout=5), Queue("out", timeout=5)
    with feeds(mine, results):
        yield mine, results


def test_infeeds_of_two_loops_are_in_order(queues: tuple[Queue, Queue]) -> None:
    """Each loop reads until the datum is negative; the second begins where the first ended."""
    data, _ = queues
    state = Shape(F32)
    condition = computation(lambda b, s: b.ge(s, b.constant(f32(0))), state)
    body = computation(lambda b, s: b.infeed(state), state)

    def build(b: XlaBuilder) -> Computation:
        first = b.while_(condition, body, b.constant(f32(0)))
        again = b.neg(first)
        second = b.while_(condition, body, again)
        return b.build(b.tuple([first, second]))

    made = build(XlaBuilder("loops"))
    for run in (tj.interpret, lambda m: tj.compile(m)()):
        for value in (1, 2, -3, 5, -7):
            data.put(np.float32(value))
        first, second = run(made)
        assert (float(first), float(second)) == (-3, -7)
        assert len(data) == 0


def test_infeed_reads_arrays_and_tuples(queues: tuple[Queue, Queue]) -> None:
    data, _ = queues
    pair = TupleShape((Shape(F32, (2,)), Shape(S32)))
    made = computation(lambda b: b.tuple([b.infeed(Shape(F32, (3,))), b.infeed(pair)]))
    data.put(f32([1, 2, 3]))
    data.put((f32([4, 5]), s32(6)))
    first, (second, third) = tj.interpret(made)
    assert (first.tolist(), second.tolist(), int(third)) == ([1, 2, 3], [4, 5], 6)


def test_an_infeed_of_nothing_reads_nothing(queues: tuple[Queue, Queue]) -> None:
    data, _ = queues
    data.put(f32(1))
    builder = XlaBuilder("nothing")
    builder.infeed(TupleShape(()))
    made = builder.build(builder.constant(f32(2)))
    assert tj.interpret(made) == f32(2)
    assert len(data) == 1


def test_outfeed_writes_its_operand(queues: tuple[Queue, Queue]) -> None:
    _, results = queues
    builder = XlaBuilder("writer")
    x = builder.parameter(0, Shape(F32, (2,)))
    builder.outfeed(builder.neg(x), Shape(F32, (2,)))
    made = builder.build(x)
    tj.interpret(made, f32([1, 2]))
    tj.compile(made)(f32([3, 4]))
    assert [results.get().tolist() for _ in range(2)] == [[-1, -2], [-3, -4]]


def test_after_all_joins_tokens() -> None:
    builder = XlaBuilder("tokens")
    joined = builder.after_all([builder.after_all([]), builder.after_all([])])
    assert joined.shape == TOKEN


def test_optimization_barrier_is_its_operand() -> None:
    expect(
        lambda b, x, y: b.optimization_barrier(b.tuple([x, y])),
        [f32([1, 2]), s32(3)],
        (f32([1, 2]), s32(3)),
    )


@pytest.mark.parametrize(
    ("algorithm", "words"), [("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 2)]
)
def test_random_bits_are_a_function_of_the_state(algorithm: str, words: int) -> None:
    state = np.arange(1, words + 1, dtype=np.uint64)
    made = computation(
        lambda b, s: b.rng_bit_generator(algorithm, s, Shape(ElementType.U32, (100,))),
        Shape(ElementType.U64, (words,)),
    )
    after, bits = tj.interpret(made, state)
    assert after.shape == state.shape
    assert bits.shape == (100,)
    assert not np.array_equal(after, state)
    again = tj.compile(made)(state)
    np.testing.assert_array_equal(again[0], after)
    np.testing.assert_array_equal(again[1], bits)


@pytest.mark.parametrize("kind", [PRED, S32, F32])
def test_uniform_numbers_lie_in_their_interval(kind: ElementType) -> None:
    low, high = (
        np.array([0, 1]).astype(kind.dtype) if kind is PRED else np.array([2, 7], kind.dtype)
    )
    made = computation(
        lambda b, a, c: b.rng_uniform(a, c, Shape(kind, (1000,))), Shape(kind), Shape(kind)
    )
    values = tj.interpret(made, low, high)
    assert values.dtype == kind.dtype
    assert low <= values.min()
    assert values.max() < high if kind is not PRED else not values.any()


def test_normal_numbers_have_their_mean_and_deviation() -> None:
    made = computation(
        lambda b, m, s: b.rng_normal(m, s, Shape(F32, (4000,))), Shape(F32), Shape(F32)
    )
    values = tj.interpret(made, f32(3), f32(2))
    assert abs(values.mean() - 3) < 0.2
    assert abs(values.std() - 2) < 0.2
