"""The structures of XLA's FFI, version 0.3 of its C interface, for ctypes; how they are called.

Source: ``xla/ffi/api/c_api.h``, which jaxlib ships. Each structure begins with its own size; a
pointer to a chain of extensions follows, which is null but for `Metadata`.

Compiled code calls a handler by a `Record` of the call, which the runtime fills when it loads the
program. It copies the call's frame (`FrameLayout`) to the stack, sets the pointers to the arrays'
memory, and calls the record's stages in order; the runtime's functions in the record are called for
an error, a future, and states that end with the run.
"""

from __future__ import annotations

import ctypes
import enum
from dataclasses import dataclass
from typing import Any

from tracejit.shapes import ElementType

MAJOR, MINOR = 0, 3


class DataType(enum.IntEnum):
    """Numbers of element types; those of `ElementType` by the same name in lower case."""

    PRED = 1
    S8 = 2
    S16 = 3
    S32 = 4
    S64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    F16 = 10
    F32 = 11
    F64 = 12
    C64 = 15
    BF16 = 16
    TOKEN = 17
    C128 = 18
    F8E5M2 = 19
    F8E4M3FN = 20
    S4 = 21
    U4 = 22
    F8E4M3B11FNUZ = 23
    F8E5M2FNUZ = 24
    F8E4M3FNUZ = 25
    F8E4M3 = 28
    F8E3M4 = 29
    S2 = 26
    U2 = 27
    S1 = 30
    U1 = 31
    F4E2M1FN = 32
    F8E8M0FNU = 33


class Code(enum.IntEnum):
    """What an error is; 0 is none."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Stage(enum.IntEnum):
    """When a handler is called: once for a call in a program, or in every run."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class AttributeType(enum.IntEnum):
    """What an attribute's structure is."""

    ARRAY = 1
    DICTIONARY = 2
    SCALAR = 3
    STRING = 4


BUFFER = 1
"""The only type of arguments and of results."""

METADATA = 1
"""The only type of extensions."""


def data_type(element_type: ElementType) -> int:
    """The number of an element type. Raises `KeyError` for one that the interface lacks."""
    return DataType[element_type.name].value


def _structure(name: str, *fields: tuple[str, Any], begins: bool = True) -> type[ctypes.Structure]:
    head = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": [*(head if begins else []), *fields]})


def made(kind: type[ctypes.Structure], **fields: Any) -> Any:
    """A structure that says its own size, which ends a `CallFrame` before its future."""
    end = getattr(kind, "future", None) if kind.__name__ == "CallFrame" else None
    return kind(struct_size=ctypes.sizeof(kind) if end is None else end.offset, **fields)


_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_LONG = ctypes.c_int64

Version = _structure("Version", ("major", _INT), ("minor", _INT))
ByteSpan = _structure("ByteSpan", ("data", _POINTER), ("size", _SIZE), begins=False)
Scalar = _structure("Scalar", ("dtype", _INT), ("value", _POINTER), begins=False)
Array = _structure("Array", ("dtype", _INT), ("size", _SIZE), ("data", _POINTER), begins=False)
Buffer = _structure(
    "Buffer", ("dtype", _INT), ("data", _POINTER), ("rank", _LONG), ("dimensions", _POINTER)
)
Arguments = _structure("Arguments", ("size", _LONG), ("types", _POINTER), ("values", _POINTER))
Attributes = _structure(
    "Attributes", ("size", _LONG), ("types", _POINTER), ("names", _POINTER), ("values", _POINTER)
)
TypeInfo = _structure("TypeInfo", ("delete", _POINTER))
CallFrame = _structure(
    "CallFrame",
    ("api", _POINTER),
    ("context", _POINTER),
    ("stage", _INT),
    ("arguments", Arguments),
    ("results", Arguments),
    ("attributes", Attributes),
    ("future", _POINTER),
)
Metadata = type(
    "Metadata",
    (ctypes.Structure,),
    {
        "_fields_": [
            ("struct_size", _SIZE),
            ("version", Version),
            ("traits", ctypes.c_uint32),
            ("state_type", _LONG),
        ]
    },
)
MetadataExtension = type(
    "MetadataExtension",
    (ctypes.Structure,),
    {
        "_fields_": [
            ("struct_size", _SIZE),
            ("type", _INT),
            ("next", _POINTER),
            ("metadata", _POINTER),
        ]
    },
)

Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
"""A handler, and every function that a handler calls back: from a structure to an error or null."""

