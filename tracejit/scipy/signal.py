"""Convolutions and filters: the names of ``scipy.signal``.

signal.fftconvolve(x, kernel, mode="same"); signal.lfilter(b, a, x); signal.sosfilt(sos, x)

Results have the type that the arguments are promoted to, as SciPy's have; filters compute in
floating or complex numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.signal as scipy_signal

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.lax.scanning import scan
from tracejit.numpy import fft
from tracejit.numpy.building import axes_of, canonical_axis
from tracejit.numpy.joining import concatenate, stack
from tracejit.numpy.manipulation import as_array, broadcast_to, moveaxis
from tracejit.numpy.padding import pad
from tracejit.ops.convolution import conv_general_dilated
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "fftconvolve",
    "lfilter",
    "sosfilt",
]


def correlated(x: Tracer, kernel: Tracer, widths: Sequence[tuple[int, int]]) -> Any:
    """sum over k of x[i + k] kernel[k], ``x`` with ``widths`` of zeros around it."""
    made = conv_general_dilated(
        x[None, None].instruction, kernel[None, None].instruction, None, list(widths)
    )
    return lift(made, False)[0, 0]


def _pair(function: str, in1: Any, in2: Any, mode: str) -> tuple[Tracer, Tracer]:
    """Two arrays of one type and rank."""
    first, second = as_array(in1), as_array(in2)
    if first.ndim != second.ndim:
        raise ShapeError(
            f"{function}: in1 and in2 must have the same rank; {first.shape}, {second.shape}"
        )
    if mode not in ("full", "same", "valid"):
        raise AttributeValueError(f"{function}: mode must be full, same or valid, not {mode!r}")
    dtype = result_dtype([first.dtype, second.dtype])
    return first.astype(dtype), second.astype(dtype)


def _cut(
    function: str, whole: Any, first: Tracer, second: Tracer, mode: str, axes: Sequence[int]
) -> Any:
    """The part of a full convolution that ``mode`` wants."""
    index = [slice(None)] * first.ndim
    if mode == "full":
        return whole
    pairs = [(first.shape[axis], second.shape[axis]) for axis in axes]
    if mode == "valid" and any(n < k for n, k in pairs) and any(n > k for n, k in pairs):
        raise ShapeError(
            f"{function}: for mode valid one array must be as large as the other in every dimension"
            f"; in1 {first.shape}, in2 {second.shape}"
        )
    for axis, (n, k) in zip(axes, pairs, strict=True):
        size = n if mode == "same" else abs(n - k) + 1
        start = (n + k - 1 - size) // 2
        index[axis] = slice(start, start + size)
    return whole[tuple(index)]


def _convolved(
    function: str, first: Tracer, second: Tracer, mode: str, beyond: Mapping[str, Any] | None = None
) -> Any:
    """The convolution; ``beyond`` are the options of `numpy.pad` for the edges, by default 0."""
    if not first.ndim:
        return first * second
    kernel = second[(slice(None, None, -1),) * second.ndim]
    widths = [(size - 1, size - 1) for size in kernel.shape]
    if not first.size or not second.size:
        sizes = [max(n + k - 1, 0) for n, k in zip(first.shape, second.shape, strict=True)]
        whole = as_array(np.zeros(sizes, first.dtype))
    elif beyond is None:
        whole = correlated(first, kernel, widths)
    else:
        whole = correlated(pad(first, widths, **beyond), kernel, [(0, 0)] * first.ndim)
    return _cut(function, whole, first, second, mode, range(first.ndim))


def _reversed(x: Tracer) -> Any:
    return x[(slice(None, None, -1),) * x.ndim].conj()


@implements(scipy_signal.convolve)
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays of one rank; ``mode`` full, same (as ``in1``) or valid.

    ``method`` "fft" takes Fourier transforms, "auto" and "direct" sum products. Raises
    `ShapeError` for two ranks, `AttributeValueError` for another mode or method.
    """
    first, second = _pair("convolve", in1, in2, mode)
    if method not in ("auto", "direct", "fft"):
        raise AttributeValueError(f"convolve: method must be auto, direct or fft, not {method!r}")
    if method == "fft":
        made = fftconvolve(first, second, mode)
        return np.rint(made).astype(first.dtype) if first.dtype.kind in "iu" else made
    return _convolved("convolve", first, second, mode)


