"""CUDA C to machine code by NVRTC, which needs neither a device nor a driver.

    binary = compiler().compile(source, "sm_90a")
    binary.cubin, binary.kernels["k0"].registers

The library is that of the package ``nvidia-cuda-nvrtc`` (``pip install tracejit[cuda]``), or what
the environment variable ``TRACEJIT_LIBNVRTC`` names.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tracejit.cuda.libraries import candidates, chosen
from tracejit.errors import CompilationError

VARIABLE = "TRACEJIT_LIBNVRTC"
"""The environment variable that names NVRTC's library."""

OPTIONS = ("--std=c++17", "--fmad=false", "--ptxas-options=-v")
"""Products are rounded before they are added, as on the CPU; formulas ask for fused ones."""


_FILES = "cu*/lib/libnvrtc.so.*", "cuda_nvrtc/lib/libnvrtc.so.*"
_NAMES = "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"


@dataclass(frozen=True)
class KernelUse:
    """What a kernel takes of a multiprocessor: registers of a thread, and bytes."""

    registers: int
    shared_bytes: int = 0
    spilled_bytes: int = 0


@dataclass(frozen=True)
class Binary:
    """Machine code for one architecture, with what the compiler says of each kernel by name."""

    cubin: bytes
    log: str
    kernels: Mapping[str, KernelUse]


class Compiler:
    """NVRTC's library."""

    def __init__(self, library: ctypes.CDLL, path: str) -> None:
        self.path = path
        self._library = library
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = major.value, minor.value

    def compile(self, source: str, arch: str, options: Sequence[str] = ()) -> Binary:
        """The machine code of CUDA C for an architecture such as ``sm_90a``.

        Raises `CompilationError` with the compiler's messages.
        """
        binary, log = self._compiled(source, [f"--gpu-architecture={arch}", *options], "CUBIN")
        return Binary(binary, log, kernel_uses(log))

    def ptx(self, source: str, arch: str) -> str:
        """The PTX of CUDA C for an architecture such as ``sm_90a``."""
        virtual = arch.replace("sm_", "compute_")
        text, _ = self._compiled(source, [f"--gpu-architecture={virtual}"], "PTX")
        return text.rstrip(b"\0").decode()

    def architectures(self) -> list[int]:
        """The compute capabilities that code can be made for, such as 90 for 9.0."""
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(found)
        return [*found]

    def _compiled(self, source: str, options: Sequence[str], kind: str) -> tuple[bytes, str]:
        library, program = self._library, ctypes.c_void_p()
        given = source.encode(), b"tracejit.cu", 0, None, None
        self._require(library.nvrtcCreateProgram(ctypes.byref(program), *given), "")
        try:
            words = [word.encode() for word in (*OPTIONS, *options)]
            array = (ctypes.c_char_p * len(words))(*words)
            status = library.nvrtcCompileProgram(program, len(words), array)
            log = self._bytes("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
            self._require(status, log)
            return self._bytes(kind, program), log
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._require(
            getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), ""
        )
        text = ctypes.create_string_buffer(size.value)
        self._require(getattr(self._library, f"nvrtcGet{what}")(program, text), "")
        return text.raw

    def _require(self, status: int, log: str) -> None:
        if not status:
            return
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        name = self._library.nvrtcGetErrorString(status).decode()
        said = [line for line in log.splitlines() if "error" in line] or log.splitlines()
        raise CompilationError(f"cuda: NVRTC refuses the code: {name}\n" + "\n".join(said[:20]))


def kernel_uses(log: str) -> dict[str, KernelUse]:
    """What NVRTC's log says of each kernel, by name."""
    parts = re.split(r"Compiling entry function '(\w+)'[^\n]*", log)[1:]

    def number(words: str, text: str) -> int:
        found = re.search(rf"(\d+) {words}", text)
        return int(found[1]) if found else 0

    return {
        name: KernelUse(
            number("registers", said),
            number("bytes smem", said),
            number("bytes spill stores", said),
        )
        for name, said in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def compiler() -> Compiler:
    """NVRTC. Raises `CompilationError` where it is not installed."""
    for path in candidates(VARIABLE, _FILES, _NAMES):
        try:
            return Compiler(ctypes.CDLL(path), path)
        except OSError as error:
            if chosen(VARIABLE):
                raise CompilationError(f"cuda: {VARIABLE}: {error}") from None
    raise CompilationError(
        "cuda: NVRTC, which compiles kernels, is not installed: pip install 'tracejit[cuda]'"
    )
