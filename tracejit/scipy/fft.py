"""Fourier, cosine and sine transforms: the names of ``scipy.fft``.

fft.rfft(x, axis=0); fft.dct(x, norm="ortho")

The Fourier transforms are those of `tracejit.numpy.fft`; ``overwrite_x``, ``workers`` and ``plan``
are accepted and change nothing. Results have the precision of the argument, where ``numpy.fft``
has it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.fft as scipy_fft

from tracejit.errors import AttributeValueError
from tracejit.numpy import fft as np_fft
from tracejit.numpy.building import canonical_axis
from tracejit.numpy.joining import concatenate
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.padding import pad
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer

Function = Callable[..., Any]

_SINGLE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_PLANE = ("fft2", "ifft2", "rfft2", "irfft2")
_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")

__all__ = [
    *(
        "dct",
        "dctn",
        "dst",
        "dstn",
        "idst",
        "idstn",
        "fft",
        "fft2",
        "fftfreq",
        "fftn",
        "fftshift",
        "hfft",
        "idct",
        "idctn",
    ),
    *("ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft"),
    *("rfft2", "rfftfreq", "rfftn"),
]


def _single(name: str) -> Function:
    function = getattr(np_fft, name)

    def record(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: None = None,
    ) -> Any:
        array = as_array(x)
        # NumPy's keep float16.
        array = array.astype(np.float32) if array.dtype == np.float16 else array
        return function(array, n, axis, norm)

    return _named(name, record)


def _several(name: str, all_axes: Any) -> Function:
    function = getattr(np_fft, name)

    def record(
        x: Any,
        s: Any = None,
        axes: Any = all_axes,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        plan: None = None,
    ) -> Any:
        s, axes = _sizes_and_axes(name, np.ndim(x), s, axes)
        return function(x, s, axes, norm)

    return _named(name, record)


def _sizes_and_axes(function: str, ndim: int, s: Any, axes: Any) -> tuple[Any, tuple[int, ...]]:
    """The lengths, or None, and the axes of a transform along several, as SciPy reads them."""
    sizes = None if s is None else tuple(np.atleast_1d(s).tolist())
    if axes is not None:
        chosen = tuple(canonical_axis(function, a, ndim) for a in np.atleast_1d(axes).tolist())
    elif sizes is None or len(sizes) > ndim:
        chosen = tuple(range(ndim))
    else:
        chosen = tuple(range(ndim - len(sizes), ndim))
    if len({*chosen}) < len(chosen) or (sizes is not None and len(sizes) != len(chosen)):
        raise AttributeValueError(
            f"{function}: axes must be unique, and s must give a length for each; s is {s}, axes "
            f"are {axes} of {ndim}"
        )
    return sizes, chosen


def _named(name: str, record: Function) -> Function:
    record.__name__ = record.__qualname__ = name
    record.__doc__ = f"``scipy.fft.{name}``; see `tracejit.numpy.fft.{name}`."
    return implements(getattr(scipy_fft, name))(record)


fft, ifft, rfft, irfft, hfft, ihfft = map(_single, _SINGLE)
fft2, ifft2, rfft2, irfft2 = (_several(name, (-2, -1)) for name in _PLANE)
fftn, ifftn, rfftn, irfftn = (_several(name, None) for name in _SEVERAL)
# SciPy's own are NumPy's, but for the array API.
fftfreq, rfftfreq = np_fft.fftfreq, np_fft.rfftfreq
fftshift = implements(scipy_fft.fftshift)(lambda x, axes=None: np_fft.fftshift(x, axes))
ifftshift = implements(scipy_fft.ifftshift)(lambda x, axes=None: np_fft.ifftshift(x, axes))


def _prepared(function: str, x: Any, n: int | None, axis: int) -> tuple[Tracer, int]:
    """Floating or complex numbers, ``n`` of them along the last axis, and where that axis was."""
    array = as_array(x)
    if array.dtype == np.float16:
        array = array.astype(np.float32)
    array = array if array.element_type.is_inexact else array.astype(np.float64)
    position = canonical_axis(function, axis, array.ndim)
    moved = array.swapaxes(position, -1)
    size = moved.shape[-1] if n is None else n
    if size < 1:
        raise AttributeValueError(f"{function}: invalid number of data points ({size})")
    if size < moved.shape[-1]:
        moved = moved[..., :size]
    elif size > moved.shape[-1]:
        moved = pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, size - moved.shape[-1])])
    return moved, position


def _shift(turns: Any, dtype: Any) -> Any:
    """exp(-i pi turns), in the precision of ``dtype``."""
    made = np.exp(-1j * np.pi * np.asarray(turns))
    return made.astype(np.complex64 if dtype == np.float32 else np.complex128)


def _cosines_1(x: Tracer) -> Any:
    """x[0] + (-1)^k x[n-1] + 2 sum x[j] cos(pi k j / (n - 1)), by an even extension."""
    whole = concatenate([x, x[..., -2:0:-1]], -1)
    return np_fft.rfft(whole).real


def _cosines_2(x: Tracer) -> Any:
    """2 sum x[j] cos(pi k (2 j + 1) / (2 n)).

    Makhoul's order, even places and then odd ones backward, makes it one Fourier transform.
    """
    turned = concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    count = x.shape[-1]
    return 2 * (np_fft.fft(turned) * _shift(np.arange(count) / (2 * count), x.dtype)).real


def _cosines_3(x: Tracer) -> Any:
    """x[0] + 2 sum x[j] cos(pi j (2 k + 1) / (2 n)): 2 n times the inverse of `_cosines_2`."""
    count = x.shape[-1]
    sines = concatenate([x[..., :1] * 0, x[..., :0:-1]], -1)
    spectrum = (x - 1j * sines) * _shift(-np.arange(count) / (2 * count), x.dtype)
    turned = count * np_fft.ifft(spectrum).real
    half = (count + 1) // 2
    places = np.empty(count, np.int64)
    places[::2], places[1::2] = np.arange(half), np.arange(count - 1, half - 1, -1)
    return turned[..., places]


def _cosines_4(x: Tracer) -> Any:
    """2 sum x[j] cos(pi (2 k + 1) (2 j + 1) / (4 n)), by a transform of twice the length."""
    count = x.shape[-1]
    places = np.arange(count)
    spectrum = np_fft.fft(x * _shift(places / (2 * count), x.dtype), 2 * count)[..., :count]
    return 2 * (spectrum * _shift((2 * places + 1) / (4 * count), x.dtype)).real


def _sines_1(x: Tracer) -> Any:
    """2 sum x[j] sin(pi (k + 1) (j + 1) / (n + 1)), by an odd extension."""
    zero = x[..., :1] * 0
    whole = concatenate([zero, x, zero, -x[..., ::-1]], -1)
    return -np_fft.rfft(whole).imag[..., 1 : x.shape[-1] + 1]


def _sines(x: Tracer, type: int) -> Any:
    """Sine transforms of types 2 to 4: cosine transforms of the same type, turned about."""
    signs = np.where(np.arange(x.shape[-1]) % 2, -1, 1).astype(x.dtype)
    if type == 2:
        return _cosines_2(x * signs)[..., ::-1]
    cosines = _cosines_3 if type == 3 else _cosines_4
    return cosines(x[..., ::-1]) * signs


_COSINES = {1: _cosines_1, 2: _cosines_2, 3: _cosines_3, 4: _cosines_4}
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _halved(x: Any, places: Sequence[int], factor: float) -> Any:
    """``x`` with some places along its last axis multiplied with ``factor``."""
    weights = np.ones(x.shape[-1])
    weights[list(places)] = factor
    return x * weights.astype(x.dtype)


def _transform(
    function: str,
    x: Tracer,
    type: int,
    norm: str | None,
    orthogonalize: bool | None,
) -> Any:
    """`dct`, `idct`, `dst` or `idst` of real numbers along the last axis."""
    is_sine, is_inverse = "dst" in function, function.startswith("i")
    norms = (None, "backward", "forward", "ortho")
    if norm not in norms or type not in _COSINES:
        raise AttributeValueError(
            f"{function}: type must be 1, 2, 3 or 4, and norm backward, ortho or forward; "
            f"they are {type!r} and {norm!r}"
        )
    count = x.shape[-1]
    if type == 1 and not is_sine and count < 2:
        raise AttributeValueError(f"{function}: type 1 takes two elements or more, not {count}")
    kind = _INVERSE[type] if is_inverse else type
    is_orthogonal = norm == "ortho" if orthogonalize is None else orthogonalize
    # The elements that count half in an orthogonal transform, before it and after.
    edge = [-1 if is_sine else 0] if kind in (2, 3) else [0, -1] if not is_sine else []
    edge = [] if kind == 4 or not is_orthogonal else edge
    if kind in (1, 3):
        x = _halved(x, edge, math.sqrt(2))
    if is_sine:
        made = _sines_1(x) if kind == 1 else _sines(x, kind)
    else:
        made = _COSINES[kind](x)
    if kind in (1, 2):
        made = _halved(made, edge, math.sqrt(0.5))
    length = 2 * (count + (0 if kind > 1 else 1 if is_sine else -1))
    if norm == "ortho":
        made = made * math.sqrt(1 / length)
    elif is_inverse != (norm == "forward"):
        made = made / length
    return made.astype(x.dtype)


def _one_axis(function: str) -> Function:
    def record(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        orthogonalize: bool | None = None,
    ) -> Any:
        array, position = _prepared(function, x, n, axis)
        if array.element_type.is_complex:
            parts = (array.real, array.imag)
            real, imag = (_transform(function, p, type, norm, orthogonalize) for p in parts)
            made = (real + 1j * imag).astype(array.dtype)
        else:
            made = _transform(function, array, type, norm, orthogonalize)
        return made.swapaxes(position, -1)

    kind = "sine" if "dst" in function else "cosine"
    record.__name__ = record.__qualname__ = function
    record.__doc__ = (
        f"The {'inverse ' if function[0] == 'i' else ''}discrete {kind} transform of ``type`` 1 to "
        f"4 along ``axis``; the shape of ``x``, ``n`` along ``axis`` where that is given."
    )
    return implements(getattr(scipy_fft, function))(record)


dct, idct, dst, idst = map(_one_axis, ("dct", "idct", "dst", "idst"))


def _all_axes(function: str, one: Function) -> Function:
    def record(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: str | None = None,
        overwrite_x: bool = False,
        workers: int | None = None,
        *,
        orthogonalize: bool | None = None,
    ) -> Any:
        made = as_array(x)
        sizes, chosen = _sizes_and_axes(function, made.ndim, s, axes)
        for axis, size in zip(chosen, sizes or [None] * len(chosen), strict=True):
            made = one(made, type, size, axis, norm, orthogonalize=orthogonalize)
        return made

    record.__name__ = record.__qualname__ = function
    record.__doc__ = f"`{function[:-1]}` along several ``axes``, by default all of them."
    return implements(getattr(scipy_fft, function))(record)


dctn, idctn = _all_axes("dctn", dct), _all_axes("idctn", idct)
dstn, idstn = _all_axes("dstn", dst), _all_axes("idstn", idst)


def __dir__() -> list[str]:
    return __all__
