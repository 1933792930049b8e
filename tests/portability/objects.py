"""Object files of samples for the systems that this one is not, read by LLVM's own reader.

    python -m tests.portability.objects x86_64-pc-windows-msvc STEP

Prints one line for each sample: its op, how many files LLVM has read, and what it calls them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    os.environ["TRACEJIT_CACHE"] = "0"

from tests.lowered import lower
from tests.samples.cases import all_samples, joint_module
from tests.samples.values import element_types
from tracejit.backends.target import Target
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.objects.build import _program_objects
from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels
from tracejit.backends.tvm.cpu.objects.tir_pipeline import contents
from tracejit.backends.tvm.cpu.processor import Processor, processor_of
from tracejit.graph import Module

READER = ["llvm-readobj", "--file-headers", "--sections", "--relocations", "--symbols"]


def target_of(triple: str) -> Processor:
    """A processor of the system that LLVM calls ``triple``."""
    processor = "apple-m1" if triple.startswith("arm64") else "x86-64-v3"
    return replace(processor_of(Target(f"cpu:{processor}")), triple=triple)


def read(module: Module, target: Processor) -> list[str]:
    """What LLVM reads of each object file of a module. Raises where it cannot."""
    program = fold_identical_kernels(lower(module.entry, target.machine, aliases_of(module)))
    held = {kernel.name: contents(kernel.body) for kernel in program.kernels}
    with tempfile.TemporaryDirectory() as folder:
        files = _program_objects(program, held, target, Path(folder), None)
        return [
            subprocess.run([*READER, file], check=True, capture_output=True, text=True).stdout
            for file in files
        ]


def main() -> None:
    """Reads one sample in ``STEP``."""
    triple, step = sys.argv[1], int(sys.argv[2])
    target = target_of(triple)
    for sample in all_samples()[::step]:
        said = read(joint_module(sample, element_types(sample)), target)
        formats = {
            line.split()[1] for text in said for line in text.splitlines() if "Format:" in line
        }
        has_entry = any("tracejit_main" in text for text in said)
        print(sample.op, len(said), *sorted(formats), "entry" if has_entry else "no entry")


if __name__ == "__main__":
    main()
