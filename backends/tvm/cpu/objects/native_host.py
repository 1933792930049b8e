"""What handlers of XLA's FFI call back, as a program and as an object file; see `native_api`.

build(CPU)                          a program whose result is the addresses of `abi.FUNCTIONS`
write_object(processor, folder)     an object file for an exported library
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from tracejit.backends import native_abi
from tracejit.backends.abi import ENTRY, LAYOUT, ArraySpec
from tracejit.backends.artifact import Artifact, InProcess, pack
from tracejit.backends.scratch import roomy_folders
from tracejit.backends.target import Target
from tracejit.backends.tvm.cpu.llvm.native_api import native_api
from tracejit.backends.tvm.cpu.llvm.shared_procedures import LlvmUnit
from tracejit.backends.tvm.cpu.objects.in_process import entry_of_text
from tracejit.backends.tvm.cpu.objects.linker import can_link, linked
from tracejit.backends.tvm.cpu.processor import Processor, processor_of


def build(target: Target) -> bytes | InProcess:
    """The functions as a program without inputs, for this machine; see `build.build`."""
    processor = processor_of(target)
    result = ArraySpec(np.dtype(np.int64), (len(native_abi.FUNCTIONS),))
    artifact = Artifact([], [result], [], 0, [])
    text = native_api(processor) + _entry()
    room = next(roomy_folders(), None)
    if can_link() and room is not None:
        with tempfile.TemporaryDirectory(prefix="tracejit-", dir=room) as name:
            file = Path(name, "host.o")
            file.write_bytes(LlvmUnit(text, processor).compile(file.parent))
            library = linked([file])
        if library is not None:
            return pack(library, artifact)
    return InProcess(entry_of_text(text, processor), artifact)


def write_object(target: Processor, folder: Path) -> Path:
    """An object file in ``folder`` with the functions."""
    file = folder / "native_api.o"
    file.write_bytes(LlvmUnit(native_api(target), target).compile(folder))
    return file


def _entry() -> str:
    """The program: it stores the addresses in the result, the second item of its tuple."""
    stores = [
        f"  %at{number} = getelementptr ptr, ptr %data, i64 {number}\n"
        f"  store ptr @tracejit_ffi_{name}, ptr %at{number}"
        for number, name in enumerate(native_abi.FUNCTIONS)
    ]
    lines = [
        f"define i32 @{ENTRY}(ptr %tuple) {{",
        f"  %item = getelementptr i8, ptr %tuple, i64 {LAYOUT.items + native_abi.WORD}",
        "  %array = load ptr, ptr %item",
        f"  %data_at = getelementptr i8, ptr %array, i64 {LAYOUT.data}",
        "  %data = load ptr, ptr %data_at",
        *stores,
        "  ret i32 0",
        "}",
        "",
    ]
    return "\n".join(lines)
