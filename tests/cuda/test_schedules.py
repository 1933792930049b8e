"""Each schedule computes what the CPU does, in two orders of threads, and compiles for devices.

Without any one of its barriers and atomic operations, the emulated device finds something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.cuda.emulation import Emulator
from tests.cuda.programs import ARCH, Built, program_of
from tests.cuda.schedule_cases import CASES
from tracejit.cuda import device_of
from tracejit.cuda.nvrtc import Compiler, compiler
from tracejit.errors import TracejitError
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.cuda.build import Source, joined

SYNCHRONISES = re.compile(r"__sync(?:threads\(\)|warp\(\w*\));|(?:tj_atomic_\w+|atomicAdd)(?=\()")
"""Barriers, and the names of atomic operations."""
UNSYNCHRONISED = "template <class T> __device__ static void tj_racing(T* p, T v) { *p += v; }"
DISTINCT = "cross_entropy"
"""A case whose scatters add once to each place, which the compiler cannot know."""
LARGEST = 100_000
"""Elements of cases whose kernels are run without their barriers; larger ones take long."""


def without_one(built: Built) -> Iterator[tuple[str, Built]]:
    """The case without one of its barriers or atomic operations; each with what is left out."""
    for name, text in built.source.kernels.items():
        for number, found in enumerate(SYNCHRONISES.finditer(text)):
            if built.case.name == DISTINCT and "atomic" in found[0]:
                continue
            other = f"m{number}_{name}"
            left = "tj_racing" if "atomic" in found[0] else ""
            mutant = text[: found.start()] + left + text[found.end() :]
            kernels = {**built.source.kernels, other: mutant.replace(name, other)}
            launched = {
                kernel: [(other if n == name else n, launch) for n, launch in launches]
                for kernel, launches in built.source.launched.items()
            }
            source = Source(built.source.functions, kernels, launched, built.source.allocated)
            yield f"{built.case.name}: {found[0]} {number} of {name}", replace(built, source=source)


def test_each_barrier_and_atomic_operation_is_needed(emulated: Emulator) -> None:
    """What is left out is reported in some order of threads, whether numbers differ or not."""
    cases = [case for case in CASES if sum(a.size for a in case.arguments) < LARGEST]
    built = [program_of(case, number) for number, case in enumerate(cases)]
    mutants = [mutant for each in built for mutant in without_one(each)]
    assert len(mutants) >= 40
    text = UNSYNCHRONISED + joined([mutant.source for _, mutant in mutants])
    binary = compiler().compile(text, ARCH)
    missed = []
    for name, mutant in mutants:
        reports: list[str] = []
        for order in (0, 1, 7, 8):
            emulated.order = order
            try:
                mutant.executable(binary)(mutant.case.arguments)
                device_of().synchronize()
            except TracejitError:
                device_of().reset()
            reports += emulated.reports()
            if reports:
                break
        if not reports:
            missed.append(name)
    assert missed == []


def test_schedules_on_the_emulated_device(emulated: Emulator, nvrtc_of_the_wheel: Compiler) -> None:
    """All cases in one text, which NVRTC takes for three generations without spills."""
    built = [program_of(case, number) for number, case in enumerate(CASES)]
    found = {each.case.name: each.schedules for each in built}
    assert {c.name: found[c.name] for c in CASES if c.schedules} == {
        c.name: c.schedules for c in CASES if c.schedules
    }
    text = joined([each.source for each in built])
    wide = next(each for each in built if each.case.name == "vectors")
    assert len(re.findall(r"(?:ld|st)\.global\S*\.v4", ptx_of(nvrtc_of_the_wheel, wide))) >= 3
    for arch in ("sm_80", "sm_90a", "sm_100"):
        uses = nvrtc_of_the_wheel.compile(text, arch).kernels
        assert {name: use for name, use in uses.items() if use.spilled_bytes} == {}
        assert max(use.registers for use in uses.values()) <= 128
    binary = compiler().compile(text, ARCH)
    wrong = {}
    for each in built:
        run, expected = each.executable(binary), each.expected()
        for order in (0, 7):
            emulated.order = order
            said = ""
            try:
                actual = [*map(np.asarray, run(each.case.arguments))]
                for ours, theirs in zip(actual, expected, strict=True):
                    tolerance = each.case.tolerance
                    if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
                        said = f"{ours!r} instead of {theirs!r}"
            except TracejitError as error:
                said = error.message
                device_of().reset()
            reports = emulated.reports()
            if said or reports:
                wrong[each.case.name] = order, said, reports
    assert wrong == {}


def ptx_of(real: Compiler, built: Built) -> str:
    """What NVRTC makes of a case's kernels."""
    return real.ptx(built.source.text, ARCH)
