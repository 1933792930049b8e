"""Ops that a target leaves to a library: LAPACK and NumPy on the CPU, cuBLAS on a GPU."""

from __future__ import annotations

from typing import Protocol

from tracejit.backends.tvm.codegen.root_rules import RootRule
from tracejit.graph import Op


class Libraries(Protocol):
    """What `lower` asks for an op without a schedule."""

    def call(self, op: Op) -> RootRule | None:
        """What writes a call of the library, on memory as it lies on the target."""


class NoLibraries:
    """Every op has a schedule, or cannot be compiled."""

    def call(self, op: Op) -> RootRule | None:
        return None
