"""Ops of the compiler's own: what it knows a better way to compute."""

from __future__ import annotations

from tracejit.attributes import Attribute, Kind
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.inverse_error import PIECES, erf_inv_computation
from tracejit.ops.random_maps import threefry_computation
from tracejit.shapes import ElementType, Shape


def _like_key(*words: Shape) -> Shape:
    return words[0].with_element_type(ElementType.U64)


THREEFRY = Op("ThreeFry", "threefry", "random", "threefry", _like_key)
"""ThreeFry of four u32 arrays (key, key, counter, counter): u64, the first word low."""


def _same(operand: Shape) -> Shape:
    return operand


def _first(operand: Shape, _: Shape) -> Shape:
    return operand


def _stated(_operand: Shape, _table: Shape, *, shape: Shape, **_: object) -> Shape:
    return shape


FOURIER = Op("Fourier", "fourier", "spectra", "fourier", _first)
"""The transform of rows of complex numbers, given the factors of `schedule.fourier`.

Its operand may be real, pairs that stand for complex numbers, and so may what it makes.
"""
INVERSE_FOURIER = Op("InverseFourier", "inverse-fourier", "spectra", "inverse_fourier", _first)

FOURIER_COLUMNS = Op(
    "FourierColumns",
    "fourier-columns",
    "spectra",
    "fourier_columns",
    _stated,
    (
        Attribute("sizes", Kind.INTS),
        Attribute("inverse", Kind.BOOL),
        Attribute("turned", Kind.BOOL),
        Attribute("gap", Kind.INT),
        Attribute("shape", Kind.SHAPE),
    ),
)
"""The same along the middle one of three ``sizes``, of whatever shape operand and result have; see
`schedule.fourier_columns`."""


ERF_INV = Op("ErfInv", "erf-inv", "elementwise_unary", "erf_inv", _same)


def known_map(computation: Computation) -> Op | None:
    """The op that a Map of this computation is, if the compiler has one."""
    if computation is threefry_computation():
        return THREEFRY
    inverse = any(computation is erf_inv_computation(t) for t in PIECES)
    return ERF_INV if inverse else None


def as_known(instruction: Instruction) -> Instruction | None:
    """A Map as the op that the compiler has for it, or None."""
    op = known_map(instruction.attributes["to_apply"])
    if op is None:
        return None
    return Instruction(op, instruction.operands, instruction.shape, {}, instruction.source)
