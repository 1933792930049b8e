"""Compiled code reads Python's objects: that it may, that it checks, and what happens if not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from tests.runtime.programs import addition, built, loaded, spec
from tracejit.backends import abi
from tracejit.runtime import Executable


@pytest.fixture(scope="module")
def add() -> bytes:
    return built(addition())


@pytest.fixture(params=["objects", "records"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, add: bytes) -> Executable:
    """The same program on Python's own objects, and on words spelled out for it."""
    if request.param == "records":
        monkeypatch.setattr(abi, "readable", lambda: False)
    return loaded(add)


@pytest.fixture
def fresh_answer() -> Iterator[None]:
    abi.readable.cache_clear()
    yield
    abi.readable.cache_clear()


def test_this_python_is_readable() -> None:
    """CPython 3.10 to 3.14 is; without it every call takes the slow way."""
    assert abi.readable()
    assert abi.address_of() is id


@pytest.mark.usefixtures("fresh_answer")
@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(abi.Layout)])
def test_another_layout_is_noticed(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(abi.LAYOUT, field)
    monkeypatch.setattr(abi, "LAYOUT", dataclasses.replace(abi.LAYOUT, **{field: right + 8}))
    assert not abi.readable()
    assert abi.address_of() is abi.Records


def test_the_right_arrays_are_taken(run: Executable) -> None:
    x, y = np.arange(10, dtype=np.float32), np.ones(10, np.float32)
    outputs = run.run([x, y])
    assert outputs is not None
    np.testing.assert_array_equal(outputs[0], x + y)


X = np.ones(10, np.float32)
WRONG = {
    "another type": [1.0, None, [1.0] * 10, X.tolist(), X.data, np.float32(1), object(), {}],
    "a subclass": [np.ma.array(X), X.view(np.recarray), X.view(np.memmap)],
    "another dtype": [X.astype(t) for t in ("f8", "i4", "f2", "c8", "?", object, "S4", "M8[s]")],
    "other bytes": [X.astype(">f4"), np.frombuffer(bytes(41), np.uint8)[1:].view(np.float32)],
    "another rank": [X[:, None], X[None], X.reshape(2, 5), np.array(1, np.float32), X[:0, None]],
    "another size": [X[:9], np.ones(11, np.float32), X[:0]],
    "strides": [np.ones(20, np.float32)[::2], X[::-1], np.broadcast_to(np.float32(1), (10,))],
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("position", [0, 1])
def test_others_are_refused_and_nothing_runs(run: Executable, kind: str, position: int) -> None:
    for wrong in WRONG[kind]:
        arguments: list[object] = [X, X]
        arguments[position] = wrong
        assert run.run(arguments) is None, wrong


@pytest.mark.parametrize("count", [0, 1, 3, 4, 100])
def test_another_number_is_refused(run: Executable, count: int) -> None:
    assert run.run([X] * count) is None


def test_a_dtype_that_is_equal_but_another_object_is_refused(run: Executable) -> None:
    """`run` compares addresses; the call around it converts."""
    tagged = X.view(np.dtype(np.float32, metadata={"unit": "m"}))
    assert tagged.dtype == X.dtype
    assert run.run([X, tagged]) is None
    np.testing.assert_array_equal(run([X, tagged])[0], X + X)


def test_read_only_arrays_are_taken(run: Executable) -> None:
    x = X.copy()
    x.flags.writeable = False
    assert run.run([x, x]) is not None


def test_records_keep_their_words_alive() -> None:
    """The address is a number that holds what it points at."""
    address = abi.Records((X, X))
    assert isinstance(address, int)
    words = abi._word(address + abi.LAYOUT.length), abi._word(address + abi.LAYOUT.items)
    assert words[0] == 2
    assert abi._word(words[1] + abi.LAYOUT.data) == X.ctypes.data


def test_specs() -> None:
    assert str(spec("bfloat16", 2, 3)) == "bfloat16[2,3]"
    assert str(spec("bool")) == "bool[]"
    assert spec("complex64", 2, 3).nbytes == 48
    assert spec("float32", 0, 1 << 40).nbytes == 0
