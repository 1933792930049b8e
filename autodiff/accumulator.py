"""Sums of cotangents, made when all of them have arrived.

Where an array is read in many places, most of its cotangents are zero almost everywhere. Each kind
of these is gathered by itself, and all are put into one array in the end.
"""

from __future__ import annotations

from typing import Any

from tracejit.graph import Instruction, Op
from tracejit.loading import load
from tracejit.ops.elementwise import add
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE, PAD, full

_GATHERED = (PAD, DYNAMIC_UPDATE_SLICE, SCATTER)
"""What such cotangents come as."""


class CotangentAccumulator:
    """The cotangents of one array, beginning with the first."""

    def __init__(self, first: Instruction) -> None:
        self._shape = first.array_shape
        self._whole: Instruction | None = None
        self._parts: dict[Op, Any] = {}
        self.add(first)

    def add(self, cotangent: Instruction) -> None:
        """Takes another one, of the same shape."""
        if cotangent.op in _GATHERED and not self._shape.is_dynamic:
            if self._part(cotangent.op).takes(cotangent):
                return
        self._whole = cotangent if self._whole is None else add(self._whole, cotangent)

    def total(self) -> Instruction:
        """The sum of all."""
        whole, slices = self._whole, self._parts.get(PAD)
        for array in slices.arrays() if slices is not None else ():
            whole = array if whole is None else add(whole, array)
        for op in (DYNAMIC_UPDATE_SLICE, SCATTER):
            if op in self._parts:
                whole = self._parts[op].onto(whole)
        return full(self._shape, 0) if whole is None else whole

    def _part(self, op: Op) -> Any:
        """What gathers cotangents of this kind."""
        if op not in self._parts:
            if op is PAD:
                made = load("tracejit.autodiff.slice_accumulation").Slices(self._shape)
            elif op is SCATTER:
                made = load("tracejit.autodiff.scatter_accumulation").Scatters()
            else:
                made = load("tracejit.autodiff.scatter_accumulation").Updates(self._shape)
            self._parts[op] = made
        return self._parts[op]
