"""Names of `jax` that programs written for it use, and that have little to do here.

Results are NumPy arrays on the CPU, complete when a call returns; so nothing is waited for or
copied between devices, and operations are known by the lines that recorded them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.trace.convert import plain_array
from tracejit.trace.table import Traced

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
    """The same tree of arrays: they are complete when a call returns."""
    return x


def device_put(x: T, device: None = None) -> T:
    """A tree with its arrays and numbers as NumPy arrays; traced arrays as they are.

    Raises `ArgumentError` for a leaf that is no array of numbers, and for a ``device``.
    """
    if device is not None:
        raise ArgumentError(f"device_put: arrays lie in the CPU's memory; device is {device!r}")
    made: T = tree.map(lambda a: a if isinstance(a, Traced) else np.array(plain_array(a)), x)
    return made


def device_get(x: T) -> T:
    """A tree with its arrays as NumPy arrays. Raises `ConcretizationError` for traced arrays."""
    made: T = tree.map(np.asarray, x)
    return made


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A block, or as a decorator a function, with a name, which is not recorded."""
    yield


def named_call(fun: F, *, name: str | None = None) -> F:
    """The same function: calls have no names."""
    return fun
