"""Kernels translated to LLVM text: which they are, and that they compute what TVM's do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import computation
from tests.runtime.programs import elementwise, executable, spec
from tracejit import ops
from tracejit.runtime import importing_tvm
from tracejit.shapes import ElementType, Shape

with importing_tvm():
    from tests.backends_tvm.kernel_harness import HOST
    from tests.lowered import lower
    from tracejit.backends.tvm.cpu.kernels.sharing import share
    from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32
    from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
    from tracejit.backends.tvm.cpu.llvm.shared_procedures import without_shared
    from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import translate_kernels
    from tracejit.backends.tvm.cpu.machine import Machine
    from tracejit.backends.tvm.cpu.objects.entry import program_texts
    from tracejit.backends.tvm.cpu.objects.llvm_passes import needs_few_passes
    from tracejit.backends.tvm.ir.tir import (
        PARALLEL,
        UNROLLED,
        AllocBuffer,
        Expr,
        IfThenElse,
        Stmt,
        While,
        buffer,
        const,
        loop,
        seq,
        store,
        tirx,
    )
    from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Program

SIZE = 16
ARRAY = spec("float32", SIZE)


def adding(name: str = "adding") -> Procedure:
    """``target[at] = source[at] + source[0]``, by a procedure of its own."""
    inner = Procedure("added", ["source", "other", "target"], [], 1)
    total = inner.get(FLOAT32, "%source") + inner.get(FLOAT32, "%other")
    inner.put(total, "%target")
    code = Procedure(name, ["source", "target"], ["at"], 1)
    offset = code.product("%at", "4")
    places = [code.address(memory, offset) for memory in ("%source", "%target")]
    code.invoke(inner, [places[0], "%source", places[1]])
    return code


def kernel(write: Callable[[Callable[[Expr], Stmt]], Stmt]) -> Kernel:
    """A kernel that does ``write(one)``, ``one(at)`` being a call of `adding`."""
    source, target = (buffer(name, (SIZE,), "float32") for name in ("x", "y"))

    def one(at: Expr) -> Stmt:
        return adding().called([source.data, target.data, at.astype("int64")])

    return Kernel("k", [source, target], write(one), 1)


def shared(one: Callable[[Expr], Stmt]) -> Stmt:
    """Three workers with six places each, but the last."""

    def work(worker: Expr) -> Stmt:
        first, count = share(worker, SIZE, 3)
        return loop(count, lambda i: one(first + i))

    return loop(3, work, PARALLEL)


def on_stack(one: Callable[[Expr], Stmt]) -> Stmt:
    room = buffer("room", (8,), "float32")
    return seq(AllocBuffer(room), loop(SIZE, lambda i: one(tirx.max(i, const(0, "int32")))))


WAYS: dict[str, Any] = {
    "serial": lambda one: loop(SIZE, one),
    "backwards": lambda one: loop(SIZE, lambda i: one(const(SIZE - 1, "int32") - i)),
    "on the stack": on_stack,
    "parallel": lambda one: loop(SIZE, one, PARALLEL),
    "shared": shared,
    "unrolled": lambda one: loop(SIZE, one, UNROLLED),
    "nested": lambda one: loop(4, lambda i: loop(4, lambda j: one(4 * i + j), PARALLEL)),
}


@pytest.mark.parametrize("way", WAYS)
def test_procedures_are_called_as_the_body_says(way: str) -> None:
    made = kernel(WAYS[way])
    written = translate_kernels([made])
    assert "k" in written.kernels
    assert [*written.code] == ["added", "adding"]
    calls = [Call("k", [Argument.input(0), Argument.output(0)])]
    x = np.arange(1, SIZE + 1, dtype=np.float32)
    (result,) = executable(Program([made], calls, [ARRAY], [ARRAY]))([x])
    np.testing.assert_array_equal(result, x + x[0])


def counting_down(one: Callable[[Expr], Stmt]) -> Stmt:
    """A While with a counter in a register, whose body also has an if."""
    left = buffer("left", (1,), "int64", scope="local")
    step = IfThenElse(left[0] % 2 > 0, seq(store(left, 0, left[0] - 1), one(left[0])), None)
    body = seq(store(left, 0, left[0] - 1), one(left[0]), step)
    return seq(AllocBuffer(left), store(left, 0, const(SIZE, "int64")), While(left[0] > 0, body))


def test_registers_are_carried_by_a_while_loop() -> None:
    made = kernel(counting_down)
    text = translate_kernels([made], ["k"]).code["k"]
    assert text.count("phi i64") == 2  # the loop's, and that of the if
    assert "alloca" not in text
    calls = [Call("k", [Argument.input(0), Argument.output(0)])]
    x = np.arange(1, SIZE + 1, dtype=np.float32)
    (result,) = executable(Program([made], calls, [ARRAY], [ARRAY]))([x])
    np.testing.assert_array_equal(result, x + x[0])


@pytest.mark.parametrize("function", [lambda x: tj.lax.top_k(x, 5), lambda x: np.sort(x)[:, :4]])
def test_selections_are_translated(function: Any) -> None:
    entry = tj.jit(function).lower(np.ones((9, 300), np.float32)).module.entry
    kernels = lower(entry, Machine(64, 2)).kernels
    assert len(translate_kernels(kernels, [k.name for k in kernels]).kernels) == len(kernels)


def test_unrolled_calls_are_written_one_by_one() -> None:
    written = translate_kernels([kernel(WAYS["unrolled"])])
    assert sum(text.count("call i32 @adding") for text in written.glue.values()) == SIZE


def test_what_computes_is_written_where_it_may_be() -> None:
    plain = elementwise("plain", lambda x: x + const(1.0, "float32"), SIZE, 1)
    assert not translate_kernels([plain]).kernels
    written = translate_kernels([plain], ["plain"])
    assert [*written.code] == ["plain"]
    assert not written.glue


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        # Sums on the stack, indices in memory, a sum that waits for itself, and conditions.
        (lambda a: a.var(0), [(300, 300)]),
        (lambda a, x: a[x.astype(np.int64)], [(40, 3), (9,)]),
        (lambda a, x: np.sum(a[:, :, None] * x, axis=1), [(9, 11), (11, 2)]),
        (lambda a: np.any(a > 1, axis=1), [(9, 300)]),
    ],
)
def test_what_passes_of_llvm_make_quicker_is_left_to_them(function: Any, shapes: Any) -> None:
    operands = [np.ones(shape, np.float32) for shape in shapes]
    entry = tj.jit(function).lower(*operands).module.entry
    kernels = lower(entry, Machine(64, 2)).kernels
    names = [kernel.name for kernel in kernels]
    assert len(translate_kernels(kernels, names).kernels) < len(names)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (softmax, (8, 1000)),
        (lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), (8, 1024)),
        (lambda x: np.argmax(x, axis=1), (8, 1000)),
        (lambda x: np.argmax(x), (100000,)),
        (lambda x: np.sqrt((x * x).sum(1)), (8, 512)),
        (lambda x: pooled(x, (2, 2), (2, 2)), (6, 64, 66)),
        (lambda x: pooled(x, (3, 3), (1, 1)), (6, 40, 40)),
    ],
)
def test_rows_and_windows_are_written(function: Any, shape: tuple[int, ...]) -> None:
    entry = tj.jit(function).lower(np.ones(shape, np.float32)).module.entry
    kernels = lower(entry, Machine(64, 2)).kernels
    quick = [kernel.name for kernel in kernels if needs_few_passes(kernel.stats)]
    assert translate_kernels(kernels, quick).kernels == {kernel.name for kernel in kernels}


def pooled(x: Any, sizes: tuple[int, int], strides: tuple[int, int]) -> Any:
    low = -np.inf
    return tj.lax.reduce_window(x, low, tj.lax.max, (1, *sizes), (1, *strides), padding="VALID")


@pytest.mark.parametrize("steps", [7, 8, 9, 12, 13, 16, 64])
def test_sums_of_rows_of_many_steps(steps: int) -> None:
    """Four steps of a loop that waits for itself may be one."""
    x = np.random.default_rng(0).integers(-9, 9, (5, 32 * steps)).astype(np.float32)
    found = tj.jit(lambda x: np.sqrt((x * x).sum(1)))(x)
    np.testing.assert_array_equal(found, np.sqrt((x * x).sum(1)))


def test_axes_of_a_transform_share_their_stages() -> None:
    """Of a plane of 512 x 512 all six stages are two procedures."""
    shape = Shape(ElementType.C64, (512, 512))
    program = lower(computation(lambda x: ops.fft(x, "FFT", (512, 512)), shape), Machine(64, 2))
    written = translate_kernels(program.kernels)
    assert {kernel.name for kernel in program.kernels} <= written.kernels
    stages = [name for name in written.code if name.startswith("fourier_forward_8_")]
    assert len(stages) == 2


def test_modules_have_every_procedure_once() -> None:
    shape = Shape(ElementType.C64, (1 << 20,))
    program = lower(computation(lambda x: ops.fft(x, "FFT", (1 << 20,)), shape), Machine(64, 2))
    kernels, shared = without_shared(program.kernels)
    assert shared
    program = replace(program, kernels=kernels)
    written = translate_kernels(kernels)
    for most in (1, 2, 8):
        texts = program_texts(program, HOST, written, most)
        assert 1 <= len(texts) <= most
        for name in [*written.code, *written.glue, "tracejit_main"]:
            assert sum(f"define i32 @{name}(" in text for text in texts) == 1
        for name in written.code:
            assert all(f"i32 @{name}(" in text for text in texts)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_a_product_runs_several_steps_on_one_index(width: int) -> None:
    """An iteration has dozens of multiply-adds, at displacements from the same few addresses."""
    array, numbers = Shape(ElementType.F32, (96, 97)), ops.DotDimensionNumbers((1,), (1,))
    product = computation(lambda x, y: ops.dot_general(x, y, numbers), array, array)
    kernels = lower(product, Machine(width, 1)).kernels
    code = translate_kernels(kernels, [kernel.name for kernel in kernels]).code.values()
    loops = [block.partition("\ndone")[0] for block in "\n".join(code).split("\nloop")]
    hottest = max(loops, key=lambda lines: lines.count(" = fmul "))
    assert hottest.count(" = fmul ") >= 20
    assert hottest.count(" = mul nsw i64") <= 2


def test_invariant_parts_of_addresses_are_computed_before_a_loop() -> None:
    """However the sum is written, an iteration multiplies its own index alone."""
    x, y = buffer("x", (4, 5, 64), "float32"), buffer("y", (4 * 5 * 64,), "float32")

    def row(i: Expr, j: Expr) -> Stmt:
        def one(k: Expr) -> Stmt:
            return store(y, [j * 64 + (tirx.min(k * 2, const(62, "int32")) + i * 320)], x[i, j, k])

        return loop(64, one)

    made = Kernel("k", [x, y], loop(4, lambda i: loop(5, lambda j: row(i, j))), 1)
    text = translate_kernels([made], ["k"]).code["k"]
    _, _, inner = text.rpartition("\nloop")
    inner, _, _ = inner.partition("\ndone")
    assert inner.count("mul nsw") == 1  # 2 k
    calls = [Call("k", [Argument.input(0), Argument.output(0)])]
    values = np.arange(4 * 5 * 64, dtype=np.float32).reshape(4, 5, 64)
    given, wanted = [spec("float32", 4, 5, 64)], np.zeros(4 * 5 * 64, np.float32)
    wanted.reshape(20, 64)[:, :62:2] = values.reshape(20, 64)[:, :31]
    wanted.reshape(20, 64)[:, 62] = values.reshape(20, 64)[:, 63]
    (result,) = executable(Program([made], calls, given, [spec("float32", 4 * 5 * 64)]))([values])
    even = slice(None, None, 2)
    np.testing.assert_array_equal(result[even], wanted[even])
