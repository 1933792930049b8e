"""Names of `jax` that programs written for it use, and what moves arrays to devices and back.

On the CPU results are NumPy arrays, complete when a call returns, and nothing is waited for. Arrays
on CUDA devices are `tracejit.cuda.DeviceArray`s. Operations are known by the lines that recorded
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.loading import load
from tracejit.trace.convert import plain_array
from tracejit.trace.table import Traced

if TYPE_CHECKING:
    from tracejit.cuda import Device

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class _ArrayMeta(type):
    """The class of `Array`: what its instances are."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Traced | np.ndarray | np.generic)

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError("Array: is the type of arrays, to annotate with; make one by np.array")


class Array(metaclass=_ArrayMeta):
    """The type of arrays, traced or NumPy's, for annotations and ``isinstance``."""


def block_until_ready(x: T) -> T:
    """The same tree of arrays, once those on devices are computed.

    Raises `DeviceError` where a kernel failed.

    >>> tj.block_until_ready(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    for leaf in tree.leaves(x):
        ready = getattr(leaf, "block_until_ready", None)
        if ready is not None:
            ready()
    return x


def device_put(x: Any, device: str | Device | None = None) -> Any:
    """A tree with its arrays and numbers on a device; traced arrays as they are.

    Without a ``device``, or with "cpu", they are NumPy arrays. On ``"cuda"``, ``"cuda:1"`` or a
    `Device` they are `DeviceArray`s: arrays that lie there, of whatever library, are shared, others
    are copied. Raises `ArgumentError` for a leaf that is no array of numbers and for an array on
    another device, `DeviceNotFoundError` where there is no such device, `DeviceMemoryError` where
    there is no room on it.

    >>> tj.device_put(np.arange(3.0))
    array([0., 1., 2.])
    """
    if device is None or device == "cpu":
        return tree.map(lambda a: a if isinstance(a, Traced) else np.array(plain_array(a)), x)
    cuda = load("tracejit.cuda")
    place = cuda.device_of(device) if isinstance(device, str) else device
    if not isinstance(place, cuda.Device):
        raise ArgumentError(f"device_put: device must be 'cpu', 'cuda' or a Device, not {device!r}")
    return tree.map(lambda a: a if isinstance(a, Traced) else cuda.to_device(a, place), x)


def device_get(x: T) -> T:
    """A tree with its arrays as NumPy arrays. Raises `ConcretizationError` for traced arrays.

    >>> tj.device_get(tj.device_put(np.arange(3.0)))
    array([0., 1., 2.])
    """
    made: T = tree.map(np.asarray, x)
    return made


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A block, or as a decorator a function, with a name, which is not recorded.

    >>> with tj.named_scope("layer"):
    ...     y = np.sin(0.0)
    """
    yield


def named_call(fun: F, *, name: str | None = None) -> F:
    """The same function: calls have no names.

    Raises `ArgumentError` for what is no function.

    >>> tj.jit(tj.named_call(np.sin, name="sine"))(0.0)
    np.float64(0.0)
    """
    return fun
