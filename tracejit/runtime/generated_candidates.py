"""A program's kernels written in other ways, by a code generator in another process.

    candidates = GeneratedCandidates(module, target, key)
    candidates.library("k3_dot_general", [{"tile": "6x2"}], folder)

It is what `tracejit.backends.tunable.Candidates` asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tracejit.backends.artifact import InProcess
from tracejit.backends.target import Target
from tracejit.backends.tunable import Find, Library, Taken, Tunable
from tracejit.graph import Module
from tracejit.runtime.code_generator import generate, has_own_kernels

_MODULE = "tuning_candidates"


class GeneratedCandidates:
    """The kernels of a module; ``key`` is the program's in the cache.

    Raises `CompilationError` for an op without a rule, and where the compiler dies.
    """

    def __init__(self, module: Module, target: Target, key: str) -> None:
        self._module = module
        self._program = (key, module, target)
        self._is_new = has_own_kernels(module, target)
        self.kernels: Sequence[Tunable] = self._generate("kernels_of")

    def library(self, kernel: str, ways: Sequence[Taken], folder: Path) -> Library:
        """A kernel written in each of these ways, as a library in ``folder``."""
        made: Library = self._generate("library_of", kernel, ways, folder)
        return made

    def build(self, find: Find) -> bytes | InProcess:
        """The whole program, its kernels written as ``find`` says."""
        known = {kernel.text: find(kernel.text) for kernel in self.kernels}
        built: bytes | InProcess = self._generate("program_of", known)
        return built

    def _generate(self, function: str, *arguments: Any) -> Any:
        return generate(
            f"{_MODULE}.{function}",
            *self._program,
            *arguments,
            title=self._module.name,
            graph=self._module,
            is_new=self._is_new,
        )
