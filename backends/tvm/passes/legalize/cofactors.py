"""Cofactors of regular matrices from their inverses and determinants, which have kernels."""

from __future__ import annotations

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.control import conditional
from tracejit.ops.custom import LINEAR_ALGEBRA, custom_call
from tracejit.ops.elementwise import mul
from tracejit.ops.elementwise_unary import is_finite
from tracejit.ops.layout import broadcast_in_dim, transpose
from tracejit.ops.matrices import identity
from tracejit.ops.reduction import reduce_and
from tracejit.shapes import ElementType, Shape, TupleShape

COFACTORS = LINEAR_ALGEBRA + "cofactors"


def cofactors(instruction: Instruction) -> Instruction | None:
    """det(a) a^-T; where some matrix is singular, a formula with singular values and vectors.

    LAPACK computes the latter: kernels for it would dominate the compile time. It computes complex
    matrices too, whose determinants have no kernel; for these the result is None.
    """
    (a,) = instruction.operands
    shape = a.array_shape
    if shape.element_type not in (ElementType.F32, ElementType.F64) or not shape.size:
        return None
    last = shape.rank - 2
    (inverse,) = _call("solve", shape, a, identity(shape))
    (value,) = _call("det", shape.with_dimensions(shape.dimensions[:last]), a)
    turned = transpose(inverse, (*range(last), last + 1, last))
    regular = mul(broadcast_in_dim(value, shape.dimensions, range(last)), turned)
    given = parameter(0, TupleShape((shape,)))
    (matrix,) = elements_of(given)
    as_they_are = Computation("regular", (given,), given)
    singular = Computation("singular", (given,), _called("cofactors_of_singular", shape, matrix))
    from_inverse, from_values = (tuple_((each,)) for each in (regular, a))
    return conditional(
        reduce_and(is_finite(inverse)), from_inverse, as_they_are, from_values, singular
    )


def _called(name: str, shape: Shape, *operands: Instruction) -> Instruction:
    return custom_call(LINEAR_ALGEBRA + name, operands, TupleShape((shape,)))


def _call(name: str, shape: Shape, *operands: Instruction) -> tuple[Instruction, ...]:
    return elements_of(_called(name, shape, *operands))
