"""Arrays of more elements than 32-bit numbers count: code for them, and no such array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tvm import sym, tirx
from tvm.ir import Call, Range, TensorLoad
from tvm_ffi import structural_walk

import tracejit as tj
from tests.backends_tvm.compiled import computation
from tests.lowered import lower
from tracejit import ops
from tracejit.backends.target import CPU
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.cpu.objects.build import build
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.ir.tir import For
from tracejit.errors import CompilationError
from tracejit.graph import Module
from tracejit.shapes import ElementType, Shape

LARGE = 2**31 + 1000
LIMIT = 2**31

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda x: np.cumsum(x, dtype=x.dtype),
    "cumsum of columns": lambda x: np.cumsum(x.reshape(-1, 2), axis=0, dtype=x.dtype),
    "cumsum of rows": lambda x: np.cumsum(x.reshape(2, -1), axis=1, dtype=x.dtype),
    "sum": lambda x: x.sum(),
    "argmax": lambda x: np.argmax(x),
    "mean of columns": lambda x: x.reshape(-1, 8).mean(0, dtype=np.float32),
    "softmax": lambda x: tj.nn.softmax(x.astype(np.float32).reshape(8, -1), axis=1),
    "square": lambda x: x * x,
    "transpose": lambda x: x.reshape(-1, 8).T + 0,
    "diff": lambda x: np.diff(x),
    "pad": lambda x: np.pad(x, 3),
    "concatenate": lambda x: np.concatenate([x, x[:5]]),
    "repeat": lambda x: np.repeat(x, 2),
    "take": lambda x: x[np.array([-1, -2])],
    "put": lambda x: _put(x),
    "dot": lambda x: x @ x,
    "matrix times vector": lambda x: x.reshape(-1, 8) @ x[:8],
    "vector times matrix": lambda x: x[:8] @ x.reshape(8, -1),
    "outer": lambda x: np.outer(x[: 1 << 16], x[: 1 << 16]),
}


def _put(x: Any) -> Any:
    x = x.copy()
    x[np.array([1, -1])] = 7
    return x


def given(count: int = LARGE) -> np.ndarray:
    """As an argument to trace with, which takes no memory."""
    return np.broadcast_to(np.zeros((), np.int8), (count,))


def overflowing(body: Any) -> list[str]:
    """Sums and products of 32 bits in a kernel that loop variables can take beyond 31."""
    analyzer, found = sym.Analyzer(), []
    unknown: list[Any] = []

    def bind(node: Any) -> None:
        extent = analyzer.const_int_bound(node.extent).max_value
        if extent >= LIMIT - 1:
            unknown.append(node.loop_var)
        analyzer.bind(node.loop_var, Range.from_min_extent(node.min, max(extent, 1)))

    structural_walk(body, [(For, bind)])

    def look(node: Any) -> None:
        if str(node.ty).partition("x")[0] != "int32" or _reads(node, unknown):
            return
        bound = analyzer.const_int_bound(analyzer.simplify(node))
        if bound.max_value >= LIMIT and bound.max_value < 2**62:
            found.append(str(node))

    structural_walk(body, [((tirx.Add, tirx.Sub, tirx.Mul), look)])
    return found


def _reads(node: Any, unknown: list[Any]) -> bool:
    """Whether an expression depends on more than loop variables whose extents are known."""
    found: list[bool] = []

    def variable(each: Any) -> None:
        found.extend(True for other in unknown if each.same_as(other))

    more = (TensorLoad, Call, tirx.Ramp)
    structural_walk(node, [(more, lambda each: found.append(True)), (tirx.Var, variable)])
    return bool(found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_indices_do_not_overflow(name: str) -> None:
    module = tj.jit(FUNCTIONS[name]).lower(given()).module
    program = lower(module.entry, Machine(64, 2))
    for kernel in program.kernels:
        assert not overflowing(kernel.body), kernel.name


def test_an_overflow_would_be_seen() -> None:
    """The same code for an array that just has no need of 64 bits, its loops made longer."""
    small = tj.jit(lambda x: x * x).lower(given(1 << 20)).module
    (kernel,) = lower(small.entry, Machine(64, 1)).kernels
    assert not overflowing(kernel.body)
    i = tirx.Var("i", "int32")
    buffer = tirx.decl_buffer((8,), "int32")
    body = tirx.BufferStore(buffer, tirx.const(0, "int32"), [i * tirx.const(1 << 12, "int32")])
    assert overflowing(For(i, tirx.const(0, "int32"), tirx.const(1 << 20, "int32"), 0, body))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["cumsum", "sum", "square"])
def test_code_is_built(name: str, threads: int) -> None:
    """TVM wrote out loops whose extents it had multiplied as 32-bit numbers."""
    module = tj.jit(FUNCTIONS[name]).lower(given()).module
    target = replace(processor_of(CPU), threads=threads)
    build(lower(module.entry, target.machine, aliases_of(module)), target, None)


def test_products_that_are_too_long_are_refused() -> None:
    def matrix(x: Any) -> Any:
        return x.reshape(2, -1) @ x.reshape(2, -1).T

    module = tj.jit(matrix).lower(given(2 * LARGE)).module
    with pytest.raises(CompilationError, match="dot_general: at most 2146435072 numbers"):
        lower(module.entry, Machine(64, 2))


def test_windows_that_reach_far_beyond_their_array() -> None:
    def window(x: Any) -> Any:
        return ops.reduce_window_by("add", x, [1 << 31], padding=[((1 << 31) - 1, 0)])

    entry = computation(window, Shape(ElementType.F32, (10,)))
    for kernel in lower(Module("far", entry).entry, Machine(64, 1)).kernels:
        assert not overflowing(kernel.body)
