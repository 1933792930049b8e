"""Streams: what Rng draws, seeded, in order, and never twice the same; in both backends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.building import computation
from tracejit import ops
from tracejit.backends.numpy.streams import Stream, current_stream
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.computations import highest, lowest
from tracejit.shapes import ElementType, Shape

F32, F64, S32 = ElementType.F32, ElementType.F64, ElementType.S32


def program(*results: Instruction) -> Module:
    return Module("m", Computation("entry", (), ops.tuple_(results)))


def uniform(element_type: ElementType, low: float, high: float, *sizes: int) -> Instruction:
    least, most = (ops.constant(bound, element_type) for bound in (low, high))
    return ops.rng_uniform(least, most, Shape(element_type, sizes))


def both(module: Module, seed: int = 0) -> Any:
    """What the interpreter draws, which compiled code must draw as well."""
    drawn = tj.interpret(module, seed=seed)
    compiled = tj.compile(module, seed=seed)()
    for ours, theirs in zip(compiled, drawn, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    return drawn


def test_streams_count() -> None:
    stream = Stream(5)
    assert stream.take(3) == (0, 5)
    assert stream.take(2**63) == (3, 5)
    assert stream.take(2**63) == (2**63 + 3, 5)
    assert stream.take(1) == (3, 6)
    with stream.running():
        assert current_stream() is stream
    assert current_stream() is not stream


def test_equal_instructions_draw_different_numbers() -> None:
    a, b = ops.constant(0.0), ops.constant(1.0)
    shape = Shape(F64, (4,))
    module = program(ops.rng_uniform(a, b, shape), ops.rng_uniform(a, b, shape))
    first, second = both(module)
    assert (first != second).all()
    again = both(module)
    np.testing.assert_array_equal(again, [first, second])
    assert (both(module, 1)[0] != first).all()


def test_each_call_and_each_step_of_a_loop_draws_anew() -> None:
    def draw() -> Instruction:
        return uniform(F64, 0, 1, 3)

    called = computation("draw", draw)
    twice = program(ops.call(called, []), ops.call(called, []))
    first, second = both(twice)
    assert (first != second).all()

    def body(state: Instruction) -> Instruction:
        count, total = ops.elements_of(state)
        return ops.tuple_(
            [
                ops.add(count, ops.constant(1, S32)),
                ops.concatenate([ops.slice_(total, (3,), (9,)), uniform(F64, 0, 1, 3)], 0),
            ]
        )

    def more(state: Instruction) -> Instruction:
        return ops.lt(ops.elements_of(state)[0], ops.constant(3, S32))

    init = ops.tuple_([ops.constant(0, S32), ops.full(Shape(F64, (9,)), 0)])
    loop = ops.while_(
        computation("more", more, init.shape), computation("body", body, init.shape), init
    )
    (drawn,) = both(program(ops.elements_of(loop)[1]))
    assert len(set(drawn.tolist())) == 9


@pytest.mark.parametrize("element_type", [t for t in ElementType if not t.is_complex], ids=str)
def test_uniform_numbers_of_every_type(element_type: ElementType) -> None:
    low, high = (0, 1) if element_type.bits == 1 or element_type is ElementType.PRED else (1, 6)
    if element_type.is_integral and element_type.bits < 4:
        low, high = int(lowest(element_type)), int(highest(element_type))
    (drawn,) = both(program(uniform(element_type, low, high, 500)))
    values = drawn.astype(float)
    assert (values >= low).all()
    assert (values < high).all()
    if element_type.is_integral:
        assert set(values.tolist()) == set(range(low, high))
    (same,) = both(program(uniform(element_type, low, low, 3)))
    assert (same.astype(float) == low).all()


def test_bounds_at_the_ends_of_a_type() -> None:
    limits = np.iinfo(np.int64)
    (drawn,) = both(program(uniform(ElementType.S64, limits.min, limits.max, 400)))
    assert (drawn < 0).any()
    assert (drawn > 0).any()
    top = float(np.finfo(np.float64).max)
    (drawn,) = both(program(uniform(F64, -top, top, 400)))
    assert np.isfinite(drawn).all()


def test_normal_numbers() -> None:
    mu, sigma = ops.constant(3, F32), ops.constant(2, F32)
    (drawn,) = both(program(ops.rng_normal(mu, sigma, Shape(F32, (10001,)))))
    assert abs(drawn.mean() - 3) < 0.08
    assert abs(drawn.std() - 2) < 0.06


def test_numbers_are_not_folded_into_the_code() -> None:
    run = tj.compile(program(uniform(F64, 0, 1, 2)))
    assert (run()[0] != run()[0]).all()
