"""Chooses the algorithm of Sort and TopK, by comparator and size."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracejit.backends.tvm.analysis.sort_keys import order_of
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.cpu.schedule.sort.argsort import Positions, suits_words
from tracejit.backends.tvm.cpu.schedule.sort.flags import flag_sort, suits_flags
from tracejit.backends.tvm.cpu.schedule.sort.host_sort import library_sort, suits_library
from tracejit.backends.tvm.cpu.schedule.sort.merge import Merging
from tracejit.backends.tvm.cpu.schedule.sort.quicksort import suits_vectors, vector_sort
from tracejit.backends.tvm.cpu.schedule.sort.radix import RadixSort
from tracejit.backends.tvm.cpu.schedule.sort.rows import Sorting
from tracejit.backends.tvm.cpu.schedule.sort.select import Selecting
from tracejit.backends.tvm.ir.tir import Stmt

# The least length of a radix sort: shorter rows are merged before its counts are cleared.
RADIX_FROM = 64


def sorting(frame: Frame, work: Sorting) -> Stmt:
    """The statement of the whole kernel."""
    name, write = frame.choices.of("algorithm", ((way[0], way) for way in _ways(frame, work)))
    frame.schedule = name
    return write()


def _ways(frame: Frame, work: Sorting) -> Iterator[tuple[str, Callable[[], Stmt]]]:
    """The algorithms that support this sort, the fastest first."""
    order = order_of(work.comparator)
    if order is not None and suits_vectors(frame, work, order):
        yield "vector sort", lambda: vector_sort(frame, work, order)
    if order is not None and suits_flags(frame, work, order):
        yield "places of flags", lambda: flag_sort(frame, work, order)
    if order is not None and suits_library(frame, work, order):
        yield "library sort", lambda: library_sort(frame, work, order)
    if order is not None and frame.index_dtype == "int32":
        if frame.limits.selects(work.kept, work.length):
            yield "selection", lambda: Selecting(frame, work, order).statement()
        if suits_words(frame, work, order):
            yield "sort of words", lambda: Positions(frame, work, order).statement()
        if work.length >= RADIX_FROM:
            yield "radix sort", lambda: RadixSort(frame, work, order).statement()
    yield "merge sort", lambda: Merging(frame, work).statement()


__all__ = ["Sorting", "sorting"]
