"""What can be asked of every compiled program, whether a function or a module was compiled."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.backends.target import Target
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.loading import load, supplied
from tracejit.transforms.jit.hooks import Executable, optimized_text

if TYPE_CHECKING:
    from tracejit.backends.export_report import ExportReport
    from tracejit.runtime.explaining import Report
    from tracejit.runtime.memory_analysis import MemoryAnalysis
    from tracejit.transforms.export import Function


class HasCosts(ABC):
    """A graph whose costs are counted."""

    def _repr_html_(self) -> str:
        """The graph, and the kernels if it is compiled, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html

    @property
    @abstractmethod
    def module(self) -> Module:
        """The graph."""

    def cost_analysis(self) -> dict[str, Any]:
        """Operations, bytes and transcendental functions of one run: see `cost_analysis`.

        A dictionary of "flops", "transcendentals", "bytes accessed", the same for every kind of
        operation in "ops", and "unknown loops".
        """
        counted: dict[str, Any] = load("tracejit.passes.cost_analysis").cost_analysis(
            self.module.entry
        )
        return counted


class CompiledProgram(HasCosts):
    """A graph and the ``program`` that it was compiled to, for ``target``."""

    def __init__(self, module: Module, program: Executable, target: Target) -> None:
        self._module = module
        self._target = target
        self.program = program

    @property
    def module(self) -> Module:
        """The graph."""
        return self._module

    def __repr__(self) -> str:
        return f"<compiled {self.module.summary}, for {self._target.name}>"

    @abstractmethod
    def _arrays(self, *args: Any, **kwargs: Any) -> list[np.ndarray]:
        """The program's arguments of a call's. Raises `ArgumentError` for other kinds."""

    @abstractmethod
    def _function(self) -> Function:
        """What `export` writes."""

    def as_text(self) -> str:
        """The graph after the compiler's passes, which kernels are written from, as HLO text.

        It has ops that only the compiler knows, such as FirstSorted.
        """
        return optimized_text(self.module, self._target)

    def explain(self, *args: Any, measure: bool = False, **kwargs: Any) -> Report:
        """The kernels, the ops fused into each, its bytes and flops, and its bottleneck; print it.

        With ``measure`` every kernel is timed on the arguments that are given besides. Raises
        `ArgumentError` for other shapes or types, `UnsupportedError` for a program that is
        interpreted (``check=True``), and to measure where there is no linker.
        """
        if bool(args or kwargs) and not measure:
            raise ArgumentError("explain: arguments are only used with measure=True")
        report: Report = load("tracejit.runtime.explaining").explain(
            self.program, self._arrays(*args, **kwargs) if measure else None
        )
        return replace(report, module=self.module)

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that a call takes: of arguments, results, constants, and everything between.

        Raises `UnsupportedError` for a program that is interpreted (``check=True``).
        """
        analysis: MemoryAnalysis = load("tracejit.runtime.memory_analysis").memory_analysis(
            self.program
        )
        return analysis

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        header: str | os.PathLike[str] | None = None,
        python: str | os.PathLike[str] | None = None,
        name: str | None = None,
        gradients: bool = False,
        threads: int | None = None,
        target: str | None = None,
        objects: Sequence[str | os.PathLike[str]] = (),
        libraries: Sequence[str | os.PathLike[str]] = (),
    ) -> ExportReport:
        """Writes a library that needs neither Python nor TVM, and says how large its parts are: a
        shared one, or a static one for a path that ends in ``.a``. See `docs/ahead_of_time.md`.

        ``header`` is a header for C, ``python`` a module for Python without this package, ``name``
        the function's, by default that of the file. With ``gradients`` a second function,
        ``name_value_and_grad``, returns the gradients too. Donated arguments are not written over.
        ``target`` is another processor than the function is compiled for. ``objects`` and
        ``libraries`` define the functions of compiled libraries that it calls.

        Raises `ArgumentError` for a name that C does not allow, `UnsupportedError` for what only
        Python can compute, `DerivativeError` where there is no gradient, `CompilationError` without
        a C compiler, and `OSError` for a file that cannot be written.
        """
        report: ExportReport = load("tracejit.transforms.export").export(
            self._function(),
            path,
            header=header,
            python=python,
            name=name,
            gradients=gradients,
            threads=threads,
            target=self._target if target is None else replace(self._target, name=target),
            objects=objects,
            libraries=libraries,
        )
        return report