# The structures that handlers pass to the functions of the interface, by the function.
REQUESTS: dict[str, type[ctypes.Structure]] = {
    "Error_Create": _structure("ErrorCreate", ("message", ctypes.c_char_p), ("code", _INT)),
    "Error_GetMessage": _structure(
        "ErrorGetMessage", ("error", _POINTER), ("message", ctypes.c_char_p)
    ),
    "Error_Destroy": _structure("ErrorDestroy", ("error", _POINTER)),
    "Handler_Register": _structure(
        "HandlerRegister",
        ("name", ByteSpan),
        ("platform", ByteSpan),
        ("bundle", _POINTER * 4),
        ("traits", ctypes.c_uint32),
    ),
    "Stream_Get": _structure("StreamGet", ("context", _POINTER), ("stream", _POINTER)),
    "Type_Register": _structure(
        "TypeRegister",
        ("name", ByteSpan),
        ("type_id", ctypes.POINTER(_LONG)),
        ("info", _POINTER),
    ),
    "ExecutionContext_Get": _structure(
        "ExecutionContextGet",
        ("context", _POINTER),
        ("type_id", ctypes.POINTER(_LONG)),
        ("data", _POINTER),
    ),
    "State_Set": _structure(
        "StateSet",
        ("context", _POINTER),
        ("stage", _INT),
        ("type_id", ctypes.POINTER(_LONG)),
        ("state", _POINTER),
    ),
    "State_Get": _structure(
        "StateGet",
        ("context", _POINTER),
        ("stage", _INT),
        ("type_id", ctypes.POINTER(_LONG)),
        ("state", _POINTER),
    ),
    "DeviceMemory_Allocate": _structure(
        "DeviceMemoryAllocate",
        ("context", _POINTER),
        ("size", _SIZE),
        ("alignment", _SIZE),
        ("data", _POINTER),
    ),
    "DeviceMemory_Free": _structure(
        "DeviceMemoryFree", ("context", _POINTER), ("size", _SIZE), ("data", _POINTER)
    ),
    "ThreadPool_Schedule": _structure(
        "ThreadPoolSchedule", ("context", _POINTER), ("task", _POINTER), ("data", _POINTER)
    ),
    "ThreadPool_NumThreads": _structure(
        "ThreadPoolNumThreads", ("context", _POINTER), ("count", ctypes.POINTER(_LONG))
    ),
    "Future_Create": _structure("FutureCreate", ("future", _POINTER)),
    "Future_SetAvailable": _structure("FutureSetAvailable", ("future", _POINTER)),
    "Future_SetError": _structure("FutureSetError", ("future", _POINTER), ("error", _POINTER)),
    "RunId_Get": _structure("RunIdGet", ("context", _POINTER), ("run", _LONG)),
    "DeviceOrdinal_Get": _structure(
        "DeviceOrdinalGet", ("context", _POINTER), ("ordinal", ctypes.c_int32)
    ),
}

Api = _structure(
    "Api",
    ("version", Version),
    ("internal", _POINTER),
    *((name, Handler) for name in REQUESTS),
)


class Record(ctypes.Structure):
    """A call in a loaded program: what compiled code reads, and the state of its instance.

    ``frame`` is copied for each run. ``settle(run, error, future)`` returns 1 if a handler that
    returned these did not fail; ``end(run)`` deletes the states that prepare and initialize left.
    ``host`` is a `Host`.
    """

    _fields_ = (
        ("execute", _POINTER),
        ("prepare", _POINTER),
        ("initialize", _POINTER),
        ("frame", _POINTER),
        ("settle", _POINTER),
        ("end", _POINTER),
        ("runs", _LONG),
        ("state_type", _LONG),
        ("state", _POINTER),
        ("number", _LONG),
        ("host", _POINTER),
    )


