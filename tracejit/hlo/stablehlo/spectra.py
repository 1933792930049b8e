"""Fft."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import enumeration, integers
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.spectra import FFT


@stablehlo.attach(FFT)
def fft(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {
        "fft_length": integers(values["fft_length"]),
        "fft_type": enumeration("fft_type", values["fft_type"]),
    }
    return writer.operation(instruction, "stablehlo.fft", operands, attributes)
