"""What `jit(f).lower(*args)` returns: the graph, its text, and compilation by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit import hlo
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.loading import load
from tracejit.runtime.donation import require_donatable
from tracejit.transforms.compiler import Executable, compile_module
from tracejit.transforms.staging import Staged

if TYPE_CHECKING:
    from tracejit.runtime.explaining import Report
    from tracejit.runtime.memory_analysis import MemoryAnalysis
    from tracejit.transforms.memory_report import MemoryReport
    from tracejit.transforms.tuned import Tune

Flatten = Callable[..., list[Any]]


class Compiled:
    """A compiled function, for arguments like those it was lowered for."""

    def __init__(
        self,
        staged: Staged,
        executable: Executable,
        flatten: Flatten,
        names: Sequence[str],
        target: str,
    ) -> None:
        self._staged = staged  # what it calls back lives as long as the graph
        self._finish = staged.finisher()
        self._executable = executable
        self._flatten = flatten
        self._names = names
        self._target = target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Raises `ArgumentError` for other shapes or types.

        Donated arrays are written over, as by a call of the jitted function.
        """
        arrays = self._flatten(*args, **kwargs)
        if self._executable.donated:
            require_donatable(arrays, self._executable.donated, "argument {}".format)
        return self._finish(self._executable(arrays))

    def explain(self, *args: Any, measure: bool = False, **kwargs: Any) -> Report:
        """The kernels, what was fused into each, its bytes and flops, and what limits it; print it.

        With ``measure`` every kernel is timed on the arguments that are given besides. Raises
        `ArgumentError` for other shapes or types, `UnsupportedError` for a program that is
        interpreted (``check=True``), and to measure where there is no linker.
        """
        if bool(args or kwargs) and not measure:
            raise ArgumentError("explain: arguments are only used with measure=True")
        report: Report = load("tracejit.runtime.explaining").explain(
            self._executable, self._flatten(*args, **kwargs) if measure else None
        )
        return report

    def memory_analysis(self) -> MemoryAnalysis:
        """The bytes that a call takes: of arguments, results, constants, and everything between.

        Raises `UnsupportedError` for a program that is interpreted (``check=True``).
        """
        analysis: MemoryAnalysis = load("tracejit.runtime.memory_analysis").memory_analysis(
            self._executable
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
    ) -> None:
        """Writes a shared library that needs neither Python nor TVM: see `docs/ahead_of_time.md`.

        ``header`` is a header for C, ``python`` a module for Python without this package, ``name``
        the function's, by default that of the file. With ``gradients`` a second function,
        ``name_value_and_grad``, returns the gradients too. Donated arguments are not written over.

        Raises `ArgumentError` for a name that C does not allow, `UnsupportedError` for what only
        Python can compute, `DerivativeError` where there is no gradient, `CompilationError` without
        a C compiler, and `OSError` for a file that cannot be written.
        """
        made = load("tracejit.transforms.export")
        made.export(
            made.Function(self._staged.module, self._names, self._staged.paths),
            path,
            header=header,
            python=python,
            name=name,
            gradients=gradients,
            threads=threads,
            target=self._target,
        )


class Lowered:
    """A traced function that is not compiled yet."""

    def __init__(
        self,
        staged: Staged,
        target: str,
        check: bool,
        flatten: Flatten,
        names: Sequence[str],
        tune: Tune | None = None,
        arguments: Sequence[np.ndarray] = (),
    ) -> None:
        self._staged = staged
        self._target = target
        self._check = check
        self._flatten = flatten
        self._names = names
        self._tune = tune
        self._arguments = arguments

    @property
    def module(self) -> Module:
        """The graph."""
        return self._staged.module

    def as_text(self, dialect: str = "hlo") -> str:
        """The graph as text that XLA accepts: "hlo" or "stablehlo".

        Raises `ArgumentError` for another dialect, `UnsupportedError` for an op that StableHLO
        cannot express.
        """
        writers = {"hlo": hlo.to_text, "stablehlo": hlo.to_stablehlo}
        if dialect not in writers:
            raise ArgumentError(
                f"as_text: the dialect must be 'hlo' or 'stablehlo', not {dialect!r}"
            )
        return writers[dialect](self.module)

    def cost_analysis(self) -> dict[str, Any]:
        """Operations, bytes and transcendental functions of one run: see `cost_analysis`.

        A dictionary of "flops", "transcendentals", "bytes accessed", the same for every kind of
        operation in "ops", and "unknown loops".
        """
        counted: dict[str, Any] = load("tracejit.transforms.cost_analysis").cost_analysis(
            self.module.entry
        )
        return counted

    def memory_report(self) -> MemoryReport:
        """How much memory each step needs, and what lives when it is most; print it."""
        report: MemoryReport = load("tracejit.transforms.memory_report").memory_report(
            self.module.entry
        )
        return report

    def compile(self) -> Compiled:
        """The compiled function, tuned if `jit` was told to."""
        if self._tune is None:
            executable = compile_module(self.module, self._target, self._check)
        else:
            untuned = self._tune.compiled(self.module, self._target)
            executable = self._tune.improved(untuned, self.module, self._target, self._arguments)
        return Compiled(self._staged, executable, self._flatten, self._names, self._target)
