"""The memory of large results: used again when nobody can see it, never before."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.runtime.programs import spec
from tracejit.backends.abi import ALIGNMENT, ArraySpec
from tracejit.runtime import result_arena

COUNT = result_arena.FROM_BYTES // 4
LARGE = spec("float32", COUNT)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    result_arena.release()
    yield
    result_arena.release()


def one(kind: ArraySpec = LARGE) -> Callable[[], np.ndarray]:
    """What makes results of a kind, one at a time."""
    allocate = result_arena.allocator([kind])
    return lambda: allocate()[0]


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def kept() -> int:
    return sum(size.nbytes * len(size.blocks) for size in result_arena._sizes.values())


# When memory is used again.


def test_the_memory_of_a_result_that_is_gone_is_used_again() -> None:
    make = one()
    first = make()
    where = address(first)
    assert where % ALIGNMENT == 0
    assert (first.shape, first.dtype) == ((COUNT,), np.dtype("float32"))
    second = make()
    assert address(second) != where
    del first
    assert address(make()) == where


def test_a_loop_whose_results_are_its_next_arguments_settles() -> None:
    """Old and new results live at once: about twice as many blocks."""
    allocate = result_arena.allocator([LARGE] * 3)
    state = allocate()
    used = set()
    for _ in range(50):
        state = allocate()
        used |= {address(array) for array in state}
        assert len({address(array) for array in state}) == 3
    assert 6 <= len(used) <= 8


def test_one_result_that_is_kept_does_not_hinder_the_others() -> None:
    make = one()
    results_kept = make()
    for _ in range(50):
        make()
    assert kept() <= 3 * LARGE.nbytes
    assert results_kept.flags.writeable


def test_kinds_of_equal_size_share_memory() -> None:
    floats, pairs = one(), one(spec("complex64", 2, COUNT // 4))
    where = address(floats())
    made = pairs()
    assert address(made) == where
    assert (made.shape, made.dtype) == ((2, COUNT // 4), np.dtype("complex64"))


def test_small_results_own_their_memory() -> None:
    make = one(spec("float32", COUNT - 1))
    assert make().flags.owndata
    assert kept() == 0


def _cycle(x: np.ndarray) -> list[Any]:
    made: list[Any] = [x]
    made.append(made)
    return made


EXPORTS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "a view": lambda x: x[5:7],
    "a view of a view": lambda x: x[::2].view(np.int32).reshape(2, -1).T,
    "its base": lambda x: x.base,
    "an iterator": lambda x: x.flat,
    "a broadcast": lambda x: np.broadcast_to(x, (2, COUNT)),
    "a structured view": lambda x: x.view([("a", "f4")])["a"],
    "a subclass": lambda x: x.view(np.recarray),
    "a buffer": lambda x: memoryview(x)[3:],
    "a pickled buffer": lambda x: pickle.PickleBuffer(x),
    "DLPack": lambda x: x.__dlpack__(),
    "from DLPack": lambda x: np.from_dlpack(x),
    "ctypes": lambda x: x.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
    "a ctypes array": lambda x: (ctypes.c_float * COUNT).from_buffer(x),
    "a bound method": lambda x: x.sum,
    "a cycle": _cycle,
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())
def test_memory_that_can_be_seen_is_not_used_again(export: Callable[[np.ndarray], Any]) -> None:
    make = one()
    array = make()
    array[...] = 7
    where = address(array)
    held = export(array)
    del array
    for _ in range(5):
        other = make()
        assert address(other) != where
        other[...] = 1
        del other
    assert set((ctypes.c_float * COUNT).from_address(where)) == {7}
    del held
    if export is _cycle:
        gc.collect()
    assert where in {address(each) for each in [make() for _ in range(4)]}


# What a result is like.


def test_a_result_is_an_ordinary_array() -> None:
    array = one()()
    array[...] = np.arange(COUNT)
    assert type(array) is np.ndarray
    assert array.flags.writeable
    assert not array.flags.owndata
    for made in (pickle.loads(pickle.dumps(array, 5)), copy.copy(array), copy.deepcopy(array)):
        np.testing.assert_array_equal(made, array)
        assert not np.shares_memory(made, array)
    with pytest.raises(ValueError, match="does not own its data"):
        array.resize(3)
    dead = weakref.ref(array)
    del array
    assert dead() is None


def test_what_a_program_does_to_an_array_does_not_reach_the_next_one() -> None:
    make = one()
    array: Any = make()
    where = address(array)
    array.shape = (2, COUNT // 2)
    array.dtype = np.int32
    array.flags.writeable = False
    del array
    made = make()
    assert address(made) == where
    assert (made.shape, made.dtype) == ((COUNT,), np.dtype("float32"))
    assert made.flags.writeable


# Limits.


def test_no_more_than_the_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_RESULTS_LIMIT", str(4 * LARGE.nbytes))
    small, large = one(), one(spec("float32", 3 * COUNT))
    live = [small() for _ in range(10)]
    assert kept() == 4 * LARGE.nbytes
    assert len({address(array) for array in live}) == 10
    other = large()
    assert kept() == 4 * LARGE.nbytes
    del live
    where = address(other)
    del other
    assert address(large()) == where
    assert one(spec("float32", 5 * COUNT))().flags.owndata


def test_reuse_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_RESULTS_LIMIT", "0")
    assert one()().flags.owndata


def test_the_blocks_of_a_program_go_with_it() -> None:
    make = one()
    make()
    assert kept() == LARGE.nbytes
    del make
    gc.collect()
    assert kept() == 0


def test_what_is_idle_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    make, busy = one(), one(spec("float64", COUNT))
    make()
    busy()
    assert result_arena._give_back_idle()
    busy()
    assert result_arena._give_back_idle()
    assert kept() == 2 * LARGE.nbytes
    live = make()
    assert result_arena._give_back_idle()
    assert kept() == LARGE.nbytes
    live[...] = 1
    assert not result_arena._give_back_idle()


def test_a_thread_gives_back_what_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_arena, "_watched", [])
    monkeypatch.setattr(result_arena, "IDLE_SECONDS", 0.01)
    make = one()
    make()
    end = time.monotonic() + 20
    while (kept() or result_arena._watched) and time.monotonic() < end:
        time.sleep(0.01)
    assert kept() == 0
    assert not result_arena._watched
    make()
    assert result_arena._watched


def test_memory_that_is_free_is_given_back_before_memory_runs_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = one(), one(spec("float32", 3 * COUNT))
    small()
    empty = np.empty
    failures: list[int] = []

    def scarce(*arguments: Any) -> np.ndarray:
        if not failures:
            failures.append(kept())
            raise MemoryError
        assert kept() == 0
        return empty(*arguments)

    monkeypatch.setattr(np, "empty", scarce)
    assert large().nbytes == 3 * LARGE.nbytes
    assert failures == [LARGE.nbytes]


# Programs, threads, processes.


def test_results_of_programs_are_right_whatever_is_kept() -> None:
    """Arrays kept and dropped in any order, as arguments and as results: all of them stay right."""
    step = tj.jit(lambda x, y: (x + y, x - 2 * y))
    draw = random.Random(0)
    rows = [(np.full(COUNT, float(n), np.float32), float(n)) for n in range(3)]
    used = set()
    for _ in range(300):
        (x, a), (y, b) = draw.choice(rows), draw.choice(rows)
        made, other = step(x, y)
        used.add(address(made))
        if abs(a) + abs(b) < 1e6:
            rows.append((made[:] if draw.random() < 0.5 else made, a + b))
        rows.append((other, a - 2 * b))
        while len(rows) > 8 or (len(rows) > 3 and draw.random() < 0.4):
            rows.pop(draw.randrange(3, len(rows)))
        for array, value in rows:
            assert array[0] == array[-1] == np.float32(value)
        rows = [row for row in rows if abs(row[1]) < 1e6]
    assert len(used) < 60


def test_donated_results_are_written_over() -> None:
    step = tj.jit(lambda x: x + 1, donate_argnums=0)
    state = tj.jit(lambda x: x * 2)(np.ones(COUNT, np.float32))
    where = address(state)
    for _ in range(3):
        state = step(state)
    assert address(state) == where
    assert (state == 5).all()


def test_threads_never_share_a_result() -> None:
    double = tj.jit(lambda x: x + x)
    double(np.zeros(COUNT, np.float32))
    start = threading.Barrier(6)

    def work(number: int) -> int:
        x = np.full(COUNT, number, np.float32)
        start.wait()
        wrong, before = 0, None
        for _ in range(200):
            y = double(x)
            wrong += not (y == 2 * number).all()
            wrong += before is not None and not (before == 2 * number).all()
            before = y if number % 2 else None
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == [0] * 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded")
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_process_has_memory_of_its_own() -> None:
    make = one()
    shared, free = make(), address(make())
    shared[...] = 3
    child = os.fork()
    if child == 0:
        array = make()
        right = address(array) == free and (shared == 3).all() and not result_arena._watched
        array[...] = 4
        make()
        os._exit(0 if right and result_arena._watched else 1)
    array = make()
    array[...] = 5
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert address(array) == free
    assert (array == 5).all()
