"""A program's build: kernels, entry, memory, control flow, chunks, the linker and its absence."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.processes import finished, start
from tests.runtime.programs import (
    MEMORY,
    addition,
    built,
    copy,
    elementwise,
    executable,
    loaded,
    of_one_kernel,
    spec,
)
from tracejit import system
from tracejit.backends.abi import ALIGNMENT, STACK_BYTES
from tracejit.backends.artifact import InProcess
from tracejit.errors import CompilationError
from tracejit.runtime import importing_tvm

with importing_tvm():
    import tvm_ffi

    from tracejit.backends.tvm.analysis.kernel_stats import NOTHING, KernelStats
    from tracejit.backends.tvm.cpu.objects import build as building
    from tracejit.backends.tvm.cpu.objects import in_process, linker
    from tracejit.backends.tvm.cpu.objects.linker import can_link, find_linker
    from tracejit.backends.tvm.cpu.objects.tir_pipeline import (
        STACK_LIMIT,
        contents,
    )
    from tracejit.backends.tvm.cpu.processor import processor_of
    from tracejit.backends.tvm.ir.tir import (
        PARALLEL,
        SERIAL,
        VECTORIZED,
        AllocBuffer,
        buffer,
        const,
        loop,
        seq,
        store,
        tirx,
    )
    from tracejit.backends.tvm.program.program import (
        Argument,
        Branch,
        Call,
        Kernel,
        Loop,
        Node,
        Program,
    )


def random(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=size).astype(np.float32)


def chain(length: int, size: int, stride: int) -> Program:
    """``x + 0 + 1 + … + (length - 1)``, through intermediate arrays ``stride`` bytes apart."""
    kernels = [
        elementwise(f"add{n}", lambda x, n=n: x + const(n, "float32"), size, 1)
        for n in range(length)
    ]
    places = [Argument.workspace(stride * n) for n in range(length - 1)]
    memory = [Argument.input(0), *places, Argument.output(0)]
    calls = [Call(f"add{n}", memory[n : n + 2]) for n in range(length)]
    array = spec("float32", size)
    return Program(kernels, calls, [array], [array], workspace_bytes=stride * (length - 1))


# Kernels and memory.


def test_one_kernel() -> None:
    x, y = random(10), random(10, 1)
    np.testing.assert_array_equal(executable(addition())([x, y])[0], x + y)


@pytest.mark.parametrize("size", [8, STACK_BYTES // 8, STACK_BYTES])
def test_workspace_on_the_stack_and_off(size: int) -> None:
    """Two intermediate arrays, in a workspace below, at and above what the stack takes."""
    program = chain(3, size, 4 * size)
    x = random(size)
    np.testing.assert_array_equal(executable(program)([x])[0], x + np.float32(1) + np.float32(2))


@pytest.mark.parametrize("nbytes", [256, STACK_BYTES + 256])
def test_workspace_is_aligned(nbytes: int) -> None:
    """A kernel looks at the address it is given."""
    memory, target = buffer("memory", (16,), "int64"), buffer("target", (1,), "int64")
    body = store(target, 0, tirx.reinterpret("int64", memory.data))
    program = Program(
        [Kernel("where", (memory, target), body)],
        [Call("where", [Argument.workspace(64), Argument.output(0)])],
        [],
        [spec("int64", 1)],
        workspace_bytes=nbytes,
    )
    run = executable(program)
    assert [run([])[0][0] % ALIGNMENT for _ in range(5)] == [0] * 5


def test_constants_are_copied_into_the_artifact() -> None:
    x, c = random(10), random(10, 1)
    array = spec("float32", 10)
    kernel = elementwise("multiply", lambda x, y: x * y, 10)
    arguments = [Argument.input(0), Argument.constant(1), Argument.output(0)]
    constants = [np.arange(3, dtype=np.int8), c]
    run = executable(Program([kernel], [Call("multiply", arguments)], [array], [array], constants))
    expected = x * c
    c[:] = 0
    np.testing.assert_array_equal(run([x])[0], expected)


def test_offsets_into_inputs_and_outputs() -> None:
    x = random(10)
    kernel = elementwise("negative", lambda x: -x, 5, 1)
    calls = [
        Call("negative", [Argument.input(0, 20), Argument.output(0)]),
        Call("negative", [Argument.input(0), Argument.output(0, 20)]),
    ]
    array = spec("float32", 10)
    (y,) = executable(Program([kernel], calls, [array], [array]))([x])
    np.testing.assert_array_equal(y, -np.concatenate([x[5:], x[:5]]))


@pytest.mark.parametrize("dtype", MEMORY)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 3), (1, 1, 1, 1, 1, 1, 7)])
def test_every_element_type_and_rank_passes(dtype: str, shape: tuple[int, ...]) -> None:
    array = spec(dtype, *shape)
    size = int(np.prod(shape))
    x = np.arange(size, dtype=np.int8).astype(dtype).reshape(shape)
    if x.dtype.kind == "c":
        x *= 1 - 2j
    (y,) = executable(of_one_kernel(copy(dtype, size), [array], array))([x])
    assert (y.dtype, y.shape) == (x.dtype, x.shape)
    assert y.tobytes() == x.tobytes()


def test_no_inputs_no_outputs() -> None:
    assert executable(Program([], [], [], []))([]) == []


def test_memory_is_not_assumed_to_differ_between_kernels() -> None:
    """The same bytes as floats, then as integers: kernels must not be inlined into one function."""
    floats, bits = buffer("floats", (4,), "float32"), buffer("bits", (4,), "int32")
    x, y = buffer("x", (4,), "float32"), buffer("y", (4,), "int32")
    kernels = [
        Kernel("write", (x, floats), loop(4, lambda i: store(floats, i, x[i]))),
        Kernel("read", (bits, y), loop(4, lambda i: store(y, i, bits[i]))),
    ]
    workspace = Argument.workspace(0)
    calls = [
        Call("write", [Argument.input(0), workspace]),
        Call("read", [workspace, Argument.output(0)]),
        Call("write", [Argument.input(1), workspace]),
        Call("read", [workspace, Argument.output(1)]),
    ]
    array, words = spec("float32", 4), spec("int32", 4)
    program = Program(kernels, calls, [array] * 2, [words] * 2, workspace_bytes=16)
    a, b = random(4), random(4, 1)
    first, second = executable(program)([a, b])
    np.testing.assert_array_equal(first.view(np.float32), a)
    np.testing.assert_array_equal(second.view(np.float32), b)


def test_parallel_loops_and_arrays_inside_them() -> None:
    """A parallel loop whose iterations each keep a small array, in both of TIR's scopes."""
    size, lanes = 1000, 16
    x, y = buffer("x", (size * lanes,), "float32"), buffer("y", (size * lanes,), "float32")

    def row(i: Any) -> Any:
        held = buffer("held", (lanes,), "float32", scope="local")
        turned = buffer("turned", (lanes,), "float32")
        at = i * lanes
        return seq(
            AllocBuffer(held),
            AllocBuffer(turned),
            loop(lanes, lambda v: store(held, v, x[at + v] * const(2, "float32")), VECTORIZED),
            loop(lanes, lambda v: store(turned, v, held[lanes - 1 - v])),
            loop(lanes, lambda v: store(y, at + v, turned[v]), VECTORIZED),
        )

    kernel = Kernel("turn", (x, y), loop(size, row, PARALLEL))
    array = spec("float32", size, lanes)
    given = random(size * lanes).reshape(size, lanes)
    (made,) = executable(of_one_kernel(kernel, [array], array))([given])
    np.testing.assert_array_equal(made, 2 * given[:, ::-1])


