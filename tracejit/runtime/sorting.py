"""Large sorts of values alone, which compiled code leaves to NumPy's vector code.

NumPy's fast sorts are not stable. Of integers nobody can tell; of floats, zeros of both signs and
NaN come out in any order, and are put back into the order that they had.

NumPy sorts in one thread. What is large is therefore cut into parts that do not meet: rows, or
columns, or what a partition puts before and behind some places of a single row.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence

import numpy as np

from tracejit.backends.abi import SORT_VALUES
from tracejit.backends.machine import thread_count
from tracejit.runtime.callbacks import callback, view

# The least elements of a sort by several threads: a hundred times the start of a thread.
_ROWS_FROM = 1 << 18
# The least bytes of a row that is cut into two parts, which takes a quarter of the time of sorting
# it.
_SHARED_FROM = 1 << 22


@callback(SORT_VALUES)
def _sort_values(
    dtype: str,
    descending: bool,
    total: bool,
    outer: int,
    length: int,
    inner: int,
    source: int,
    target: int,
) -> None:
    """Sorts an array (outer, length, inner) in its middle dimension; ``total`` orders bits."""
    given = view(source, (outer, length, inner), dtype)
    made = view(target, (outer, length, inner), dtype)
    if total and made.dtype.kind == "f":
        _sort(_total_order(given), made.view(_integer(made)))
        np.copyto(made.view(_integer(made)), _total_order(made))
    else:
        _sort(given, made)
        if made.dtype.kind == "f":
            _restore_equals(given, made, descending)
    if descending:
        np.copyto(made, made[:, ::-1].copy())


def _sort(given: np.ndarray, made: np.ndarray) -> None:
    """Sorts the middle dimension into ``made``, in as many threads as compiled code uses."""
    outer, length, inner = made.shape
    several = max(outer, inner)
    threads = min(thread_count(), several if several > 1 else length)
    is_small = made.nbytes < _SHARED_FROM if several == 1 else made.size < _ROWS_FROM
    if threads == 1 or is_small:
        _sort_rows(given, made)
        return
    if several > 1:
        axis = 0 if outer == several else 2
        cuts = [several * number // threads for number in range(1, threads)]
        pairs = zip(np.split(given, cuts, axis), np.split(made, cuts, axis), strict=True)
        _in_threads([functools.partial(_sort_rows, *pair) for pair in pairs])
        return
    row = made[0, :, 0]
    np.copyto(row, given[0, :, 0])
    cuts = [length * number // threads for number in range(1, threads)]
    row.partition(cuts)
    _in_threads([part.sort for part in np.split(row, cuts)])


def _sort_rows(given: np.ndarray, made: np.ndarray) -> None:
    np.copyto(made, given)
    # Any but the last axis is sorted in a buffer.
    in_place = made[:, :, 0] if made.shape[2] == 1 else made
    in_place.sort(axis=1)


def _in_threads(tasks: Sequence[Callable[[], None]]) -> None:
    """Runs them at once; none may raise.

    What a signal's handler raises meanwhile is raised when all are done: they write to memory that
    is the program's no longer than it runs.
    """
    first, *rest = tasks
    threads = [threading.Thread(target=task) for task in rest]
    try:
        for thread, task in zip(threads, rest, strict=True):
            try:
                thread.start()
            except RuntimeError:  # the interpreter ends, or there are too many threads
                task()
        first()
    finally:
        for thread in threads:
            _join(thread)


def _join(thread: threading.Thread) -> None:
    """Waits for a thread, if it was started, whatever is raised meanwhile."""
    while thread.is_alive():
        try:
            thread.join()
        except BaseException:
            _join(thread)
            raise


def _integer(array: np.ndarray) -> str:
    return f"i{array.itemsize}"


def _total_order(array: np.ndarray) -> np.ndarray:
    """Integers in the total order of floats; of these as bits, the floats' bits again."""
    bits = array.view(_integer(array))
    made: np.ndarray = bits ^ ((bits >> (8 * array.itemsize - 1)) & np.iinfo(bits.dtype).max)
    return made


def _restore_equals(given: np.ndarray, made: np.ndarray, descending: bool) -> None:
    """Zeros and NaN in each sorted row as they follow each other in ``given``, or backwards."""
    rows = np.isnan(made[:, -1]) | _with_negative_zero(given, made)
    if not rows.any():
        return
    step = -1 if descending else 1
    for outer, inner in np.argwhere(rows):
        row, result = given[outer, :, inner], made[outer, :, inner]
        zeros, nans = row[row == 0][::step], row[np.isnan(row)][::step]
        begin = np.searchsorted(result, _zero(result))
        result[begin : begin + len(zeros)] = zeros
        result[len(result) - len(nans) :] = nans


def _zero(array: np.ndarray) -> np.generic:
    """A zero of the array's own type: for Python's, a search would convert the whole
    array first.
    """
    zero: np.generic = array.dtype.type(0)
    return zero


def _with_negative_zero(given: np.ndarray, made: np.ndarray) -> np.ndarray:
    """Which rows of ``given``, sorted in ``made``, have one; of many, none is quickly said."""
    if made.size == made.shape[1]:
        row = made[0, :, 0]
        zero = _zero(row)
        zeros = row[np.searchsorted(row, zero) : np.searchsorted(row, zero, "right")]
        return np.full((1, 1), np.signbit(zeros).any())
    bits = given.view(_integer(given))
    least = np.iinfo(bits.dtype).min  # what negative zero's bits are
    if bits.min() != least:
        return np.zeros((1, 1), np.bool_)
    flags: np.ndarray = bits.min(axis=1) == least
    return flags
