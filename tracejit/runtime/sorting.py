"""Large sorts of values alone, which compiled code leaves to NumPy's vector code.

NumPy's fast sorts are not stable. Of integers nobody can tell; of floats, zeros of both signs and
NaN come out in any order, and are put back into the order that they had.
"""

from __future__ import annotations

import numpy as np

from tracejit.backends.abi import SORT_VALUES
from tracejit.runtime.callbacks import callback, view


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
        made.view(_integer(made)).sort(axis=1)
        np.copyto(made.view(_integer(made)), _total_order(made))
    else:
        np.copyto(made, given)
        made.sort(axis=1)
        if made.dtype.kind == "f":
            _restore_equals(given, made, descending)
    if descending:
        np.copyto(made, made[:, ::-1].copy())


def _integer(array: np.ndarray) -> str:
    return f"i{array.itemsize}"


def _total_order(array: np.ndarray) -> np.ndarray:
    """Integers in the total order of floats; of these as bits, the floats' bits again."""
    bits = array.view(_integer(array))
    made: np.ndarray = bits ^ ((bits >> (8 * array.itemsize - 1)) & np.iinfo(bits.dtype).max)
    return made


def _restore_equals(given: np.ndarray, made: np.ndarray, descending: bool) -> None:
    """Zeros and NaN in each sorted row as they follow each other in ``given``, or backwards."""
    negative_zero = np.array(-0.0, given.dtype).view(_integer(given))
    rows = np.isnan(made[:, -1]) | (given.view(_integer(given)) == negative_zero).any(axis=1)
    step = -1 if descending else 1
    for outer, inner in np.argwhere(rows):
        row, result = given[outer, :, inner], made[outer, :, inner]
        zeros, nans = row[row == 0][::step], row[np.isnan(row)][::step]
        begin = np.searchsorted(result, 0)
        result[begin : begin + len(zeros)] = zeros
        result[len(result) - len(nans) :] = nans
