"""Python functions called by kernels, and their exceptions."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.runtime.programs import addition, elementwise, executable, loaded, spec
from tracejit.errors import CompilationError
from tracejit.runtime import Executable, callback, importing_tvm, view

with importing_tvm():
    from tracejit.backends.tvm.cpu.objects import build as building
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.tir import Evaluate, buffer, const, seq, tirx
    from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Program

SIZE = 8

Action = Callable[[np.ndarray, np.ndarray], None]
actions: dict[int, Action] = {}
seen: list[tuple[object, ...]] = []


@callback("tests.act")
def act(source: int, target: int, number: int) -> None:
    x, y = (view(address, (SIZE,), np.float32) for address in (source, target))
    actions[number](x, y)


@callback("tests.see")
def see(*values: object) -> None:
    seen.append(values)


def calling(name: str, *values: object) -> Kernel:
    """A kernel that calls back with two arrays and some constants."""
    source, target = buffer("source", (SIZE,), "float32"), buffer("target", (SIZE,), "float32")
    call = tirx.call_packed(name, source.data, target.data, *values)
    return Kernel("call", (source, target), Evaluate(call))


def around(middle: Kernel) -> Program:
    """y = middle(x + x) + 1"""
    array = spec("float32", SIZE)
    kernels = [
        elementwise("double", lambda x: x + x, SIZE, 1),
        middle,
        elementwise("increase", lambda x: x + const(1, "float32"), SIZE, 1),
    ]
    places = [Argument.input(0), Argument.workspace(0), Argument.workspace(64), Argument.output(0)]
    calls = [Call(kernel.name, places[n : n + 2]) for n, kernel in enumerate(kernels)]
    return Program(kernels, calls, [array], [array], workspace_bytes=128)


@pytest.fixture(scope="module", params=["library", "in process"])
def make(request: pytest.FixtureRequest) -> Callable[[int], Executable]:
    """Programs that call `act`, with a linker and without."""

    def made(number: int) -> Executable:
        program = around(calling("tests.act", const(number, "int64")))
        if request.param == "library":
            return executable(program)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(building, "can_link", lambda: False)
            patch.setattr(building, "warn_of_missing_linker", lambda: None)
            return loaded(building.build(program, processor_of()))

    return made


X = np.arange(SIZE, dtype=np.float32)[::-1].copy()


def test_a_callback_works_on_the_kernels_memory(make: Callable[[int], Executable]) -> None:
    def sort(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = np.sort(x)

    actions[1] = sort
    run = make(1)
    for _ in range(3):
        np.testing.assert_array_equal(run([X])[0], np.sort(X + X) + 1)


class Refused(Exception):
    """What no library raises."""


def refuse(x: np.ndarray, y: np.ndarray) -> None:
    raise Refused("no", 7)


@pytest.mark.parametrize("error", [Refused("no", 7), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_comes_out_as_it_is(
    make: Callable[[int], Executable], error: BaseException
) -> None:
    """With its own traceback, and the program can be called again."""

    def fail(x: np.ndarray, y: np.ndarray) -> None:
        raise error

    actions[2] = fail
    run = make(2)
    with pytest.raises(type(error)) as caught:
        run([X])
    assert caught.value is error
    assert "fail" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    actions[2] = np.copyto  # copyto(x, y): y, which holds anything, is left alone
    assert run([X])[0].shape == (SIZE,)


def test_an_exception_is_raised_once_and_by_its_own_call(
    make: Callable[[int], Executable],
) -> None:
    actions[3] = refuse
    failing, add = make(3), executable(addition(SIZE))
    with pytest.raises(Refused):
        failing.run([X])
    assert add.run([X, X.astype(np.float64)]) is None
    assert add.run([X, X]) is not None


def test_a_program_inside_a_callback(make: Callable[[int], Executable]) -> None:
    """The inner call has memory of its own, and its exception is the outer call's."""
    add = executable(addition(SIZE))

    def twice(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = add([x, x])[0]

    actions[4], actions[5] = twice, lambda x, y: y.__setitem__(..., inner([x])[0])
    inner, outer = make(4), make(5)
    np.testing.assert_array_equal(outer([X])[0], ((X + X) * 2 * 2 + 1) + 1)
    actions[4] = refuse
    with pytest.raises(Refused, match="no"):
        outer([X])


def test_callbacks_on_threads(make: Callable[[int], Executable]) -> None:
    """Each thread gets its own exception."""
    start = threading.Barrier(6)

    def fail_with_input(x: np.ndarray, y: np.ndarray) -> None:
        raise Refused(float(x[0]))

    actions[6] = fail_with_input
    run = make(6)

    def work(number: int) -> list[object]:
        start.wait()
        found: list[object] = []
        for _ in range(100):
            with pytest.raises(Refused) as caught:
                run([np.full(SIZE, number, np.float32)])
            found += caught.value.args
        return found

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(6))) == [[2.0 * n] * 100 for n in range(6)]


def test_what_is_passed() -> None:
    body = tirx.call_packed(
        "tests.see",
        const(-(1 << 62), "int64"),
        const(7, "int32"),
        const(2.5, "float64"),
        const(1, "bool"),
    )
    program = Program([Kernel("k", (), Evaluate(body))], [Call("k", [])], [], [])
    executable(program)([])
    assert seen.pop() == (-(1 << 62), 7, 2.5, True)
    assert not seen


def test_several_callbacks_in_one_kernel() -> None:
    calls = [Evaluate(tirx.call_packed("tests.see", const(n, "int64"))) for n in range(3)]
    program = Program([Kernel("k", (), seq(*calls))], [Call("k", [])] * 2, [], [])
    executable(program)([])
    assert [values for (values,) in seen] == [0, 1, 2, 0, 1, 2]
    seen.clear()


def test_a_callback_that_nothing_defines_is_an_error_when_loaded() -> None:
    with pytest.raises(CompilationError, match=r"'tests\.undefined', which is not defined"):
        executable(around(calling("tests.undefined")))


def test_a_name_is_given_once() -> None:
    with pytest.raises(ValueError, match="defined twice"):
        callback("tests.act")(act)


def test_views_write_through() -> None:
    memory = np.zeros((2, 3), np.float64)
    view(memory.ctypes.data, (3, 2), np.float64)[2, 1] = 5
    assert memory[1, 2] == 5
    assert view(memory.ctypes.data, (), np.float64).shape == ()
    assert view(memory.ctypes.data, (0, 2), np.float64).shape == (0, 2)