def test_a_kernel_may_have_the_name_of_a_library_function() -> None:
    """`write` and `exp` are functions of the C library, and lie in the process before ours."""
    names = ["write", "exp", "malloc", "tracejit"]
    kernels = [
        elementwise(name, lambda x, n=n: x + const(10**n, "float32"), 3, 1)
        for n, name in enumerate(names)
    ]
    calls = [Call(name, [Argument.input(0), Argument.output(n)]) for n, name in enumerate(names)]
    array = spec("float32", 3)
    outputs = executable(Program(kernels, calls, [array], [array] * 4))([np.zeros(3, np.float32)])
    assert [y.tolist() for y in outputs] == [[1.0] * 3, [10.0] * 3, [100.0] * 3, [1000.0] * 3]


def test_programs_of_one_process_do_not_share_names() -> None:
    array = spec("float32", 3)
    runs = [
        executable(of_one_kernel(elementwise("same", formula, 3, 1), [array], array))
        for formula in (lambda x: x + x, lambda x: x * x)
    ]
    x = np.full(3, 5, np.float32)
    assert [run([x])[0][0] for run in runs] == [10, 25]


def test_functions_of_the_mathematics_library_are_found() -> None:
    """Nothing is linked against it; a symbol that is missing would end the process."""
    array = spec("float64", 5)
    kernel = elementwise("bessel", lambda x: tirx.call_extern("float64", "j0", x), 5, 1, "float64")
    (y,) = executable(of_one_kernel(kernel, [array], array))([np.zeros(5)])
    np.testing.assert_array_equal(y, np.ones(5))