@implements(scipy_signal.correlate)
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation sum in1[i + k] conj(in2[k]) of two arrays of one rank; see `convolve`."""
    first, second = _pair("correlate", in1, in2, mode)
    return convolve(first, _reversed(second), mode, method)


_BOUNDARIES = {"wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}
_BOUNDARIES |= {"fill": "constant", "pad": "constant"}


def _plane(
    function: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any
) -> tuple[Tracer, Tracer, dict[str, Any]]:
    """Two matrices of one type, and the options of `numpy.pad` for what lies around the first."""
    first, second = _pair(function, in1, in2, mode)
    if first.ndim != 2:
        raise ShapeError(f"{function}: in1 and in2 must have two dimensions, not {first.ndim}")
    if boundary not in _BOUNDARIES:
        raise AttributeValueError(
            f"{function}: boundary must be fill, wrap or symm, not {boundary!r}"
        )
    kind = _BOUNDARIES[boundary]
    if kind != "constant":
        return first, second, {"mode": kind}
    if np.size(fillvalue) != 1:
        raise AttributeValueError(f"{function}: fillvalue must be one number, not {fillvalue!r}")
    value = as_array(fillvalue).reshape(()).astype(first.dtype)
    return first, second, {"mode": kind, "constant_values": value}


@implements(scipy_signal.convolve2d)
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """`convolve` of two matrices; ``boundary`` fill (``fillvalue``), wrap or symm says what lies
    around the first. Raises `AttributeValueError` for others.
    """
    first, second, beyond = _plane("convolve2d", in1, in2, mode, boundary, fillvalue)
    return _convolved("convolve2d", first, second, mode, beyond)


@implements(scipy_signal.correlate2d)
def correlate2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """`correlate` of two matrices; ``boundary`` is that of `convolve2d`."""
    first, second, beyond = _plane("correlate2d", in1, in2, mode, boundary, fillvalue)
    turned = _reversed(second)
    if mode != "same":
        return _convolved("correlate2d", first, turned, mode, beyond)
    # With an even number of middle elements, the other one than `correlate`'s.
    whole = _convolved("correlate2d", first, turned, "full", beyond)
    starts = [size // 2 for size in second.shape]
    rows, columns = (slice(s, s + n) for s, n in zip(starts, first.shape, strict=True))
    return whole[rows, columns]


@implements(scipy_signal.fftconvolve)
def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """`convolve` by Fourier transforms, along ``axes``; the other dimensions broadcast.

    Raises `ShapeError` for shapes that do not fit, `AttributeValueError` for another mode.
    """
    first, second = _pair("fftconvolve", in1, in2, mode)
    if not first.ndim:
        return first * second
    if not first.size or not second.size:
        return as_array(np.zeros(0))
    dtype = first.dtype if first.element_type.is_inexact else np.dtype(np.float64)
    chosen = axes_of("fftconvolve", axes, first.ndim)
    chosen = tuple(a for a in chosen if first.shape[a] != 1 and second.shape[a] != 1)
    if not chosen:
        return _cut("fftconvolve", (first * second).astype(dtype), first, second, mode, chosen)
    sizes = [first.shape[a] + second.shape[a] - 1 for a in chosen]
    if first.element_type.is_complex:
        product = fft.fftn(first, sizes, chosen) * fft.fftn(second, sizes, chosen)
        whole = fft.ifftn(product, sizes, chosen)
    else:
        product = fft.rfftn(first, sizes, chosen) * fft.rfftn(second, sizes, chosen)
        whole = fft.irfftn(product, sizes, chosen)
    return _cut("fftconvolve", whole.astype(dtype), first, second, mode, chosen)


def _inexact(*values: Any) -> list[Tracer]:
    """Arrays of one floating or complex type, float64 for integers."""
    arrays = [as_array(value) for value in values]
    dtype = result_dtype(a.dtype for a in arrays)
    dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    return [a.astype(dtype) for a in arrays]


def _coefficients(function: str, value: Tracer) -> Any:
    if value.ndim > 1 or not value.size:
        raise ShapeError(f"{function}: b and a must be vectors, not {value.shape}")
    return value.reshape(-1)


@implements(scipy_signal.lfilter)
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """``x`` filtered along ``axis`` by the rational transfer function b / a.

    With ``zi``, the filter's state, of length max(len(a), len(b)) - 1 along ``axis``, the result is
    (y, zf) with the state at the end. Where ``a`` has one element this is a convolution, else a
    loop along ``axis``. Raises `ShapeError` for coefficients that are no vectors, and for a state
    that does not fit.
    """
    given = _inexact(b, a, x) if zi is None else _inexact(b, a, x, zi)
    top, bottom = (_coefficients("lfilter", value) for value in given[:2])
    array = given[2]
    position = canonical_axis("lfilter", axis, array.ndim)
    top, bottom = top / bottom[0], bottom / bottom[0]
    order = max(top.size, bottom.size) - 1
    top = pad(top, (0, order + 1 - top.size))
    bottom = pad(bottom, (0, order + 1 - bottom.size))
    moved = moveaxis(array, position, 0)
    shape = (order, *moved.shape[1:])
    if zi is None:
        state = as_array(np.zeros(shape, array.dtype))
    else:
        state = moveaxis(given[3], position, 0)
        if state.ndim != len(shape) or state.shape[0] != order:
            raise ShapeError(f"lfilter: zi must be {shape} with its first axis at {axis}")
        state = broadcast_to(state, shape)
    column = (slice(None),) + (None,) * (moved.ndim - 1)
    later, feedback = top[1:][column], bottom[1:][column]

    def step(z: Any, sample: Any) -> Any:
        if not order:
            return z, top[0] * sample
        y = top[0] * sample + z[0]
        shifted = concatenate([z[1:], z[:1] * 0], 0)
        return shifted + later * sample - feedback * y, y

    end, filtered = scan(step, state, moved)
    made = moveaxis(filtered, 0, position)
    return made if zi is None else (made, moveaxis(end, 0, position))


@implements(scipy_signal.sosfilt)
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """``x`` filtered along ``axis`` by sections of second order, ``sos`` [n, 6], scaled to a0 = 1.

    With ``zi`` [n, ..., 2, ...], the sections' states with 2 at ``axis`` of ``x``, the result is
    (y, zf) with the states at the end. Raises `ShapeError` for sections and states of other shapes.
    """
    given = _inexact(sos, x) if zi is None else _inexact(sos, x, zi)
    sections, array = given[:2]
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ShapeError(f"sosfilt: sos must be [n, 6], not {sections.shape}")
    sections = sections / sections[:, 3:4]
    position = canonical_axis("sosfilt", axis, array.ndim)
    moved = moveaxis(array, position, 0)
    count = sections.shape[0]
    shape = (count, 2, *moved.shape[1:])
    if zi is None:
        states = as_array(np.zeros(shape, array.dtype))
    else:
        states = moveaxis(given[2], position + 1, 1)
        if states.shape != shape:
            raise ShapeError(f"sosfilt: zi must be {shape} with its second axis at {axis} of x")

    def step(z: Any, sample: Any) -> Any:
        made = []
        for n in range(count):
            b0, b1, b2, _, a1, a2 = (sections[n, i] for i in range(6))
            y = b0 * sample + z[n, 0]
            made.append(stack([b1 * sample - a1 * y + z[n, 1], b2 * sample - a2 * y]))
            sample = y
        return stack(made), sample

    end, filtered = scan(step, states, moved)
    result = moveaxis(filtered, 0, position)
    return result if zi is None else (result, moveaxis(end, 1, position + 1))


def __dir__() -> list[str]:
    return __all__
