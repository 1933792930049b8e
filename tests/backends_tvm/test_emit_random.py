"""Compiled random bits in every layout and size; integer sums that wrap."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.inverse_error import erf_inv
from tracejit.ops.random import PHILOX, THREE_FRY
from tracejit.ops.random_maps import threefry
from tracejit.shapes import ElementType, Shape

SIZES = [(1,), (15,), (16,), (17,), (3, 67), (64, 3), (2, 1000), (999, 101), (5, 3, 7)]


@pytest.mark.parametrize("algorithm", [THREE_FRY, PHILOX])
def test_bits_of_every_size(algorithm: str) -> None:
    def build(state: Instruction) -> Instruction:
        made = []
        for sizes in SIZES:
            for element_type in (ElementType.U16, ElementType.F32, ElementType.U64):
                pair = ops.rng_bit_generator(algorithm, state, Shape(element_type, sizes))
                bits = ops.get_tuple_element(pair, 1)
                word = ElementType.U32 if element_type is ElementType.F32 else element_type
                made += [ops.get_tuple_element(pair, 0), ops.bitcast_convert_type(bits, word)]
        return ops.tuple_(made)

    words = 2 if algorithm == THREE_FRY else 3
    state = np.array([7, 2**64 - 30, 5], np.uint64)[:words]
    check(computation(build, Shape(ElementType.U64, (words,))), [state])


def test_a_state_that_is_computed() -> None:
    def build(x: Instruction) -> Instruction:
        state = ops.concatenate([x, ops.mul(x, x)], 0)
        return ops.rng_bit_generator(THREE_FRY, state, Shape(ElementType.U32, (40,)))

    check(computation(build, Shape(ElementType.U64, (1,))), [np.array([2**40 + 3], np.uint64)])


def test_known_maps_are_the_computations_they_stand_for() -> None:
    rng = np.random.default_rng(0)
    shapes = [Shape(ElementType.U32, (1000,))] * 4
    arrays = [rng.integers(0, 2**32, 1000, np.uint32) for _ in shapes]
    check(computation(threefry, *shapes), arrays)
    for element_type in (ElementType.F32, ElementType.F64):
        ends = np.array([-1, 1, 0, 1.5, np.nan, 1 - 1e-7, -1 + 1e-12])
        x = np.concatenate([rng.uniform(-1, 1, 1000), ends]).astype(element_type.dtype)
        check(computation(erf_inv, Shape(element_type, x.shape)), [x])


@pytest.mark.parametrize(
    "element_type", [ElementType.S32, ElementType.U32, ElementType.S64, ElementType.U64], ids=str
)
def test_integers_wrap(element_type: ElementType) -> None:
    """LLVM may not take it that sums of integers never overflow."""
    dtype = element_type.dtype
    limits = np.iinfo(dtype)
    x = np.array([limits.max, limits.min, limits.max - 1, 5] * 8, dtype)
    half = 1 << (element_type.bits - 1)
    top = half - (1 << element_type.bits) if element_type.is_signed else half

    def build(x: Instruction) -> Instruction:
        one, high = ops.full_like(x, 1), ops.full_like(x, top)
        return ops.tuple_(
            [
                ops.lt(ops.add(x, one), x),
                ops.gt(ops.sub(x, one), x),
                ops.add(x, high),
                ops.div(ops.mul(x, ops.full_like(x, 2)), ops.full_like(x, 2)),
            ]
        )

    check(computation(build, Shape(element_type, x.shape)), [x])
