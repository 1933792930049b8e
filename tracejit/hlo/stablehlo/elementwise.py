"""Ops on two and three operands, element by element."""

from __future__ import annotations

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.elementwise import (
    ADD,
    AND,
    ATAN2,
    CLAMP,
    COMPLEX,
    DIV,
    MAX,
    MIN,
    MUL,
    OR,
    POW,
    REM,
    SELECT,
    SHIFT_LEFT,
    SHIFT_RIGHT_ARITHMETIC,
    SHIFT_RIGHT_LOGICAL,
    SUB,
    XOR,
)

_NAMES = {
    ADD: "add",
    AND: "and",
    ATAN2: "atan2",
    COMPLEX: "complex",
    DIV: "divide",
    MAX: "maximum",
    MIN: "minimum",
    MUL: "multiply",
    OR: "or",
    POW: "power",
    REM: "remainder",
    SHIFT_LEFT: "shift_left",
    SHIFT_RIGHT_ARITHMETIC: "shift_right_arithmetic",
    SHIFT_RIGHT_LOGICAL: "shift_right_logical",
    SUB: "subtract",
    XOR: "xor",
    CLAMP: "clamp",
}


@stablehlo.attach(*_NAMES)
def elementwise(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.elementwise(instruction, f"stablehlo.{_NAMES[instruction.op]}", operands)


@stablehlo.attach(SELECT)
def select(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    return writer.operation(instruction, "stablehlo.select", operands)
