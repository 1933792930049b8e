"""Filters of images of any rank, and interpolation at places: the names of ``scipy.ndimage``.

ndimage.gaussian_filter(image, 2.0); ndimage.map_coordinates(image, [rows, columns], order=1)

Results have the element type of the image. Floating images are computed with in their own type,
others in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.ndimage as scipy_ndimage

from tracejit.errors import AttributeValueError, ShapeError
from tracejit.numpy.building import axes_of, canonical_axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.padding import pad
from tracejit.numpy.selecting import where
from tracejit.scipy.signal import correlated
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer

__all__ = [
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "gaussian_filter",
    "gaussian_filter1d",
    "map_coordinates",
    "uniform_filter",
]

_PADDING = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


def _per_axis(function: str, name: str, given: Any, count: int) -> list[Any]:
    """A parameter for each axis. Raises `ShapeError` for another number of them."""
    is_one = isinstance(given, str) or np.ndim(given) == 0
    made = [given] * count if is_one else list(given)
    if len(made) != count:
        raise ShapeError(f"{function}: {name} must be one value or {count}, not {given}")
    return made


def _image(function: str, input: Any, output: Any) -> tuple[Tracer, Any]:
    """The image in a floating type, and the dtype of the result."""
    array = as_array(input)
    if output is not None and not isinstance(output, type | str | np.dtype):
        raise AttributeValueError(f"{function}: output must be a dtype; results are new arrays")
    result = array.dtype if output is None else np.dtype(output)
    if array.element_type.is_complex and result.kind != "c":
        raise AttributeValueError(f"{function}: output must be complex, as input; it is {result}")
    return array if array.element_type.is_inexact else array.astype(np.float64), result


def _stored(made: Any, dtype: Any) -> Any:
    """The result in its type; integers are cut off, and wrap around as in C."""
    if dtype.kind in "iu" and dtype.itemsize < 8 and made.dtype.kind == "f":
        made = made.astype(np.int64)
    return made.astype(dtype)


def _padded(
    function: str, x: Tracer, axis: int, width: tuple[int, int], mode: str, cval: Any
) -> Any:
    if mode not in _PADDING:
        raise AttributeValueError(f"{function}: mode must be one of {', '.join(_PADDING)}")
    widths = [(0, 0)] * x.ndim
    widths[axis] = width
    kind = _PADDING[mode]
    if kind == "constant":
        return pad(x, widths, kind, constant_values=cval)
    if kind == "reflect" and x.shape[axis] == 1:
        kind = "edge"
    return pad(x, widths, kind)


def _filtered(
    function: str, x: Tracer, kernel: Tracer, modes: Any, cval: Any, origins: Sequence[int]
) -> Any:
    """The correlation with a kernel of the same rank, whose centre is moved by ``origins``."""
    for axis, (size, origin) in enumerate(zip(kernel.shape, origins, strict=True)):
        if not isinstance(origin, int | np.integer):
            raise AttributeValueError(f"{function}: origin must be an integer, not {origin!r}")
        before = size // 2 + int(origin)
        if not 0 <= before < max(size, 1):
            raise AttributeValueError(f"{function}: origin {origin} lies outside of {size} weights")
        x = _padded(function, x, axis, (before, size - 1 - before), modes[axis], cval)
    return correlated(x, kernel.astype(x.dtype), [(0, 0)] * x.ndim)


def _of_one_kind(x: Tracer, dtype: Any, kernel: Tracer) -> tuple[Tracer, Any]:
    """The image and the result's type: complex where the weights are."""
    if not kernel.element_type.is_complex or dtype.kind == "c":
        return x, dtype
    result = np.result_type(dtype, np.complex64)
    return x.astype(np.result_type(x.dtype, np.complex64)), result


def _spread(
    function: str, rank: int, weights: Any, origin: Any, axes: Any
) -> tuple[Tracer, list[Any]]:
    """The weights with a dimension for each of the image's, and as many origins."""
    kernel = as_array(weights)
    chosen = axes_of(function, axes, rank)
    if kernel.ndim != len(chosen):
        raise ShapeError(
            f"{function}: weights must have a dimension for each of {len(chosen)} axes; they are "
            f"{kernel.shape}"
        )
    moved = dict(zip(chosen, _per_axis(function, "origin", origin, len(chosen)), strict=True))
    # The dimensions of weights stay in order, whatever that of the axes is, as in SciPy.
    sizes = iter(kernel.shape)
    shape = [next(sizes) if axis in moved else 1 for axis in range(rank)]
    return kernel.reshape(shape), [moved.get(axis, 0) for axis in range(rank)]


def _vector(function: str, weights: Any) -> Tracer:
    kernel = as_array(weights)
    if kernel.ndim != 1 or not kernel.size:
        raise ShapeError(f"{function}: weights must be a vector, not {kernel.shape}")
    return kernel


