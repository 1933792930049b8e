"""Handlers of XLA's FFI, as people write them for JAX, called by programs of ours and by JAX."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.runtime.processes import python
from tracejit import native_calls, targets
from tracejit.backends import native_abi
from tracejit.backends.artifact import InProcess
from tracejit.backends.native_attributes import parse, text_of
from tracejit.backends.target import CPU
from tracejit.backends.tvm.cpu.objects import native_host
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ForeignFunctionError,
    InvalidArgumentError,
    OutOfBoundsError,
    TracejitError,
    UnsupportedError,
)
from tracejit.runtime.executable import Executable
from tracejit.system import guard_pages

SOURCE = Path(__file__).with_name("handlers.cc")
COMPILER = shutil.which("g++") or shutil.which("c++")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

X = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
NORMAL = X / np.sqrt((X**2).mean(-1, keepdims=True) + np.float32(1e-5))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("ffi") / "handlers.so"
    command = [str(COMPILER), *tj.ffi.cflags(), "-O0", "-w", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))


@pytest.fixture(autouse=True)
def registered(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_targets", dict(targets._targets))
    for name in ("RmsNorm", "Weighted", "InPlace", "Increment", "SumInThreads"):
        tj.ffi.register_ffi_target(name, tj.ffi.pycapsule(getattr(library, name)))
    library.counter_id.restype = library.counter_info.restype = ctypes.c_void_p
    tj.ffi.register_ffi_type(
        "counter", {"type_id": library.counter_id(), "type_info": library.counter_info()}
    )
    tj.ffi.register_ffi_target(
        "Count", {"instantiate": library.MakeCounter, "execute": library.Count}
    )
    tj.ffi.register_ffi_target(
        "CountPrepared", {"prepare": library.PrepareCounter, "execute": library.CountPrepared}
    )


def like(x: Any) -> Any:
    return tj.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype if isinstance(x, list) else x.dtype)


def rms_norm(x: Any) -> Any:
    return tj.ffi.ffi_call("RmsNorm", like(x))(x, eps=np.float32(1e-5))


def test_a_handler_compiled_interpreted_and_mapped() -> None:
    np.testing.assert_allclose(rms_norm(X), NORMAL, rtol=1e-6)
    compiled = tj.jit(lambda x: rms_norm(2 * x) + 1)
    np.testing.assert_allclose(compiled(X), NORMAL + 1, rtol=1e-6)
    module = compiled.lower(X).module
    np.testing.assert_allclose(tj.interpret(module, X), NORMAL + 1, rtol=1e-6)
    np.testing.assert_allclose(
        tj.vmap(rms_norm)(np.stack([X, X])), np.stack([NORMAL, NORMAL]), rtol=1e-6
    )
    text = str(module)
    assert "api_version=API_VERSION_TYPED_FFI" in text
    np.testing.assert_allclose(tj.compile(tj.hlo.parse(text))(X), NORMAL + 1, rtol=1e-6)


def test_jax_calls_the_same_library(library: ctypes.CDLL) -> None:
    jax.ffi.register_ffi_target("tracejit_rms", jax.ffi.pycapsule(library.RmsNorm), platform="cpu")
    call = jax.ffi.ffi_call("tracejit_rms", jax.ShapeDtypeStruct(X.shape, X.dtype))
    wanted = call(jnp.asarray(X), eps=np.float32(1e-5))
    np.testing.assert_array_equal(np.asarray(wanted), tj.jit(rms_norm)(X))


@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "expand_dims"])
@pytest.mark.parametrize("order", [None, (0, 1)])
def test_vmap_methods_are_jaxs(
    library: ctypes.CDLL, method: str, order: tuple[int, int] | None
) -> None:
    def function(module: Any, make: Any, a: Any, b: Any) -> Any:
        # What `weighted` makes of b alone does not reach further than a's first element.
        call = module.ffi_call(
            "Shapes",
            make((6,), np.int64),
            vmap_method=method,
            input_layouts=[order, None],
        )
        return call(a, b)

    def mapped(vmap: Any, module: Any, make: Any) -> Any:
        inner = vmap(lambda a, b: function(module, make, a, b), in_axes=(0, None))
        return vmap(inner, in_axes=(None, 0))

    a, b = np.zeros((4, 2, 3), np.float32), np.zeros((5, 7))
    jax.ffi.register_ffi_target("Shapes", jax.ffi.pycapsule(library.Shapes), platform="cpu")
    tj.ffi.register_ffi_target("Shapes", library.Shapes)
    wanted = jax.jit(mapped(jax.vmap, jax.ffi, jax.ShapeDtypeStruct))(a, b)
    found = tj.jit(mapped(tj.vmap, tj.ffi, tj.ShapeDtypeStruct))(a, b)
    np.testing.assert_array_equal(found[0, 0], np.asarray(wanted)[0, 0])
    assert found.shape == wanted.shape


def test_calls_without_a_way_to_be_mapped() -> None:
    call = tj.ffi.ffi_call("RmsNorm", like(X[0]), vmap_method=None)
    with pytest.raises(UnsupportedError, match=r"the call of 'RmsNorm' has vmap_method=None"):
        tj.vmap(lambda x: call(x, eps=np.float32(0)))(X)
    with pytest.raises(AttributeValueError, match="vmap_method must be one of None, 'sequential'"):
        tj.ffi.ffi_call("RmsNorm", like(X), vmap_method="all")


def test_a_derivative_of_ones_own() -> None:
    @tj.custom_vjp
    def norm(x: Any) -> Any:
        return rms_norm(x)

    norm.defvjp(lambda x: (rms_norm(x), x), lambda x, g: (g * x,))
    gradient = tj.jit(tj.grad(lambda x: np.sum(norm(x))))
    np.testing.assert_array_equal(gradient(X), X)


def weighted(a: Any, b: Any, **attributes: Any) -> Any:
    results = (like(a), tj.ShapeDtypeStruct((), np.int32))
    given: dict[str, Any] = {
        "mode": "sum", "negate": False, "weights": [2, -1], "options": {"shift": 0.5},
    }  # fmt: skip
    return tj.ffi.ffi_call("Weighted", results)(a, b, **{**given, **attributes})


def test_attributes_of_all_types_and_two_results() -> None:
    a, b = np.arange(3.0), np.ones(3)
    for function in (weighted, tj.jit(weighted)):
        total, length = function(a, b)
        np.testing.assert_array_equal(total, 2 * a - b + 0.5)
        assert length == 3
    total, _ = tj.jit(lambda a, b: weighted(a, b, negate=True))(a, b)
    np.testing.assert_array_equal(total, -(2 * a - b + 0.5))


def test_errors_of_handlers() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'RmsNorm': x must be an array \(INVALID_ARG"):
        tj.jit(lambda x: rms_norm(x[0, 0]))(X)
    with pytest.raises(UnsupportedError, match=r"'Weighted': product \(UNIMPLEMENTED\)"):
        tj.jit(lambda x: weighted(x, x, mode="product"))(np.ones(2))
    with pytest.raises(InvalidArgumentError, match="expected F32 but got F64"):
        tj.jit(lambda x: tj.ffi.ffi_call("RmsNorm", like(x))(x, eps=1e-5))(X)
    with pytest.raises(InvalidArgumentError, match="expected 1 but got 2"):
        tj.jit(lambda x: tj.ffi.ffi_call("RmsNorm", like(x))(x, x, eps=np.float32(0)))(X)
    with pytest.raises(ForeignFunctionError, match="a negative sum"):
        tj.jit(total)(-np.ones(3))


def total(x: Any) -> Any:
    return tj.ffi.ffi_call("SumInThreads", tj.ShapeDtypeStruct((), np.float64))(x)


def test_a_handler_that_goes_on_in_threads() -> None:
    assert total(np.ones(5)) == 5
    assert tj.jit(total)(np.ones(5)) == 5


@pytest.mark.parametrize("dtype", [np.int8, bool, np.complex64, ml_dtypes.bfloat16, np.uint64])
def test_results_in_the_memory_of_operands(dtype: Any) -> None:
    x = np.array([0, 1, 1]).astype(dtype)

    def function(x: Any) -> Any:
        call = tj.ffi.ffi_call("InPlace", like(x), input_output_aliases={0: 0})
        return call(x), x

    for one in (function, tj.jit(function)):
        for found in one(x):
            np.testing.assert_array_equal(found, x)
            assert found.dtype == x.dtype
    with pytest.raises(ForeignFunctionError, match="not shared"):
        tj.jit(lambda x: tj.ffi.ffi_call("InPlace", like(x))(x))(x)


def test_states_belong_to_a_call_in_a_program(library: ctypes.CDLL) -> None:
    def count() -> Any:
        shape = tj.ShapeDtypeStruct((), np.int64)
        return tj.ffi.ffi_call("Count", shape, has_side_effect=True)()

    first = tj.jit(lambda x: count() + x)
    assert [int(first(n)) for n in (0, 0, 10)] == [1, 2, 13]
    assert library.living_counters() >= 1


def test_equal_calls_have_states_of_their_own() -> None:
    shape = tj.ShapeDtypeStruct((), np.int64)

    def counts(x: Any) -> Any:
        call = tj.ffi.ffi_call("Count", shape, has_side_effect=True)
        return call() + x, call(), call()

    assert [int(n) for n in tj.jit(counts)(0)] == [1, 1, 1]

    def step(i: Any, total: Any) -> Any:
        return total + tj.ffi.ffi_call("Count", shape, has_side_effect=True)()

    function = tj.jit(lambda n: tj.lax.fori_loop(0, 4, step, n))
    assert int(function(0)) == 1 + 2 + 3 + 4
    assert int(function(0)) == 5 + 6 + 7 + 8


def test_states_of_a_run_end_with_it(library: ctypes.CDLL) -> None:
    def count() -> Any:
        shape = tj.ShapeDtypeStruct((2,), np.int64)
        return tj.ffi.ffi_call("CountPrepared", shape, has_side_effect=True)()

    gc.collect()
    living = library.living_counters()
    assert count().tolist() == [1, 1]
    compiled = tj.jit(lambda x: count() + x)
    assert [compiled(0).tolist() for _ in range(3)] == [[1, 1], [1, 2], [1, 3]]
    assert library.living_counters() == living


def increment(x: Any) -> Any:
    return tj.ffi.ffi_call("Increment", like(x), input_output_aliases={0: 0})(x)


def test_results_begin_as_operands() -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(tj.jit(increment)(x), x + 1)
    kept, made = tj.jit(lambda x: (lambda t: (t, increment(t)))(2 * x))(x)
    np.testing.assert_array_equal(kept, 2 * x)
    np.testing.assert_array_equal(made, 2 * x + 1)
    loop = tj.jit(lambda x: tj.lax.fori_loop(0, 5, lambda i, y: increment(y), x))
    np.testing.assert_array_equal(loop(x), x + 5)


def test_results_take_the_memory_of_operands_that_nobody_reads_later() -> None:
    x = np.arange(6.0).reshape(2, 3)
    compiled = tj.jit(lambda x: increment(2 * x)).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), 2 * x + 1)
    assert compiled.memory_analysis().temp_size_in_bytes == 0


def test_calls_in_compiled_code_run_no_python() -> None:
    function = tj.jit(lambda x: rms_norm(x) + 1)
    function(X)
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_filename))
    try:
        function(X)
    finally:
        sys.setprofile(None)
    assert called
    assert not [name for name in called if "tracejit/ffi" in name or "callback" in name]


@pytest.mark.parametrize(
    ("how", "error", "said"),
    [
        (1, ForeignFunctionError, r"ends the process \(SIGABRT\): a handler must not throw"),
        (2, ForeignFunctionError, r"ends the process \(exit code 3\)"),
        (3, OutOfBoundsError, "reads or writes memory outside of its arrays"),
    ],
)
def test_handlers_that_end_the_process_are_named_under_check(
    library: ctypes.CDLL, how: int, error: type[Exception], said: str
) -> None:
    tj.ffi.register_ffi_target("Misbehave", library.Misbehave)
    x = np.arange(1.0, 4)
    call = tj.jit(lambda x: tj.ffi.ffi_call("Misbehave", like(x))(x, how=how), check=True)
    with pytest.raises(error, match=f"'Misbehave' {said}.*test_handlers"):
        call(x)


def _python_calls(function: Any) -> list[str]:
    """The files of the Python functions that any thread calls meanwhile, but for this one's."""
    called: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in called if "tracejit/ffi" in name or "callback" in name]


