"""Blocks of a kernel that fit on a multiprocessor, against NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest

from tracejit.cuda.architectures import architecture_of
from tracejit.errors import AttributeValueError


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared_bytes", "blocks"),
    [
        ("sm_90a", 256, 40, 4096, 6),  # registers: 40 x 256 of 65536
        ("sm_90a", 256, 32, 0, 8),  # threads: 256 of 2048
        ("sm_80", 32, 16, 0, 32),  # blocks
        ("sm_80", 128, 16, 48 << 10, 3),  # shared memory: 49 of 164 kB
        ("sm_86", 1024, 64, 0, 1),
        ("sm_89", 1024, 128, 0, 0),
    ],
)
def test_blocks_of_a_multiprocessor(
    arch: str, threads: int, registers: int, shared_bytes: int, blocks: int
) -> None:
    found = architecture_of(arch)
    assert found.blocks(threads, registers, shared_bytes) == blocks
    share = found.occupancy(threads, registers, shared_bytes)
    assert share == blocks * threads / found.threads


def test_names() -> None:
    assert architecture_of("sm_103a") is architecture_of("sm_100")
    for name in ("sm_70", "90", "sm_x"):
        with pytest.raises(AttributeValueError, match="nothing is known of the CUDA architecture"):
            architecture_of(name)
