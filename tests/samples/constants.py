"""Samples of constants and structure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.samples.base import Operand, Sample
from tests.samples.values import special_values
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, NUMERIC, make
from tracejit.ops.constants import GET_TUPLE_ELEMENT
from tracejit.shapes import Shape

LARGE = {t for t in NUMERIC if not t.is_small_float}


def literals(x: Instruction) -> Instruction:
    """Constants of special values, beside the operand."""
    values = special_values(x.array_shape.element_type)
    # XLA reads a complex constant whose real part is NaN as NaN in both parts.
    values = values[~np.isnan(values.real)] if np.iscomplexobj(values) else values
    columns = values[: len(values) // 2 * 2].reshape(1, 2, -1)
    return ops.tuple_([x, ops.constant(values), ops.constant(columns), ops.constant(values[0])])


def empty_literals(x: Instruction) -> Instruction:
    dtype = x.array_shape.dtype
    return ops.tuple_([x, *[ops.constant(np.zeros(d, dtype)) for d in ((0,), (2, 0), (0, 2))]])


def counted(*sizes: int, dimension: int) -> Callable[[Instruction], Instruction]:
    """Iota of the operand's element type, beside the operand."""

    def build(x: Instruction) -> Instruction:
        return ops.tuple_([x, ops.iota(Shape(x.array_shape.element_type, sizes), dimension)])

    return build


def from_tuple(*indices: int) -> Callable[..., Instruction]:
    """Elements taken out of a tuple by instructions."""

    def build(*elements: Instruction) -> Instruction:
        whole = ops.tuple_(elements)
        return ops.tuple_([make(GET_TUPLE_ELEMENT, whole, index=i) for i in indices])

    return build


def from_nested_tuple(x: Instruction, y: Instruction) -> Instruction:
    inner = make(GET_TUPLE_ELEMENT, ops.tuple_([x, ops.tuple_([y, x])]), index=1)
    return make(GET_TUPLE_ELEMENT, inner, index=0)


TWO = (Operand((2, 3)), Operand((4,)))

SAMPLES = [
    Sample("Parameter", lambda x: x, (Operand((2, 3)),), ALL, exact=True),
    Sample("Parameter", lambda x, y, z: y, (*TWO, Operand(())), ALL, "unused", exact=True),
    Sample("Parameter", lambda x: x, (Operand((0, 2)),), ALL, "empty", exact=True),
    Sample(
        "Constant",
        literals,
        (Operand((2,)),),
        ALL,
        "special values",
        exact=True,
        differentiable=False,
        why="infinities and NaN have no finite differences",
    ),
    Sample("Constant", empty_literals, (Operand((2,)),), ALL, "empty", exact=True),
    Sample("Iota", counted(4, 8, dimension=0), (Operand((2,)),), NUMERIC, "4x8", exact=True),
    Sample("Iota", counted(4, 8, dimension=-1), (Operand((2,)),), NUMERIC, "last", exact=True),
    Sample("Iota", counted(2, 300, dimension=1), (Operand((2,)),), LARGE, "300", exact=True),
    Sample("Iota", counted(3000, dimension=0), (Operand((2,)),), LARGE, "3000", exact=True),
    Sample("Iota", counted(3, 0, dimension=0), (Operand((2,)),), NUMERIC, "empty", exact=True),
    Sample("Tuple", lambda x, y: ops.tuple_([y, x, y]), TWO, ALL, exact=True),
    Sample("Tuple", lambda x: ops.tuple_([x]), (Operand(()),), ALL, "of one", exact=True),
    Sample("GetTupleElement", from_tuple(1, 0, 1), TWO, ALL, exact=True),
    Sample("GetTupleElement", from_nested_tuple, TWO, ALL, "nested", exact=True),
]
