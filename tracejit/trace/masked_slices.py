"""Slices with unknown bounds: views under a mask."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError
from tracejit.graph import Instruction
from tracejit.ops import layout
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.concrete import dependence
from tracejit.trace.masks import is_same_mask
from tracejit.trace.table import call


class Between(Masked):
    """``x[:n]`` with an unknown bound: a view of the places in the mask.

    ``place`` is the view of all places. Between counters ``whole`` is the array; elsewhere the
    elements outside are ones, for which every function is defined.
    """

    __slots__ = ("is_counted", "place")

    def __init__(self, place: Any, mask: Instruction, axis: int, is_counted: bool) -> None:
        self.place = place
        self._mask = mask
        self.axis = axis
        self.is_counted = is_counted

    @property
    def whole(self) -> Any:
        """The array's present value."""
        value = self._all()
        return value if self.is_counted else call(np.where, self._covers(value), value, self._one())

    def _all(self) -> Any:
        return self.place._new(self.place.instruction, False)

    def _covers(self, value: Any) -> Any:
        """The mask over all of the array."""
        return value._new(layout.broadcast_in_dim(self.mask, value.shape, [self.axis]), False)

    def _one(self) -> Any:
        return np.ones((), self.place.dtype)

    def _wide(self) -> Any:
        return self._covers(self._all())

    def _refuse(self, wish: str) -> NoReturn:
        raise ConcretizationError(
            f"{wish}: the bounds of a slice depend on {dependence(self.mask)}, unknown while "
            f"tracing, and with them the result's shape; write tracejit.lax.dynamic_slice(x, "
            f"starts, sizes), np.where over all of the array, or a reduction: x[a:b].sum()"
        )

    def is_same_place(self, place: Any, mask: Instruction) -> bool:
        """Whether this is the same part of the same array."""
        return is_same_mask(self.mask, mask) and bool(self.place.is_same_view(place))

    def copy(self, order: str = "C") -> Masked:
        return Masked(self.whole, self.mask, self.axis)

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Between:
        """The array itself is written to, where the mask holds."""
        made = self.elementwise(ufunc, (self, other), {}).whole
        if not np.can_cast(made.dtype, self.dtype, "same_kind"):
            raise ArgumentError(
                f"{ufunc.__name__}: cannot cast {made.dtype} to {self.dtype} by the rule same_kind"
            )
        kept = call(np.where, self._wide(), made.astype(self.dtype), self._all())
        self.place.write(kept.instruction)
        return self
