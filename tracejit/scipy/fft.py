"""Fourier and cosine transforms: the names of ``scipy.fft``.

fft.rfft(x, axis=0); fft.dct(x, norm="ortho")

The Fourier transforms are those of `tracejit.numpy.fft`; ``overwrite_x``, ``workers`` and ``plan``
are accepted and change nothing. Results have the precision of the argument, where ``numpy.fft``
has it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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
    *("dct", "dctn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "idct", "idctn"),
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
        return function(x, n, axis, norm)

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
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return function(x, s, axes, norm)

    return _named(name, record)


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


def _prepared(function: str, x: Any, type: int, n: int | None, axis: int) -> tuple[Tracer, int]:
    """Real numbers, ``n`` of them along the last axis, and where that axis was."""
    if type != 2:
        raise AttributeValueError(f"{function}: only type 2 is supported, not {type}")
    array = as_array(x)
    array = array if array.element_type.is_floating else array.astype(np.float64)
    position = canonical_axis(function, axis, array.ndim)
    moved = array.swapaxes(position, -1)
    if n is not None and n < moved.shape[-1]:
        moved = moved[..., :n]
    elif n is not None and n > moved.shape[-1]:
        moved = pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, n - moved.shape[-1])])
    return moved, position


def _weights(count: int, norm: str | None, function: str, dtype: Any) -> Any:
    """What a transform "backward", 2 sum x cos, is multiplied with for ``norm``."""
    if norm not in (None, "backward", "forward", "ortho"):
        raise AttributeValueError(
            f"{function}: norm must be backward, ortho or forward, not {norm!r}"
        )
    made = np.ones(count)
    if norm == "forward":
        made /= 2 * count
    elif norm == "ortho":
        made *= math.sqrt(1 / (2 * count))
        made[0] *= math.sqrt(0.5)
    return made.astype(dtype)


def _turns(count: int, dtype: Any, sign: int) -> Any:
    """Half a sample's shift as factors of a spectrum."""
    made = np.exp(sign * 0.5j * np.pi * np.arange(count) / count)
    return made.astype(np.complex64 if dtype == np.float32 else np.complex128)


@implements(scipy_fft.dct)
def dct(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The discrete cosine transform of type 2: 2 sum x[j] cos(pi k (2 j + 1) / (2 n)), real.

    The shape of ``x``, ``n`` along ``axis`` where that is given. Raises `AttributeValueError` for
    other types and norms.
    """
    array, position = _prepared("dct", x, type, n, axis)
    count = array.shape[-1]
    # Makhoul's order, even places and then odd ones backward, makes it one Fourier transform.
    turned = concatenate([array[..., ::2], array[..., 1::2][..., ::-1]], -1)
    spectrum = np_fft.fft(turned) * _turns(count, array.dtype, -1)
    made = 2 * spectrum.real * _weights(count, norm, "dct", array.dtype)
    return made.astype(array.dtype).swapaxes(position, -1)


@implements(scipy_fft.idct)
def idct(
    x: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Any:
    """The inverse of `dct` with the same type and norm; the shape of ``x``, ``n`` along ``axis``.

    Raises `AttributeValueError` for other types and norms.
    """
    array, position = _prepared("idct", x, type, n, axis)
    count = array.shape[-1]
    cosines = array / (2 * _weights(count, norm, "idct", array.dtype))
    sines = concatenate([cosines[..., :1] * 0, cosines[..., :0:-1]], -1)
    spectrum = (cosines - 1j * sines) * _turns(count, array.dtype, 1)
    turned = np_fft.ifft(spectrum).real.astype(array.dtype)
    half = (count + 1) // 2
    places = np.empty(count, np.int64)
    places[::2], places[1::2] = np.arange(half), np.arange(count - 1, half - 1, -1)
    return turned[..., places].swapaxes(position, -1)


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
        chosen = range(made.ndim) if axes is None else np.atleast_1d(axes).tolist()
        sizes = [None] * len(chosen) if s is None else list(s)
        if axes is None and s is not None:
            chosen = range(-len(sizes), 0)
        for axis, size in zip(chosen, sizes, strict=True):
            made = one(made, type, size, axis, norm)
        return made

    record.__name__ = record.__qualname__ = function
    record.__doc__ = f"`{function[:-1]}` along several ``axes``, by default all of them."
    return implements(getattr(scipy_fft, function))(record)


dctn, idctn = _all_axes("dctn", dct), _all_axes("idctn", idct)
