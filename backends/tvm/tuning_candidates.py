"""Builds alternative variants of a program's kernels, so that tuning can measure them.

found = ProgramCandidates(module, Target("cpu"))
found.library("k3_dot_general", [{"tile": "6x2"}, {"tile": "4x3"}], folder)
found.build(find)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tracejit.backends.artifact import InProcess
from tracejit.backends.target import CPU, Target
from tracejit.backends.tunable import Find, Library, Measured, Taken, Tunable, Variant
from tracejit.backends.tvm.buffers.donation import aliases_of
from tracejit.backends.tvm.cpu.objects.build import build, build_kernels
from tracejit.backends.tvm.cpu.objects.identical_code_folding import fold_identical_kernels
from tracejit.backends.tvm.cpu.objects.tir_pipeline import REFUSALS, contents
from tracejit.backends.tvm.cpu.processor import processor_of
from tracejit.backends.tvm.cpu.target import cpu_target
from tracejit.backends.tvm.ir.tir import nbytes
from tracejit.backends.tvm.lower.lowering import lower
from tracejit.backends.tvm.program.program import Kernel, Program
from tracejit.backends.tvm.program.thunks import Scratch
from tracejit.backends.tvm.target.target import Progress
from tracejit.backends.tvm.tune.knobs import RecordedKnobs
from tracejit.backends.tvm.tune.policy import Measurements, TunedKernel
from tracejit.graph import Instruction, Module


class ProgramCandidates:
    """The kernels of a module as the cost model schedules them, and every other variant of each.

    Raises `CompilationError` for an op without a rule.
    """

    def __init__(self, module: Module, target: Target = CPU) -> None:
        self._module = module
        self._target = processor_of(target)
        program, self._written = self._lowered(lambda text: None)
        kernels = [kernel.name for kernel in fold_identical_kernels(program).kernels]
        self.kernels = [
            _tunable(name, self._written[name])
            for name in kernels
            if name in self._written and self._written[name].answers.taken
        ]

    def _lowered(self, find: Find) -> tuple[Program, dict[str, TunedKernel]]:
        decisions = Measurements(find)
        aliases = aliases_of(self._module)
        program = lower(self._module.entry, cpu_target(self._target), aliases, decisions)
        return program, decisions.written

    def library(self, kernel: str, ways: Sequence[Taken], folder: Path) -> Library:
        """A library in ``folder`` with the given variants of a kernel.

        Variants that cannot be compiled, and duplicates, are left out. Raises `CompilationError`
        if the linker fails.
        """
        kernels: list[Kernel] = []
        variants: dict[str, Variant] = {}
        for number, way in enumerate(ways):
            made = _variant(self._written[kernel], way, f"{kernel}_{number}")
            if made is not None and made[1].taken not in [v.taken for v in variants.values()]:
                kernels.append(made[0])
                variants[made[0].name] = made[1]
        path = folder / f"{kernel}.so"
        compiled = build_kernels(kernels, self._target, path)
        return Library(path, [variants[each.name] for each in compiled])

    def build(self, find: Find, progress: Progress | None = None) -> bytes | InProcess:
        """The whole program; ``find`` gives the variant of each kernel."""
        program, _ = self._lowered(find)
        return build(program, self._target, progress)


def _tunable(name: str, written: TunedKernel) -> Tunable:
    step = written.step
    results = [
        owner.array_shape.dtype
        for owner, _ in step.parameters[step.reads :]
        if isinstance(owner, Instruction)
    ]
    return Tunable(
        name,
        written.text,
        written.answers.taken,
        written.answers.open,
        [nbytes(memory) for _, memory in step.parameters],
        step.reads,
        results,
    )


def _variant(written: TunedKernel, way: Taken, name: str) -> tuple[Kernel, Variant] | None:
    """One variant of a kernel, or None if it is impossible."""
    answers = RecordedKnobs(way)
    try:
        step = written.write(answers)
    except REFUSALS:
        return None
    places = {owner: place for place, owner in enumerate(written.step.owners)}
    if any(owner not in places for owner in step.owners if not isinstance(owner, Scratch)):
        return None
    arguments = [
        (-1 if isinstance(owner, Scratch) else places[owner], nbytes(memory))
        for owner, memory in step.parameters
    ]
    (kernel,) = replace(step, name=name).kernels()
    callbacks = contents(kernel.body).callbacks
    return kernel, Variant(answers.taken, answers.open, name, arguments, callbacks)


_latest: dict[str, ProgramCandidates] = {}
"""The candidates of the program that was asked for last, by its key."""


def _candidates(key: str, module: Module, target: Target) -> ProgramCandidates:
    if key not in _latest:
        _latest.clear()
        _latest[key] = ProgramCandidates(module, target)
    return _latest[key]


def kernels_of(key: str, module: Module, target: Target) -> list[Tunable]:
    """The kernels with a choice. ``key`` names the program: one is kept between calls."""
    return _candidates(key, module, target).kernels


def library_of(
    key: str, module: Module, target: Target, kernel: str, ways: Sequence[Taken], folder: Path
) -> Library:
    """See `ProgramCandidates.library`."""
    return _candidates(key, module, target).library(kernel, ways, folder)


def program_of(
    key: str, module: Module, target: Target, known: Mapping[str, Measured | None]
) -> bytes | InProcess:
    """The whole program, its kernels written as ``known`` says of their texts."""
    return _candidates(key, module, target).build(known.get)
