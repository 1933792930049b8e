"""What handlers ask of whoever calls them: errors, states, memory, threads. XLA's FFI, our side.

error = handler(frame_address)
raise_error(error, "name of the target")

Handlers call machine code (`tracejit.backends.tvm.cpu.llvm.native_api`), which is compiled once and
kept in the disk cache. Python is called where a library registers something, and for an error that
ends a program.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from typing import Any

from tracejit.backends import native_abi as abi
from tracejit.backends.artifact import InProcess
from tracejit.backends.machine import thread_count
from tracejit.backends.target import CPU
from tracejit.errors import (
    ForeignFunctionError,
    InvalidArgumentError,
    MemoryLimitError,
    TracejitError,
    UnsupportedError,
)
from tracejit.loading import uninterrupted
from tracejit.runtime.cache import DiskCache, cache_key
from tracejit.runtime.callbacks import keep_raised, never_lost
from tracejit.runtime.code_generator import generate
from tracejit.runtime.executable import Executable
from tracejit.sources import Source
from tracejit.system import after_fork

_CLASSES: dict[int, type[TracejitError]] = {
    abi.Code.INVALID_ARGUMENT: InvalidArgumentError,
    abi.Code.UNIMPLEMENTED: UnsupportedError,
    abi.Code.RESOURCE_EXHAUSTED: MemoryLimitError,
}


class Instance:
    """A call in a program: its record, which holds the state that its instantiation left."""

    def __init__(self, title: str, source: Source | None) -> None:
        self._title, self._source = title, source
        host = _host()
        self.record = abi.Record(
            number=next(_numbers),
            settle=host.address["settle"],
            end=host.address["end"],
            host=ctypes.addressof(host.memory),
        )
        _instances[self.record.number] = self

    def settle(self, error: int | None, future: int | None) -> None:
        """Waits for a future. Raises the error that a handler returned or its future has."""
        late = _host().wait(future) if future else None
        raise_error(error or late, self._title, self._source)

    def fail(self, error: int) -> None:
        """Raises the error."""
        raise_error(error, self._title, self._source)

    def close(self) -> None:
        """Deletes the state by the function that its type was registered with."""
        _instances.pop(self.record.number, None)
        number, self.record.state_type = self.record.state_type, 0
        host = _host()
        host.delete(ctypes.addressof(host.memory), number, self.record.state)


def end_run(run: Any) -> None:
    """Deletes the states that belong to one run of a call."""
    _host().end(ctypes.addressof(run))


@never_lost
def _fail(run: int, error: int) -> None:
    """What machine code calls with an error that ends a program, which returns -1 then."""
    record = abi.Record.from_address(abi.Run.from_address(run).record)
    try:
        _instances[record.number].fail(error)
    except BaseException as raised:
        keep_raised(raised)


_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_fail_function = _FAIL(_fail)

_numbers = itertools.count(1)
_instances: dict[int, Instance] = {}
_types: dict[str, int] = {}
_type_numbers = (ctypes.c_int64 * abi.MOST_TYPES)(*range(abi.MOST_TYPES))
_lock = threading.RLock()
places_of_types: dict[int, tuple[int, int | None]] = {}
"""Where libraries keep the numbers of types of states, and say how these are freed, by number."""
registered: dict[str, dict[str, int]] = {}
"""What libraries registered by themselves: the addresses of handlers by stage, by name."""


class _Host:
    """The machine code, by name, and the memory that it works on."""

    def __init__(self) -> None:
        cache, key = DiskCache.default(), cache_key("native host")
        found = cache.find(key)
        if found is None:
            built: bytes | InProcess = generate("cpu.objects.native_host.build", CPU, title="ffi")
            found = cache.add(key, built)
        self._executable: Executable = found  # keeps the code loaded
        (addresses,) = found([])
        self.address = dict(zip(abi.FUNCTIONS, addresses.tolist(), strict=True))
        self.wait = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self.address["wait"])
        self.end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address["end"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self.delete = kind(self.address["delete"])
        self.destroy = abi.Handler(self.address["Error_Destroy"])
        fail = ctypes.cast(_fail_function, ctypes.c_void_p)
        self.memory = abi.Host(fail=fail, most=min(thread_count(), abi.MOST_THREADS))
        self._reset = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address["reset"])
        self.forget_threads()
        after_fork(self.forget_threads)
        functions = {name: abi.Handler(at) for name, at in self.address.items() if name in _KINDS}
        functions |= {name: _entry(name, function) for name, function in _PYTHON.items()}
        version = abi.made(abi.Version, major=abi.MAJOR, minor=abi.MINOR)
        self.api = abi.made(abi.Api, version=version, **functions)

    def forget_threads(self) -> None:
        """In the child of a fork there are none."""
        self._reset(ctypes.addressof(self.memory))


_made: list[_Host] = []


def _host() -> _Host:
    """The host of this process, compiled or loaded on the first call."""
    if not _made:
        with uninterrupted(), _lock:
            if not _made:
                _made.append(_Host())
    return _made[0]


def raise_error(error: int | None, name: str, source: Source | None = None) -> None:
    """Raises what a handler returned, and frees it, unless that is null.

    `InvalidArgumentError` for an invalid argument, `UnsupportedError` for what is not implemented,
    `MemoryLimitError` for exhausted resources, else `ForeignFunctionError`.
    """
    if not error:
        return
    code = abi.Error.from_address(error).code
    message = ctypes.string_at(error + abi.Error.message.offset).decode(errors="replace")
    _host().destroy(ctypes.addressof(abi.made(abi.REQUESTS["Error_Destroy"], error=error)))
    known = code in abi.Code._value2member_map_
    title = abi.Code(code).name if known else f"status {code}"
    raise _CLASSES.get(code, ForeignFunctionError)(f"{name}: {message} ({title})", source)


def _handler_register(request: Any) -> None:
    platform = ctypes.string_at(request.platform.data, request.platform.size).decode()
    name = ctypes.string_at(request.name.data, request.name.size).decode()
    if platform.lower() not in ("host", "cpu"):
        return  # a library may hold handlers for other platforms as well
    stages = {stage.name.lower(): at for stage, at in zip(abi.Stage, request.bundle, strict=True)}
    registered[name] = {stage: at for stage, at in stages.items() if at}


def _type_register(request: Any) -> None:
    name = ctypes.string_at(request.name.data, request.name.size)
    register_type(name.decode(), ctypes.addressof(request.type_id.contents), request.info)


def register_type(name: str, at: int, info: int | None) -> None:
    """Writes the number of a type of states to ``at``; its ``info`` says how they are freed.

    Raises `MemoryLimitError` for more types than there are numbers.
    """
    host = _host()
    with _lock:
        number = _types.setdefault(name, len(_types) + 1)
        if number >= abi.MOST_TYPES:
            raise MemoryLimitError(f"register_ffi_type: {name!r} is one type of states too many")
        if number >= host.memory.types:
            host.memory.type_ids[number] = ctypes.addressof(_type_numbers) + abi.WORD * number
            host.memory.types = number + 1
        if info:
            host.memory.deleters[number] = abi.TypeInfo.from_address(info).delete
        places_of_types[number] = at, info
    ctypes.c_int64.from_address(at).value = number


_PYTHON: dict[str, Callable[[Any], None]] = {
    "Handler_Register": _handler_register,
    "Type_Register": _type_register,
}
_KINDS = frozenset(abi.REQUESTS)


def _entry(name: str, function: Callable[[Any], None]) -> Any:
    """A function of the table that is written in Python."""
    kind = abi.REQUESTS[name]

    def call(address: int) -> int | None:
        try:
            function(kind.from_address(address))
        except Exception as error:  # C code cannot pass it on
            return _new_error(abi.Code.INTERNAL, f"{name}: {type(error).__name__}: {error}")
        return None

    return abi.Handler(call)


def _new_error(code: int, message: str) -> int | None:
    kind = abi.REQUESTS["Error_Create"]
    request = abi.made(kind, message=message.encode(), code=code)
    made: int | None = abi.Handler(_host().address["Error_Create"])(ctypes.addressof(request))
    return made


@functools.cache
def address_caller() -> Any:
    """A handler that calls ``void f(void **outputs, void **inputs)``, the call's state."""
    return abi.Handler(_host().address["call_address"])


@functools.cache
def api_address() -> int:
    """Where the table of the interface's functions lies, as long as the process lives."""
    return ctypes.addressof(_host().api)
