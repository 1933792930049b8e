"""The functions of numbers that a target's kernels can call."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tracejit.backends.tvm.ir import complex_mathematics, mathematics
from tracejit.backends.tvm.ir.intrinsics import VOCABULARY

__all__ = ["Mathematics", "complex_mathematics", "mathematics"]  # they fill the vocabulary


@dataclass(frozen=True)
class Mathematics:
    """The names of the intrinsics that a target's build replaces by code of its own."""

    functions: AbstractSet[str]

    @property
    def missing(self) -> list[str]:
        """The functions that element rules may call and this target lacks."""
        return sorted(VOCABULARY - self.functions)
