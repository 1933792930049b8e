"""Random numbers: RngBitGenerator, Rng (RngUniform, RngNormal), RngGetAndUpdateState."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracejit.attributes import Attribute, Kind
from tracejit.errors import AttributeValueError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import (
    FLOATING,
    INTEGRAL,
    ORDERED,
    define,
    make,
    require_array,
    require_element_type,
    require_same_element_type,
)
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

THREE_FRY, PHILOX, DEFAULT = "rng_three_fry", "rng_philox", "rng_default"

# How many 64-bit words the state of each algorithm may have: a key and a counter. As on XLA's
# CPU, the default algorithm is Philox, and with two words its key is the counter's high half too.
STATE_SIZES = {THREE_FRY: (2,), PHILOX: (2, 3), DEFAULT: (2, 3)}


@define(
    "RngBitGenerator",
    "rng-bit-generator",
    Attribute("algorithm", Kind.NAME),
    Attribute("shape", Kind.SHAPE),
)
def RNG_BIT_GENERATOR(initial_state: AnyShape, *, algorithm: str, shape: AnyShape) -> TupleShape:
    state = require_array("rng_bit_generator", "initial_state", initial_state)
    if algorithm not in STATE_SIZES:
        raise AttributeValueError(
            f"rng_bit_generator: algorithm must be one of {', '.join(STATE_SIZES)}, "
            f"not {algorithm!r}"
        )
    sizes = STATE_SIZES[algorithm]
    if state.element_type is not ElementType.U64 or state.dimensions not in {(n,) for n in sizes}:
        allowed = " or ".join(f"u64[{n}]" for n in sizes)
        raise ShapeError(
            f"rng_bit_generator: initial_state of {algorithm} must be {allowed}, not {state}"
        )
    if not isinstance(shape, TupleShape) or len(shape.elements) != 2 or shape.elements[0] != state:
        raise ShapeError(f"rng_bit_generator: shape must be ({state}, bits), not {shape}")
    data = require_array("rng_bit_generator", "shape", shape.elements[1])
    require_element_type("rng_bit_generator", "shape", data, INTEGRAL | FLOATING)
    return shape


def rng_bit_generator(algorithm: str, initial_state: Instruction, shape: Shape) -> Instruction:
    """The tuple (new state, random bits of ``shape``) (XLA: RngBitGenerator).

    ``algorithm`` is rng_three_fry with a state u64[2] (key, counter), rng_philox with u64[3] (key,
    counter of 128 bits, low half first) or u64[2] (key, low half of the counter, whose high half
    is the key), or rng_default, which is Philox. States and bits are those of XLA on the CPU. The
    element type of ``shape`` is an integer or floating type with every bit random. Raises
    `ShapeError` for another state, `ElementTypeError` for pred and complex types.
    """
    result = TupleShape((initial_state.shape, shape))
    return make(RNG_BIT_GENERATOR, initial_state, algorithm=algorithm, shape=result)


@dataclass(frozen=True)
class Halves:
    """How ThreeFry's two words lie in a result: along one dimension, they alternate.

    A result element of linear index (outer * size + i) * inner + rest, with ``size`` that
    dimension's, is word i % 2 for the counter (outer * half + i // 2) * inner + rest.
    """

    size: int
    inner: int

    @property
    def half(self) -> int:
        return -(-self.size // 2)

    @staticmethod
    def of(dimensions: tuple[int, ...]) -> Halves:
        """Along the first even dimension, else along the first of the largest."""
        if not dimensions:
            return Halves(1, 1)
        even = [d for d, size in enumerate(dimensions) if size % 2 == 0]
        split = even[0] if even else dimensions.index(max(dimensions))
        return Halves(dimensions[split], math.prod(dimensions[split + 1 :]))


def counters(algorithm: str, shape: Shape) -> int:
    """How far the counter moves while bits of ``shape`` are made."""
    wide = shape.element_type.bits == 64
    if algorithm != THREE_FRY:
        return -(-shape.size // (2 if wide else 4))
    if wide or not shape.size:
        return shape.size
    halves = Halves.of(shape.dimensions)
    return shape.size // halves.size * halves.half


UNIFORM, NORMAL = "rng_uniform", "rng_normal"
DISTRIBUTIONS = (UNIFORM, NORMAL)


@define(
    "Rng",
    "rng",
    Attribute("distribution", Kind.NAME),
    Attribute("shape", Kind.SHAPE),
    side_effect=True,
)
def RNG(a: AnyShape, b: AnyShape, *, distribution: str, shape: AnyShape) -> Shape:
    if distribution not in DISTRIBUTIONS:
        raise AttributeValueError(
            f"rng: distribution must be one of {', '.join(DISTRIBUTIONS)}, not {distribution!r}"
        )
    names = ("a", "b") if distribution == UNIFORM else ("mu", "sigma")
    result = require_array(distribution, "shape", shape)
    given = {
        name: require_array(distribution, name, operand)
        for name, operand in zip(names, (a, b), strict=True)
    }
    for name, operand in given.items():
        if operand.rank:
            raise ShapeError(f"{distribution}: {name} {operand} must be a scalar")
    require_same_element_type(distribution, **given, shape=result)
    allowed = ORDERED if distribution == UNIFORM else FLOATING
    require_element_type(distribution, "shape", result, allowed)
    return result


def rng(a: Instruction, b: Instruction, distribution: str, shape: Shape) -> Instruction:
    """`rng_uniform` or `rng_normal` by XLA's name of the distribution."""
    return make(RNG, a, b, distribution=distribution, shape=shape)


def rng_uniform(a: Instruction, b: Instruction, shape: Shape) -> Instruction:
    """Numbers of ``shape`` uniform in [a, b) (XLA: RngUniform).

    ``a`` and ``b`` are scalars of the shape's element type: pred, an integer or floating type.
    Where b <= a every number is ``a``. Each execution draws new numbers from the stream of the
    program, which starts at its seed (see `tracejit.interpret` and `tracejit.compile`): equal
    seeds give equal numbers. For numbers that depend on nothing but a key use
    `rng_bit_generator` or `tracejit.random`. Raises `ShapeError` or `ElementTypeError` otherwise.
    """
    return rng(a, b, UNIFORM, shape)


def rng_normal(mu: Instruction, sigma: Instruction, shape: Shape) -> Instruction:
    """Normal numbers of ``shape`` with mean ``mu`` and deviation ``sigma`` (XLA: RngNormal).

    Both are scalars of the shape's element type, a floating type. Drawn as by `rng_uniform`.
    Raises `ShapeError` or `ElementTypeError` otherwise.
    """
    return rng(mu, sigma, NORMAL, shape)


@define(
    "RngGetAndUpdateState",
    "rng-get-and-update-state",
    Attribute("delta", Kind.INT),
    side_effect=True,
)
def RNG_GET_AND_UPDATE_STATE(*, delta: int) -> Shape:
    if not 0 <= delta < 2**63:
        raise AttributeValueError(f"rng_get_and_update_state: delta {delta} is out of range")
    return Shape(ElementType.U64, (2,))


def rng_get_and_update_state(delta: int) -> Instruction:
    """The counter u64[2] of the program's stream, low half first, which then moves by ``delta``.

    Met only in dumps of XLA, which expands RngUniform and RngNormal into it.
    """
    return make(RNG_GET_AND_UPDATE_STATE, delta=delta)
