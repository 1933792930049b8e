"""LLVM makes code of every op for every kind of processor, and no instructions that one lacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.portability.compiling import DONE, FAILED, STARTED, foreign_intrinsics
from tracejit.backends.target import Target
from tracejit.backends.tvm.cpu.processor import processor_of

PROCESSORS = (
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "znver3",
    "alderlake",
    "sapphirerapids",
    "neoverse-n1",
    "neoverse-v1",
    "apple-m1",
    "riscv64",
)

ONE_IN = 160
"""The share of the programs that are compiled for each processor, unless all are asked for."""


@pytest.mark.parametrize("processor", PROCESSORS)
def test_everything_compiles(processor: str, exhaustive: bool) -> None:
    step = 1 if exhaustive else ONE_IN
    offset = PROCESSORS.index(processor) * step // len(PROCESSORS)
    command = [sys.executable, "-m", "tests.portability.compiling", processor]
    done = subprocess.run(
        [*command, str(offset), str(step)], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith(FAILED)]
    assert done.returncode == 0, f"{lines[-1:]} ended the process:\n{done.stderr[-2000:]}"
    assert lines[-1] == DONE
    assert len([line for line in lines if line.startswith(STARTED)]) >= 3


@pytest.mark.parametrize(
    ("processor", "name", "suits"),
    [
        ("x86-64-v4", "x86.avx512.permvar.si.512", True),
        ("x86-64-v3", "x86.avx512.permvar.si.512", False),
        ("x86-64-v3", "x86.avx2.permd", True),
        ("x86-64-v2", "x86.avx2.permd", False),
        ("x86-64-v2", "x86.ssse3.pshuf.b.128", True),
        ("x86-64", "x86.ssse3.pshuf.b.128", False),
        ("x86-64-v2", "x86.vcvtph2ps.128", False),
        ("x86-64", "x86.sse2.cvtps2dq", True),
        ("neoverse-n1", "x86.sse2.cvtps2dq", False),
        ("neoverse-n1", "aarch64.neon.fmaxnm.v4f32", True),
        ("neoverse-n1", "aarch64.sve.ptrue.nxv4i1", False),
        ("x86-64", "vector.reduce.add.v4i32", True),
    ],
)
def test_intrinsics_that_a_processor_lacks_are_found(
    processor: str, name: str, suits: bool
) -> None:
    text = f"declare <4 x i32> @llvm.{name}(<4 x i32>)"
    found = foreign_intrinsics(text, processor_of(Target(f"cpu:{processor}")))
    assert bool(found) != suits