@implements(scipy_ndimage.correlate)
def correlate(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """sum conj(weights[k]) input[i + k - size // 2 - origin], the shape of ``input``.

    ``weights`` has a dimension for each of ``axes``, by default all; ``mode``, for each axis or for
    all, says what lies beyond the edges: reflect, mirror, nearest, wrap or constant (``cval``).
    ``output`` is the result's dtype. Raises `ShapeError` for another rank, `AttributeValueError`
    for another mode.
    """
    x, dtype = _image("correlate", input, output)
    kernel, origins = _spread("correlate", x.ndim, weights, origin, axes)
    x, dtype = _of_one_kind(x, dtype, kernel)
    if not x.size:
        return x.astype(dtype)
    modes = _per_axis("correlate", "mode", mode, x.ndim)
    return _stored(_filtered("correlate", x, kernel.conj(), modes, cval, origins), dtype)


@implements(scipy_ndimage.convolve)
def convolve(
    input: Any,
    weights: Any,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The sum of `correlate` with the weights in reverse order along each axis."""
    kernel, origins = _spread("convolve", np.ndim(input), weights, origin, axes)
    turned = [-o - int(size % 2 == 0) for o, size in zip(origins, kernel.shape, strict=True)]
    flipped = kernel[(slice(None, None, -1),) * kernel.ndim].conj()
    return correlate(input, flipped, output, mode, cval, turned)


def _along(x: Tracer, kernel: Any, axis: int, mode: str, cval: Any, origin: int) -> Any:
    """A correlation along one axis."""
    sizes = [1] * x.ndim
    sizes[axis] = -1
    origins = [0] * x.ndim
    origins[axis] = origin
    modes = [mode] * x.ndim
    return _filtered("correlate1d", x, kernel.reshape(sizes), modes, cval, origins)


@implements(scipy_ndimage.correlate1d)
def correlate1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """`correlate` with a vector of weights along ``axis``."""
    x, dtype = _image("correlate1d", input, output)
    kernel = _vector("correlate1d", weights)
    x, dtype = _of_one_kind(x, dtype, kernel)
    position = canonical_axis("correlate1d", axis, x.ndim)
    if not x.size:
        return x.astype(dtype)
    return _stored(_along(x, kernel.conj(), position, mode, cval, origin), dtype)


@implements(scipy_ndimage.convolve1d)
def convolve1d(
    input: Any,
    weights: Any,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    origin: int = 0,
) -> Any:
    """`convolve` with a vector of weights along ``axis``."""
    kernel = _vector("convolve1d", weights)
    turned = -origin - int(kernel.size % 2 == 0)
    return correlate1d(input, kernel[::-1].conj(), axis, output, mode, cval, turned)


def _gaussian(sigma: float, order: int, radius: int) -> Any:
    """A Gaussian's weights, or those of its derivative of an ``order``, for a correlation."""
    x = np.arange(-radius, radius + 1)
    bell = np.exp(-0.5 / (sigma * sigma) * x**2)
    bell = bell / bell.sum()
    factor = np.zeros(order + 1)
    factor[0] = 1
    # The derivative of q(x) bell is (q'(x) - x / sigma**2 q(x)) bell.
    rise = np.diag(np.arange(1, order + 1), 1) + np.diag(np.full(order, -1 / sigma**2), -1)
    for _ in range(order):
        factor = rise @ factor
    return ((x[:, None] ** np.arange(order + 1)) @ factor * bell)[::-1]


def _radius(function: str, sigma: Any, truncate: float, radius: Any) -> int:
    made = int(truncate * float(sigma) + 0.5) if radius is None else radius
    if made < 0 or made != int(made):
        raise AttributeValueError(f"{function}: radius must be a whole number, not {radius}")
    return int(made)


@implements(scipy_ndimage.gaussian_filter1d)
def gaussian_filter1d(
    input: Any,
    sigma: Any,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Any:
    """`gaussian_filter` along one axis; ``sigma`` is a known number."""
    size = _radius("gaussian_filter1d", sigma, truncate, radius)
    kernel = _gaussian(float(sigma), order, size)
    return correlate1d(input, kernel, axis, output, mode, cval, 0)


@implements(scipy_ndimage.gaussian_filter)
def gaussian_filter(
    input: Any,
    sigma: Any,
    order: Any = 0,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    truncate: float = 4.0,
    *,
    radius: Any = None,
    axes: Any = None,
) -> Any:
    """The image smoothed by a Gaussian, the shape of ``input``; ``order`` counts derivatives.

    ``sigma``, known, ``order``, ``mode`` and ``radius`` are for each of ``axes`` or for all. The
    weights end ``truncate`` standard deviations, or ``radius`` elements, from the centre. Raises
    `ShapeError` for another number of them, `AttributeValueError` for another mode.
    """
    made = as_array(input)
    chosen = axes_of("gaussian_filter", axes, made.ndim)
    each = [
        _per_axis("gaussian_filter", name, given, len(chosen))
        for name, given in (("sigma", sigma), ("order", order), ("mode", mode), ("radius", radius))
    ]
    for axis, width, degree, one, size in zip(chosen, *each, strict=True):
        if float(width) > 1e-15:
            made = gaussian_filter1d(
                made, width, axis, degree, output, one, cval, truncate, radius=size
            )
    return made if output is None else _stored(made, np.dtype(output))


@implements(scipy_ndimage.uniform_filter)
def uniform_filter(
    input: Any,
    size: Any = 3,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The means over windows of ``size`` elements along each of ``axes``.

    Raises `ShapeError` for another number of sizes, `AttributeValueError` for another mode.
    """
    made, dtype = _image("uniform_filter", input, output)
    working = made.dtype
    if not made.size:
        return made.astype(dtype)
    chosen = axes_of("uniform_filter", axes, made.ndim)
    each = [
        _per_axis("uniform_filter", name, given, len(chosen))
        for name, given in (("size", size), ("mode", mode), ("origin", origin))
    ]
    for axis, count, one, moved in zip(chosen, *each, strict=True):
        if int(count) > 1:
            # The mean of integers is cut off: a sum of exact terms, divided once.
            sums = _along(made, as_array(np.ones(int(count))), axis, one, cval, moved)
            made = _stored(sums / int(count), dtype).astype(working)
    return _stored(made, dtype)


def _folded(at: Any, size: int, mode: str) -> Any:
    """A coordinate mirrored into the image, to be rounded."""
    period = max(2 * (size - 1) if mode == "mirror" else 2 * size, 1)
    place = at % period
    if mode == "mirror":
        # SciPy turns about at the last element to the left, and half of one further to the right.
        is_turned = (place >= size) | ((at < 0) & (place > size - 1))
        return where(is_turned, period - place, place)
    return where(place >= size, period - 1 - place, place)


def _place(index: Any, size: int, mode: str) -> Any:
    """Where an index, maybe beyond the edges, lies in the image."""
    if mode in ("reflect", "grid-mirror"):
        folded = index % (2 * size)
        return np.minimum(folded, 2 * size - 1 - folded)
    if mode == "mirror":
        period = max(2 * (size - 1), 1)
        folded = index % period
        return np.minimum(folded, period - folded) if size > 1 else index * 0
    if mode == "grid-wrap":
        return index % size
    return np.clip(index, 0, size - 1)


@implements(scipy_ndimage.map_coordinates)
def map_coordinates(
    input: Any,
    coordinates: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
) -> Any:
    """The image at ``coordinates`` [rank, ...], interpolated: [...].

    ``order`` 0 takes the nearest element, 1 is linear; ``mode`` is as for `correlate`, "constant"
    gives ``cval`` outside of the image. Raises `AttributeValueError` for another order or mode,
    `ShapeError` unless there is one coordinate for each dimension.
    """
    if isinstance(cval, complex) and np.dtype(as_array(input).dtype).kind != "c":
        raise AttributeValueError(f"map_coordinates: cval must be real, as input; it is {cval}")
    if order not in (0, 1):
        raise AttributeValueError(f"map_coordinates: order must be 0 or 1, not {order}")
    if mode not in _PADDING:
        raise AttributeValueError(f"map_coordinates: mode must be one of {', '.join(_PADDING)}")
    x, dtype = _image("map_coordinates", input, output)
    places = as_array(coordinates)
    if places.element_type.is_complex:
        raise AttributeValueError("map_coordinates: coordinates must be real numbers")
    places = places if places.element_type.is_floating else places.astype(np.float64)
    if not places.ndim or places.shape[0] != x.ndim:
        raise ShapeError(
            f"map_coordinates: coordinates {places.shape} must be [{x.ndim}, ...] for {x.shape}"
        )
    corners: list[tuple[tuple[Any, ...], Any, Any]] = [((), 1, True)]
    inside: Any = True
    for axis, size in enumerate(x.shape):
        at = places[axis]
        if mode == "wrap":
            # Whole turns to the left of the first element end at the last one.
            turned = at % (size - 1) if size > 1 else at * 0
            is_last = (turned == 0) & ((at < 0) | (at == size - 1))
            at = where(is_last, size - 1.0, turned).astype(at.dtype)
        if order == 0 and mode in ("reflect", "grid-mirror", "mirror"):
            at = _folded(at, size, mode)
        if mode == "constant":
            inside = inside & (at >= 0) & (at <= size - 1)
        low = np.floor(at + 0.5 if order == 0 else at)
        weights = [(low, 1)] if order == 0 else [(low, 1 - (at - low)), (low + 1, at - low)]
        grown = []
        for index, weight, there in corners:
            for place, share in weights:
                whole = place.astype(np.int64)
                is_in = (whole >= 0) & (whole < size) if mode == "grid-constant" else True
                grown.append(((*index, _place(whole, size, mode)), weight * share, there & is_in))
        corners = grown
    made: Any = 0
    for index, weight, there in corners:
        value = x[index]
        value = value if there is True else where(there, value, cval)
        made = made + weight * value
    made = made if inside is True else where(inside, made, cval)
    if dtype.kind in "iu":
        made = where(made > 0, np.floor(made + 0.5), np.ceil(made - 0.5))
    return _stored(made, dtype)


def __dir__() -> list[str]:
    return __all__