@pytest.mark.parametrize("name", ["SumInThreads", "Count", "CountPrepared", "ManyTasks"])
def test_what_handlers_ask_for_runs_no_python(library: ctypes.CDLL, name: str) -> None:
    tj.ffi.register_ffi_target("ManyTasks", library.ManyTasks)
    shapes = {"SumInThreads": ((), np.float64), "CountPrepared": ((2,), np.int64)}
    shape = tj.ShapeDtypeStruct(*shapes.get(name, ((), np.int64)))
    given = (np.ones(5),) if name == "SumInThreads" else ()
    call = tj.ffi.ffi_call(name, shape, has_side_effect=True)
    function = tj.jit(lambda *x: call(*x) + 0)
    function(*given)
    assert _python_calls(lambda: function(*given)) == []


def test_a_pool_of_threads_runs_all_tasks(library: ctypes.CDLL) -> None:
    tj.ffi.register_ffi_target("ManyTasks", library.ManyTasks)
    call = tj.ffi.ffi_call("ManyTasks", tj.ShapeDtypeStruct((), np.int64), has_side_effect=True)
    function = tj.jit(lambda x: call() + x)
    assert [int(function(n)) for n in range(20)] == [1000 + n for n in range(20)]
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.extend(int(function(0)) for _ in range(10)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1000] * 40
    # A copy of this process has none of its threads.
    checked = tj.jit(lambda x: call() + x, check=True)
    assert int(checked(np.int64(1))) == 1001


