"""`Machine`: the processor properties that kernels are scheduled for."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import DataType


@dataclass(frozen=True)
class Machine:
    """A processor: its vector registers, its threads, and its caches in bytes per core.

    ``vector_bytes`` is 64 for AVX-512, 32 for AVX2, 16 for SSE and NEON; ``architecture`` is
    LLVM's name. Without ``python`` kernels may not call back to the interpreter's libraries.
    """

    vector_bytes: int = 32
    threads: int = 2
    l1: int = 32 << 10
    l2: int = 512 << 10
    python: bool = True
    architecture: str = "x86_64"

    @property
    def registers(self) -> int:
        """The number of vector registers."""
        return 32 if self.vector_bytes == 64 or self.architecture != "x86_64" else 16

    def lanes(self, dtype: str, count: int | None = None) -> int:
        """Elements of ``dtype`` in one vector; if ``count`` is fewer, the next lower
        power of two.
        """
        full = max(1, self.vector_bytes // int(DataType(dtype).itemsize))
        return full if count is None else min(full, 1 << (count - 1).bit_length())
