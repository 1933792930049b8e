"""The plain target: kernels printed as C, compiled by the C compiler, called one by one."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tracejit.backends.artifact import Artifact, InProcess
from tracejit.backends.tvm.plain import target as plain
from tracejit.backends.tvm.plain.functions import PREAMBLE, helpers
from tracejit.backends.tvm.plain.printer import function
from tracejit.backends.tvm.program.program import Program
from tracejit.backends.tvm.target.host_calls import (
    ONLY_ON_HOSTS,
    HostCall,
    HostLibraries,
    host_call_of,
)
from tracejit.backends.tvm.target.launch import Entry, Kernels, host_loop
from tracejit.backends.tvm.target.memory_spaces import HostMemory
from tracejit.backends.tvm.target.target import Progress
from tracejit.runtime.host_op_callback import evaluate_at


def build(program: Program, progress: Progress | None) -> InProcess:
    """Every kernel as a function of C; nothing is kept."""
    program.check()
    calls = {kernel.name: host_call_of(kernel) for kernel in program.kernels}
    compiled = [kernel for kernel in program.kernels if calls[kernel.name] is None]
    called: dict[str, str] = {}
    kernels_text = [function(kernel, called) for kernel in compiled]
    text = "\n".join([*called.values(), *kernels_text])
    text = PREAMBLE + helpers(text) + text
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernels.c"), Path(folder, "kernels.so")
        source.write_text(text, encoding="utf-8")
        flags = ["-std=gnu11", "-O0", "-fwrapv", "-fno-strict-aliasing", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, source, "-o", library, "-lm"], check=True)
        loaded = ctypes.CDLL(str(library))
    kernels: dict[str, Callable[..., object]] = {
        name: partial(_called, call) for name, call in calls.items() if call is not None
    }
    for kernel in compiled:
        kernels[kernel.name] = native = loaded[kernel.name]
        native.argtypes = [ctypes.c_void_p] * len(kernel.parameters)
    artifact = Artifact(
        program.inputs,
        program.outputs,
        program.constants,
        program.workspace_bytes,
        [],
        aliases=program.aliases,
    )
    return InProcess(launch(program, kernels), artifact)


def _called(call: HostCall, *addresses: int) -> None:
    """Computes a kernel that is a call of the host."""
    evaluate_at(call.text, *(addresses[number] for number in call.parameters))


def launch(program: Program, kernels: Kernels) -> Entry:
    return host_loop(program, kernels, HostMemory())


PLAIN = replace(plain.PLAIN, libraries=HostLibraries(ONLY_ON_HOSTS), build=build, launch=launch)
