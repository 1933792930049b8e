"""Short words for records whose arguments besides arrays are drawn too: axes, dtypes, modes.

"sum": reduction("sum", "a*", dtype=DTYPES)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.numpy_api.records import Option, Record

Arrays = Sequence[np.ndarray]
TRUTH = st.booleans()
DTYPES = st.sampled_from([None, None, "float32", "float64", "int64"])


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    """Any of some values."""
    return st.sampled_from(values)


def axis(arrays: Arrays) -> st.SearchStrategy[Any]:
    """One axis of the first array; sometimes one that it does not have."""
    rank = arrays[0].ndim
    return st.sampled_from([*range(-rank, rank), *range(-rank, rank), rank])


def axes(arrays: Arrays) -> st.SearchStrategy[Any]:
    """None, one axis, or several."""
    rank = arrays[0].ndim
    several = st.lists(st.integers(0, max(rank - 1, 0)), max_size=rank, unique=True).map(tuple)
    return st.none() | axis(arrays) | several


def own_axes(arrays: Arrays) -> st.SearchStrategy[Any]:
    """Some axes of the first array, in any order, some of them counted from the back."""
    rank = arrays[0].ndim
    return st.permutations(range(rank)).map(lambda order: tuple(order[: max(rank - 1, 1)]))


def permutation(arrays: Arrays) -> st.SearchStrategy[Any]:
    """All axes of the first array in any order."""
    return st.permutations(range(arrays[0].ndim)).map(tuple)


def sections(arrays: Arrays) -> st.SearchStrategy[Any]:
    """Places to split at, or how many parts."""
    return st.integers(1, 4) | st.lists(st.integers(-2, 5), max_size=3).map(sorted)


def function(name: str) -> Callable[..., Any]:
    """The function of a namespace, by its dotted name."""

    def call(np: Any, *arrays: Any, **options: Any) -> Any:
        found = np
        for part in name.split("."):
            found = getattr(found, part)
        return found(*arrays, **options)

    return call


def drawn(name: str, *words: str, rtol: float | None = None, **options: Option) -> Record:
    """A function of arrays with drawn keyword arguments."""
    return Record(function(name), words, rtol, options)


def reduction(name: str, word: str, rtol: float | None = None, **options: Option) -> Record:
    """A reduction over any axes, all elements or those under a mask."""
    call = function(name)
    given = {"axis": axes, "keepdims": TRUTH, **options}

    def reduced(np: Any, x: Any, mask: Any, masked: bool, **kwargs: Any) -> Any:
        if masked:
            kwargs["where"] = mask
        return call(np, x, **kwargs)

    return Record(reduced, (word, "bb"), rtol, {"masked": TRUTH, **given})


def plain_reduction(name: str, word: str, rtol: float | None = None, **options: Option) -> Record:
    """A reduction without a mask."""
    return Record(function(name), (word,), rtol, {"axis": axes, "keepdims": TRUTH, **options})


def of_list(name: str, *words: str, **options: Option) -> Record:
    """A function of a list of arrays."""
    call = function(name)
    return Record(lambda np, *arrays, **o: call(np, list(arrays), **o), words, None, options)
