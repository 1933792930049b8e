"""Calling a program: every layout of array, every mistake, memory, and threads."""

from __future__ import annotations

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.programs import addition, elementwise, executable, of_one_kernel, spec
from tracejit.errors import ArgumentError
from tracejit.runtime import Executable, importing_tvm, workspace

with importing_tvm():
    from tracejit.backends.tvm.program.program import Argument, Call, Program


@pytest.fixture(scope="module")
def add() -> Executable:
    return executable(addition())


@pytest.fixture(scope="module")
def cube() -> Executable:
    """x + x of f32[4,5,6], to be called with all kinds of strides."""
    array = spec("float32", 4, 5, 6)
    return executable(of_one_kernel(elementwise("k", lambda x: x + x, 120, 1), [array], array))


# Layouts: a right answer for each, and the argument as it was.


@given(
    order=st.permutations(range(3)),
    steps=st.lists(st.sampled_from([1, 2, 3, -1, -2]), min_size=3, max_size=3),
    offset=st.integers(0, 7),
    swapped=st.booleans(),
    writeable=st.booleans(),
    seed=st.integers(0, 100),
)
def test_every_stride_offset_and_byte_order(
    cube: Executable,
    order: list[int],
    steps: list[int],
    offset: int,
    swapped: bool,
    writeable: bool,
    seed: int,
) -> None:
    shape = [4, 5, 6]
    size = [shape[order.index(d)] * abs(steps[order.index(d)]) for d in range(3)]
    memory = np.zeros(int(np.prod(size)) * 4 + 8, np.uint8)[offset:]
    memory = memory[: int(np.prod(size)) * 4]
    x = memory.view(">f4" if swapped else "f4").reshape(size).transpose(order)
    x = x[tuple(slice(None, None, step) for step in steps)]
    assert x.shape == (4, 5, 6)
    x[...] = np.random.default_rng(seed).normal(size=x.shape)
    x.flags.writeable = writeable
    before = x.copy()
    (y,) = cube([x])
    np.testing.assert_array_equal(y, (before + before).astype("f4"))
    assert y.dtype.isnative
    assert x.tobytes() == before.tobytes()


def test_broadcast_arrays(cube: Executable) -> None:
    x = np.broadcast_to(np.arange(6, dtype=np.float32), (4, 5, 6))
    np.testing.assert_array_equal(cube([x])[0], x + x)


def test_overlapping_arguments(add: Executable) -> None:
    memory = np.arange(12, dtype=np.float32)
    x, y = memory[:10], memory[2:]
    np.testing.assert_array_equal(add([x, y])[0], x + y)
    np.testing.assert_array_equal(add([x, x])[0], x + x)
    windows = np.lib.stride_tricks.sliding_window_view(memory, 10)
    np.testing.assert_array_equal(add([windows[0], windows[1]])[0], windows[0] + windows[1])


def test_subclasses_and_numpy_scalars(add: Executable) -> None:
    x = np.arange(10, dtype=np.float32)
    (y,) = add([x.view(np.recarray), x])
    assert type(y) is np.ndarray
    scalar = spec("float64")
    kernel = elementwise("double", lambda x: x + x, 1, 1, "float64")
    run = executable(of_one_kernel(kernel, [scalar], scalar))
    (z,) = run([np.float64(4)])
    assert (z.shape, z.item()) == ((), 8.0)


def test_nan_infinity_and_negative_zero_pass(add: Executable) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, -1e-45, 3e38, 1, 2], np.float32)
    (y,) = add([x, np.full(10, -0.0, np.float32)])
    assert y[2:].tobytes() == x[2:].tobytes()
    assert np.isnan(y[0])
    assert y[1] == np.inf


