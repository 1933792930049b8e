"""Reductions over segments of an array, the names of `jax.ops`.

segment_sum(data, segment_ids, num_segments=3)       row i: the sum of the rows with the number i
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.sizes import known
from tracejit.ops import indexing, layout
from tracejit.ops.computations import highest, lowest, scalar_computation
from tracejit.ops.constants import constant
from tracejit.ops.indexing import ScatterDimensionNumbers
from tracejit.shapes import ElementType
from tracejit.trace.convert import operand
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


def _count(function: str, ids: Instruction, num_segments: int | None) -> int:
    """The number of segments: by default, one more than the greatest of known numbers."""
    if num_segments is not None:
        if num_segments < 0:
            raise ShapeError(f"{function}: num_segments must not be negative; it is {num_segments}")
        return int(num_segments)
    found = known(function, lift(ids, False), "write num_segments=")
    return int(np.max(found, initial=-1)) + 1


def _segments(
    title: str, name: str, neutral: Callable[[ElementType], Any], of_none: str
) -> Callable[..., Any]:
    def record(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
    ) -> Any:
        values, ids = operand(data).natural, operand(segment_ids).natural
        sizes, kind = values.array_shape.dimensions, values.array_shape.element_type
        if ids.array_shape.rank != 1 or sizes[:1] != ids.array_shape.dimensions:
            raise ShapeError(
                f"{title}: segment_ids must have a number for each row of data; "
                f"data {values.array_shape}, segment_ids {ids.array_shape}"
            )
        if not ids.array_shape.element_type.is_integral:
            raise ElementTypeError(
                f"{title}: segment_ids must be integers; they are {ids.array_shape}"
            )
        count = _count(title, ids, num_segments)
        start = layout.broadcast(constant(neutral(kind), kind), (count, *sizes[1:]))
        numbers = ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, len(sizes))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
        )
        made = indexing.scatter(
            start,
            layout.reshape(ids, (*ids.array_shape.dimensions, 1)),
            values,
            scalar_computation(name, kind),
            numbers,
            indices_are_sorted,
            unique_indices,
        )
        return lift(made, False)

    record.__name__ = record.__qualname__ = title
    record.__doc__ = f"""The {of_none} of the rows of ``data`` that have the same number.

    ``data`` [n, ...] and ``segment_ids`` [n], integers, give [num_segments, ...] of the dtype of
    ``data``. Rows whose number is outside of 0 to num_segments - 1 are left out.
    ``num_segments=None`` is the greatest number and one; ``bucket_size`` and ``mode`` are accepted
    and change nothing. Raises `ShapeError` unless there is one number for each row,
    `ElementTypeError` for numbers that are no integers, `ConcretizationError` where
    ``num_segments`` is not given and the numbers are unknown while tracing.
    """
    return public(record)


segment_sum = _segments("segment_sum", "add", lambda kind: 0, "sum (0 for no rows)")
segment_prod = _segments("segment_prod", "mul", lambda kind: 1, "product (1 for no rows)")
segment_max = _segments(
    "segment_max", "max", lowest, "greatest (for no rows the lowest value of the dtype, or -inf)"
)
segment_min = _segments(
    "segment_min", "min", highest, "least (for no rows the highest value of the dtype, or inf)"
)
