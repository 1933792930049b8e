"""Slices between counters of a loop: views of which a mask's places count."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.trace.masked import ARITHMETIC, Masked
from tracejit.trace.masks import is_same_mask
from tracejit.trace.table import call


class Between(Masked):
    """``x[:i]`` in the body of a loop that ``i`` counts: a view, of which the mask's places count.

    ``place`` is the view of all places.
    """

    __slots__ = ("place",)

    def __init__(self, place: Any, mask: Instruction, axis: int) -> None:
        self.place = place
        self.mask = mask
        self.axis = axis

    @property
    def whole(self) -> Any:
        """The array's present value."""
        return self.place._new(self.place.instruction, False)

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
        kept = call(np.where, self._wide(), made.astype(self.dtype), self.whole)
        self.place.write(kept.instruction)
        return self


for _name, _ufunc in ARITHMETIC.items():
    setattr(Between, f"__i{_name}__", lambda self, v, _of=_ufunc: self._in_place(_of, v))
