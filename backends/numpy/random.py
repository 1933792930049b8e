"""RngBitGenerator, Rng and RngGetAndUpdateState, evaluated."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate, interpret
from tracejit.backends.numpy.precision import from_bits
from tracejit.backends.numpy.streams import current_stream
from tracejit.backends.numpy.words import ARRAYS, counted, halves, joined
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.random import (
    RNG,
    RNG_BIT_GENERATOR,
    RNG_GET_AND_UPDATE_STATE,
    THREE_FRY,
    Halves,
    counters,
)
from tracejit.ops.random_expansions import expanded_rng
from tracejit.ops.random_words import philox_4x32, threefry_2x32
from tracejit.shapes import Shape, TupleShape


def _three_fry(state: np.ndarray, shape: Shape) -> np.ndarray:
    key = halves(state[0])

    def generate(count: np.ndarray) -> Sequence[np.ndarray]:
        return threefry_2x32(ARRAYS, key, halves(state[1] + count))

    first, second = counted(counters(THREE_FRY, shape), 2, generate)
    if shape.element_type.bits == 64:
        return joined(first, second)
    if not shape.size:
        return first
    by = Halves.of(shape.dimensions)
    pairs = np.stack([part.reshape(-1, by.half, by.inner) for part in (first, second)], 2)
    return pairs.reshape(-1, 2 * by.half, by.inner)[:, : by.size]


def _philox(algorithm: str, state: np.ndarray, shape: Shape) -> np.ndarray:
    key = halves(state[0])
    upper = state[-1] if len(state) == 3 else state[0]

    def generate(count: np.ndarray) -> Sequence[np.ndarray]:
        low = state[1] + count
        high = upper + (low < count)
        return philox_4x32(ARRAYS, key, (*halves(low), *halves(high)))

    words = counted(counters(algorithm, shape), 4, generate)
    if shape.element_type.bits == 64:
        pairs = np.stack([joined(*words[:2]), joined(*words[2:])], 1)
        return pairs.reshape(-1)[: shape.size]
    return np.stack(words, 1).reshape(-1)[: shape.size]


def _as_type(bits: np.ndarray, shape: Shape) -> np.ndarray:
    """Random words as elements with random bits only."""
    return np.asarray(from_bits(bits.reshape(-1), shape.dtype)).reshape(shape.dimensions)


@interpret.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(instruction: Instruction, state: np.ndarray) -> Value:
    assert isinstance(instruction.shape, TupleShape)
    shape = instruction.shape.elements[1]
    assert isinstance(shape, Shape)
    algorithm = instruction.attributes["algorithm"]
    moved = state.copy()
    moved[1] += np.uint64(counters(algorithm, shape))
    if len(state) == 3:
        moved[2] += moved[1] < state[1]
    made = _three_fry(state, shape) if algorithm == THREE_FRY else _philox(algorithm, state, shape)
    return moved, _as_type(made, shape)


@functools.lru_cache(maxsize=256)
def _expanded(shape: Shape, distribution: str) -> Computation:
    a, b = (parameter(i, Shape(shape.element_type)) for i in range(2))
    return Computation(distribution, (a, b), expanded_rng(a, b, distribution, shape))


@interpret.attach(RNG)
def rng(instruction: Instruction, a: np.ndarray, b: np.ndarray) -> Value:
    distribution = instruction.attributes["distribution"]
    return evaluate(_expanded(instruction.array_shape, distribution), [a, b])


@interpret.attach(RNG_GET_AND_UPDATE_STATE)
def rng_get_and_update_state(instruction: Instruction) -> Value:
    return np.array(current_stream().take(instruction.attributes["delta"]), np.uint64)
