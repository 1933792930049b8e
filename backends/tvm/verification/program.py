"""Verifies every kernel of a program, and reports the accesses that could not be proven.

    report = verify_program(program)
    report.proven, report.unproven      # a number; named accesses
    report.raise_errors()               # for accesses that are certainly wrong

With TRACEJIT_VERIFY=1 in the environment every program is verified before it is compiled; with
TRACEJIT_VERIFY=all reads of uninitialised memory are included.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from tracejit.backends.tvm.analysis.kernel_stats import NOTHING
from tracejit.backends.tvm.program.program import Kernel, Program
from tracejit.backends.tvm.verification.analysis import Analysis
from tracejit.backends.tvm.verification.expressions import UnsupportedError
from tracejit.backends.tvm.verification.initialisation import (
    Footprints,
    footprints_of,
    initialisation,
)
from tracejit.backends.tvm.verification.races import races
from tracejit.errors import CompilationError
from tracejit.sources import Source

VARIABLE = "TRACEJIT_VERIFY"
"""The environment variable that switches verification on."""

_MORE = 20
_LEAST = 50_000
"""The work of a thorough analysis, as a multiple of the first one's, or in steps."""


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
    known: set[int] = set()
    footprints: dict[int, Footprints] = {}
    for kernel in program.kernels:
        # Kernels of equal structure share one body.
        if id(kernel.body) in known:
            continue
        known.add(id(kernel.body))
        analysis = verify_kernel(kernel, report)
        if analysis is not None and is_written:
            footprints[id(kernel.body)] = footprints_of(kernel, analysis)
    for fault in initialisation(program, footprints) if is_written else ():
        name, stats = (fault.kernel.name, fault.kernel.stats) if fault.kernel else ("all", NOTHING)
        made = Finding(
            name, stats.schedule, "initialisation", fault.text, stats.source, fault.is_certain
        )
        report.unproven.append(made)
    return report


def verify_kernel(kernel: Kernel, report: Report) -> Analysis | None:
    """Add a kernel's accesses to a report. Returns None if it could not be analysed."""

    def finding(rule: str, text: str, is_certain: bool = False) -> Finding:
        stats = kernel.stats
        return Finding(kernel.name, stats.schedule, rule, text, stats.source, is_certain)

    try:
        analysis = _analysed(kernel)
    except UnsupportedError as error:
        report.unproven.append(finding("analysis", str(error)))
        return None
    for access in analysis.accesses:
        if access.problem is None:
            report.proven += 1
            continue
        what = "a store to" if access.is_store else "a load from"
        text = f"{what} {access.memory.name} has {access.problem.text}"
        report.unproven.append(finding("bounds", text, access.problem.is_certain))
    for access in races(analysis.accesses):
        text = (
            f"iterations of a parallel loop may store to the same elements of {access.memory.name}"
        )
        report.unproven.append(finding("races", text))
    return analysis


def _analysed(kernel: Kernel) -> Analysis:
    analysis = Analysis(kernel.parameters, kernel.scratch)
    analysis.run(kernel.body)
    if all(access.problem is None for access in analysis.accesses):
        return analysis
    if any(a.problem is not None and a.problem.is_certain for a in analysis.accesses):
        return analysis
    thorough = Analysis(
        kernel.parameters, kernel.scratch, analysis.relevant(), max(_MORE * analysis.nodes, _LEAST)
    )
    try:
        thorough.run(kernel.body)
    except UnsupportedError:
        return analysis
    return thorough


def is_wanted() -> bool:
    """Whether programs are to be verified."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


Observer = Callable[[Program, Report], None]
observers: list[Observer] = []
"""Called with the report of each verified program; tests count unproven accesses."""


def verify_if_wanted(program: Program) -> None:
    """Verify a program if the environment says so; raise `CompilationError` for certain errors."""
    if not is_wanted():
        return
    report = verify_program(program, os.environ[VARIABLE] == "all")
    for observer in observers:
        observer(program, report)
    report.raise_errors()
