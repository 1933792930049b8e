"""Random ops: what shape rules refuse, and the generators against their authors' known answers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.evaluation import given
from tracejit import hlo, ops
from tracejit.backends.numpy.words import ARRAYS
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Module
from tracejit.ops.random import PHILOX, THREE_FRY, Halves, counters
from tracejit.ops.random_words import philox_4x32, threefry_2x32
from tracejit.shapes import ElementType, Shape

FULL = 0xFFFFFFFF


def words(*values: int) -> tuple[np.ndarray, ...]:
    return tuple(np.array([value], np.uint32) for value in values)


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((FULL, FULL), (FULL, FULL), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    k0, k1 = words(*key)
    c0, c1 = words(*counter)
    assert tuple(int(w[0]) for w in threefry_2x32(ARRAYS, (k0, k1), (c0, c1))) == expected


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL, FULL), (FULL,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(
    key: tuple[int, int], counter: tuple[int, int, int, int], expected: tuple[int, ...]
) -> None:
    k0, k1 = words(*key)
    c0, c1, c2, c3 = words(*counter)
    made = philox_4x32(ARRAYS, (k0, k1), (c0, c1, c2, c3))
    assert tuple(int(w[0]) for w in made) == expected


@pytest.mark.parametrize(
    ("dimensions", "size", "inner"),
    [((), 1, 1), ((3, 5), 5, 1), ((4, 3), 4, 3), ((3, 4, 5), 4, 5), ((3, 3), 3, 3), ((0, 3), 0, 3)],
)
def test_halves(dimensions: tuple[int, ...], size: int, inner: int) -> None:
    assert Halves.of(dimensions) == Halves(size, inner)


@pytest.mark.parametrize(
    ("algorithm", "text", "expected"),
    [
        (THREE_FRY, "u32[3,5]", 9),
        (THREE_FRY, "u64[3,5]", 15),
        (THREE_FRY, "u8[]", 1),
        (THREE_FRY, "u32[0,3]", 0),
        (PHILOX, "u32[9]", 3),
        (PHILOX, "u64[3]", 2),
    ],
)
def test_counters(algorithm: str, text: str, expected: int) -> None:
    assert counters(algorithm, given(text).array_shape) == expected


U32 = Shape(ElementType.U32, (4,))


def test_bit_generator_refuses_states_and_types() -> None:
    with pytest.raises(ShapeError, match=r"initial_state of rng_three_fry must be u64\[2\]"):
        ops.rng_bit_generator(THREE_FRY, given("u64[3]"), U32)
    with pytest.raises(ShapeError, match=r"must be u64\[2\] or u64\[3\], not u32\[4\]"):
        ops.rng_bit_generator(PHILOX, given("u32[4]"), U32)
    with pytest.raises(AttributeValueError, match="algorithm must be one of"):
        ops.rng_bit_generator("mersenne", given("u64[2]"), U32)
    for refused in (ElementType.PRED, ElementType.C64):
        with pytest.raises(ElementTypeError, match="rng_bit_generator: shape"):
            ops.rng_bit_generator(PHILOX, given("u64[2]"), Shape(refused, (4,)))


def test_distributions_refuse_other_operands() -> None:
    number = given("f32[]")
    with pytest.raises(ShapeError, match=r"rng_normal: mu f32\[2\] must be a scalar"):
        ops.rng_normal(given("f32[2]"), number, Shape(ElementType.F32, (4,)))
    with pytest.raises(ElementTypeError, match="element types must be equal"):
        ops.rng_uniform(number, given("f64[]"), Shape(ElementType.F32, (4,)))
    with pytest.raises(ElementTypeError, match="rng_normal"):
        ops.rng_normal(given("s32[]"), given("s32[]"), Shape(ElementType.S32, (4,)))
    with pytest.raises(AttributeValueError, match="distribution must be one of"):
        ops.rng(number, number, "rng_gamma", Shape(ElementType.F32, (4,)))
    with pytest.raises(AttributeValueError, match="delta"):
        ops.rng_get_and_update_state(-1)


def test_text_of_xla() -> None:
    text = """HloModule m

ENTRY %e () -> f32[3] {
  %a = f32[] constant(0)
  %b = f32[] constant(1)
  %s = u64[2]{0} rng-get-and-update-state(), delta=4
  %g = (u64[2]{0}, u32[3]{0}) rng-bit-generator(%s), algorithm=rng_philox
  ROOT %r = f32[3]{0} rng(%a, %b), distribution=rng_uniform
}
"""
    module = hlo.parse(text)
    assert "rng(" in str(module)
    assert "distribution=rng_uniform" in str(module)
    state = ops.rng_get_and_update_state(4)
    pair = ops.rng_bit_generator("rng_philox", state, U32)
    printed = str(Module("m", Computation("e", (), pair)))
    assert "rng-get-and-update-state(), delta=4" in printed
    assert "algorithm=rng_philox" in printed
    assert str(hlo.parse(printed)) == printed