# Mistakes: one clear error each.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "compiled for 2 arguments, called with 0"),
        ([1.0, 2.0], r"argument 0 must be an array, float32\[10\]; it is of type float"),
        ([None, None], "it is of type NoneType"),
        ([[0.0] * 10, [0.0] * 10], "it is of type list"),
        ([np.zeros(10, "f4"), np.zeros(10)], r"argument 1 must be float32\[10\]; it is float64"),
        ([np.zeros(10, "f4"), np.zeros((2, 5), "f4")], r"it is float32\[2,5\]"),
        ([np.zeros(10, "f4"), np.zeros(10, object)], r"it is object\[10\]"),
        ([np.zeros(10, "f4"), np.array(["a"] * 10)], r"it is <U1\[10\]"),
        ([np.zeros(10, "f4"), np.zeros(10, "M8[s]")], r"it is datetime64\[s\]\[10\]"),
        ([np.zeros(10, "f4"), np.ma.zeros(10, "f4")], "argument 1 is a masked array"),
        ([np.zeros(10, "f4"), np.zeros(9, ">f4")], r"it is >f4\[9\]"),
    ],
)
def test_arguments_that_do_not_fit(add: Executable, arguments: list[object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        add(arguments)


def test_too_little_memory_is_a_memory_error() -> None:
    huge = spec("float32", 1 << 50)
    with pytest.raises(MemoryError):
        executable(Program([], [], [], [huge]))([])
    with pytest.raises(MemoryError):
        executable(Program([], [], [], [], workspace_bytes=1 << 50))([])


# Memory.


def test_outputs_are_new_and_their_own(add: Executable) -> None:
    x = np.ones(10, np.float32)
    first, second = add([x, x])[0], add([x, x])[0]
    assert first.flags.owndata
    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, x)


def test_nothing_keeps_arguments_or_results_alive(add: Executable) -> None:
    x = np.ones(10, np.float32)
    y = add([x, x])[0]
    dead = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [reference() for reference in dead] == [None, None]


def wide(size: int = 20_000) -> Program:
    """x + 1 + x, in two kernels and a workspace off the stack."""
    array = spec("float32", size)
    kernels = [
        elementwise("one", lambda x: x + x, size, 1),
        elementwise("two", lambda x, y: x + y, size, parallel=True),
    ]
    calls = [
        Call("one", [Argument.input(0), Argument.workspace(0)]),
        Call("two", [Argument.input(0), Argument.workspace(0), Argument.output(0)]),
    ]
    return Program(kernels, calls, [array], [array], workspace_bytes=size * 4)


def test_a_workspace_is_used_again() -> None:
    workspace._free.clear()
    run = executable(wide())
    x = np.ones(20_000, np.float32)
    run([x])
    (kept,) = workspace._free
    for _ in range(10):
        run([x])
    assert len(workspace._free) == 1
    assert workspace._free[0] is kept


def test_a_workspace_that_is_too_small_or_too_large_is_not_kept() -> None:
    workspace._free.clear()
    small = workspace.take(100)
    workspace.give(small)
    large = workspace.take(1000)
    assert large is not small
    assert not workspace._free
    workspace.give(np.empty(0, np.uint8))
    workspace.give(np.lib.stride_tricks.as_strided(large, (workspace.KEPT_BYTES + 1,), (0,)))
    assert [memory.nbytes for memory in workspace._free] == [0]
    for _ in range(2 * workspace.KEPT):
        workspace.give(np.empty(8, np.uint8))
    assert len(workspace._free) == workspace.KEPT
    workspace._free.clear()


# Threads.


def test_threads_call_one_program_at_once() -> None:
    """Each call has its own workspace and outputs; the pool of threads below is TVM's."""
    run = executable(wide())
    start = threading.Barrier(8)

    def work(seed: int) -> int:
        x = np.random.default_rng(seed).normal(size=20_000).astype(np.float32)
        expected = x + (x + x)
        start.wait()
        return sum(not np.array_equal(run([x])[0], expected) for _ in range(200))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [0] * 8


def test_threads_end_while_others_run() -> None:
    """A thread's own pool goes with it."""
    run = executable(wide())
    x = np.ones(20_000, np.float32)
    results: list[np.ndarray] = []
    for _ in range(20):
        threads = [threading.Thread(target=lambda: results.extend(run([x]))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert [y[0] for y in results] == [3] * 60


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_code_goes_with_its_program() -> None:
    """As much code is mapped into the process, however many programs come and go."""

    def mapped() -> int:
        gc.collect()
        lines = Path("/proc/self/maps").read_text().splitlines()
        return sum("x" in line.split()[1] for line in lines)

    x = np.ones(5)
    program = executable(addition())
    run, library = program.run, weakref.ref(program.library)
    before = mapped()
    del program
    assert mapped() == before, "who holds the function holds its code"
    assert run([x.astype(np.float32)] * 2) is None  # of other shapes than it takes
    del run
    gc.collect()
    assert library() is None
    assert mapped() < before
