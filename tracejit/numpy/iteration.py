"""Walking through arrays element by element, and windows that slide over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ReadOnlyError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.numpy.building import axes_of
from tracejit.numpy.manipulation import as_array, broadcast_arrays
from tracejit.numpy.manipulation import broadcast_to as _broadcast_to
from tracejit.numpy.places import take_places
from tracejit.ops import layout
from tracejit.trace.convert import operand
from tracejit.trace.memory_order import iteration_order
from tracejit.trace.public import enter, implements
from tracejit.trace.table import find_traced
from tracejit.trace.tracer import Tracer
from tracejit.trace.views import Permute, Strides
from tracejit.tracebacks import names_misuse


class broadcast:
    """The shape that arrays have together, and their elements side by side: ``np.broadcast``.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.broadcast(np.ones((3, 1)), np.ones(4)).shape
    (3, 4)
    """

    def __new__(cls, *args: Any) -> Any:
        """NumPy's own where nothing is traced."""
        return np.broadcast(*args) if find_traced(args) is None else super().__new__(cls)

    def __init__(self, *args: Any) -> None:
        shapes = [operand(value).dimensions for value in args]
        self.shape = np.broadcast_shapes(*shapes)
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.numiter = len(args)
        self._args = args
        self._rest = self._elements()

    @property
    def iters(self) -> tuple[Iterator[Any], ...]:
        """One iterator for each array, over the elements that it is stretched to."""
        return tuple(iter(_broadcast_to(as_array(x), self.shape).flat) for x in self._args)

    def reset(self) -> None:
        """Starts again from the first elements."""
        self._rest = self._elements()

    def _elements(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.iters, strict=True)

    def __iter__(self) -> broadcast:
        return self

    def __next__(self) -> tuple[Any, ...]:
        return next(self._rest)


@names_misuse
def nditer(op: Any, flags: Any = (), op_flags: Any = None, **kwargs: Any) -> Any:
    """The elements of arrays to be read one by one, as they lie in memory: ``np.nditer``.

    Elements of one array that can be written to (``op_flags=['readwrite']``) are views. Raises
    `UnsupportedError` for other flags on traced arrays.

    >>> [x + 1 for x in tnp.nditer(np.arange(2))]
    [np.int64(1), np.int64(2)]
    """
    if find_traced(op) is None:
        return np.nditer(op, flags, op_flags, **kwargs)
    several = isinstance(op, list | tuple)
    modes = {flag for one in op_flags or () for flag in ([one] if isinstance(one, str) else one)}
    if kwargs or set(flags) - {"refs_ok", "zerosize_ok"} or modes - {"readonly", "readwrite"}:
        raise UnsupportedError("nditer: of traced arrays only without flags; write a loop")
    arrays = broadcast_arrays(*op) if several else [op]
    if several and "readwrite" in modes:
        raise UnsupportedError("nditer: only one traced array can be written to at a time")
    arrays = _in_iteration_order(arrays)
    columns = [_views(x) for x in arrays]
    return zip(*columns, strict=True) if several else columns[0]


def _in_iteration_order(arrays: Sequence[Any]) -> list[Any]:
    """Arrays of one shape with their dimensions as nditer goes through them, all forwards."""
    shape = arrays[0].shape
    strides = [x.ask_order("nditer") for x in arrays]
    order = iteration_order(shape, [(shape, one) for one in strides])
    turned = tuple(
        slice(None, None, -1 if min(steps) < 0 and max(steps) <= 0 else None)
        for steps in (tuple(one[d] for one in strides) for d in order)
    )
    return [x.through(Permute(order), False)[turned] for x in arrays]


def _views(x: Any) -> Iterator[Any]:
    """The elements as arrays of rank 0."""
    for place in np.ndindex(x.shape):
        index = (*place, ...)
        yield x[index]


enter(np.broadcast, broadcast)
enter(np.nditer, nditer)


@dataclass(frozen=True, slots=True)
class Windows:
    """The path to windows of ``sizes`` that slide along ``axes``, as new last dimensions."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]

    def read(self, base: Instruction) -> Instruction:
        made = base
        for axis, size in zip(self.axes, self.sizes, strict=True):
            count = made.array_shape.dimensions[axis] - size + 1
            places = np.arange(count)[:, None] + np.arange(size)
            taken = take_places(made, places.ravel(), axis)
            sizes = list(made.array_shape.dimensions)
            windows = layout.reshape(taken, [*sizes[:axis], count, size, *sizes[axis + 1 :]])
            order = [d for d in range(len(sizes) + 1) if d != axis + 1]
            made = layout.transpose(windows, [*order, axis + 1])
        return made

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        raise ReadOnlyError("sliding windows share elements and are read-only; copy them first")

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        return strides + tuple(strides[axis] for axis in self.axes)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tracer:
    """The windows of ``window_shape`` that slide along ``axis``, as new last dimensions.

    Raises `AttributeValueError` for windows that do not fit, `UnsupportedError` for those that
    are to be written to.
    """
    if writeable:
        raise UnsupportedError("sliding_window_view: writeable=True; write to the array itself")
    array = as_array(x)
    sizes = tuple(window_shape) if np.ndim(window_shape) else (int(window_shape),)
    given = range(array.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else tuple(axis)
    axes = tuple(axes_of("sliding_window_view", one, array.ndim)[0] for one in given)
    if len(sizes) != len(axes):
        raise AttributeValueError(
            f"sliding_window_view: {len(sizes)} sizes of a window for {len(axes)} axes"
        )
    left = list(array.shape)
    for one, size in zip(axes, sizes, strict=True):
        if size < 0:
            raise AttributeValueError(f"sliding_window_view: negative size {size} of a window")
        left[one] -= size - 1
        if left[one] < 1:
            raise AttributeValueError(
                f"sliding_window_view: a window {sizes} is larger than the array {array.shape}"
            )
    return array.through(Windows(axes, sizes), False)
