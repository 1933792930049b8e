"""Verifies every kernel of a program, and reports the accesses that could not be proven.

    report = verify_program(program)
    report.proven, report.unproven      # a number; named accesses
    report.raise_errors()               # for accesses that are certainly wrong

With TRACEJIT_VERIFY=1 in the environment every program is verified before it is compiled, and
accesses that were not proven are compiled with run-time checks; with TRACEJIT_VERIFY=all reads of
uninitialised memory are included.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tvm_ffi import Array, structural_equal, structural_hash

from tracejit.backends.tvm.analysis.kernel_stats import NOTHING
from tracejit.backends.tvm.program.program import Code, Kernel, Program, code_of
from tracejit.backends.tvm.verification.accesses import Access
from tracejit.backends.tvm.verification.analysis import Analysis
from tracejit.backends.tvm.verification.expressions import NotModelledError
from tracejit.backends.tvm.verification.guards import guarded, with_scratch
from tracejit.backends.tvm.verification.initialisation import (
    Footprints,
    footprints_of,
    initialisation,
)
from tracejit.backends.tvm.verification.kernel_analysis import analysed
from tracejit.backends.tvm.verification.races import races
from tracejit.errors import CompilationError
from tracejit.sources import Source

VARIABLE = "TRACEJIT_VERIFY"
"""The environment variable that switches verification on."""

_proven: dict[Any, tuple[int, Footprints | None]] = {}
"""Fully proven kernels by structure, each with its number of accesses and its footprints."""
_MOST_PROVEN = 2_000
_MOST_REMEMBERED = 1 << 18
"""The most elements in the arrays of a cached kernel."""


@dataclass(frozen=True)
class Finding:
    """An access that was not proven, or if it ``is_certain``, was proven wrong."""

    kernel: str
    schedule: str
    rule: str
    text: str
    source: Source | None = None
    is_certain: bool = False

    def __str__(self) -> str:
        where = "" if self.source is None else f" ({self.source})"
        return f"{self.rule}: {self.kernel}, {self.schedule or 'no schedule'}: {self.text}{where}"


@dataclass
class Report:
    """The number of proven accesses, and all findings."""

    proven: int = 0
    unproven: list[Finding] = field(default_factory=list)
    unsafe: dict[Code, list[Access]] = field(default_factory=dict)
    """The accesses of each kernel that may leave their buffers."""
    racy: set[Code] = field(default_factory=set)
    """The kernels whose parallel loops may race."""

    def raise_errors(self) -> None:
        """Raise `CompilationError` for accesses that are certainly wrong."""
        wrong = [finding for finding in self.unproven if finding.is_certain]
        if wrong:
            raise CompilationError("code generation: " + "; ".join(map(str, wrong)))


def verify_program(program: Program, is_written: bool = True) -> Report:
    """Verify the kernels of a program before they are compiled.

    With ``is_written``, also that memory is initialised when it is read, across kernels and calls.
    """
    report = Report()
    known: set[Code] = set()
    footprints: dict[Code, Footprints] = {}
    for kernel in program.kernels:
        code = code_of(kernel)
        if code in known:
            continue
        known.add(code)
        found = _verified(kernel, report, is_written)
        if found is not None:
            footprints[code] = found
    for fault in initialisation(program, footprints) if is_written else ():
        name, stats = (fault.kernel.name, fault.kernel.stats) if fault.kernel else ("all", NOTHING)
        made = Finding(
            name, stats.schedule, "initialisation", fault.text, stats.source, fault.is_certain
        )
        report.unproven.append(made)
    return report


def _verified(kernel: Kernel, report: Report, is_written: bool) -> Footprints | None:
    """Add a kernel's accesses to a report and return its footprints, if ``is_written`` needs them.

    Fully proven kernels are cached by their structure.
    """
    key = _Form(kernel), kernel.reads, kernel.scratch, is_written
    known = _proven.get(key)
    if known is not None:
        report.proven += known[0]
        return known[1]
    before, wrong = report.proven, len(report.unproven)
    analysis = verify_kernel(kernel, report)
    made = footprints_of(kernel, analysis) if analysis is not None and is_written else None
    if len(report.unproven) == wrong and _is_small(made):
        if len(_proven) >= _MOST_PROVEN:
            _proven.clear()
        _proven[key] = report.proven - before, made
    return made


class _Form:
    """A kernel's structure: equal for kernels that differ in the names of variables alone."""

    def __init__(self, kernel: Kernel) -> None:
        # Parameters stand first, so that those of equal kernels are matched in their order.
        self._parts = Array([*kernel.parameters, kernel.body])
        self._hash: int = structural_hash(self._parts, map_free_vars=True)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Form):
            return NotImplemented
        return bool(structural_equal(self._parts, other._parts, map_free_vars=True))


def _is_small(footprints: Footprints | None) -> bool:
    if footprints is None:
        return True
    return sum(each.size for each in footprints.parameters if each is not None) < _MOST_REMEMBERED


def verify_kernel(kernel: Kernel, report: Report) -> Analysis | None:
    """Add a kernel's accesses to a report. Returns None if it could not be analysed."""

    def finding(rule: str, text: str, is_certain: bool = False) -> Finding:
        stats = kernel.stats
        return Finding(kernel.name, stats.schedule, rule, text, stats.source, is_certain)

    try:
        analysis = analysed(kernel)
    except NotModelledError as error:
        report.unproven.append(finding("analysis", str(error)))
        return None
    for access in analysis.accesses:
        if access.problem is None:
            report.proven += 1
            continue
        report.unsafe.setdefault(code_of(kernel), []).append(access)
        what = "a store to" if access.is_store else "a load from"
        text = f"{what} {access.memory.name} has {access.problem.text}"
        report.unproven.append(finding("bounds", text, access.problem.is_certain))
    for access in races(analysis.accesses):
        report.racy.add(code_of(kernel))
        text = (
            f"iterations of a parallel loop may store to the same elements of {access.memory.name}"
        )
        report.unproven.append(finding("races", text))
    return analysis


def is_wanted() -> bool:
    """Whether programs are to be verified."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


Observer = Callable[[Program, Report], None]
observers: list[Observer] = []
"""Called with the report of each verified program; tests count unproven accesses."""


def verify_if_wanted(program: Program) -> Program:
    """Verify a program if the environment says so; raise `CompilationError` for certain errors.

    Returns the program with run-time checks of the accesses that were not proven.
    """
    if not is_wanted():
        return program
    report = verify_program(program, os.environ[VARIABLE] == "all")
    for observer in observers:
        observer(program, report)
    report.raise_errors()
    return checked_at_run_time(program, report)


def checked_at_run_time(program: Program, report: Report) -> Program:
    """The program with checks of the accesses that its report lists as unproven."""

    def checked(kernel: Kernel) -> Kernel:
        code = code_of(kernel)
        if code not in report.unsafe and code not in report.racy:
            return kernel
        return guarded(kernel, report.unsafe.get(code, ()), code in report.racy)

    if not report.unsafe and not report.racy:
        return program
    return with_scratch(program, [checked(kernel) for kernel in program.kernels])
