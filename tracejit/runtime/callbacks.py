"""Python functions that compiled code calls: for library work such as LAPACK, FFT and large sorts.

    @callback("tracejit.sort")
    def sort(source: int, target: int, size: int) -> None:
        view(target, (size,), np.float32)[...] = np.sort(view(source, (size,), np.float32))

A kernel calls it with ``tirx.call_packed("tracejit.sort", x.data, y.data, size)``. Pointers arrive
as addresses, numbers and strings as Python's. What the function raises is raised again, as it is,
by the call of the program; nothing may be called back from inside a parallel loop.

Python handles a signal that arrived in compiled code before the first instruction of the next
function that is called back. No `try` of that function is entered yet, and `ctypes` would report
what the handler raises and go on. `keep_lost` keeps it, and the call of the program raises it.
"""

from __future__ import annotations

import ctypes
import functools
import math
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracejit.backends.abi import COLLECTIVE, EVALUATE, OUTSIDE, SORT_VALUES
from tracejit.errors import CompilationError
from tracejit.loading import is_redefined, load
from tracejit.runtime.interrupts import raise_interrupt
from tracejit.runtime.library import BOOLEAN, FLOAT, POINTER, RAW_STRING, ByteArray, runtime

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Callback = Callable[..., None]

_SAFE_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_int64),  # two words for each `AnyValue`, which are read together
    ctypes.c_int32,
    ctypes.c_void_p,
)

_MODULES = {
    COLLECTIVE: "tracejit.runtime.devices.host_call",
    EVALUATE: "tracejit.runtime.host_op_callback",
    OUTSIDE: "tracejit.runtime.access_checks",
    SORT_VALUES: "tracejit.runtime.sorting",
}
"""What defines the callbacks of our own; imported for a program that calls them."""

_functions: dict[str, Callback] = {}
_undecoded: set[str] = set()
_registered: dict[str, Any] = {}  # keeps the C functions alive
_called: list[Callable[..., object]] = []
_hooks: list[Callable[..., object]] = []
_lock = threading.Lock()


class _Raised(threading.local):
    """The exception that ended this thread's program, until its call raises it."""

    error: BaseException | None = None


_raised = _Raised()


def callback(name: str, decoded: bool = True) -> Callable[[Callback], Callback]:
    """Decorator that lets kernels call a function by this name; a name is given once.

    Where arguments are not ``decoded``, the function gets one list, of two words for each, which
    `decoded` reads. The same words mean the same for as long as the program is loaded.
    """

    def define(function: Callback) -> Callback:
        if not decoded:
            _undecoded.add(name)
        if name in _functions and not is_redefined(_functions[name], function):
            raise ValueError(f"callback {name!r} is defined twice")
        _functions[name] = function
        return function

    return define


def require(names: Iterable[str]) -> None:
    """Make callbacks known to TVM, before a program that calls them is run.

    Raises `CompilationError` for a name that nothing defines.
    """
    for name in names:
        if name in _MODULES:
            load(_MODULES[name])
        if name not in _functions:
            raise CompilationError(f"compiled code calls {name!r}, which is not defined here")
        with _lock:
            if name not in _registered:
                _registered[name] = _register(name, _functions[name])


def _register(name: str, function: Callback) -> Any:
    ffi, check = runtime().ffi, runtime().check
    whole = name in _undecoded

    def call(_self: Any, arguments: Any, count: int, _result: Any) -> int:
        try:
            words = arguments[: 2 * count]
            function(words) if whole else function(*decoded(words))
        except BaseException as error:
            keep_raised(error)
            ffi.TVMFFIErrorSetRaisedFromCStr(b"RuntimeError", b"a callback raised")
            return -1
        return 0

    function_pointer, handle = _SAFE_CALL(never_lost(call)), ctypes.c_void_p()
    check(ffi.TVMFFIFunctionCreate(None, function_pointer, None, ctypes.byref(handle)))
    data = name.encode()
    key = ByteArray(data, len(data))
    check(ffi.TVMFFIFunctionSetGlobal(ctypes.byref(key), handle, 0))
    return function_pointer


Function = TypeVar("Function", bound=Callable[..., object])


def never_lost(function: Function) -> Function:
    """Decorator of a function that compiled code calls, for `keep_lost`."""
    _called.append(function)
    return function


def keep_lost() -> None:
    """From now on, what a handler of a signal raises at the start of such a function is kept."""
    previous = sys.unraisablehook
    if previous in _hooks:
        return

    def hook(event: Any) -> None:
        # Python 3.13 names the function in the message alone.
        text = f"{event.err_msg} {event.object!r}"
        if event.exc_value is not None and any(repr(function) in text for function in _called):
            keep_raised(event.exc_value)
        else:
            previous(event)

    _hooks.append(hook)
    sys.unraisablehook = hook


def raise_lost() -> None:
    """Raises what `keep_lost` kept in this thread's last program, if it did."""
    if _raised.error is not None:
        raise_pending()


def decoded(words: Sequence[int]) -> Iterable[Any]:
    """A callback's arguments."""
    return map(_value, words[::2], words[1::2])


def _value(head: int, bits: int) -> int | float | bool | str:
    """A number, a string, or a pointer's address; the low half of ``head`` is which."""
    type_index = head & 0xFFFFFFFF
    if type_index == POINTER:
        return bits
    if type_index == RAW_STRING:
        return ctypes.string_at(bits).decode()
    if type_index == FLOAT:
        return ctypes.c_double.from_buffer(ctypes.c_int64(bits)).value
    return bool(bits) if type_index == BOOLEAN else bits


def keep_raised(error: BaseException) -> None:
    """Keeps what ends this thread's program, which C code cannot pass on, for `raise_pending`."""
    _raised.error = error


def raise_pending() -> None:
    """Raise what a callback, or a handler of a signal, raised in this thread's last program."""
    raise_interrupt()
    error, _raised.error = _raised.error, None
    if error is not None:
        raise error


def viewer(
    shape: tuple[int, ...], dtype: DTypeLike, *, writeable: bool = True
) -> Callable[[int], np.ndarray]:
    """A function from an address to the memory there as an array.

    It keeps the arrays of a few addresses, so that calls on the same memory need not make them.
    """
    return functools.lru_cache(maxsize=8)(fresh_viewer(shape, dtype, writeable=writeable))


def fresh_viewer(
    shape: tuple[int, ...], dtype: DTypeLike, *, writeable: bool = True
) -> Callable[[int], np.ndarray]:
    """A function from an address to a new array of the memory there."""
    element = np.dtype(dtype)
    memory = ctypes.c_char * (math.prod(shape) * element.itemsize)

    def at(address: int) -> np.ndarray:
        array: np.ndarray = np.ndarray(shape, element, memory.from_address(address))  # type: ignore[arg-type]
        array.flags.writeable = writeable
        return array

    return at


def view(address: int, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """The memory that a callback was given, as an array to read and to write."""
    return viewer(shape, dtype)(address)
