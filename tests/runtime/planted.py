"""What a compiler may do besides compiling: functions for a process that compiles for another."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from tracejit.errors import UnsupportedError
from tracejit.sources import Source, warn


def abort(*_: object, **__: object) -> NoReturn:
    print("LLVM ERROR: planted", file=sys.stderr, flush=True)
    os.abort()


def segfault(*_: object, **__: object) -> None:
    ctypes.string_at(0)


def endless_loop(*_: object, **__: object) -> None:
    while True:
        time.sleep(0.01)


def leave(*_: object, **__: object) -> None:
    os._exit(3)


def cannot_select(*_: object, **__: object) -> None:
    """LLVM's own abort: an instruction that the target does not have."""
    import tvm

    text = """
    target triple = "x86_64-unknown-linux-gnu"
    declare <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float>, <16 x float>, i16)
    define void @f(ptr %p) {
      %x = load <16 x float>, ptr %p
      %y = call <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float> %x, <16 x float> %x, i16 -1)
      store <16 x float> %y, ptr %p
      ret void
    }
    !llvm.module.flags = !{!0}
    !0 = !{i32 2, !"tvm_target", !"TARGET"}
    """
    target = tvm.target.Target(
        {"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu", "mcpu": "x86-64"}
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "text.ll")
        file.write_text(text.replace("TARGET", str(target).replace('"', "\\22")))
        module = tvm.get_global_func("ffi.Module.load_from_file.ll")(str(file), "ll")
        module.write_to_file(str(file.with_suffix(".o")), "o")


def refuse(*_: object, **__: object) -> NoReturn:
    raise UnsupportedError("planted: refused", Source("train.py", 42))


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("planted")


def warn_of_it(*_: object, **__: object) -> int:
    warn("planted", RuntimeWarning)
    return 5


def say(value: Any, *, progress: Any = None) -> Any:
    """The value, after some progress; with the environment variable and the process."""
    if progress is not None:
        progress(1, 2)
        progress(2, 2)
    return value, os.environ.get("PLANTED"), os.getpid()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
