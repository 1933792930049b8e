"""Scan, which the dialect lacks: a While."""

from __future__ import annotations

from dataclasses import replace

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.scanning import SCAN, scan_as_while


@stablehlo.attach(SCAN)
def scan(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    def build(*values: Instruction) -> Instruction:
        return scan_as_while(replace(instruction, operands=values))

    return writer.compose(operands, [o.shape for o in instruction.operands], build)
