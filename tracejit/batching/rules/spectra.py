"""Fft works along the last dimensions, so that the batch is one more of the others."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batching
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.spectra import FFT


@batching.attach(FFT)
def fft_rule(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    return make(FFT, operands[0].value, **instruction.attributes)
