"""What the CPU's kernels need to know of the processor they are scheduled for."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import DataType

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.ir.limits import Limits


@dataclass(frozen=True)
class Machine(Limits):
    """One processor: its vector registers, its threads, and its caches in bytes per core.

    ``vector_bytes`` is 64 for AVX-512, 32 for AVX and AVX2, which ``has_avx2`` tells apart, 16 for
    SSE and NEON; ``architecture`` is LLVM's name. Without ``python`` there is no interpreter to
    call back, where its libraries would be quicker.
    """

    vector_bytes: int = 32
    threads: int = 2
    l1: int = 32 << 10
    l2: int = 512 << 10
    python: bool = True
    has_avx2: bool = True
    architecture: str = "x86_64"
    row_bytes: int = 128 << 10
    longest_column: int = 1 << 11
    cut_cumulative: int = 1 << 13
    selected_few: int = 8
    selected: int = 128
    wide_sorts: int = 64
    fourier_kernels: bool = True
    runs_iterations: bool = True

    @property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.vector_bytes == 64 or self.architecture != "x86_64" else 16

    @property
    def permutes(self) -> bool:
        """Whether vectors of 32 bytes are permuted by indices in another one."""
        return self.vector_bytes == 32 and self.has_avx2 and self.architecture == "x86_64"

    def lanes(self, dtype: str, count: int | None = None) -> int:
        """Elements of ``dtype`` in one vector; fewer, a power of two, where ``count`` is fewer."""
        full = max(1, self.vector_bytes // int(DataType(dtype).itemsize))
        return full if count is None else min(full, 1 << (count - 1).bit_length())


def machine_of(frame: Frame) -> Machine:
    """The machine that a kernel is written for."""
    assert isinstance(frame.limits, Machine)
    return frame.limits
