"""Sort and TopK: which algorithm, by comparator and size."""

from __future__ import annotations

from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.sort_keys import order_of
from tracejit.backends.tvm.schedule.sort_library import library_sort, suits_library
from tracejit.backends.tvm.schedule.sort_merge import Merging
from tracejit.backends.tvm.schedule.sort_radix import Radix
from tracejit.backends.tvm.schedule.sort_rows import Sorting
from tracejit.backends.tvm.schedule.sort_select import SELECTED, Selecting
from tracejit.backends.tvm.tir import Stmt

# Shorter rows are merged before a radix sort has cleared its counts.
RADIX_FROM = 64


def sorting(frame: Frame, work: Sorting) -> Stmt:
    """The whole kernel."""
    order = order_of(work.comparator)
    if order is not None and suits_library(frame, work, order):
        frame.schedule = "library sort"
        return library_sort(frame, work, order)
    if order is not None and frame.index_dtype == "int32":
        if 0 < work.kept <= SELECTED and work.kept * 4 <= work.length:
            frame.schedule = "selection"
            return Selecting(frame, work, order).statement()
        if work.length >= RADIX_FROM:
            frame.schedule = "radix sort"
            return Radix(frame, work, order).statement()
    frame.schedule = "merge sort"
    return Merging(frame, work).statement()


__all__ = ["Sorting", "sorting"]
