"""Discrete Fourier transforms with NumPy's names: ``np.fft``.

Results have the precision of the argument: complex64 for float32 and float16, else complex128.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Instruction
from tracejit.numpy.building import canonical_axis, scaled
from tracejit.numpy.creation import require_cpu
from tracejit.numpy.joining import roll
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.storing import finish
from tracejit.ops import layout
from tracejit.ops.constants import constant
from tracejit.ops.elementwise_unary import conj
from tracejit.ops.spectra import fft as fft_op
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import adopted, implements

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _given(function: str, a: Any, real: bool) -> Instruction:
    """The array in the element type that is transformed."""
    x = as_array(a).instruction
    element_type = x.array_shape.element_type
    if real and element_type.is_complex:
        raise ElementTypeError(f"{function}: takes real numbers, not {x.shape}")
    single = element_type.is_floating and element_type.bits <= 32
    single = single or element_type is ElementType.C64
    if real:
        return converted(x, ElementType.F32 if single else ElementType.F64)
    return converted(x, ElementType.C64 if single else ElementType.C128)


def _resized(x: Instruction, axis: int, size: int) -> Instruction:
    """Cut, or lengthened by zeros, to ``size`` along an axis."""
    given = x.array_shape.dimensions[axis]
    if given == size:
        return x
    if given > size:
        return layout.slice_in_dim(x, 0, size, 1, axis)
    return layout.pad_in_dim(x, constant(0, x.array_shape.element_type), axis, 0, size - given)


def _factor(function: str, norm: str | None, forward: bool, count: int) -> float:
    """What the op's result, divided by ``count`` if it is an inverse, is multiplied by."""
    if norm not in _SWAPPED:
        raise AttributeValueError(
            f"{function}: norm must be 'backward', 'ortho' or 'forward', not {norm!r}"
        )
    if norm == "ortho":
        return 1 / math.sqrt(count) if forward else math.sqrt(count)
    if norm == "forward":
        return 1 / count if forward else float(count)
    return 1.0


def _over(x: Instruction, kind: str, axes: Sequence[int], sizes: Sequence[int]) -> Instruction:
    """The transform over one to three different axes, which are moved to the end for it."""
    rank = x.array_shape.rank
    order = [*(d for d in range(rank) if d not in axes), *axes]
    moved = x if order == list(range(rank)) else layout.transpose(x, order)
    made = fft_op(moved, kind, sizes)
    if moved is x:
        return made
    return layout.transpose(made, sorted(range(rank), key=order.__getitem__))


