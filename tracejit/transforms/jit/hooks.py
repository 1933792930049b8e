"""The compiler that jit calls: a function from a module to an executable, given by the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from tracejit.backends.target import Target
from tracejit.graph import Module


class Executable(Protocol):
    """A compiled module: takes one array for each parameter and returns new arrays."""

    @property
    def run(self) -> Callable[[Sequence[object]], list[np.ndarray] | None]:
        """The quick way in: None unless the arguments are exactly the arrays compiled for."""

    @property
    def donated(self) -> Sequence[int]:
        """The numbers of the arguments that are written over."""

    def __call__(self, arguments: Sequence[object], /) -> list[np.ndarray]:
        """The results, one for each, for arrays of any layout and either byte order."""


class Pending(Protocol):
    """A program that is compiled elsewhere, while this process goes on."""

    def is_built(self) -> bool:
        """Whether the program is at hand."""

    def poll(self) -> Executable | None:
        """The program; None as long as somebody is at it. Raises what compiling raises."""


Compiler = Callable[[Module, Target, bool], Executable]
"""``compiler(module, target, check)``."""
Beginner = Callable[[Module, Target], Pending]
"""``beginner(module, target)``."""
Planner = Callable[[Module, Target], int]
"""``planner(module, target)``: bytes of memory that the compiled module takes, all together."""


Optimizer = Callable[[Module, Target], str]
"""``optimizer(module, target)``: the graph that machine code is written from."""


class Tuner(Protocol):
    """Measures ways to write a program's kernels, and remembers what it found on disk."""

    def find(self, module: Module, target: Target, seconds: float, /) -> Executable | None:
        """The program tuned before, unless ``seconds`` of tuning may find a better one."""

    def tune(
        self,
        untuned: Any,
        module: Module,
        target: Target,
        seconds: float,
        arguments: Sequence[object],
        /,
    ) -> Executable:
        """The program with the quickest kernels found within ``seconds``."""


class _Installed:
    compiler: Compiler | None = None
    beginner: Beginner | None = None
    planner: Planner | None = None
    tuner: Tuner | None = None
    optimizer: Optimizer | None = None


def use_compiler(compiler: Compiler) -> Compiler | None:
    """Sets the compiler of modules, and returns the previous one."""
    before = _Installed.compiler
    _Installed.compiler = staticmethod(compiler)
    return before


def compile_module(module: Module, target: Target, check: bool) -> Executable:
    """An executable for ``module``. Raises `CompilationError` when there is none for the target."""
    assert _Installed.compiler is not None, "no compiler is installed"
    return _Installed.compiler(module, target, check)


def use_beginner(beginner: Beginner) -> Beginner | None:
    """Sets the background compiler of modules, and returns the previous one."""
    before = _Installed.beginner
    _Installed.beginner = staticmethod(beginner)
    return before


def begin_compiling(module: Module, target: Target) -> Pending:
    """The promise of an executable for ``module``, which may be at hand already.

    Raises `CompilationError` for a target without a compiler.
    """
    assert _Installed.beginner is not None, "no compiler is installed"
    return _Installed.beginner(module, target)


def use_tuner(tuner: Tuner) -> None:
    """Sets what measures."""
    _Installed.tuner = tuner


def the_tuner() -> Tuner:
    """What measures."""
    assert _Installed.tuner is not None, "no tuner is installed"
    return _Installed.tuner


def use_planner(planner: Planner) -> None:
    """Sets what knows how much memory a module takes once it is compiled."""
    _Installed.planner = staticmethod(planner)


def planned_bytes(module: Module, target: Target) -> int:
    """The bytes that the compiled module takes: arguments, constants, results and workspace."""
    assert _Installed.planner is not None, "no planner is installed"
    return _Installed.planner(module, target)


def use_optimizer(optimizer: Optimizer) -> None:
    """Sets what runs the passes over a module's graph."""
    _Installed.optimizer = staticmethod(optimizer)


def optimized_text(module: Module, target: Target) -> str:
    """The module after all passes of the target's compiler, as HLO text."""
    assert _Installed.optimizer is not None, "no compiler is installed"
    return _Installed.optimizer(module, target)
