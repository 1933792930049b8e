"""Every sample record of every op on the emulated device, against the interpreter.

    python -m tests.cuda.conformance                # all; counts, failures, and ops without kernels
    python -m tests.cuda.conformance --part 3 20    # every twentieth record, from the third on
    python -m tests.cuda.conformance --nvrtc sm_80 sm_90a sm_100    # by the real compiler, too

Many programs are one text for the compiler, so that g++ is called a few times only. Kernels run in
two orders of threads, each access checked.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.cuda import emulation
from tests.samples.base import Sample
from tests.samples.cases import all_samples, draw_joint, joint_module
from tests.samples.comparing import SINGLE, compare
from tests.samples.values import element_types
from tracejit.backends.artifact import unpack
from tracejit.backends.numpy import evaluate
from tracejit.cuda import device_of
from tracejit.cuda.nvrtc import Binary, Compiler, compiler
from tracejit.errors import CompilationError, TracejitError, UnsupportedError
from tracejit.graph import OPS, Module
from tracejit.runtime import importing_tvm
from tracejit.runtime.cuda_executable import CudaExecutable

with importing_tvm():
    from tracejit.backends.tvm.cuda.blocks import SHARED_BYTES
    from tracejit.backends.tvm.cuda.build import Source, joined, packed, source_of
    from tracejit.backends.tvm.cuda.target import cuda_target
    from tracejit.backends.tvm.lower.lowering import lower
    from tracejit.backends.tvm.program.program import Program

ARCH = "sm_90a"
ORDERS = (0, 7)
BATCH = 60
REGISTERS, MOST_THREADS, MOST_BLOCKS = 1 << 16, 1024, (1 << 31) - 1
"""What every device grants a block, and a grid."""
SPILLED = 32
"""Bytes that a thread may save around a subroutine's call, such as a division of doubles."""


@dataclass
class Case:
    """A sample record for all of its element types, its program and its CUDA C."""

    sample: Sample
    module: Module
    program: Program
    source: Source

    @property
    def name(self) -> str:
        return f"{self.sample.op} {self.sample.label}".strip()


@dataclass
class Found:
    """What came out: failures by the names of records, and why records were refused."""

    checked: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def case_of(sample: Sample, number: int) -> Case:
    """A record, compiled as far as its CUDA C. Raises `TracejitError` where it is refused."""
    module = joint_module(sample, element_types(sample))
    program = lower(module.entry, cuda_target(ARCH))
    program.check()
    return Case(sample, module, program, source_of(program, f"s{number}_"))


def run(
    samples: Sequence[Sample], real: Compiler | None = None, archs: Sequence[str] = ()
) -> Found:
    """Compiles and runs records, in batches."""
    found = Found()
    cases = []
    for number, sample in enumerate(samples):
        try:
            cases.append(case_of(sample, number))
        except (CompilationError, UnsupportedError) as error:
            found.refused[f"{sample.op} {sample.label}".strip()] = error.message
        except Exception as error:  # a bug of ours, of one record
            line = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{line.filename.rpartition('/')[2]}:{line.lineno}"
            found.failures[f"{sample.op} {sample.label}".strip()] = f"{error!r} at {place}"
    for begin in range(0, len(cases), BATCH):
        batch = cases[begin : begin + BATCH]
        text = joined([case.source for case in batch])
        for arch in archs:
            assert real is not None
            for name, problem in _beyond(batch, real.compile(text, arch)):
                found.failures[name] = f"{arch}: {problem}"
        _check(batch, text, found)
    return found


def _beyond(batch: Sequence[Case], binary: Binary) -> Iterator[tuple[str, str]]:
    """Records whose launches ask for more than a device grants, or whose registers are spilled."""
    for case in batch:
        launched = [pair for pairs in case.source.launched.values() for pair in pairs]
        for function, launch in launched:
            use = binary.kernels[function]
            if use.spilled_bytes > SPILLED:
                yield case.name, f"{function} spills {use.spilled_bytes} bytes"
            if use.registers * launch.threads > REGISTERS:
                yield case.name, f"{function} takes {use.registers} registers a thread"
            if launch.threads > MOST_THREADS or launch.blocks > MOST_BLOCKS:
                yield case.name, f"{function} is {launch.blocks} blocks of {launch.threads}"
            if use.shared_bytes + launch.shared_bytes > SHARED_BYTES:
                yield case.name, f"{function} takes {launch.shared_bytes} shared bytes"


def _check(batch: Sequence[Case], text: str, found: Found) -> None:
    binary = compiler().compile(text, ARCH)
    emulator = emulation.Emulator()
    for case in batch:
        data = packed(case.program, case.source, binary, ARCH)
        executable = CudaExecutable(data, unpack(data))
        types = element_types(case.sample)
        arrays = draw_joint(case.sample, types, False, OPS[case.sample.op].family in SINGLE)
        expected = [*_leaves(evaluate(case.module.entry, arrays))]
        problems = []
        for order in ORDERS:
            emulator.order = order
            emulator.reports()
            try:
                actual = [np.asarray(array) for array in executable(arrays)]
            except TracejitError as error:
                problems.append(f"order {order}: {error.message}")
                actual = []
            problems += [f"order {order}: {text}" for text in emulator.reports()]
            if problems:
                device_of().reset()
                break
            for n, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
                difference = compare(case.sample, ours, theirs)
                if difference:
                    problems.append(f"order {order}, result {n}, {theirs.dtype}: {difference}")
        found.checked += 1
        if problems:
            found.failures[case.name] = "\n".join(problems)
    emulator.order = 0


def _leaves(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for element in value:
            yield from _leaves(element)
    else:
        yield np.asarray(value)


def main() -> int:
    """What the module's docstring says; 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1), metavar=("NUMBER", "OF"))
    parser.add_argument("--nvrtc", nargs="*", default=[], metavar="ARCH")
    parser.add_argument("--op", help="the records of one op alone")
    given = parser.parse_args()
    if emulation.LACKING:
        print(emulation.LACKING)
        return 1
    real = compiler.__wrapped__() if given.nvrtc else None
    os.environ.update(emulation.environment())
    compiler.cache_clear()
    samples = [s for s in all_samples() if given.op in (None, s.op, OPS[s.op].function)]
    first, step = given.part
    found = run(samples[first::step], real, given.nvrtc)
    for name, text in found.failures.items():
        print(f"FAILED {name}\n  " + "\n  ".join(text.splitlines()[:4]))
    reasons = Counter(found.refused.values())
    for reason, count in reasons.most_common():
        print(f"refused, {count} records: {reason}")
    counts = f"{len(found.failures)} failed, {len(found.refused)} refused"
    print(f"{found.checked} records checked, {counts}")
    return int(bool(found.failures))


if __name__ == "__main__":
    sys.exit(main())
