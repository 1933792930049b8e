"""Calls of compiled libraries' functions on NumPy's arrays; see `tracejit.ffi`.

    y = call_on_arrays("rms_norm", native, [x], shape, "{eps = 1.0 : f32}", source)
    with watching_memory(): ...         # the same, in a copy of the process first

A watched function runs in a copy of this process, its arrays between guard pages, then here, its
arrays between margins that are compared. ``TRACEJIT_HANDLER_TIMEOUT`` is how many seconds the copy
may take.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tracejit.attributes import OutputAlias
from tracejit.errors import ForeignFunctionError, OutOfBoundsError
from tracejit.layouts import from_buffer, to_buffer
from tracejit.shapes import TOKEN, AnyShape, Shape, TokenShape, TupleShape, element_type_of
from tracejit.sources import Source
from tracejit.system import natural_number
from tracejit.system.guard_pages import guarded, in_copy

_TIMEOUT = "TRACEJIT_HANDLER_TIMEOUT"
_SECONDS = 20


@dataclass(frozen=True)
class Symbols:
    """The names in C of a handler's functions, by stage, and of the types of its states.

    A type is the names of its number and of its information, which may be empty.
    """

    stages: Mapping[str, str]
    types: Sequence[tuple[str, str]] = ()


class NativeSite(Protocol):
    """A call of a compiled library's function, until it is closed; see `tracejit.ffi`."""

    @property
    def address(self) -> int:
        """Where the call's record is, a `native_abi.Record`, which compiled code reads."""

    def __call__(self, operands: Sequence[int], results: Sequence[int], /) -> None:
        """Calls the function on the memory at these addresses. Raises what it returns."""

    def close(self) -> None:
        """Deletes the states of the call."""


class NativeFunction(Protocol):
    """A function of a compiled library; see `tracejit.ffi`."""

    def symbols(self) -> Symbols:
        """Its names in C. Raises `UnsupportedError` for one that has none."""

    def site(
        self,
        operands: Sequence[Shape],
        results: Sequence[Shape],
        config: str,
        aliasing: Sequence[OutputAlias],
        source: Source | None,
        /,
    ) -> NativeSite:
        """A call in a program, on arrays of these shapes, which lie as their layouts say."""


def call_on_arrays(
    name: str,
    native: NativeFunction,
    operands: Sequence[Any],
    shape: AnyShape,
    config: str,
    source: Source | None,
    aliasing: Sequence[OutputAlias],
    constraints: Sequence[AnyShape] | None,
) -> Any:
    """What the function makes of ``operands``: an array, or a tuple, as ``shape`` says.

    ``constraints`` are the operands' shapes with the layouts that the function wants. Raises the
    error that the function returns, and those of `watching_memory` inside of it.
    """
    arrays = [np.asarray(operand) for operand in operands if not isinstance(operand, TokenShape)]
    given = [s for s in constraints or () if isinstance(s, Shape)] or [
        Shape(element_type_of(array.dtype), array.shape) for array in arrays
    ]
    elements = shape.elements if isinstance(shape, TupleShape) else (shape,)
    wanted = [element for element in elements if isinstance(element, Shape)]
    laid_out = [to_buffer(x, s.explicit_layout) for x, s in zip(arrays, given, strict=True)]

    def call(guard: bool = False) -> list[_Memory]:
        buffers = [_Memory(x.nbytes, x, guard) for x in laid_out]
        results = [_Memory(each.nbytes, None, guard) for each in wanted]
        site = native.site(given, wanted, config, aliasing, source)
        try:
            site([x.address for x in buffers], [x.address for x in results])
        finally:
            site.close()
        for kind, memories in (("operand", buffers), ("result", results)):
            for number, memory in enumerate(memories):
                memory.require_intact(f"custom_call: {name!r} wrote", f"{kind} {number}", source)
        return results

    if _margin.get():
        _require_survival(f"custom_call: {name!r}", call, source)
    made = [x.contents.view(s.dtype) for x, s in zip(call(), wanted, strict=True)]
    pairs = zip(made, wanted, strict=True)
    parts = iter([from_buffer(x, s.dimensions, s.explicit_layout) for x, s in pairs])
    values = [next(parts) if isinstance(element, Shape) else TOKEN for element in elements]
    return tuple(values) if isinstance(shape, TupleShape) else values[0]