def test_states_that_cannot_be(library: ctypes.CDLL) -> None:
    tj.ffi.register_ffi_target("Stateless", library.Count)
    shape = tj.ShapeDtypeStruct((), np.int64)
    with pytest.raises(InvalidArgumentError, match="there is no state: no handler of that stage"):
        tj.jit(lambda x: tj.ffi.ffi_call("Stateless", shape, has_side_effect=True)() + x)(0)
    tj.ffi.register_ffi_target("Streams", library.Streams)
    with pytest.raises(TracejitError, match="there are no streams on the CPU"):
        tj.jit(lambda x: tj.ffi.ffi_call("Streams", shape, has_side_effect=True)() + x)(0)


def test_handlers_that_do_not_end_are_named_under_check(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    tj.ffi.register_ffi_target("Misbehave", library.Misbehave)
    x = np.arange(1.0, 4)
    monkeypatch.setenv("TRACEJIT_HANDLER_TIMEOUT", "1")
    call = tj.jit(lambda x: tj.ffi.ffi_call("Misbehave", like(x))(x, how=4), check=True)
    match = r"does not end within 1 seconds.*TRACEJIT_HANDLER_TIMEOUT to more.*test_handlers"
    with pytest.raises(ForeignFunctionError, match=match):
        call(x)
    monkeypatch.setenv("TRACEJIT_HANDLER_TIMEOUT", "0")
    np.testing.assert_array_equal(
        tj.jit(lambda x: tj.ffi.ffi_call("Misbehave", like(x))(x, how=0), check=True)(x), 0 * x
    )


def test_an_interrupt_ends_loops_of_handlers(library: ctypes.CDLL) -> None:
    """Between two calls of a handler, which itself is never ended; the next call is right."""
    said = python(
        """
import ctypes, signal, sys, threading, time
import numpy as np
import tracejit as tj

library = ctypes.CDLL(sys.argv[1])
tj.ffi.register_ffi_target("RmsNorm", tj.ffi.pycapsule(library.RmsNorm))
like = tj.ShapeDtypeStruct((2, 400), np.float32)

@tj.jit
def normalized(x, times):
    norm = lambda x: tj.ffi.ffi_call("RmsNorm", like)(x, eps=np.float32(1e-5))
    return tj.lax.while_loop(lambda c: c[0] < times, lambda c: (c[0] + 1, norm(c[1])), (0, x))[1]

x = np.ones((2, 400), np.float32)
normalized(x, 1)
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
begin = time.perf_counter()
try:
    normalized(x, 10**12)
except KeyboardInterrupt:
    print(time.perf_counter() - begin < 11)
print(normalized(x, 3).round(3).min())
""",
        library._name,
    )
    assert said.splitlines() == ["True", "1.0"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_layouts_of_operands_and_results(library: ctypes.CDLL, order: tuple[int, int]) -> None:
    def function(module: Any, shape: Any, x: Any) -> Any:
        call = module.ffi_call("Layouts", shape, input_layouts=[order], output_layouts=order)
        return call(x, eps=np.float32(1e-5))

    def jax_function(x: Any) -> Any:
        return function(jax.ffi, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    jax.ffi.register_ffi_target("Layouts", jax.ffi.pycapsule(library.RmsNorm), platform="cpu")
    tj.ffi.register_ffi_target("Layouts", tj.ffi.pycapsule(library.RmsNorm))
    wanted = np.asarray(jax.jit(jax_function)(X))
    for found in (
        tj.jit(lambda x: function(tj.ffi, like(x), x))(X),
        function(tj.ffi, like(X), X),
        tj.from_jax(jax_function)(X),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_layouts_that_are_none() -> None:
    with pytest.raises(AttributeValueError, match="input_layouts must have one for each of 1"):
        tj.ffi.ffi_call("RmsNorm", like(X), input_layouts=[])(X)
    with pytest.raises(DimensionError, match="must be a permutation"):
        tj.ffi.ffi_call("RmsNorm", like(X), output_layouts=(0, 0))(X)


def test_errors_name_the_line_and_leave_the_program_usable() -> None:
    function = tj.jit(lambda x: total(x) + 1)
    assert function(np.ones(3)) == 4
    with pytest.raises(ForeignFunctionError, match=r"a negative sum \(INTERNAL\) .*test_handlers"):
        function(-np.ones(3))
    assert function(np.ones(3)) == 4


def test_programs_from_the_disk_cache_find_their_functions(
    library: ctypes.CDLL, tmp_path: Path
) -> None:
    text = str(tj.jit(rms_norm).lower(X).module)
    program = f"""
import ctypes, sys
import numpy as np
import tracejit as tj
library = ctypes.CDLL(sys.argv[1])
if sys.argv[2]:
    tj.ffi.register_ffi_target("RmsNorm", getattr(library, sys.argv[2]))
x = np.arange(1, 9, dtype=np.float32).reshape(2, 4)
print(tj.compile(tj.hlo.parse({text!r}))(x).sum())
"""

    def run(registered: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, str(library._name), registered],
            env=os.environ | {"TRACEJIT_CACHE": str(tmp_path)},
            capture_output=True,
            text=True,
        )

    first, second = run("RmsNorm"), run("RmsNorm")
    assert first.returncode == 0, first.stderr
    assert second.stdout == first.stdout
    assert float(first.stdout) == pytest.approx(NORMAL.sum(), rel=1e-6)
    assert "custom_call: target 'RmsNorm' is not registered in this process" in run("").stderr


def test_what_is_compiled_keeps_its_function(library: ctypes.CDLL) -> None:
    function = tj.jit(rms_norm)
    before = function(X)
    tj.ffi.register_ffi_target("RmsNorm", library.InPlace, replace=True)
    np.testing.assert_array_equal(function(X), before)
    targets.unregister_custom_call("RmsNorm")
    np.testing.assert_array_equal(function(X), before)


def test_writes_outside_of_results_are_found_under_check(library: ctypes.CDLL) -> None:
    tj.ffi.register_ffi_target("Overrun", library.Overrun)
    tj.ffi.register_ffi_target("Spoil", library.Spoil)
    x = np.arange(1.0, 4)

    def overrun(by: int) -> Any:
        return tj.jit(lambda x: tj.ffi.ffi_call("Overrun", like(x))(x, by=by) + 1, check=True)

    np.testing.assert_array_equal(overrun(0)(x), x + 1)
    for by, place in ((1, "0 bytes after the end of"), (-2, "16 bytes before"), (100, "792 bytes")):
        with pytest.raises(OutOfBoundsError, match=f"'Overrun' wrote {place}.*test_handlers"):
            overrun(by)(x)
    for by in (10**4, -(10**4), 10**6):
        # Without guard pages it may meet the margin of the other array.
        match = (
            r"'Overrun' (reads or writes memory outside of its arrays \(SIG|wrote).*test_handlers"
        )
        with pytest.raises(OutOfBoundsError, match=match):
            overrun(by)(x)
    spoil = tj.jit(lambda x: tj.ffi.ffi_call("Spoil", like(x))(2 * x), check=True)
    with pytest.raises(OutOfBoundsError, match="'Spoil' wrote to operand 0"):
        spoil(x)
    in_place = tj.jit(increment, check=True)
    np.testing.assert_array_equal(in_place(x), x + 1)


def test_a_copy_whose_memory_is_spoilt_may_hang(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first copy ends by a signal; the second writes over what its end needs."""
    tj.ffi.register_ffi_target("Overrun", library.Overrun)
    first = iter([guard_pages.in_copy])

    def in_copy(run: Callable[[], object], seconds: float | None) -> Any:
        for whole in first:
            return whole(run, seconds)
        raise TimeoutError

    monkeypatch.setattr(native_calls, "in_copy", in_copy)
    x = np.arange(3.0)
    f = tj.jit(lambda x: tj.ffi.ffi_call("Overrun", like(x))(x, by=10**4), check=True)
    with pytest.raises(OutOfBoundsError, match=r"outside of its arrays \(SIG"):
        f(x)


def test_threads_share_a_call() -> None:
    function = tj.jit(rms_norm)
    function(X)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(function(X) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 200
    assert all(np.array_equal(one, found[0]) for one in found)


def test_libraries_of_another_version(library: ctypes.CDLL) -> None:
    with pytest.raises(ArgumentError, match=r"compiled for version 1\.0 of the interface"):
        tj.ffi.register_ffi_target("later", library.OfTheFuture)
    with pytest.raises(ArgumentError, match="does not say which version"):
        tj.ffi.register_ffi_target("silent", library.WithoutVersion)
    assert "later" not in targets._targets


def test_registrations_that_are_refused(library: ctypes.CDLL) -> None:
    with pytest.raises(ArgumentError, match="registered already; replace=True"):
        tj.ffi.register_ffi_target("RmsNorm", library.RmsNorm)
    tj.ffi.register_ffi_target("RmsNorm", library.RmsNorm, replace=True)
    with pytest.raises(ArgumentError, match="is no function of a library"):
        tj.ffi.register_ffi_target("nothing", print)
    with pytest.raises(ArgumentError, match="execute one of them"):
        tj.ffi.register_ffi_target("nothing", {"prepare": library.RmsNorm})
    with pytest.raises(UnsupportedError, match="platform must be 'cpu'"):
        tj.ffi.register_ffi_target("gpu", library.RmsNorm, platform="CUDA")
    with pytest.raises(AttributeValueError, match="attribute 'x' must be a number"):
        tj.ffi.ffi_call("RmsNorm", like(X))(X, x=object())


def test_attributes_as_text() -> None:
    given = {
        "a": 1, "b": -2.5, "c": True, "d": 'a "quote"', "e": [1, 2],
        "f": np.array([0.5], np.float32), "g": {"h": np.uint8(7)}, "i": np.float64("inf"),
        "j": np.zeros(0, np.int32),
    }  # fmt: skip
    text = text_of(given)
    found = parse(text)
    assert text_of(found) == text
    assert found["g"] == {"h": 7}
    assert found["f"].dtype == np.float32
    assert found["j"].dtype == np.int32
    assert parse("{x = 0x7FC00000 : f32, y = 3 : ui8, z = array<i1: true, false>}")["y"] == 3
    for wrong in ("{", "{a = }", "{a = 1 : q9}", "{a = 1} b"):
        with pytest.raises(AttributeValueError, match="no dictionary of typed attributes"):
            parse(wrong)


def test_the_host_s_functions_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_host, "can_link", lambda: False)
    built = native_host.build(CPU)
    assert isinstance(built, InProcess)
    addresses = Executable(built.entry, built.artifact)([])[0]
    assert len({*addresses.tolist(), 0}) == len(native_abi.FUNCTIONS) + 1
