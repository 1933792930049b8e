"""Every function of tracejit.numpy against NumPy, on arrays drawn by hypothesis; see records.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import by_numpy, same
from tests.numpy_api.drawn import draw
from tests.numpy_api.records import RECORDS, Record
from tracejit.numpy.ufunc import Ufunc

FUNCTIONS = sorted(
    name
    for name in tj.numpy.__all__
    if callable(getattr(tj.numpy, name))
    and not isinstance(getattr(tj.numpy, name), type)
    and getattr(tj.numpy, name) is not getattr(numpy, name, None)
    and name != "__array_namespace_info__"
)


def record_of(name: str) -> Record:
    """The record of a function; that of a ufunc follows from its number of arguments."""
    function = getattr(tj.numpy, name)
    if name in RECORDS or not isinstance(function, Ufunc):
        return RECORDS[name]
    words = ("a*!", "ab!")[: function.nin]
    return Record(lambda np, *arrays: getattr(np, name)(*arrays), words, 1e-5)


def outcome(run: Callable[[], Any]) -> Any:
    """What a call returns, or the exception that it raises."""
    try:
        return run()
    except (ValueError, TypeError, IndexError, NotImplementedError, ZeroDivisionError) as error:
        return error


def compare(record: Record, arrays: list[numpy.ndarray]) -> None:
    expected = outcome(lambda: by_numpy(record.call, *arrays))
    if isinstance(expected, Exception):
        return
    got = tj.jit(lambda *traced: record.call(tj.numpy, *traced))(*arrays)
    loose = any(array.dtype == numpy.float16 for array in arrays)
    same(got, expected, "", 1e-2 if loose else record.rtol)


def test_every_function_has_a_record() -> None:
    missing = [
        name
        for name in FUNCTIONS
        if name not in RECORDS and not isinstance(getattr(tj.numpy, name), Ufunc)
    ]
    assert missing == []
    assert set(RECORDS) - set(FUNCTIONS) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    record = record_of(name)

    @settings(max_examples=6 if record.words else 1, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 2**32), min_size=3, max_size=3))
    def drawn(seeds: list[int]) -> None:
        arrays: list[numpy.ndarray] = []
        for seed, word in zip(seeds, record.words, strict=False):
            arrays.append(draw(seed, word, arrays[0] if arrays else None))
        compare(record, arrays)

    drawn()