def _require_survival(title: str, call: Callable[[bool], object], source: Source | None) -> None:
    """Calls a function between guard pages in a copy of this process, which it may end.

    Raises `OutOfBoundsError` where it leaves its arrays, with the place if margins tell it, and
    `ForeignFunctionError` where it ends the copy otherwise, or does not end.
    """
    chosen = natural_number(os.environ.get(_TIMEOUT, ""))
    seconds = _SECONDS if chosen is None else chosen
    try:
        ending = in_copy(lambda: call(True), seconds or None)
        if ending is None or ending.has_returned:
            return
        if ending.signal not in (signal.SIGSEGV, signal.SIGBUS):
            raise ForeignFunctionError(
                f"{title} ends the process ({ending}): a handler must not throw exceptions, abort "
                "or exit; catch exceptions and return an error",
                source,
            )
    except TimeoutError:
        raise ForeignFunctionError(
            f"{title} does not end within {seconds} seconds in a copy of the process; if it needs "
            f"longer, set {_TIMEOUT} to more seconds, or to 0 for no limit",
            source,
        ) from None
    nearby = None
    with suppress(TimeoutError):  # what it writes over there may keep the copy from ending
        nearby = in_copy(lambda: call(False), seconds or None)
    if nearby is not None and nearby.raised == OutOfBoundsError.__name__:
        raise OutOfBoundsError(nearby.text, source)
    raise OutOfBoundsError(
        f"{title} reads or writes memory outside of its arrays ({ending})", source
    )


_margin: ContextVar[int] = ContextVar("margin", default=0)
_PATTERN = 0xA5


@contextmanager
def watching_memory(margin: int = 4096) -> Iterator[None]:
    """Functions of compiled libraries called inside must write to nothing but their results.

    Each is called in a copy of this process first, its arrays between guard pages; then here,
    where ``margin`` bytes before and after each array are compared, and operands. Raises
    `OutOfBoundsError`, and `ForeignFunctionError` for a function that ends the process, or does
    not end.
    """
    token = _margin.set(margin)
    try:
        yield
    finally:
        _margin.reset(token)


class _Memory:
    """The memory of an array that a function gets, with margins where memory is watched."""

    def __init__(self, nbytes: int, array: np.ndarray | None = None, guard: bool = False) -> None:
        block = guarded(nbytes) if guard else None
        self._margin = _margin.get() if block is None else 0
        if block is None:
            block = np.full(nbytes + 2 * self._margin, _PATTERN, np.uint8)
        self._block = block
        self.contents = block[self._margin : self._margin + nbytes]
        if array is not None:
            self.contents[:] = array.reshape(-1).view(np.uint8)
        self._before = self.contents.copy() if self._margin and array is not None else None

    @property
    def address(self) -> int:
        return int(self.contents.ctypes.data)

    def require_intact(self, title: str, name: str, source: Source | None) -> None:
        """Raises `OutOfBoundsError` if the margins are not as they were, or an operand is not."""
        if not self._margin:
            return
        if self._before is not None and not np.array_equal(self._before, self.contents):
            raise OutOfBoundsError(f"{title} to {name}", source)
        end = self._margin + self.contents.size
        places = np.flatnonzero(self._block != _PATTERN)
        outside = places[(places < self._margin) | (places >= end)]
        if outside.size:
            place = int(outside[0])
            before = place < self._margin
            distance = self._margin - place if before else place - end
            where = f"{distance} bytes {'before' if before else 'after the end of'}"
            raise OutOfBoundsError(f"{title} {where} {name}", source)
