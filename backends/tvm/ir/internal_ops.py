"""The compiler's internal ops: created by passes, never part of a module from outside."""

from __future__ import annotations

import math

from tracejit.attributes import Attribute, Kind
from tracejit.backends.tvm.ir.constants import splat
from tracejit.graph import Computation, Instruction, Op, Trait
from tracejit.ops.base import define_internal, make
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.elementwise_unary import LOG
from tracejit.ops.inverse_error import PIECES, erf_inv_computation
from tracejit.ops.random_maps import threefry_computation
from tracejit.ops.reduction import SORT
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape


def _like_key(*words: Shape) -> Shape:
    return words[0].with_element_type(ElementType.U64)


THREEFRY = define_internal("ThreeFry", "threefry", "random", _like_key)
"""ThreeFry of four u32 arrays (key, key, counter, counter): u64, the first word low."""


def _same(operand: Shape) -> Shape:
    return operand


def _stated(_operand: Shape, *_tables: Shape, shape: Shape, **_: object) -> Shape:
    return shape


FOURIER = define_internal(
    "Fourier",
    "fourier",
    "spectra",
    _stated,
    Attribute("count", Kind.INT),
    Attribute("columns", Kind.INT),
    Attribute("radices", Kind.INTS),
    Attribute("more_radices", Kind.INTS),
    Attribute("inverse", Kind.BOOL),
    Attribute("vector_bytes", Kind.INT),
    Attribute("shape", Kind.SHAPE),
)
"""The FFT that `analysis.fft_plan` describes, with the stated result shape.

Complex numbers may be pairs of real ones. The other operands are the table and the plan.
"""


def _product(
    _lhs: Shape, _rhs: Shape, _first: Shape, _end: Shape, *, shape: Shape, **_: object
) -> Shape:
    return shape


BOUNDED_DOT = define_internal(
    "BoundedDot", "bounded-dot", "contraction", _product, *DOT_GENERAL.attributes
)
"""DotGeneral over the terms ``first`` <= k < ``end``, which are s32 or s64.

There are no batch dimensions, one dimension is contracted, and one operand has no other. Bounds
are clamped to the contracted dimension. Terms outside are not read.
"""


def _side_by_side(*parts: Shape, dimension: int) -> Shape:
    dimensions = list(parts[0].dimensions)
    dimensions[dimension] = len(parts)
    return Shape(parts[0].element_type, tuple(dimensions))


INDEX_VECTOR = define_internal(
    "IndexVector", "index-vector", "indexing", _side_by_side, Attribute("dimension", Kind.INT)
)
"""Concatenate of arrays of size 1 in ``dimension``, whose elements are computed separately."""


def _first(*operands: Shape, dimensions: tuple[int, ...], kept: int, **_: object) -> AnyShape:
    made = []
    for operand in operands:
        sizes = list(operand.dimensions)
        sizes[dimensions[0]] = kept
        made.append(Shape(operand.element_type, tuple(sizes)))
    return made[0] if len(made) == 1 else TupleShape(tuple(made))


FIRST_SORTED = define_internal(
    "FirstSorted",
    "first-sorted",
    "reduction",
    _first,
    *SORT.attributes,
    Attribute("kept", Kind.INT),
)
"""Sort, with only the first ``kept`` elements along the dimension as results."""


FOURIER_HALVES = define_internal(
    "FourierHalves",
    "fourier-halves",
    "spectra",
    _stated,
    Attribute("inverse", Kind.BOOL),
    Attribute("shape", Kind.SHAPE),
)
"""The spectrum of real numbers from that of a half-length complex FFT, or with ``inverse`` back;
the second operand is `cpu.schedule.fft.real_halves.halves_factors`.
"""


def _function(name: str, opcode: str) -> Op:
    """A function of floats that users write as a composition of other ops."""
    traits = Trait.TRANSCENDENTAL
    return define_internal(name, opcode, "elementwise_unary", _same, traits=traits)


ERF_INV = _function("ErfInv", "erf-inv")
EXP2 = _function("Exp2", "exp2")
LOG10 = _function("Log10", "log10")
LOG2 = _function("Log2", "log2")


def power_of_two(instruction: Instruction) -> Instruction | None:
    """pow(2, x) as exp2(x), or None."""
    base, exponent = instruction.operands
    return _unary(EXP2, instruction, exponent) if _is_float(base, 2) else None


def logarithm_to_base(instruction: Instruction) -> Instruction | None:
    """log(x) / log(2), or / log(10), as one op, which is exact at powers of the base; or None."""
    logarithm, divisor = instruction.operands
    if logarithm.op is not LOG:
        return None
    for base, op in ((2, LOG2), (10, LOG10)):
        if _is_float(divisor, math.log(base)):
            return _unary(op, instruction, *logarithm.operands)
    return None


def _is_float(instruction: Instruction, value: float) -> bool:
    """Whether all elements equal ``value`` rounded to their type, a real float."""
    element_type = instruction.array_shape.element_type
    known = splat(instruction) if element_type.is_floating else None
    return known is not None and bool(known == element_type.dtype.type(value))


def _unary(op: Op, instruction: Instruction, operand: Instruction) -> Instruction:
    return Instruction(op, (operand,), instruction.shape, {}, instruction.source)


def known_map(computation: Computation) -> Op | None:
    """The op that computes the same as a Map of this computation, if there is one."""
    if computation is threefry_computation():
        return THREEFRY
    inverse = any(computation is erf_inv_computation(t) for t in PIECES)
    return ERF_INV if inverse else None


def as_known(instruction: Instruction) -> Instruction | None:
    """A Map as the op that computes the same, or None."""
    op = known_map(instruction.attributes["to_apply"])
    if op is None:
        return None
    return Instruction(op, instruction.operands, instruction.shape, {}, instruction.source)


UNDEFINED = define_internal(
    "Undefined", "undefined", "constants", lambda *, shape: shape, Attribute("shape", Kind.SHAPE)
)
"""Uninitialised memory, for loops that write every element."""


def undefined(shape: Shape) -> Instruction:
    """An uninitialised array; every element must be written before it is read."""
    return make(UNDEFINED, shape=shape)
