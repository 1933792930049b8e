"""Runs functions of vector mathematics on arrays, and measures their errors.

evaluate(lambda x: mathematics.exp(x, "float32"), x)                  # one vectorised kernel
worst_error(mathematics.exp, mpmath.exp, x) -> Worst                  # in units in the last place
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np

from tests.backends_tvm.kernel_harness import HOST, LEVELS
from tracejit.backends.tvm.cpu.objects.tir_pipeline import (
    compile_kernels,
    contents,
    kernel_function,
    packed_function,
)
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.dtypes import memory_dtype, words
from tracejit.backends.tvm.ir.narrow_types import decode, encode
from tracejit.backends.tvm.ir.tir import (
    VECTORIZED,
    Buffer,
    Expr,
    Stmt,
    buffer,
    loop,
    store,
)
from tracejit.backends.tvm.program.program import Kernel
from tracejit.shapes import element_type_of

TARGETS = {"host": HOST} | {name: LEVELS[name][0] for name in ("SSE2", "AVX2") if name in LEVELS}

FLOATS: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}


def evaluate(
    formula: Callable[..., Any],
    *arrays: np.ndarray,
    returns: Any = None,
    lanes: int = 8,
    target: Processor = HOST,
) -> np.ndarray:
    """``formula`` of the elements of flat arrays of one size, in a loop of ``lanes`` at a time.

    Complex arrays appear as `Complex` pairs, narrow floats as f32, pred as bool. The result has the
    first array's dtype, or ``returns``.
    """
    size = len(arrays[0])
    padding = np.zeros(-size % lanes, arrays[0].dtype)
    inputs = [_memory(np.concatenate([array, padding.astype(array.dtype)])) for array in arrays]
    dtypes = [array.dtype for array in arrays]
    result = np.empty(size + len(padding), arrays[0].dtype if returns is None else returns)
    output = _memory(result)
    run = _compiled(formula, tuple(dtypes), result.dtype, len(result), lanes, target)
    run(*[array.ctypes.data for array in (*inputs, output)])
    return result[:size]


def module_of(
    formula: Callable[..., Any],
    dtypes: Sequence[np.dtype],
    returns: np.dtype,
    size: int,
    lanes: int,
    target: Processor,
) -> Any:
    """The kernel of `evaluate` as a TVM module, its function ``kernel`` on pointers."""
    inputs = [_buffer("x", dtype, size) for dtype in dtypes]
    output = _buffer("y", returns, size)

    def element(at: Expr) -> Stmt | Sequence[Stmt]:
        values = [_load(b, dtype, at) for b, dtype in zip(inputs, dtypes, strict=True)]
        return _store(output, returns, at, formula(*values))

    if lanes == 1:
        body = loop(size, element)
    else:
        body = loop(
            size // lanes, lambda i: loop(lanes, lambda lane: element(i * lanes + lane), VECTORIZED)
        )
    kernel = Kernel("kernel", [*inputs, output], body)
    held = contents(body)
    return compile_kernels([kernel_function(kernel, held, packed_function)], target, held)


def _compiled(*arguments: Any) -> Callable[..., None]:
    function: Callable[..., None] = module_of(*arguments)["kernel"]
    return function


def _memory(array: np.ndarray) -> np.ndarray:
    """The array as kernels see it; a view wherever ``array`` is contiguous."""
    whole = np.ascontiguousarray(array)
    return whole.view(memory_dtype(element_type_of(whole.dtype)))


def _buffer(name: str, dtype: np.dtype, size: int) -> Buffer:
    element_type = element_type_of(dtype)
    return buffer(name, (size * words(element_type),), memory_dtype(element_type))


def _load(source: Buffer, dtype: np.dtype, at: Expr) -> Any:
    if dtype.kind == "c":
        return Complex(source[at * 2], source[at * 2 + 1])
    return decode(source[at], element_type_of(dtype))


def _store(target: Buffer, dtype: np.dtype, at: Expr, value: Any) -> Stmt | list[Stmt]:
    if dtype.kind == "c":
        return [store(target, at * 2, value.re), store(target, at * 2 + 1, value.im)]
    return store(target, at, encode(value, element_type_of(dtype)))


class Worst(NamedTuple):
    """The largest error, where it is, and what was computed and expected there."""

    ulps: float
    at: tuple[float, ...]
    actual: float
    expected: str


def worst_error(
    function: Callable[..., Expr],
    reference: Callable[..., Any],
    *arrays: np.ndarray,
    target: Processor = HOST,
) -> Worst:
    """The worst error of ``function`` against an mpmath ``reference``; NaN must meet NaN.

    ``reference`` is asked where all arguments are finite.
    """
    dtype = arrays[0].dtype
    actual = evaluate(lambda *xs: function(*xs, str(dtype)), *arrays, target=target)
    worst = Worst(0.0, (), 0.0, "")
    for *at, y in zip(*(array.tolist() for array in arrays), actual.tolist(), strict=True):
        expected = reference(*map(mpmath.mpf, at))
        error = ulps(y, expected, dtype)
        if not error <= worst.ulps:
            worst = Worst(error, tuple(at), y, mpmath.nstr(expected, 20))
    return worst


def ulps(actual: float, expected: Any, dtype: np.dtype) -> float:
    """The distance in units of the last place that ``expected`` has in ``dtype``.

    Where ``expected`` rounds to infinity only infinity is right, and only NaN where it is no real
    number.
    """
    if isinstance(expected, mpmath.mpc):
        expected = expected.real if expected.imag == 0 else mpmath.nan
    if mpmath.isnan(expected) or np.isnan(actual):
        return 0.0 if mpmath.isnan(expected) and np.isnan(actual) else np.inf
    largest, unit = _largest(dtype), _unit(expected, dtype)
    if abs(expected) >= largest + unit / 2:
        return 0.0 if actual == mpmath.sign(expected) * np.inf else np.inf
    if np.isinf(actual):
        # An overflow in the last half unit is one of at most a unit.
        return 1.0 if abs(expected) > largest - unit / 2 and actual * expected > 0 else np.inf
    return float(abs(mpmath.mpf(actual) - expected) / unit)


@functools.cache
def _largest(dtype: np.dtype) -> Any:
    return mpmath.mpf(float(np.finfo(dtype).max))


def _unit(value: Any, dtype: np.dtype) -> Any:
    info = np.finfo(dtype)
    _, exponent = mpmath.frexp(value)
    least = int(info.minexp) - int(info.nmant)
    exponent = min(int(exponent), int(info.maxexp))
    return mpmath.ldexp(1, max(exponent - 1 - int(info.nmant), least) if value else least)


def any_bits(count: int, dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Finite floats of random bits: every exponent is as likely as any other."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 256, (2 * count, dtype.itemsize), np.uint8)
    values = np.asarray(bits.view(dtype)[:, 0])
    return np.asarray(values[np.isfinite(values)][:count])