@pytest.mark.parametrize("by_instruction", [False, True])
def test_halves_are_converted_with_and_without_an_instruction(by_instruction: bool) -> None:
    """Where there is one, modules have no functions for it; kernels of both kinds are right."""
    host = processor_of()
    target = host if by_instruction else replace(host, features=host.features - {"f16c", "neon"})
    size = 9
    source, made = buffer("x", (size,), "float16"), buffer("y", (size,), "float16")

    def doubled(i: Any) -> Any:
        wide = tirx.Cast("float32", source[i])
        return store(made, i, tirx.Cast("float16", wide + wide))

    array = spec("float16", size)
    kernel = Kernel("double", (source, made), loop(size, doubled, SERIAL))
    program = of_one_kernel(kernel, [array], array)
    data = building.build(program, target)
    x = np.array([0, -0.0, 1, -1.5, 6e-8, 65504, np.inf, -np.inf, np.nan], np.float16)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(loaded(data)([x])[0], x + x)


def test_a_symbol_that_does_not_exist_is_an_error() -> None:
    array = spec("float64", 5)
    formula = lambda x: tirx.call_extern("float64", "no_such_function", x)  # noqa: E731
    data = built(of_one_kernel(elementwise("k", formula, 5, 1, "float64"), [array], array))
    with pytest.raises(OSError, match="no_such_function"):
        loaded(data)


# Control flow.


def counting(limit: int) -> tuple[list[Kernel], Loop]:
    """``workspace[0:8] += 1`` while it is below ``limit``; the predicate lies at byte 64."""
    count, below = buffer("count", (1,), "int64"), buffer("below", (1,), "uint8")
    state = buffer("state", (1,), "int64")
    kernels = [
        Kernel("is_below", (count, below), store(below, 0, (count[0] < limit).astype("uint8"))),
        Kernel("increase", (state,), store(state, 0, state[0] + const(1, "int64"))),
        elementwise("move", lambda x: x, 1, 1, "int64"),
    ]
    place, predicate = Argument.workspace(0), Argument.workspace(64)
    test = [Call("is_below", [place, predicate])]
    return kernels, Loop(test, predicate, [Call("increase", [place])])


@pytest.mark.parametrize(("start", "end"), [(0, 1000), (999, 1000), (1000, 1000), (2000, 2000)])
def test_a_loop_runs_while_its_predicate_holds(start: int, end: int) -> None:
    kernels, count = counting(1000)
    state, array = Argument.workspace(0), spec("int64", 1)
    calls: list[Node] = [
        Call("move", [Argument.input(0), state]),
        count,
        Call("move", [state, Argument.output(0)]),
    ]
    run = executable(Program(kernels, calls, [array], [array], workspace_bytes=128))
    assert run([np.array([start])])[0].tolist() == [end]


def test_a_loop_inside_a_loop() -> None:
    """The outer loop adds to a total, then the inner one counts; until the total is 5."""
    kernels, inner = counting(3)
    total, done = buffer("total", (1,), "int64"), buffer("done", (1,), "uint8")
    cleared = buffer("cleared", (1,), "int64")
    kernels += [
        Kernel("again", (total, done), store(done, 0, (total[0] < 5).astype("uint8"))),
        elementwise("sum", lambda x, y: x + y, 1, 2, "int64"),
        Kernel("clear", (cleared,), store(cleared, 0, const(0, "int64"))),
    ]
    counter, sums, predicate = (Argument.workspace(n) for n in (0, 128, 192))
    output = Argument.output(0)
    body: Sequence[Node] = [
        Call("clear", [counter]),
        inner,
        Call("sum", [counter, sums, output]),
        Call("move", [output, sums]),
    ]
    outer = Loop([Call("again", [sums, predicate])], predicate, body)
    calls: list[Node] = [Call("clear", [sums]), outer]
    run = executable(Program(kernels, calls, [], [spec("int64", 1)], workspace_bytes=256))
    assert run([])[0].tolist() == [6]


