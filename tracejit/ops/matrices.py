"""Batches of matrices, composed of other ops: products, transposes, triangles.

matmul(a, b)                  a b, of shapes [..., m, n] and [..., n, k]
adjoint(a)                    the conjugate transpose
triangle(a, lower=True)       the rest set to zero
"""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.ops.comparison import eq, ge, le
from tracejit.ops.constants import iota
from tracejit.ops.contraction import DotDimensionNumbers, dot_general
from tracejit.ops.elementwise import add, mul, select
from tracejit.ops.elementwise_unary import conj
from tracejit.ops.layout import full, full_like, transpose
from tracejit.shapes import ElementType, Shape


def matmul(a: Instruction, b: Instruction) -> Instruction:
    """The products of matrices in equal batches, summed as exactly as the element type allows."""
    rank = a.array_shape.rank
    batch = tuple(range(rank - 2))
    numbers = DotDimensionNumbers((rank - 1,), (rank - 2,), batch, batch)
    return dot_general(a, b, numbers, "highest")


def matrix_transpose(a: Instruction) -> Instruction:
    """The last two axes exchanged."""
    rank = a.array_shape.rank
    return transpose(a, [*range(rank - 2), rank - 1, rank - 2])


def conjugate(a: Instruction) -> Instruction:
    """The complex conjugate; ``a`` itself where it is real."""
    return conj(a) if a.array_shape.element_type.is_complex else a


def adjoint(a: Instruction) -> Instruction:
    """The conjugate transpose."""
    return conjugate(matrix_transpose(a))


def triangle(a: Instruction, lower: bool, offset: int = 0) -> Instruction:
    """One triangle of each matrix, the rest zero.

    The lower one is where column <= row + ``offset``, the upper one where column >= row + offset.
    """
    rows, columns = _places(a.array_shape, offset)
    inside = ge(rows, columns) if lower else le(rows, columns)
    return select(inside, a, full_like(a, 0))


def scaled_diagonal(a: Instruction, factor: float) -> Instruction:
    """The matrices with their diagonals multiplied by ``factor``."""
    scaled = mul(a, full_like(a, factor)) if factor else full_like(a, 0)
    return select(eq(*_places(a.array_shape, 0)), scaled, a)


def identity(shape: Shape) -> Instruction:
    """A batch of identity matrices."""
    return select(eq(*_places(shape, 0)), full(shape, 1), full(shape, 0))


def _places(shape: Shape, offset: int) -> tuple[Instruction, Instruction]:
    """The row number, ``offset`` added, and the column number of every element."""
    numbers = shape.with_element_type(ElementType.S32)
    rows, columns = (iota(numbers, shape.rank - 2 + n) for n in range(2))
    if offset:
        rows = add(rows, full(numbers, offset))
    return rows, columns
