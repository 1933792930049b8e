"""Large sorts of values alone, which compiled code leaves to NumPy's vector code.

NumPy's fast sorts are not stable. Of integers nobody can tell; of floats, zeros of both signs and
NaN come out in any order, and are put back into the order that they had.

NumPy sorts in one thread. What is large is therefore cut into parts that do not meet: rows, or what
a partition puts before and behind some places of a single row.
"""

from __future__ import annotations

import threading

import numpy as np

from tracejit.backends.abi import SORT_VALUES
from tracejit.backends.machine import thread_count
from tracejit.runtime.callbacks import callback, view

# So many elements take a hundred times as long as a thread takes to start.
_SHARED_FROM = 1 << 18


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
        np.copyto(made.view(_integer(made)), _total_order(given))
        _sort(made.view(_integer(made)))
        np.copyto(made.view(_integer(made)), _total_order(made))
    else:
        np.copyto(made, given)
        _sort(made)
        if made.dtype.kind == "f":
            _restore_equals(given, made, descending)
    if descending:
        np.copyto(made, made[:, ::-1].copy())


def _sort(made: np.ndarray) -> None:
    """In place in the middle dimension, in as many threads as compiled code uses."""
    outer, length, inner = made.shape
    threads = min(thread_count(), outer if outer > 1 else length)
    if threads == 1 or inner > 1 or made.size < _SHARED_FROM:
        made.sort(axis=1)
        return
    rows = made[:, :, 0] if outer > 1 else made[0, :, 0]
    cuts = [len(rows) * number // threads for number in range(1, threads)]
    if outer == 1:
        rows.partition(cuts)
    first, *rest = np.split(rows, cuts)
    started = []
    for part in rest:
        thread = threading.Thread(target=part.sort)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, or there are too many threads
            part.sort()
        else:
            started.append(thread)
    first.sort()
    for thread in started:
        thread.join()


def _integer(array: np.ndarray) -> str:
    return f"i{array.itemsize}"


def _total_order(array: np.ndarray) -> np.ndarray:
    """Integers in the total order of floats; of these as bits, the floats' bits again."""
    bits = array.view(_integer(array))
    made: np.ndarray = bits ^ ((bits >> (8 * array.itemsize - 1)) & np.iinfo(bits.dtype).max)
    return made


def _restore_equals(given: np.ndarray, made: np.ndarray, descending: bool) -> None:
    """Zeros and NaN in each sorted row as they follow each other in ``given``, or backwards."""
    bits = given.view(_integer(given))
    # Negative zero's bits are those of the least integer.
    rows = np.isnan(made[:, -1]) | (bits.min(axis=1) == np.iinfo(bits.dtype).min)
    step = -1 if descending else 1
    for outer, inner in np.argwhere(rows):
        row, result = given[outer, :, inner], made[outer, :, inner]
        zeros, nans = row[row == 0][::step], row[np.isnan(row)][::step]
        begin = np.searchsorted(result, 0)
        result[begin : begin + len(zeros)] = zeros
        result[len(result) - len(nans) :] = nans
