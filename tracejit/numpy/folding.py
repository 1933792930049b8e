"""A ufunc applied from the first element of an axis to the last: what XLA has no reduction for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.errors import DimensionError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.lax.scanning import scan
from tracejit.numpy.building import Axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.reducing import NO_VALUE, mask_of, reduction_axes
from tracejit.ops import layout
from tracejit.ops.layout import concatenate
from tracejit.shapes import element_type_of
from tracejit.trace.convert import operand, stretch
from tracejit.trace.promotion import ufunc_dtypes
from tracejit.trace.tracer import lift

FEW = 32
"""The most steps of a fold that are recorded one by one, which gives them a derivative."""


class Fold:
    """A ufunc of two arguments applied from the first element of an axis to the last.

    ``method`` is "reduce" or "accumulate", for messages. Raises `DimensionError` for several axes
    where the order of the elements counts, `ElementTypeError` where results are no operands.
    """

    def __init__(
        self,
        method: str,
        ufunc: Any,
        array: Any,
        axis: Axis,
        dtype: Any,
        initial: Any = None,
        where: Any = True,
    ) -> None:
        self._ufunc = ufunc
        self._name = f"{ufunc.__name__}.{method}"
        value = operand(array)
        wanted = value.element_type.dtype if dtype is None else element_type_of(dtype).dtype
        inputs, outputs = ufunc_dtypes(ufunc.like, (wanted,) * 2)
        if dtype is not None and outputs[0] != wanted:
            inputs, outputs = ufunc_dtypes(ufunc.like, (wanted,) * 2, wanted)
        if {*inputs, *outputs} != {outputs[0]}:
            raise ElementTypeError(
                f"{self._name}: its results, of {outputs[0]}, are no operands, of {inputs[0]}"
            )
        x = lift(value.to(element_type_of(inputs[0])), False)
        axes = reduction_axes(self._name, axis, x.ndim)
        if len(axes) > 1 and not _is_reorderable(ufunc):
            raise DimensionError(
                f"{self._name}: the order counts, so one axis must be given, not {axis}"
            )
        self._axes = axes
        self._shape = x.shape
        self._result = element_type_of(outputs[0])
        self._rows = self._in_front(x)
        mask = mask_of(self._name, where, x.shape)
        self._mask = None if mask is None else self._in_front(lift(mask, False))
        self._start = initial
        if initial in NO_VALUE and ufunc.identity is not None and (mask is not None or not len(x)):
            self._start = ufunc.identity

    def _in_front(self, x: Any) -> Any:
        """The array with what is folded along its first dimension."""
        kept = [d for d in range(x.ndim) if d not in self._axes]
        rows = x.transpose([*self._axes, *kept])
        count = math.prod(self._shape[a] for a in self._axes)
        return rows.reshape((count, *(self._shape[d] for d in kept)))

    def _steps(self) -> tuple[Any, Any]:
        """The first value, and the rows that are still to come with their masks."""
        rows, mask = self._rows, self._mask
        if self._start not in NO_VALUE:
            first = stretch("reduce", operand(self._start).to(self._result), rows.shape[1:])
            return lift(first, False), (rows, mask)
        if not rows.shape[0] or mask is not None:
            raise ShapeError(
                f"{self._name}: no identity; an array {self._shape} that a mask may leave empty "
                f"needs initial="
            )
        first = rows[0].astype(self._result.dtype)
        return first, (rows[1:], None)

    def _step(self, carry: Any, row: Any, holds: Any) -> Any:
        made = self._ufunc(carry, row).astype(self._result.dtype)
        return made if holds is None else np.where(holds, made, carry)

    def reduced(self, keepdims: Any) -> Instruction:
        """The last value."""
        first, (rows, mask) = self._steps()
        given = rows if mask is None else (rows, mask)

        def step(carry: Any, row: Any) -> Any:
            pair = (row, None) if mask is None else row
            return self._step(carry, *pair), ()

        last, _ = scan(step, first, given, unroll=rows.shape[0] <= FEW)
        made = as_array(last)
        if keepdims is True or (keepdims not in NO_VALUE and keepdims):
            made = made.reshape([1 if d in self._axes else s for d, s in enumerate(self._shape)])
        result: Instruction = made.instruction
        return result

    def accumulated(self) -> Instruction:
        """All values on the way."""
        if not self._rows.shape[0]:
            result: Instruction = self._rows.astype(self._result.dtype).instruction
            return layout.reshape(result, self._shape)
        (axis,) = self._axes
        first, (rows, _) = self._steps()

        def step(carry: Any, row: Any) -> Any:
            made = self._step(carry, row, None)
            return made, made

        _, rest = scan(step, first, rows, unroll=rows.shape[0] <= FEW)
        column = layout.reshape(first.instruction, (1, *first.shape))
        parts = [column, as_array(rest).instruction] if rows.shape[0] else [column]
        made = lift(concatenate(parts, 0), False)
        order = [*range(1, axis + 1), 0, *range(axis + 1, made.ndim)]
        turned: Instruction = made.transpose(order).instruction
        return turned


def _is_reorderable(ufunc: Any) -> bool:
    """Whether the order in which the elements are combined does not count."""
    return ufunc.identity is not None or ufunc.__name__ in ("fmax", "fmin")
