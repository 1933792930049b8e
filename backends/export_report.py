"""The sizes of the parts of an exported library, in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FunctionSize:
    """A function: its kernels, its constants in the file, the memory that a call works in."""

    name: str
    kernels: int
    constant_bytes: int
    workspace_bytes: int


@dataclass(frozen=True)
class ExportReport:
    """The size of a library's file and of its parts; ``str`` is a table."""

    file_bytes: int
    functions: Sequence[FunctionSize]

    @property
    def code_bytes(self) -> int:
        """Code and what the system needs to load it."""
        return self.file_bytes - sum(each.constant_bytes for each in self.functions)

    def __str__(self) -> str:
        lines = [f"{self.file_bytes:,} bytes, {self.code_bytes:,} of code"]
        for each in self.functions:
            lines.append(
                f"{each.name}: {each.kernels} kernels, {each.constant_bytes:,} bytes of constants, "
                f"{each.workspace_bytes:,} bytes of memory in a call"
            )
        return "\n".join(lines)
