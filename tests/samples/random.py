"""Samples of RngBitGenerator, Rng and RngGetAndUpdateState."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Domain, Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.random import DEFAULT, PHILOX, THREE_FRY
from tracejit.shapes import ElementType, Shape

U64 = ElementType.U64
WIDTHS = [ElementType.U4, ElementType.U8, ElementType.U16, ElementType.U32, ElementType.U64]
# Types whose bits XLA hands out as unsigned words, so that they are looked at as such.
AS_WORDS = {
    ElementType.S4: ElementType.U4,
    ElementType.S8: ElementType.U8,
    ElementType.S16: ElementType.U16,
    ElementType.S32: ElementType.U32,
    ElementType.S64: ElementType.U64,
    ElementType.F8E5M2: ElementType.U8,
    ElementType.F16: ElementType.U16,
    ElementType.BF16: ElementType.U16,
    ElementType.F32: ElementType.U32,
    ElementType.F64: ElementType.U64,
}


def always(value: int) -> Domain:
    def values(
        rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
    ) -> np.ndarray:
        return np.full(dimensions, value, dtype)

    return values


def any_state(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return rng.integers(0, 2**64, dimensions, dtype)


def last_state(
    rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """A counter that overflows while bits are made."""
    return np.array([5, 2**64 - 2, 2**64 - 1][: dimensions[0]], dtype)


def generated(algorithm: str, *shapes: tuple[int, ...]) -> Callable[[Instruction], Instruction]:
    """The new state, and the bits of every width and of all shapes."""

    def build(state: Instruction) -> Instruction:
        made: list[Instruction] = []
        for width in WIDTHS:
            for dimensions in shapes:
                pair = ops.rng_bit_generator(algorithm, state, Shape(width, dimensions))
                made.extend(ops.elements_of(pair))
        return ops.tuple_(made)

    return build


def reinterpreted(algorithm: str) -> Callable[[Instruction], Instruction]:
    """Bits as signed and floating elements."""

    def build(state: Instruction) -> Instruction:
        made: list[Instruction] = []
        for element_type, words in AS_WORDS.items():
            pair = ops.rng_bit_generator(algorithm, state, Shape(element_type, (3, 5)))
            made.append(ops.bitcast_convert_type(ops.get_tuple_element(pair, 1), words))
        return ops.tuple_(made)

    return build


SHAPES = ((), (1,), (7,), (3, 5), (4, 3), (3, 4, 5), (5, 1, 3), (2, 0, 3), (67,))


def bits(
    label: str, build: Callable[..., Instruction], words: int, state: Domain = any_state
) -> Sample:
    """A sample of RngBitGenerator whose state has so many words."""
    return Sample(
        "RngBitGenerator",
        build,
        (Operand((words,), U64, state),),
        {U64},
        label,
        exact=True,
        differentiable=False,
        why="bits have none",
    )


def drawn(
    label: str, build: Callable[..., Instruction], types: set[ElementType], *bounds: int
) -> Sample:
    """A sample of Rng, of which only what holds for all numbers is looked at."""
    return Sample(
        "Rng",
        build,
        tuple(Operand((), domain=always(bound)) for bound in bounds),
        types,
        label,
        exact=True,
        differentiable=False,
        why="other numbers each time",
    )


def within(a: Instruction, b: Instruction) -> Instruction:
    """Whether uniform numbers lie between their bounds: they do."""
    made = ops.rng_uniform(a, b, Shape(a.array_shape.element_type, (4, 5)))
    low, high = (ops.broadcast_in_dim(x, (4, 5), ()) for x in (a, b))
    return ops.and_(ops.ge(made, low), ops.lt(made, high))


def only(a: Instruction) -> Instruction:
    """The only integer between two that follow one another."""
    one = ops.full_like(a, 1)
    return ops.rng_uniform(a, ops.add(a, one), Shape(a.array_shape.element_type, (7,)))


def without_deviation(mu: Instruction) -> Instruction:
    return ops.rng_normal(mu, ops.full_like(mu, 0), Shape(mu.array_shape.element_type, (3, 2)))


def size_of_state() -> Instruction:
    """The state xor itself: what it holds differs from backend to backend."""
    state = ops.rng_get_and_update_state(4)
    return ops.xor(state, state)


XLA_UNIFORM = {
    ElementType.S32,
    ElementType.S64,
    ElementType.U32,
    ElementType.U64,
    ElementType.F16,
    ElementType.BF16,
    ElementType.F32,
    ElementType.F64,
}

SAMPLES = [
    bits("three fry", generated(THREE_FRY, *SHAPES), 2),
    bits("philox", generated(PHILOX, *SHAPES), 3),
    bits("philox short state", generated(PHILOX, (9,), (2, 3)), 2),
    bits("default", generated(DEFAULT, (9,), ()), 3),
    bits("default short state overflows", generated(DEFAULT, (9,), ()), 2, last_state),
    bits("philox overflows", generated(PHILOX, (21,)), 3, last_state),
    bits("three fry overflows", generated(THREE_FRY, (21,)), 2, last_state),
    bits("three fry other types", reinterpreted(THREE_FRY), 2),
    bits("philox other types", reinterpreted(PHILOX), 3),
    drawn("uniform", within, XLA_UNIFORM, 1, 9),
    drawn("one integer", only, {t for t in XLA_UNIFORM if t.is_integral}, 3),
    drawn("normal", without_deviation, {t for t in XLA_UNIFORM if t.is_floating}, 2),
    Sample(
        "RngGetAndUpdateState",
        size_of_state,
        (),
        {U64},
        exact=True,
        differentiable=False,
        why="a counter",
    ),
]