class Run(ctypes.Structure):
    """The context of one run of a call: handlers are given its address."""

    _fields_ = (
        ("record", _POINTER),
        ("number", _LONG),
        ("prepared_type", _LONG),
        ("prepared", _POINTER),
        ("initialized_type", _LONG),
        ("initialized", _POINTER),
    )


MOST_TYPES = 1024
MOST_THREADS = 64
_LOCK = _LONG * 8
"""As long as a mutex or a condition variable of POSIX is on any system."""


class Error(ctypes.Structure):
    """What handlers return: a `Code` and a message, which ends in a zero."""

    _fields_ = (("code", ctypes.c_int32), ("message", ctypes.c_char))


class Future(ctypes.Structure):
    """The end of a handler that goes on after it has returned."""

    _fields_ = (("mutex", _LOCK), ("changed", _LOCK), ("done", _LONG), ("error", _POINTER))


class Task(ctypes.Structure):
    """What a thread of the pool has to do: ``run(data)``."""

    _fields_ = (("next", _POINTER), ("run", _POINTER), ("data", _POINTER))


class Host(ctypes.Structure):
    """The pool of threads, the deleters of states by type, and the function that takes errors.

    ``fail(run, error)`` owns the error. ``type_ids`` has the addresses of the numbers of ``types``
    types, some of them null. Up to ``most`` threads take tasks from the list that begins
    with ``first``, of ``waiting`` tasks; ``idle`` of ``count`` threads wait for one.
    """

    _fields_ = (
        ("fail", _POINTER),
        ("most", _LONG),
        ("types", _LONG),
        ("type_ids", _POINTER * MOST_TYPES),
        ("deleters", _POINTER * MOST_TYPES),
        ("mutex", _LOCK),
        ("wake", _LOCK),
        ("first", _POINTER),
        ("last", _POINTER),
        ("waiting", _LONG),
        ("idle", _LONG),
        ("count", _LONG),
        ("stopping", _LONG),
        ("threads", _POINTER * MOST_THREADS),
    )


OF_HOST = ("Handler_Register", "Type_Register")
"""The functions of `Api` that are no machine code, since they are called when a library is
loaded."""

FUNCTIONS = (
    *(name for name in REQUESTS if name not in OF_HOST),
    "settle",
    "end",
    "delete",
    "reset",
    "wait",
    "call_address",
)
"""The functions in machine code, by their names after ``tracejit_ffi_``; the last six are for
programs and for whoever loads them."""

WORD = 8
RECORD_WORDS = ctypes.sizeof(Record) // WORD
RUN_WORDS = ctypes.sizeof(Run) // WORD


@dataclass(frozen=True)
class FrameLayout:
    """Byte offsets in the memory of a frame: a `CallFrame`, pointers to its buffers, the buffers.

    Arguments come before results. Pointers from the memory into itself are set in each copy.
    """

    arguments: int
    results: int

    @property
    def count(self) -> int:
        return self.arguments + self.results

    def pointer(self, buffer: int) -> int:
        """Where the address of a buffer's structure is."""
        return ctypes.sizeof(CallFrame) + WORD * buffer

    def buffer(self, number: int) -> int:
        """Where a buffer's structure is."""
        return self.pointer(self.count) + ctypes.sizeof(Buffer) * number

    def data(self, number: int) -> int:
        """Where the address of a buffer's elements is."""
        return self.buffer(number) + int(Buffer.data.offset)

    @property
    def size(self) -> int:
        return self.buffer(self.count)

    def own_pointers(self) -> dict[int, int]:
        """What is set in a copy of the memory: where, and to which offset in it."""
        values = int(Arguments.values.offset)
        own = {self.pointer(number): self.buffer(number) for number in range(self.count)}
        own[int(CallFrame.arguments.offset) + values] = self.pointer(0)
        own[int(CallFrame.results.offset) + values] = self.pointer(self.arguments)
        return own