@pytest.mark.parametrize(("selector", "chosen"), [(0, 1), (1, 10), (2, 100), (3, 100), (-1, 100)])
def test_a_branch_takes_the_last_where_none_is_numbered(selector: int, chosen: int) -> None:
    kernels = [
        elementwise(f"add{n}", lambda x, n=n: x + const(10**n, "float32"), 1, 1) for n in range(3)
    ]
    branches = [[Call(f"add{n}", [Argument.input(1), Argument.output(0)])] for n in range(3)]
    array = spec("float32", 1)
    calls = [Branch(Argument.input(0), branches)]
    run = executable(Program(kernels, calls, [spec("int32"), array], [array]))
    (y,) = run([np.array(selector, np.int32), np.zeros(1, np.float32)])
    assert y.tolist() == [chosen]


# What is wrong with a program is said before it is compiled.


def mistaken(**changes: Any) -> Program:
    array = spec("float32", 10)
    kernel = elementwise("add", lambda x, y: x + y, 10)
    given: dict[str, Any] = {
        "kernels": [kernel],
        "calls": [Call("add", [Argument.input(0), Argument.input(1), Argument.output(0)])],
        "inputs": [array, array],
        "outputs": [array],
    }
    return Program(**{**given, **changes})


def calling(*arguments: Argument) -> dict[str, Any]:
    return {"calls": [Call("add", arguments)], "workspace_bytes": 200}


IN, OUT = Argument.input, Argument.output
SCRATCH = Argument.workspace
TWICE = [elementwise("add", lambda x, y: x + y, 10)] * 2
MISNAMED = [elementwise("a-b", lambda x, y: x + y, 10)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernels": TWICE}, "different names"),
        ({"kernels": MISNAMED}, "no C identifier"),
        ({"calls": [Call("sub", [])]}, "does not exist: sub"),
        (calling(IN(0), OUT(0)), "3 parameters, the call gives 2 arguments"),
        (calling(IN(0), IN(2), OUT(0)), "there is no input 2"),
        (calling(IN(0), Argument.constant(0), OUT(0)), "there is no constant 0"),
        (calling(IN(0), IN(1), OUT(-1)), "there is no output -1"),
        (calling(IN(0), IN(1, 4), OUT(0)), "40 bytes do not fit into input 1 at byte 4"),
        (calling(IN(0), IN(1), SCRATCH(164)), "40 bytes do not fit into workspace at byte 164"),
        (calling(IN(0), IN(1), SCRATCH(-4)), "do not fit"),
        (calling(IN(0), SCRATCH(2), OUT(0)), "not aligned to 4 bytes"),
        (calling(IN(0), SCRATCH(0), SCRATCH(36)), "overlap in the workspace"),
        (calling(IN(0), OUT(0), OUT(0)), "overlap in the output"),
        ({"calls": [Loop([], SCRATCH(0), [])]}, "predicate: 1 bytes do not fit"),
        ({"calls": [Branch(IN(0), [])]}, "at least one branch"),
        ({"calls": [Branch(IN(0), [[Call("sub", [])]])]}, "does not exist: sub"),
        ({"constants": [np.zeros((3, 3)).T[:2]]}, "C-contiguous"),
        ({"constants": [np.zeros(3, ">f4")]}, "native byte order"),
    ],
)
def test_a_program_that_contradicts_itself(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        built(mistaken(**changes))


def allocating(size: int, *more: Any) -> Program:
    held = buffer("held", (size,), "uint8")
    target = buffer("target", (1,), "uint8")
    body = seq(AllocBuffer(held), store(held, 0, const(1, "uint8")), store(target, 0, held[0]))
    return of_one_kernel(Kernel("k", (target,), seq(*more, body)), [], spec("uint8", 1))


@pytest.mark.parametrize("counted", [NOTHING, KernelStats(("add",))])
def test_the_stack_is_limited(counted: KernelStats) -> None:
    """Whether TVM compiles the kernel or it is text."""

    def program(size: int) -> Program:
        made = allocating(size)
        (kernel,) = made.kernels
        return replace(made, kernels=[replace(kernel, stats=counted)])

    assert executable(program(STACK_LIMIT))([])[0].tolist() == [1]
    with pytest.raises(CompilationError, match=f"allocates {STACK_LIMIT + 1} bytes"):
        built(program(STACK_LIMIT + 1))


def test_a_kernel_that_calls_back_does_not_allocate() -> None:
    call = tirx.Evaluate(tirx.call_packed("tests.nothing"))
    with pytest.raises(CompilationError, match="where 0 are allowed"):
        built(allocating(8, call))


def test_what_tvm_refuses_names_the_kernel() -> None:
    x = buffer("x", (4,), "float32")

    def inner(i: Any) -> Any:
        return loop(2, lambda j: store(x, 2 * i + j, const(1, "float32")), PARALLEL)

    kernel = Kernel("nested", (x,), loop(2, inner, PARALLEL))
    with pytest.raises(CompilationError, match="TVM cannot compile nested"):
        built(of_one_kernel(kernel, [], spec("float32", 4)))


# Chunks, threads, the linker.


def test_many_kernels_in_chunks() -> None:
    """More kernels than one chunk for each thread holds; progress counts every module."""
    threads = processor_of().threads
    length = 12 * threads
    seen: list[tuple[int, int]] = []
    data = built(chain(length, 4, 64), progress=lambda done, of: seen.append((done, of)))
    modules = seen[0][1]
    assert modules > threads + 1
    assert seen == [(n, modules) for n in range(1, modules + 1)]
    (y,) = loaded(data)([np.zeros(4, np.float32)])
    np.testing.assert_array_equal(y, np.full(4, sum(range(length)), np.float32))


def test_builds_at_once_on_threads() -> None:
    """Builds do not disturb each other, and a failing one leaves nothing behind."""
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(executable, [chain(n, 8, 64) for n in (2, 3, 4, 5)]))
    results = [run([np.zeros(8, np.float32)])[0][0] for run in made]
    assert results == [1, 3, 6, 10]


