"""An emulated CUDA device: look-alikes of the driver, NVRTC and cuBLASLt, made by g++.

    with pytest: the fixture `emulated` of conftest.py
    environment()      # variables under which a process finds the look-alikes

`Emulator` says in which order threads run, and what was reported of the kernels that ran.
"""

from __future__ import annotations

import atexit
import ctypes
import platform
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tracejit.cuda import cublas, nvrtc
from tracejit.cuda import driver as drivers

SOURCES = Path(__file__).parent / "emulator"
LACKING = "" if shutil.which("g++") else "g++ is not installed, which makes the emulated device"
if (sys.platform, platform.machine()) != ("linux", "x86_64"):
    LACKING = "the emulated device switches threads in assembler of x86-64 Linux"


@cache
def libraries() -> Path:
    """The folder of the look-alikes, built once for each process."""
    folder = Path(tempfile.mkdtemp(prefix="tracejit-emulated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for made, sources, level in (
        ("libcuda.so.1", ["emulator.cpp", "driver.cpp"], "-O2"),
        ("libnvrtc.so", ["compiler.cpp"], "-O0"),
        ("libcublasLt.so", ["cublas.cpp"], "-O1"),
    ):
        words = ["g++", "-std=c++17", level, "-fPIC", "-shared", *sources, "-o", str(folder / made)]
        subprocess.run([*words, "-ldl"], cwd=SOURCES, check=True)
    return folder


def environment() -> dict[str, str]:
    """What a process must find in its environment to work on the emulated devices.

    Products are computed by kernels of our own; `with_cublas` has the look-alike of cuBLASLt.
    """
    return {
        drivers.VARIABLE: str(libraries() / "libcuda.so.1"),
        nvrtc.VARIABLE: str(libraries() / "libnvrtc.so"),
        "EMULATED_HEADERS": str(SOURCES),
        cublas.VARIABLE: "none",
    }


def with_cublas() -> dict[str, str]:
    """The same, where cuBLASLt is installed."""
    return {**environment(), cublas.VARIABLE: str(libraries() / "libcublasLt.so")}


class Emulator:
    """The emulated devices of this process."""

    def __init__(self) -> None:
        self._library = drivers.driver().library
        self._library.emulated_report.restype = ctypes.c_char_p

    @property
    def order(self) -> int:
        """In which order threads and blocks run: 0 rising, 1 falling, others are seeds."""
        return ctypes.c_uint.in_dll(self._library, "emulated_order").value

    @order.setter
    def order(self, value: int) -> None:
        ctypes.c_uint.in_dll(self._library, "emulated_order").value = value

    @property
    def launches(self) -> int:
        """How many kernels have run."""
        return ctypes.c_uint.in_dll(self._library, "emulated_launches").value

    @property
    def graphs(self) -> int:
        """How many graphs were launched."""
        return ctypes.c_uint.in_dll(self._library, "emulated_graphs").value

    def reports(self) -> list[str]:
        """What was found in kernels since this was asked before."""
        found: list[str] = []
        while (text := self._library.emulated_report(len(found))) is not None:
            found.append(text.decode())
        self._library.emulated_forget()
        return found
