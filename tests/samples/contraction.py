"""Samples of DotGeneral."""

from __future__ import annotations

from tests.samples.base import Operand, Sample
from tests.samples.domains import small_integers
from tracejit import ops
from tracejit.ops import DotDimensionNumbers
from tracejit.ops.base import ALL, FLOATING
from tracejit.shapes import ElementType


def arrays(*dimensions: tuple[int, ...]) -> tuple[Operand, ...]:
    return tuple(Operand(d, domain=small_integers) for d in dimensions)


SAMPLES = [
    Sample("DotGeneral", ops.dot, arrays((4,), (4,)), ALL, "vectors"),
    Sample("DotGeneral", ops.dot, arrays((3, 4), (4,)), ALL, "matrix and vector"),
    Sample("DotGeneral", ops.dot, arrays((3, 4), (4, 2)), ALL, "matrices"),
    Sample("DotGeneral", ops.dot, arrays((3, 0), (0, 2)), ALL, "sums of nothing"),
    Sample("DotGeneral", ops.dot, arrays((0, 3), (3, 2)), ALL, "empty"),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers((2,), (1,), (0,), (0,))),
        arrays((2, 3, 4), (2, 4, 5)),
        ALL,
        "batch",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers((0, 2), (3, 1), (3,), (2,))),
        arrays((2, 5, 3, 4), (6, 3, 4, 2)),
        ALL,
        "scattered dimensions",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers((), (), (1,), (0,))),
        arrays((2, 3), (3, 4)),
        ALL,
        "nothing summed",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot_general(x, y, DotDimensionNumbers(), ("highest", "default")),
        arrays((2,), (1, 3)),
        ALL,
        "outer product",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot(x, y, preferred_element_type=ElementType.F32),
        arrays((3, 4), (4, 2)),
        FLOATING - {ElementType.F64},
        "preferred f32",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot(x, y, preferred_element_type=ElementType.S32),
        arrays((3, 4), (4, 2)),
        {ElementType.S8, ElementType.S16, ElementType.S32},
        "preferred s32",
    ),
    Sample(
        "DotGeneral",
        lambda x, y: ops.dot(x, y, preferred_element_type=ElementType.F32),
        arrays((3, 4), (4, 2)),
        {ElementType.S8, ElementType.U16, ElementType.S32},
        "integers, preferred f32",
    ),
]
