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
    """All that is asked of a target; ``name`` is what errors call it: "the CPU".

    Passes and fusion see the ``limits`` alone. While kernels are written ``schedules`` are asked
    first, then ``libraries``; their bodies call the functions of ``mathematics``. What is written
    is the target's own: no portable code looks into a kernel's body for its parallel loops. The
    program goes to ``build``, which has it run by ``launch`` on memory of ``memory_spaces``.
    """

    name: str
    limits: Limits
    schedules: Schedules
    mathematics: Mathematics
    libraries: Libraries
    memory_spaces: MemorySpaces
    build: Build
    launch: Launch