@pytest.mark.parametrize("compiler", ["cc", "cc -O1"])
def test_the_users_compiler_links(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    command = find_linker()
    assert command is not None
    assert command[: len(compiler.split())] == compiler.split()
    x, y = random(10), random(10, 1)
    np.testing.assert_array_equal(executable(addition())([x, y])[0], x + y)


def test_a_compiler_that_does_not_exist_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    command = find_linker()
    assert command is not None
    assert command[0] != "no-such-compiler"


def failing(folder: Path) -> str:
    script = folder / "cc"
    script.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    script.chmod(0o755)
    return str(script)


def test_a_linker_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another links, with a warning; where all fail, the program is built for this process."""
    monkeypatch.setenv("CC", failing(tmp_path))
    with pytest.warns(RuntimeWarning, match="failed to link a program: out of order"):
        assert built(addition()).startswith(b"\x7fELF")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(system, "LINKS_HERE", False)
    with pytest.warns(RuntimeWarning, match="out of order"):
        made = building.build(addition(), processor_of())
    assert isinstance(made, InProcess)
    x = random(10)
    np.testing.assert_array_equal(loaded(made)([x, x])[0], x + x)


@pytest.mark.parametrize(
    ("chosen", "message"), [("gcc 'x", "no closing quotation"), ("false", "failed to link")]
)
def test_strange_commands_are_not_asked(
    chosen: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", chosen)
    x = random(10)
    with pytest.warns(RuntimeWarning, match=message):
        np.testing.assert_array_equal(executable(addition())([x, x])[0], x + x)


def test_without_a_linker_programs_run_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning; the same results; a parallel loop; a mismatch is found as ever."""
    monkeypatch.setattr(building, "can_link", lambda: False)
    in_process.warn_of_missing_linker.cache_clear()
    program = chain(3, 5000, 20000)
    with pytest.warns(RuntimeWarning, match="Install a C compiler"):
        made = building.build(program, processor_of())
    assert isinstance(made, InProcess)
    run = loaded(made)
    x = random(5000)
    np.testing.assert_array_equal(run([x])[0], x + np.float32(1) + np.float32(2))
    assert run.run([x.astype(np.float64)]) is None
    kernel = elementwise("add", lambda x, y: x + y, 5000, parallel=True)
    array = spec("float32", 5000)
    other = building.build(of_one_kernel(kernel, [array] * 2, array), processor_of())  # no warning
    np.testing.assert_array_equal(loaded(other)([x, x])[0], x + x)


def test_a_machine_without_a_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours links, small programs and large ones."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(linker, "MOST_BYTES", 0)
    assert find_linker() is None
    assert can_link() == system.LINKS_HERE
    if system.LINKS_HERE:
        x, y = random(10), random(10, 1)
        np.testing.assert_array_equal(executable(addition())([x, y])[0], x + y)


WITHOUT_PROGRAMS = """
import sys
import numpy as np
import tracejit as tj
x = np.array([3.0, 1.0, 2.0])
print(*tj.jit(tj.grad(lambda x: np.sum(np.sort(x) * np.cumsum(x))))(x), "tvm" in sys.modules)
"""


@pytest.mark.parametrize("server", ["0", "1"])
def test_jit_and_the_disk_cache_without_any_program(server: str, tmp_path: Path) -> None:
    """No linker and no compiler can be found; the second process needs no code generator."""
    chosen = {
        "PATH": "",
        "CC": "",
        "TRACEJIT_CACHE_DIR": str(tmp_path),
        "TRACEJIT_COMPILE_SERVER": server,
    }
    first = finished(start(WITHOUT_PROGRAMS, **chosen))
    assert first == f"12.0 8.0 7.0 {server == '0'}"
    if system.LINKS_HERE:
        kept = sorted(path.suffix for path in tmp_path.iterdir())
        assert kept == [
            ".o",
            ".so",
        ]  # the procedure of sorts, which programs share, and the program
        assert finished(start(WITHOUT_PROGRAMS, **chosen)) == "12.0 8.0 7.0 False"


def test_kernels_are_plain_functions() -> None:
    """TVM's wrappers, which check every argument once more, are not there."""
    symbols = set(built(addition()).split(b"\0"))
    assert {b"tracejit_main", b"add"} <= symbols
    assert not [s for s in symbols if s.startswith(b"__tvm_ffi_") and b"ctx" not in s]


def test_serial_and_vectorised_remainders() -> None:
    """Vector loops over a length that no vector divides, with a loop of their own for the rest."""
    size, lanes = 37, 8
    x, y = buffer("x", (size,), "float32"), buffer("y", (size,), "float32")
    whole = size // lanes * lanes
    body = seq(
        loop(
            size // lanes,
            lambda i: loop(lanes, lambda v: store(y, i * lanes + v, -x[i * lanes + v]), VECTORIZED),
        ),
        loop(size - whole, lambda i: store(y, whole + i, -x[whole + i]), SERIAL),
    )
    array = spec("float32", size)
    run = executable(of_one_kernel(Kernel("k", (x, y), body), [array], array))
    memory = np.zeros(4 * size + 4, np.uint8)
    for offset in range(4):
        at_offset = memory[offset : offset + 4 * size].view(np.float32)
        at_offset[:] = random(size)
        np.testing.assert_array_equal(run([at_offset])[0], -random(size))


def test_what_bodies_hold() -> None:
    """Integers that are data, and buffers or indices that TVM has to flatten, are found."""
    x, n = buffer("x", (4, 4), "float32"), buffer("n", (16,), "int32")
    y = buffer("y", (16,), "float32")
    zero = const(0, "int32")

    def of(*statements: Any) -> tuple[bool, bool]:
        held = contents(seq(*statements))
        return held.has_integers, held.is_flat

    assert of(store(y, 0, y[1] * const(2, "float32"))) == (False, True)
    assert of(loop(4, lambda i: store(y, i * 3 + 1, y[i]))) == (False, True)
    assert of(loop(4, lambda i: store(y, i // 2, y[i]))) == (False, False)
    assert of(loop(4, lambda i: store(y, tirx.min(i, const(2, "int32")), y[i]))) == (True, False)
    assert of(store(x, [zero, zero], y[0])) == (False, False)
    assert of(store(y, 0, x[zero, zero])) == (False, False)
    assert of(store(y, n[0], y[0])) == (True, True)
    assert of(store(n, 0, tirx.Cast("int32", y[0]))) == (True, True)
    assert of(store(n, 0, tirx.reinterpret("int32", y[0]))) == (True, True)
    wide = buffer("wide", (16,), "int64")
    assert of(loop(4, lambda i: store(wide, i, tirx.Cast("int64", i)))) == (True, True)
    both = contents(store(y, n[0], y[0])) | contents(store(x, [zero, zero], y[0]))
    assert (both.has_integers, both.is_flat) == (True, False)


def test_an_interruption_inside_of_tvm_is_one() -> None:
    """TVM calls functions of ours while it walks a kernel, and knows few kinds of exceptions."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tvm_ffi.convert(interrupted)()