def _transformed(
    function: str, a: Any, n: int | None, axis: int, norm: str | None, out: Any, kind: str
) -> Any:
    x = _given(function, a, kind == "RFFT")
    position = canonical_axis(function, axis, x.array_shape.rank)
    given = x.array_shape.dimensions[position]
    size = n if n is not None else 2 * (given - 1) if kind == "IRFFT" else given
    if size < 1:
        raise AttributeValueError(f"{function}: invalid number of data points ({size}) specified")
    x = _resized(x, position, size // 2 + 1 if kind == "IRFFT" else size)
    made = _over(x, kind, [position], [size])
    factor = _factor(function, norm, kind in ("FFT", "RFFT"), size)
    made = made if factor == 1 else scaled(made, factor)
    if kind == "IRFFT" and operand(a).element_type is ElementType.F16:
        # NumPy gives real results the type of a real operand.
        made = converted(made, ElementType.F16)
    return finish(function, made, out)


@implements(np.fft.fft)
def fft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The discrete Fourier transform along ``axis``, cut or padded with zeros to ``n``.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.fft([1.0, 0.0, 0.0, 0.0])
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transformed("fft", a, n, axis, norm, out, "FFT")


@implements(np.fft.ifft)
def ifft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `fft`.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.ifft([4.0, 0.0, 0.0, 0.0])
    array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _transformed("ifft", a, n, axis, norm, out, "IFFT")


@implements(np.fft.rfft)
def rfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The half of a real array's spectrum that is not redundant: n // 2 + 1 numbers.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.rfft([1.0, 2.0, 1.0, 2.0])
    array([ 6.+0.j,  0.+0.j, -2.+0.j])
    """
    return _transformed("rfft", a, n, axis, norm, out, "RFFT")


@implements(np.fft.irfft)
def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `rfft`: ``n`` real numbers, by default twice as many as given, less two.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.irfft([4.0, 0.0, 0.0])
    array([1., 1., 1., 1.])
    """
    return _transformed("irfft", a, n, axis, norm, out, "IRFFT")


@implements(np.fft.hfft)
def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The real spectrum of an array whose second half mirrors the given one, conjugated.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.hfft([1.0, 0.0, 0.0])
    array([1., 1., 1., 1.])
    """
    return irfft(np.conjugate(as_array(a)), n, axis, _swapped("hfft", norm), out)


@implements(np.fft.ihfft)
def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `hfft`.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.ihfft([4.0, 0.0, 0.0, 0.0])
    array([1.-0.j, 1.-0.j, 1.-0.j])
    """
    made = rfft(a, n, axis, _swapped("ihfft", norm))
    return finish("ihfft", conj(made.instruction), out)


def _swapped(function: str, norm: str | None) -> str:
    if norm not in _SWAPPED:
        raise AttributeValueError(
            f"{function}: norm must be 'backward', 'ortho' or 'forward', not {norm!r}"
        )
    return _SWAPPED[norm]


def _axes(
    function: str,
    x: Instruction,
    s: Sequence[int | None] | None,
    axes: Sequence[int] | None,
    kind: str,
) -> tuple[list[int], list[int]]:
    """The axes and the sizes on the side of the time."""
    shape = x.array_shape
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(shape.rank)
    positions = [canonical_axis(function, axis, shape.rank) for axis in axes]
    given = [shape.dimensions[d] for d in positions]
    if not positions:
        raise ShapeError(f"{function}: at least one axis must be transformed")
    if kind == "IRFFT":
        given[-1] = 2 * (given[-1] - 1)
    if s is not None and len(s) != len(positions):
        raise ShapeError(f"{function}: shape {tuple(s)} and axes {tuple(axes)} differ in length")
    wanted = (
        given
        if s is None
        else [
            size if new is None or new == -1 else int(new)
            for size, new in zip(given, s, strict=True)
        ]
    )
    if min(wanted) < 1:
        raise AttributeValueError(f"{function}: invalid number of data points {tuple(wanted)}")
    return positions, wanted


def _transformed_all(
    function: str,
    a: Any,
    s: Sequence[int | None] | None,
    axes: Sequence[int] | None,
    norm: str | None,
    out: Any,
    kind: str,
) -> Any:
    x = _given(function, a, kind == "RFFT")
    if not x.array_shape.rank or (axes is not None and not len(axes)):
        return finish(function, x, out)
    positions, sizes = _axes(function, x, s, axes, kind)
    for place, (axis, size) in enumerate(zip(positions, sizes, strict=True)):
        halved = kind == "IRFFT" and place == len(sizes) - 1
        x = _resized(x, axis, size // 2 + 1 if halved else size)
    factor = _factor(function, norm, kind in ("FFT", "RFFT"), math.prod(sizes))
    if len(set(positions)) == len(positions) <= 3:
        made = _over(x, kind, positions, sizes)
    else:
        made = _one_by_one(x, kind, positions, sizes)
    return finish(function, made if factor == 1 else scaled(made, factor), out)


def _one_by_one(
    x: Instruction, kind: str, positions: Sequence[int], sizes: Sequence[int]
) -> Instruction:
    """More axes than the op takes: the last one first, or for the inverse of real ones last."""
    plain = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    if kind == "RFFT":
        x = _over(x, kind, positions[-1:], sizes[-1:])
    for axis, size in zip(positions[:-1], sizes[:-1], strict=True):
        x = _over(x, plain, [axis], [size])
    return x if kind == "RFFT" else _over(x, kind, positions[-1:], sizes[-1:])


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    """`fft` over several axes, by default all.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.fftn(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return _transformed_all("fftn", a, s, axes, norm, out, "FFT")


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    """The inverse of `fftn`.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.ifftn(np.ones((2, 2)))
    array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return _transformed_all("ifftn", a, s, axes, norm, out, "IFFT")


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None) -> Any:
    """`rfft` over the last of the axes, `fft` over the others.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.rfftn(np.ones((2, 2)))
    array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return _transformed_all("rfftn", a, s, axes, norm, out, "RFFT")


@implements(np.fft.irfftn)
def irfftn(
    a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `rfftn`.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.irfftn([[4.0, 0.0], [0.0, 0.0]])
    array([[1., 1.],
           [1., 1.]])
    """
    return _transformed_all("irfftn", a, s, axes, norm, out, "IRFFT")


@implements(np.fft.fft2)
def fft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None
) -> Any:
    """`fftn` over the last two axes.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.fft2([[1.0, 0.0], [0.0, 0.0]])
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transformed_all("fft2", a, s, axes, norm, out, "FFT")


@implements(np.fft.ifft2)
def ifft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None
) -> Any:
    """`ifftn` over the last two axes.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.ifft2([[4.0, 0.0], [0.0, 0.0]])
    array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]])
    """
    return _transformed_all("ifft2", a, s, axes, norm, out, "IFFT")


@implements(np.fft.rfft2)
def rfft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None
) -> Any:
    """`rfftn` over the last two axes.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.rfft2([[1.0, 2.0], [1.0, 2.0]])
    array([[ 6.+0.j, -2.+0.j],
           [ 0.+0.j,  0.+0.j]])
    """
    return _transformed_all("rfft2", a, s, axes, norm, out, "RFFT")


@implements(np.fft.irfft2)
def irfft2(
    a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: Any = None
) -> Any:
    """`irfftn` over the last two axes.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.irfft2([[4.0, 0.0], [0.0, 0.0]])
    array([[1., 1.],
           [1., 1.]])
    """
    return _transformed_all("irfft2", a, s, axes, norm, out, "IRFFT")


@implements(np.fft.fftfreq, creates=True)
def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The frequencies of the results of `fft` of ``n`` samples, ``d`` apart.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.fftfreq(4, d=0.5)
    array([ 0. ,  0.5, -1. , -0.5])
    """
    require_cpu("fftfreq", device)
    made = adopted(np.fft.fftfreq(n)) / d
    return made if dtype is None else made.astype(dtype)


@implements(np.fft.rfftfreq, creates=True)
def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Any:
    """The frequencies of the results of `rfft` of ``n`` samples, ``d`` apart.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.fft.rfftfreq(4, d=0.5)
    array([0. , 0.5, 1. ])
    """
    require_cpu("rfftfreq", device)
    made = adopted(np.fft.rfftfreq(n)) / d
    return made if dtype is None else made.astype(dtype)


def _shifts(x: Any, axes: Any, sign: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    places = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    wanted = tuple(canonical_axis("fftshift", axis, x.ndim) for axis in places)
    half = x.shape
    return tuple(half[d] // 2 if sign > 0 else -(half[d] // 2) for d in wanted), wanted


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """The frequency zero moved from the front to the middle.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.fftshift([0, 1, 2, 3])
    array([2, 3, 0, 1])
    """
    array = as_array(x)
    return roll(array, *_shifts(array, axes, 1))


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`.

    Raises `ArgumentError` for what is no array of numbers and `DimensionError` for an axis that
    the array lacks.

    >>> tnp.fft.ifftshift([2, 3, 0, 1])
    array([0, 1, 2, 3])
    """
    array = as_array(x)
    return roll(array, *_shifts(array, axes, -1))


def __dir__() -> list[str]:
    return __all__
