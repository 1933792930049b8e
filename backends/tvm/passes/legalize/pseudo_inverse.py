"""Expands pseudo-inverses into singular value decompositions, which have kernels."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.comparison import le
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.contraction import DotDimensionNumbers, dot_general
from tracejit.ops.custom import LINEAR_ALGEBRA, custom_call
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import div, mul, select
from tracejit.ops.layout import broadcast_in_dim, full_like, reshape, slice_
from tracejit.ops.matrices import conjugate
from tracejit.shapes import ElementType, TupleShape

PSEUDO_INVERSE = LINEAR_ALGEBRA + "pinv"


def pseudo_inverse(instruction: Instruction) -> Instruction:
    """V S^-1 U^H for A = U S V^H, without singular values below a fraction of the greatest."""
    a, share = instruction.operands
    shape = a.array_shape
    *batch, rows, columns = shape.dimensions
    rank, last = min(rows, columns), shape.rank - 2
    sizes = [(*batch, rows, rank), (*batch, rank), (*batch, rank, columns)]
    left, real, right = (shape.with_dimensions(each) for each in sizes)
    real = real.with_element_type(shape.element_type.real)
    call = custom_call(LINEAR_ALGEBRA + "svd", [a], TupleShape((left, real, right)))
    u, s, vh = elements_of(call)
    wide = convert_element_type(s, ElementType.F64)
    greatest = slice_(wide, [0] * (last + 1), [*batch, 1])
    limit = mul(reshape(greatest, batch), share)
    spread = broadcast_in_dim(limit, s.array_shape.dimensions, range(last))
    # For a matrix that is not finite they are NaN, and so is the result.
    inverse = select(le(wide, spread), full_like(s, 0), div(full_like(s, 1), s))
    factors = convert_element_type(inverse, shape.element_type)
    scaled = mul(u, broadcast_in_dim(factors, left.dimensions, [*range(last), last + 1]))
    dimensions = tuple(range(last))
    numbers = DotDimensionNumbers((last,), (last + 1,), dimensions, dimensions)
    return tuple_([dot_general(conjugate(vh), conjugate(scaled), numbers, "highest")])
