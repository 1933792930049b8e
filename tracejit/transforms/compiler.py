"""The compiler that jit calls: a function from a module to an executable, given by the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tracejit.graph import Module

Executable = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""Takes one array for each parameter of the entry, of its dtype and dimensions but of any strides,
and returns one new array for each result."""

Compiler = Callable[[Module, str, bool], Executable]
"""``compiler(module, target, check)``."""


class _Installed:
    compiler: Compiler | None = None


def use_compiler(compiler: Compiler) -> None:
    """Sets what compiles a module."""
    _Installed.compiler = staticmethod(compiler)


def compile_module(module: Module, target: str, check: bool) -> Executable:
    """An executable for ``module``. Raises `CompilationError` when there is none for the target."""
    assert _Installed.compiler is not None, "no compiler is installed"
    return _Installed.compiler(module, target, check)
