"""Ops on dynamic dimensions are not batched: each element of a batch would have its own sizes."""

from __future__ import annotations

from tracejit.batching.batch import batching
from tracejit.ops.dynamic_sizes import DYNAMIC_RESHAPE, GET_DIMENSION_SIZE, SET_DIMENSION_SIZE

for _op in (GET_DIMENSION_SIZE, SET_DIMENSION_SIZE, DYNAMIC_RESHAPE):
    batching.decline(_op, "cannot be batched, since elements of a batch may differ in size")
