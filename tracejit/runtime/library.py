"""TVM's runtime without TVM: load compiled programs through two C libraries, in milliseconds.

`import tvm` takes half a second, and a second more where PyTorch is installed. A program that lies
in the disk cache needs neither that nor the compiler, only ``libtvm_ffi`` and ``libtvm_runtime``,
which are reached here through their documented C interface.
"""

from __future__ import annotations

import _ctypes
import ctypes
import functools
import importlib.util
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tracejit.backends.abi import ENTRY
from tracejit.backends.machine import thread_count
from tracejit.errors import CompilationError
from tracejit.loading import uninterrupted
from tracejit.system import after_fork, library_name

Entry = Callable[[int], int]
"""Runs a program on the tuple of arrays at an address, as `abi` says: 0, or -1 if it failed."""

RAW_STRING = 8  # kTVMFFIRawStr
INTEGER, BOOLEAN, FLOAT, POINTER = 1, 2, 3, 4  # kTVMFFIInt and its neighbours


class AnyValue(ctypes.Structure):
    """TVMFFIAny: a tag and eight bytes."""

    _fields_ = (
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("bits", ctypes.c_int64),
    )


class ByteArray(ctypes.Structure):
    """TVMFFIByteArray: bytes and their number."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _ErrorCell(ctypes.Structure):
    """TVMFFIErrorCell, as far as it is read."""

    _fields_ = (("kind", ByteArray), ("message", ByteArray))


_OBJECT_HEADER = 24  # sizeof(TVMFFIObject)


SPIN_COUNT = 30_000
"""How often a thread of TVM's pool yields before it sleeps: for about 10 ms on an idle machine.

A call within that time finds the threads awake; it takes about 70 us longer otherwise. A thread
that yields does not see the end of the process: with TVM's 300,000 that took a second on a busy
machine, and 6 to 45 with 64 threads.
"""


class Runtime:
    """The loaded libraries; `runtime` makes the only one."""

    def __init__(self) -> None:
        # As we understand what the user chose; TVM reads a word that is no number as zero.
        os.environ["TVM_NUM_THREADS"] = str(thread_count())
        # Otherwise TVM pins its threads, and the thread that calls it, to the first cores of the
        # machine, whichever the process was given.
        os.environ.setdefault("TVM_BIND_THREADS", "0")
        os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", str(SPIN_COUNT))
        self.ffi, self.backend = (
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL) for path in library_paths()
        )
        # Not by the end of the name: a path by which an open file is loaded has none.
        self._load = self.function("ffi.Module.load_from_file.so")
        after_fork(self._run_serially)

    def function(self, name: str) -> ctypes.c_void_p:
        """A function of TVM's registry."""
        found = ctypes.c_void_p()
        self.check(self.ffi.TVMFFIFunctionGetGlobal(_bytes(name), ctypes.byref(found)))
        return found

    def check(self, status: int) -> None:
        """Raise `CompilationError` with TVM's message if a call failed."""
        if status != 0:
            raise CompilationError(f"TVM's runtime failed: {self.message()}")

    def message(self) -> str:
        """What the last failure of this thread said, which it then forgets."""
        error = ctypes.c_void_p()
        self.ffi.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
        if not error.value:
            return "no reason given"
        cell = _ErrorCell.from_address(error.value + _OBJECT_HEADER)
        kind, text = (ctypes.string_at(b.data, b.size) for b in (cell.kind, cell.message))
        self.ffi.TVMFFIObjectDecRef(error)
        return f"{kind.decode()}: {text.decode(errors='replace')}"

    def load(self, path: Path | str) -> tuple[Entry, ctypes.CDLL]:
        """The entry and the library of an artifact on disk, loaded as long as either is held.

        Raises `OSError` if the system cannot load the file, or finds no entry in it.
        """
        library = self.load_library(path)
        try:
            function = library[ENTRY]
        except AttributeError as error:
            raise OSError(str(error)) from None
        function.restype = ctypes.c_int
        function.argtypes = [ctypes.c_void_p]
        return function, library

    def load_library(self, path: Path | str) -> ctypes.CDLL:
        """A library of kernels, loaded as long as it or a function of it is held.

        Raises `OSError` if the system cannot load the file.
        """
        library = ctypes.CDLL(str(path))  # first, to bind every symbol now and not at its first use
        name = ctypes.create_string_buffer(os.fsencode(path))
        kind = ctypes.create_string_buffer(b"so")
        given = (AnyValue * 2)(
            *(AnyValue(RAW_STRING, 0, ctypes.addressof(w)) for w in (name, kind))
        )
        result = AnyValue()  # a reference to the module
        call = self.ffi.TVMFFIFunctionCall
        self.check(call(self._load, given, 2, ctypes.byref(result)))
        # Functions hold their library, and whoever runs one holds it.
        unloading = weakref.finalize(library, self._unload, library._handle, result.bits)
        unloading.atexit = False
        return library

    def _unload(self, library: int, module: int) -> None:
        self.ffi.TVMFFIObjectDecRef(ctypes.c_void_p(module))
        _ctypes.dlclose(library)

    def load_rest(self) -> None:
        """Load what compiled programs do not need, and `import tvm` does; it may be missing."""
        with suppress(CompilationError, OSError):
            ctypes.CDLL(str(_library_path("tvm", "tvm_runtime_extra")))

    def _run_serially(self) -> None:
        """After a fork the pool's threads exist no more, and waiting for them would be forever."""
        self.backend["_ZN3tvm7runtime9threading17SetMaxConcurrencyEi"](1)


_LOCK = threading.Lock()
_runtime: list[Runtime] = []


def runtime() -> Runtime:
    """The runtime, loaded on the first call.

    What handles a signal may ask for it too, so it waits until the runtime is there. Raises
    `CompilationError` where TVM is not installed.
    """
    if _runtime:
        return _runtime[0]
    with uninterrupted(), _LOCK:
        if not _runtime:
            _runtime.append(Runtime())
        return _runtime[0]


def library_paths() -> tuple[Path, Path]:
    """``libtvm_ffi`` and ``libtvm_runtime``, in packages that are found but not imported.

    Raises `CompilationError` where one is not installed.
    """
    return _library_path("tvm_ffi", "tvm_ffi"), _library_path("tvm", "tvm_runtime")


def compiler_path() -> Path:
    """``libtvm_compiler``, which makes the code. Raises `CompilationError` without it."""
    return _library_path("tvm", "tvm_compiler")


@functools.cache
def _library_path(package: str, name: str) -> Path:
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        path = Path(folder, "lib", library_name(name))
        if path.exists():
            return path
    raise CompilationError(f"{library_name(name)} was not found: is {package} installed?")


def _bytes(text: str) -> Any:
    data = text.encode()
    return ctypes.byref(ByteArray(data, len(data)))
