"""Large sorts of values, which several threads share: bit for bit what a stable sort gives."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.backends_tvm.compiled import computation
from tests.lowered import lower
from tests.runtime.programs import loaded
from tracejit import ops
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.runtime import sorting
from tracejit.shapes import Shape, element_type_of

SIZE = sorting._SHARED_FROM // 4
SHAPES = [(SIZE,), (SIZE + 3,), (2, SIZE // 2), (3, SIZE // 2 + 1), (SIZE // 8, 9), (9, SIZE // 8)]


def values(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of which many are equal; floats have zeros of both signs, and NaN of several bits."""
    rng = np.random.default_rng(len(shape))
    if np.dtype(dtype).kind != "f":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.normal(size=shape).astype(dtype)
    draw = rng.integers(0, 30, shape)
    for number, special in enumerate([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]):
        x[draw == number] = special
    return x


def sorter(x: np.ndarray, axis: int = -1) -> Callable[[np.ndarray], np.ndarray]:
    """Sorts arrays like ``x`` as on a processor that cannot sort in vector registers itself."""
    kind = element_type_of(x.dtype)
    order = ops.sort_order(kind)
    entry = computation(
        lambda operand: ops.sort(operand, order, axis % x.ndim, True), Shape(kind, x.shape)
    )
    executable = loaded(build(lower(entry, Machine(32, 2, has_avx2=False)), processor_of()))

    def sort(x: np.ndarray) -> np.ndarray:
        (made,) = executable([x])
        return np.asarray(made)

    return sort


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_large_sorts_in_threads(
    dtype: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = values(dtype, shape)
    sort = sorter(x)
    expected = np.sort(x, kind="stable").tobytes()
    for threads in (1, 2, 3):
        monkeypatch.setattr(sorting, "thread_count", lambda count=threads: count)
        assert sort(x).tobytes() == expected


@pytest.mark.parametrize("shape", [(600, 500), (3, 400, 301)], ids=str)
def test_large_sorts_of_columns(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = values("float32", shape)
    sort = sorter(x, axis=-2)
    expected = np.sort(x, axis=-2, kind="stable").tobytes()
    for threads in (1, 2, 3):
        monkeypatch.setattr(sorting, "thread_count", lambda count=threads: count)
        assert sort(x).tobytes() == expected


def test_equal_numbers_and_sorted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered = np.arange(SIZE, dtype=np.float32)
    sort = sorter(ordered)
    for threads in (2, 3):
        monkeypatch.setattr(sorting, "thread_count", lambda count=threads: count)
        for x in (np.zeros(SIZE, np.float32), np.full(SIZE, np.nan, np.float32)):
            assert sort(x).tobytes() == x.tobytes()
        assert sort(ordered[::-1]).tobytes() == ordered.tobytes()


def test_a_sort_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    x = values("float64", (SIZE,))
    sort = sorter(x)
    sort(x)
    refused = []

    def refuse(thread: threading.Thread) -> None:
        refused.append(thread)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(sorting, "thread_count", lambda: 2)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert sort(x).tobytes() == np.sort(x, kind="stable").tobytes()
    assert len(refused) == 1
