"""What handlers ask of whoever calls them: errors, states, memory, threads. XLA's FFI, our side.

error = handler(frame_address)
raise_error(error, "name of the target")
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tracejit.backends import native_abi as abi
from tracejit.backends.machine import thread_count
from tracejit.errors import (
    ForeignFunctionError,
    InvalidArgumentError,
    MemoryLimitError,
    TracejitError,
    UnsupportedError,
)
from tracejit.runtime.callbacks import keep_raised, never_lost
from tracejit.sources import Source

_CLASSES: dict[int, type[TracejitError]] = {
    abi.Code.INVALID_ARGUMENT: InvalidArgumentError,
    abi.Code.UNIMPLEMENTED: UnsupportedError,
    abi.Code.RESOURCE_EXHAUSTED: MemoryLimitError,
}


class Instance:
    """A call in a program: its record, which holds the state that its instantiation left."""

    def __init__(self, title: str, source: Source | None) -> None:
        self._title, self._source = title, source
        settle, end = _address_of(_settle_function), _address_of(_end_function)
        self.record = abi.Record(number=next(_numbers), settle=settle, end=end)
        _instances[self.record.number] = self

    def settle(self, error: int | None, future: int | None) -> None:
        """Waits for a future. Raises the error that a handler returned or its future has."""
        raise_error(error or wait(future), self._title, self._source)

    def close(self) -> None:
        """Deletes the state by the function that its type was registered with."""
        _instances.pop(self.record.number, None)
        _delete(self.record.state_type, self.record.state)
        self.record.state_type = 0


def _delete(type_id: int, state: int | None) -> None:
    delete = _deleters.get(type_id)
    if delete:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(delete)(state)


def end_run(run: Any) -> None:
    """Deletes the states that belong to one run of a call."""
    _delete(run.prepared_type, run.prepared)
    _delete(run.initialized_type, run.initialized)
    run.prepared_type = run.initialized_type = 0


@never_lost
def _settle(run: int, error: int | None, future: int | None) -> int:
    """What compiled code calls where a handler returned an error or a future; 1 if it succeeded.

    0 is also what `ctypes` returns where a signal is handled before the first statement.
    """
    try:
        _instances[_record(abi.Run.from_address(run)).number].settle(error, future)
    except BaseException as raised:
        keep_raised(raised)
        return 0
    return 1


@never_lost
def _end(run: int) -> None:
    end_run(abi.Run.from_address(run))


def _record(run: Any) -> Any:
    return abi.Record.from_address(run.record)


_SETTLE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_settle_function = _SETTLE(_settle)
_end_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_end)


def _address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_numbers = itertools.count(1)
_instances: dict[int, Instance] = {}
_errors: dict[int, tuple[int, bytes]] = {}
_futures: dict[int, Future[None]] = {}
_memory: dict[int, Any] = {}
_types: dict[str, int] = {}
_deleters: dict[int, int] = {}
_lock = threading.Lock()
registered: dict[str, dict[str, int]] = {}
"""What libraries registered by themselves: the addresses of handlers by stage, by name."""


def _error(code: int, message: bytes) -> int:
    number = next(_numbers)
    _errors[number] = code, message
    return number


def raise_error(error: int | None, name: str, source: Source | None = None) -> None:
    """Raises what a handler returned, unless that is null.

    `InvalidArgumentError` for an invalid argument, `UnsupportedError` for what is not implemented,
    `MemoryLimitError` for exhausted resources, else `ForeignFunctionError`.
    """
    if not error:
        return
    code, message = _errors.pop(error, (abi.Code.UNKNOWN, b"an error of an unknown origin"))
    kind = _CLASSES.get(code, ForeignFunctionError)
    known = code in abi.Code._value2member_map_
    title = abi.Code(code).name if known else f"status {code}"
    raise kind(f"{name}: {message.decode(errors='replace')} ({title})", source)


def wait(future: int | None) -> int | None:
    """The error, or None, of a handler that goes on after it has returned."""
    if not future:
        return None
    try:
        _futures[future].result()
    except _Failed as failed:
        return failed.error
    finally:
        _futures.pop(future, None)
    return None


class _Failed(Exception):
    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


def _error_create(request: Any) -> int:
    return _error(request.code, request.message or b"")


def _error_get_message(request: Any) -> None:
    request.message = _errors[request.error][1]


def _error_destroy(request: Any) -> None:
    _errors.pop(request.error, None)


def _handler_register(request: Any) -> int | None:
    platform = ctypes.string_at(request.platform.data, request.platform.size).decode()
    name = ctypes.string_at(request.name.data, request.name.size).decode()
    if platform.lower() not in ("host", "cpu"):
        return None  # a library may hold handlers for other platforms as well
    stages = {stage.name.lower(): at for stage, at in zip(abi.Stage, request.bundle, strict=True)}
    registered[name] = {stage: at for stage, at in stages.items() if at}
    return None


def _stream_get(request: Any) -> int:
    return _error(abi.Code.UNIMPLEMENTED, b"there are no streams on the CPU")


def _type_register(request: Any) -> None:
    name = ctypes.string_at(request.name.data, request.name.size)
    request.type_id[0] = number_of_type(name.decode(), request.info)


def number_of_type(name: str, info: int | None) -> int:
    """The number of a type of states, whose ``info`` says how they are freed."""
    with _lock:
        number = _types.setdefault(name, len(_types) + 1)
        if info:
            _deleters[number] = abi.TypeInfo.from_address(info).delete or 0
    return number


def _context_get(request: Any) -> int:
    return _error(abi.Code.NOT_FOUND, b"no user data was given to this call")


_STATES = {
    abi.Stage.PREPARE: ("prepared_type", "prepared"),
    abi.Stage.INITIALIZE: ("initialized_type", "initialized"),
}


def _place_of_state(request: Any) -> tuple[Any, str, str]:
    """Where the state of a stage is kept: with the call, or with its run."""
    run = abi.Run.from_address(request.context)
    if request.stage == abi.Stage.INSTANTIATE:
        return _record(run), "state_type", "state"
    return run, *_STATES[request.stage]


def _state_set(request: Any) -> int | None:
    if request.stage == abi.Stage.EXECUTE:
        return _error(abi.Code.INVALID_ARGUMENT, b"the execute stage leaves no state")
    memory, kind, state = _place_of_state(request)
    if getattr(memory, kind):
        return _error(abi.Code.ALREADY_EXISTS, b"the state of this stage is set already")
    setattr(memory, kind, request.type_id[0])
    setattr(memory, state, request.state)
    return None


def _state_get(request: Any) -> int | None:
    memory, kind, state = _place_of_state(request)
    if not getattr(memory, kind):
        return _error(abi.Code.NOT_FOUND, b"there is no state: no handler of that stage set one")
    if getattr(memory, kind) != request.type_id[0]:
        return _error(abi.Code.INVALID_ARGUMENT, b"the state is of another type")
    request.state = getattr(memory, state)
    return None


def _allocate(request: Any) -> None:
    alignment = max(request.alignment, 1)
    block = ctypes.create_string_buffer(request.size + alignment)
    begin = ctypes.addressof(block)
    request.data = begin + -begin % alignment
    _memory[request.data] = block


def _free(request: Any) -> None:
    _memory.pop(request.data, None)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), "tracejit-ffi")


def _schedule(request: Any) -> None:
    _threads().submit(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(request.task), request.data)


def _number_of_threads(request: Any) -> None:
    request.count[0] = thread_count()


def _future_create(request: Any) -> None:
    number = next(_numbers)
    _futures[number] = Future()
    request.future = number


def _future_set_available(request: Any) -> None:
    _futures[request.future].set_result(None)


def _future_set_error(request: Any) -> None:
    _futures[request.future].set_exception(_Failed(request.error))


def _run_id_get(request: Any) -> None:
    request.run = abi.Run.from_address(request.context).number


def _device_ordinal_get(request: Any) -> None:
    request.ordinal = 0


_FUNCTIONS: dict[str, Callable[[Any], int | None]] = {
    "Error_Create": _error_create,
    "Error_GetMessage": _error_get_message,
    "Error_Destroy": _error_destroy,
    "Handler_Register": _handler_register,
    "Stream_Get": _stream_get,
    "Type_Register": _type_register,
    "ExecutionContext_Get": _context_get,
    "State_Set": _state_set,
    "State_Get": _state_get,
    "DeviceMemory_Allocate": _allocate,
    "DeviceMemory_Free": _free,
    "ThreadPool_Schedule": _schedule,
    "ThreadPool_NumThreads": _number_of_threads,
    "Future_Create": _future_create,
    "Future_SetAvailable": _future_set_available,
    "Future_SetError": _future_set_error,
    "RunId_Get": _run_id_get,
    "DeviceOrdinal_Get": _device_ordinal_get,
}


def _entry(name: str) -> Any:
    request, function = abi.REQUESTS[name], _FUNCTIONS[name]

    def call(address: int) -> int | None:
        try:
            return function(request.from_address(address))
        except Exception as error:  # C code cannot pass it on
            return _error(abi.Code.INTERNAL, f"{name}: {type(error).__name__}: {error}".encode())

    return abi.Handler(call)


@functools.cache
def api() -> Any:
    """The table of these functions. Its address stays the same as long as the process lives."""
    version = abi.made(abi.Version, major=abi.MAJOR, minor=abi.MINOR)
    return abi.made(abi.Api, version=version, **{name: _entry(name) for name in _FUNCTIONS})


def api_address() -> int:
    """Where the table of the interface's functions lies."""
    return ctypes.addressof(api())
