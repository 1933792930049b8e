"""Every function of tracejit.numpy against NumPy, on arrays and arguments that hypothesis draws.

pytest tests/numpy_api/test_records.py --exhaustive=full         many examples of each
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import by_numpy, same
from tests.numpy_api.drawn import arrays_of
from tests.numpy_api.families import FAMILIES
from tests.numpy_api.records import RECORDS, Record
from tracejit.numpy.universal import Ufunc

EXAMPLES = {"sampled": 6, "full": 60}
BUILTIN = (IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError, NotImplementedError)
DEPENDS_ON_VALUES = ("negative integer powers", "Singular", "cannot convert float", "not monotonic")
"""What NumPy's errors say that no graph can know."""


def functions() -> Iterator[str]:
    """The public functions, by their dotted names; NumPy's own are none of ours."""
    spaces = {"": numpy, "linalg.": numpy.linalg, "fft.": numpy.fft}
    for prefix, theirs in spaces.items():
        ours = getattr(tj.numpy, prefix[:-1]) if prefix else tj.numpy
        for name in sorted(ours.__all__):
            value = getattr(ours, name)
            if callable(value) and not isinstance(value, type):
                if value is not getattr(theirs, name, None) and name != "__array_namespace_info__":
                    yield prefix + name


FUNCTIONS = list(functions())


def records_of(name: str) -> list[Record]:
    """The records of a function; that of a ufunc follows from its number of arguments."""
    found = [table[name] for table in (RECORDS, FAMILIES) if name in table]
    function = getattr(tj.numpy, name, None)
    if not found and isinstance(function, Ufunc):
        words = ("a*#", "ab#")[: function.nin]
        found.append(Record(lambda np, *arrays: getattr(np, name)(*arrays), words, 1e-5))
    return found


Outcome = tuple[Any, Exception | None]


def outcome(run: Callable[[], Any]) -> Outcome:
    """What a call returns, or the exception that it raises."""
    try:
        return run(), None
    except BUILTIN as error:
        return None, error


def compare(record: Record, arrays: list[numpy.ndarray], options: dict[str, Any]) -> None:
    """Fails unless the compiled function does what NumPy does, errors of the same kind too."""
    expected, refused = outcome(lambda: by_numpy(record.call, *arrays, **options))
    if refused is not None and any(text in str(refused) for text in DEPENDS_ON_VALUES):
        return
    kept = [array.copy() for array in arrays]
    got, error = outcome(
        lambda: tj.jit(lambda *traced: record.call(tj.numpy, *traced, **options))(*arrays)
    )
    if refused is not None:
        kind = next(one for one in BUILTIN if isinstance(refused, one))
        assert isinstance(error, kind), f"{error!r} for {refused!r}"
        return
    if error is not None:
        raise error
    values = [*arrays, *map(numpy.asarray, tj.tree.leaves(expected))]
    narrow = any(value.dtype == numpy.float16 for value in values)
    same(got, expected, "", 1e-2 if narrow else record.rtol)
    for array, before in zip(arrays, kept, strict=True):
        numpy.testing.assert_array_equal(array, before, "an argument was written to")


def check(record: Record, examples: int) -> None:
    """Draws so many examples."""

    @settings(
        max_examples=examples if record.words or record.options else 1,
        suppress_health_check=list(HealthCheck),
        deadline=None,
        derandomize=True,
        database=None,
    )
    @given(st.data())
    def drawn(data: st.DataObject) -> None:
        arrays: list[numpy.ndarray] = []
        for word in record.words:
            arrays.append(data.draw(arrays_of(word, tuple(arrays)), word))
        options = {
            name: data.draw(option(arrays) if callable(option) else option, name)
            for name, option in record.options.items()
        }
        compare(record, arrays, options)

    drawn()


def test_every_function_has_a_record() -> None:
    assert [name for name in FUNCTIONS if not records_of(name)] == []
    assert {*RECORDS, *FAMILIES} - set(FUNCTIONS) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str, exhaustive: bool) -> None:
    for record in records_of(name):
        check(record, EXAMPLES["full" if exhaustive else "sampled"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FUNCTIONS)
def test_machine_code(name: str, machine_code: None) -> None:
    for record in records_of(name):
        check(record, 3)
