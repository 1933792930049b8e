"""The target that a program is compiled for, as the portable part of the compiler sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracejit.backends.artifact import InProcess
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.program.program import Program
from tracejit.backends.tvm.target.launch import Launch
from tracejit.backends.tvm.target.libraries import Libraries
from tracejit.backends.tvm.target.mathematics import Mathematics
from tracejit.backends.tvm.target.memory_spaces import MemorySpaces
from tracejit.backends.tvm.target.schedules import Schedules

Progress = Callable[[int, int], None]
"""Called with the number of modules compiled so far, and of all."""

Build = Callable[[Program, Progress | None], bytes | InProcess]
"""A program as an artifact to keep and to load in any process, or as code for this one alone."""


@dataclass(frozen=True)
class Target:
    """All that the compiler needs to know of a target; errors call it ``name``: "the CPU".

    Passes and fusion see the ``limits`` alone. Kernels are written by ``schedules``, and where
    these have no rule by ``libraries``; their bodies call the functions of ``mathematics``. A
    body is the target's own: no portable code looks into it for its parallel loops. The program
    goes to ``build``, which has it run by ``launch`` on memory of ``memory_spaces``.
    """

    name: str
    limits: Limits
    schedules: Schedules
    mathematics: Mathematics
    libraries: Libraries
    memory_spaces: MemorySpaces
    build: Build
    launch: Launch
