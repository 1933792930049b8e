"""What NVIDIA's data sheets say of architectures, and how many blocks of a kernel fit there.

    found = architecture_of("sm_90a")
    found.bandwidth, found.flops32
    found.blocks(threads=256, registers=40, shared_bytes=4096)      # 6 on each multiprocessor

It asks no device. A device of the same architecture may have fewer multiprocessors, and less
bandwidth, than the product that stands here for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracejit.errors import AttributeValueError

WARP = 32
REGISTERS_AT_ONCE = 256
"""Registers are given to a warp in such portions."""
RESERVED_SHARED = 1024
"""Shared memory that the system takes of each block, from sm_80 on."""


@dataclass(frozen=True)
class Architecture:
    """One product: bytes and flops a second, and what each of its multiprocessors holds."""

    product: str
    multiprocessors: int
    bandwidth: float
    flops32: float
    flops64: float
    threads: int
    most_blocks: int
    shared_bytes: int
    registers: int = 65536

    def blocks(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Blocks of a kernel that one multiprocessor holds at once; 0 if none fits."""
        warps = -(-threads // WARP)
        of_warp = -(-max(registers, 1) * WARP // REGISTERS_AT_ONCE) * REGISTERS_AT_ONCE
        return min(
            self.threads // (warps * WARP),
            self.registers // (of_warp * warps),
            self.shared_bytes // (shared_bytes + RESERVED_SHARED),
            self.most_blocks,
        )

    def occupancy(self, threads: int, registers: int, shared_bytes: int) -> float:
        """The part of a multiprocessor's threads that a kernel's blocks can fill."""
        return self.blocks(threads, registers, shared_bytes) * threads / self.threads


ARCHITECTURES = {
    75: Architecture("T4", 40, 320e9, 8.1e12, 0.25e12, 1024, 16, 64 << 10),
    80: Architecture("A100 80 GB", 108, 2.04e12, 19.5e12, 9.7e12, 2048, 32, 164 << 10),
    86: Architecture("RTX 3090", 82, 936e9, 35.6e12, 0.56e12, 1536, 16, 100 << 10),
    89: Architecture("RTX 4090", 128, 1.01e12, 82.6e12, 1.29e12, 1536, 24, 100 << 10),
    90: Architecture("H100 SXM", 132, 3.35e12, 66.9e12, 33.5e12, 2048, 32, 228 << 10),
    100: Architecture("B200", 148, 7.7e12, 75e12, 37e12, 2048, 32, 228 << 10),
    120: Architecture("RTX 5090", 170, 1.79e12, 104.8e12, 1.64e12, 1536, 24, 100 << 10),
}
"""By compute capability, times ten."""


def architecture_of(name: str) -> Architecture:
    """The architecture of a name such as ``sm_90a``: its own, or the nearest older one.

    Raises `AttributeValueError` for other names, and for what is older than all.
    """
    found = re.fullmatch(r"sm_(\d+)[af]?", name)
    known = [n for n in ARCHITECTURES if found is not None and n <= int(found[1])]
    if not known:
        raise AttributeValueError(f"nothing is known of the CUDA architecture {name!r}")
    return ARCHITECTURES[max(known)]
