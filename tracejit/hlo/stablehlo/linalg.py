"""Cholesky and TriangularSolve."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import boolean, enumeration
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE


@stablehlo.attach(CHOLESKY)
def cholesky(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    attributes = {"lower": boolean(instruction.attributes["lower"])}
    return writer.operation(instruction, "stablehlo.cholesky", operands, attributes)


@stablehlo.attach(TRIANGULAR_SOLVE)
def triangular_solve(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    attributes = {n: boolean(values[n]) for n in ("left_side", "lower", "unit_diagonal")}
    attributes["transpose_a"] = enumeration("transpose", values["transpose_a"])
    return writer.operation(instruction, "stablehlo.triangular_solve", operands, attributes)
