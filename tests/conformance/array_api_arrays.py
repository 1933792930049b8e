"""An array whose every operator and method is traced and compiled, for the array-API suite.

Array(np.arange(3.0)) + 1                     traced, compiled, run

`through_jit(function)` makes such a function of one of tracejit.numpy's. Only calls that the
suite's own tests make are compiled; what hypothesis and the suite's helpers do to prepare and to
compare arrays is traced and interpreted, or the run would take hours.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import tracejit as tj
from tracejit import tree
from tracejit.backends.target import Target
from tracejit.graph import Module
from tracejit.transforms.checked import Checked
from tracejit.transforms.interpreted import Interpreted
from tracejit.transforms.jit.hooks import Executable, use_compiler

compile_module = use_compiler(lambda module, target, check: choose(module, target, check))
"""What the product compiles with."""


class Counted:
    """How many calls were compiled, and how many interpreted."""

    compiled = 0
    interpreted = 0
    prepares = False


def choose(module: Module, target: Target, check: bool) -> Executable:
    """Machine code for what a test calls, the interpreter for what its helpers call."""
    if Counted.prepares:
        Counted.interpreted += 1
        return Checked(module) if check else Interpreted(module)
    Counted.compiled += 1
    assert compile_module is not None
    return compile_module(module, target, check)


def is_prepared(depth: int = 2) -> bool:
    """Whether the nearest caller outside this package is not one of the suite's tests."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and "tests/conformance" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is None or not Path(frame.f_code.co_filename).name.startswith("test_")


def inner(value: Any) -> Any:
    """Arrays as the NumPy arrays they hold; everything else as it is."""
    return value._value if isinstance(value, Array) else value


def wrapped(value: Any) -> Any:
    """NumPy's arrays and numbers as arrays."""
    return Array(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def run(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """``function`` traced with every array among the arguments unknown, compiled and run."""
    leaves, structure = tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, Array))
    values = [inner(leaf) for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Array)]

    def traced(arrays: list[Any]) -> Any:
        filled = list(values)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        args, kwargs = tree.unflatten(structure, filled)
        return function(*args, **kwargs)

    before, Counted.prepares = Counted.prepares, is_prepared()
    try:
        result = tj.jit(traced, record_numpy=False)([values[place] for place in places])
    finally:
        Counted.prepares = before
    return tree.map(wrapped, result)


def through_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `Array` objects that traces, compiles and runs ``function``."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(function, args, kwargs)

    return call


class Array:
    """What the array-API standard calls an array, over tracejit.numpy."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: np.ndarray) -> None:
        self._value = value

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return sys.modules["tests.conformance.array_api_namespace"]

    def __repr__(self) -> str:
        return f"Array({self._value!r})"

    @property
    def dtype(self) -> np.dtype:
        return self._value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._value.shape

    @property
    def ndim(self) -> int:
        return self._value.ndim

    @property
    def size(self) -> int:
        return self._value.size

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        if device != "cpu" or stream is not None:
            raise ValueError(f"to_device: {device!r} is no device, only 'cpu' is")
        return self

    @property
    def T(self) -> Any:
        if self.ndim != 2:
            raise ValueError("T: the array must have two dimensions")
        return run(lambda x: x.T, (self,), {})

    @property
    def mT(self) -> Any:
        return run(lambda x: x.mT, (self,), {})

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        return self._value.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()

    def __getitem__(self, index: Any) -> Any:
        return run(lambda x, i: x[i], (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        def write(x: Any, i: Any, v: Any) -> Any:
            written = x.copy()
            written[i] = v
            return written

        self._value = run(write, (self, index, value), {})._value

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over an array of rank 0")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __complex__(self) -> complex:
        return complex(self._value)

    def __index__(self) -> int:
        return self._value.__index__()

    def __len__(self) -> int:
        return len(self._value)


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Array, *others: Any) -> Any:
        if not all(isinstance(o, Array | bool | int | float | complex) for o in others):
            return NotImplemented
        return run(lambda x, *rest: getattr(x, name)(*rest), (self, *others), {})

    method.__name__ = name
    return method


def _in_place(name: str) -> Callable[..., Any]:
    def method(self: Array, other: Any) -> Any:
        if not isinstance(other, Array | bool | int | float | complex):
            return NotImplemented

        def write(x: Any, y: Any) -> Any:
            return getattr(x, name)(y)

        self._value = run(write, (self, other), {})._value
        return self

    method.__name__ = name
    return method


_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
for _name in _ARITHMETIC:
    for _prefix in ("", "r"):
        setattr(Array, f"__{_prefix}{_name}__", _operator(f"__{_prefix}{_name}__"))
    setattr(Array, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in "lt le gt ge eq ne neg pos abs invert".split():
    setattr(Array, f"__{_name}__", _operator(f"__{_name}__"))

__all__ = ["Array", "Counted", "inner", "run", "through_jit", "wrapped"]
