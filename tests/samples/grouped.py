"""Samples of RaggedDot and ScaledDot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tests.samples.base import Domain, Operand, Sample
from tests.samples.domains import small_integers
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops import DotDimensionNumbers, RaggedDotDimensionNumbers
from tracejit.ops.base import ALL, FLOATING
from tracejit.shapes import ElementType

F32, F64, S32 = ElementType.F32, ElementType.F64, ElementType.S32
# XLA is given an expansion that replaces the rows of other groups by zeros.
MASKED = {t for t in ALL if t.has_zero}


def fixed(*values: object) -> Domain:
    """These values."""

    def draw(rng: np.random.Generator, dimensions: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.array(values).reshape(dimensions).astype(dtype)

    return draw


def _ragged(
    label: str,
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    sizes: Any,
    build: Callable[..., Instruction],
    types: Collection[ElementType] = (ElementType.BF16, F32, F64, ElementType.C64, S32),
) -> Sample:
    shape = np.array(sizes).shape
    operands = (
        Operand(lhs, domain=small_integers),
        Operand(rhs, domain=small_integers),
        Operand(shape, S32, fixed(*np.ravel(sizes))),
    )
    return Sample("RaggedDot", build, operands, types, label)


def _numbers(
    lhs_contracting: int,
    rhs_contracting: int,
    lhs_ragged: int,
    rhs_group: tuple[int, ...] = (),
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> RaggedDotDimensionNumbers:
    dot = DotDimensionNumbers((lhs_contracting,), (rhs_contracting,), *batch)
    return RaggedDotDimensionNumbers(dot, (lhs_ragged,), rhs_group)


ROWS_OF_BATCH = _numbers(2, 2, 1, (1,), ((0,), (0,)))
SUMS = _numbers(0, 0, 0)
BATCH = _numbers(2, 1, 0, (), ((0,), (0,)))
ROWS_OF_ROWS = _numbers(2, 1, 1, (0,))
SUMS_OF_SUMS = RaggedDotDimensionNumbers(DotDimensionNumbers((1, 2), (1, 0)), (2,))
CROSSED_ROWS = RaggedDotDimensionNumbers(DotDimensionNumbers((2, 0), (0, 2)), (1,), (1,))
CROSSED_SUMS = RaggedDotDimensionNumbers(DotDimensionNumbers((2, 1), (0, 2)), (1,))
SUMS_OF_BATCH = RaggedDotDimensionNumbers(DotDimensionNumbers((2,), (0,), (1,), (1,)), (2,))

SAMPLES = [
    _ragged("rows", (6, 4), (3, 4, 5), [2, 1, 3], ops.ragged_dot, MASKED),
    _ragged("an empty group", (6, 4), (3, 4, 5), [2, 0, 4], ops.ragged_dot),
    _ragged("rows left over", (6, 4), (3, 4, 5), [2, 1, 0], ops.ragged_dot),
    _ragged("too many rows", (6, 4), (3, 4, 5), [4, 1, 7], ops.ragged_dot),
    _ragged(
        "rows of a batch",
        (2, 4, 3),
        (2, 3, 3, 2),
        [1, 0, 2],
        lambda x, y, g: ops.ragged_dot(x, y, g, ROWS_OF_BATCH),
    ),
    _ragged(
        "other rows in each element of a batch",
        (2, 4, 3),
        (2, 3, 3, 2),
        [[1, 0, 2], [2, 2, 0]],
        lambda x, y, g: ops.ragged_dot(x, y, g, ROWS_OF_BATCH),
    ),
    _ragged(
        "other rows in each row",
        (2, 4, 3),
        (2, 3, 2),
        [[1, 2], [2, 2]],
        lambda x, y, g: ops.ragged_dot(x, y, g, ROWS_OF_ROWS),
    ),
    _ragged(
        "sums",
        (6, 4),
        (6, 5),
        [2, 0, 3],
        lambda x, y, g: ops.ragged_dot(x, y, g, SUMS),
        MASKED,
    ),
    _ragged(
        "sums in sums",
        (2, 3, 4),
        (4, 3, 2),
        [[1, 2], [0, 4], [3, 1]],
        lambda x, y, g: ops.ragged_dot(x, y, g, SUMS_OF_SUMS),
    ),
    _ragged(
        "batch", (6, 2, 3), (6, 3, 2), [2, 0, 3], lambda x, y, g: ops.ragged_dot(x, y, g, BATCH)
    ),
    _ragged(
        "rows of two contracting dimensions",
        (2, 5, 3),
        (3, 2, 2, 4),
        [2, 1],
        lambda x, y, g: ops.ragged_dot(x, y, g, CROSSED_ROWS),
    ),
    _ragged(
        "sums of two contracting dimensions",
        (2, 3, 4),
        (4, 5, 3),
        [1, 2],
        lambda x, y, g: ops.ragged_dot(x, y, g, CROSSED_SUMS),
    ),
    _ragged(
        "sums of a batch",
        (3, 2, 4),
        (4, 2, 5),
        [1, 2],
        lambda x, y, g: ops.ragged_dot(x, y, g, SUMS_OF_BATCH),
    ),
    _ragged("no row", (0, 4), (2, 4, 3), [0, 1], ops.ragged_dot),
    _ragged(
        "preferred f32",
        (4, 2),
        (2, 2, 3),
        [2, 2],
        lambda x, y, g: ops.ragged_dot(x, y, g, preferred_element_type=F32),
        {ElementType.BF16, ElementType.S8},
    ),
]


LAST = DotDimensionNumbers((1,), (1,))


def _scaled(
    label: str,
    operands: Sequence[tuple[int, ...]],
    numbers: DotDimensionNumbers = LAST,
    types: Collection[ElementType] = FLOATING,
    preferred: ElementType | None = None,
    scale: ElementType | None = None,
) -> Sample:
    lhs, lhs_scale, rhs, rhs_scale = operands
    powers = (
        Operand(d, scale, fixed(*np.resize([0.5, 1, 2], d).ravel())) for d in (lhs_scale, rhs_scale)
    )
    of_lhs, of_rhs = powers
    return Sample(
        "ScaledDot",
        lambda x, s, y, t: ops.scaled_dot(x, s, y, t, numbers, None, preferred),
        (Operand(lhs, domain=small_integers), of_lhs, Operand(rhs, domain=small_integers), of_rhs),
        types,
        label,
    )


BATCHED = DotDimensionNumbers((2,), (1,), (0,), (0,))
SAMPLES += [
    _scaled("blocks", [(3, 8), (3, 2), (2, 8), (2, 4)]),
    _scaled("one scale", [(3, 4), (), (2, 4), ()], types=(ElementType.F8E4M3FN, F32, F64)),
    _scaled(
        "a scale for each element", [(3, 4), (3, 4), (2, 4), (1, 1)], types=(ElementType.BF16, F32)
    ),
    _scaled("batch", [(2, 3, 4), (2, 3, 2), (2, 4, 2), (1, 2, 1)], BATCHED, (F32, F64)),
    _scaled(
        "preferred f32",
        [(3, 4), (3, 2), (2, 4), (2, 1)],
        preferred=F32,
        types=(ElementType.F8E5M2, ElementType.BF16),
        scale=ElementType.BF16,
    ),
    _scaled("nothing", [(0, 4), (0, 2), (2, 4), (2, 1)], types=(F32,)),
]
