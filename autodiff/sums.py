"""Sums of cotangents, made when all of them have arrived.

Where an array is read in many places, most of its cotangents are zero almost everywhere. Each kind
of these is gathered by itself, and all are put into one array in the end.
"""

from __future__ import annotations

from tracejit.autodiff.places import Scatters, Updates
from tracejit.autodiff.slices import Slices
from tracejit.graph import Instruction
from tracejit.ops.elementwise import add
from tracejit.ops.layout import full


class Sum:
    """The cotangents of one array, beginning with the first."""

    def __init__(self, first: Instruction) -> None:
        self._shape = first.array_shape
        self._whole: Instruction | None = None
        self._slices = Slices(self._shape)
        self._updates = Updates(self._shape)
        self._scatters = Scatters()
        self.add(first)

    def add(self, cotangent: Instruction) -> None:
        """Takes another one, of the same shape."""
        parts = (self._slices, self._updates, self._scatters)
        if self._shape.is_dynamic or not any(part.takes(cotangent) for part in parts):
            self._whole = cotangent if self._whole is None else add(self._whole, cotangent)

    def total(self) -> Instruction:
        """The sum of all."""
        whole = self._whole
        for array in self._slices.arrays():
            whole = array if whole is None else add(whole, array)
        whole = self._scatters.onto(self._updates.onto(whole))
        return full(self._shape, 0) if whole is None else whole
