"""Constant folding: computes while compiling what depends on no argument.

    fold_constants(roots)

A table of sines that a program makes of `np.arange` is a constant, and needs neither code nor time
in every call. What is cheap to compute is left alone: it may be fused, and takes no memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate_instruction, interpret
from tracejit.graph import Instruction
from tracejit.ops import elementwise as binary
from tracejit.ops import elementwise_unary as unary
from tracejit.ops.constants import CONSTANT, IOTA, constant
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.shapes import Shape
from tracejit.traversal import in_order, transform

MOST_BYTES = 1 << 20
"""Of one value, and of any that it is made of."""
MOST_BYTES_IN_ALL = 2 << 20
LEAST_ELEMENTS = 2
"""Single numbers are cheap, and folded where all of their operands are literals."""

_CHEAP = frozenset(
    {
        binary.ADD, binary.AND, binary.CLAMP, binary.MAX, binary.MIN, binary.MUL, binary.OR,
        binary.SELECT, binary.SUB, binary.XOR, unary.ABS, unary.NEG, unary.NOT,
    }
)  # fmt: skip


def fold_constants(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` with constants in place of what costs something and depends on nothing."""
    order = in_order(roots)
    costly = _costly(order)
    if not costly:
        return list(roots)
    wanted = {i for i in roots if i in costly}
    wanted |= {o for i in order if i not in costly for o in i.operands if o in costly}
    values: dict[Instruction, np.ndarray] = {}
    total = 0
    made: dict[Instruction, Instruction] = {}
    for instruction in in_order(wanted):
        operands = [values[operand] for operand in instruction.operands]
        values[instruction] = np.asarray(evaluate_instruction(instruction, operands))
        if instruction in wanted and total + values[instruction].nbytes <= MOST_BYTES_IN_ALL:
            total += values[instruction].nbytes
            literal = np.asarray(values[instruction], order="C")
            made[instruction] = constant(literal, instruction.array_shape.element_type)
    return transform(roots, lambda instruction, operands: None, made)


def _costly(order: Sequence[Instruction]) -> set[Instruction]:
    """What depends on constants alone, of moderate size, and takes a function to compute."""
    known: set[Instruction] = set()
    costly: set[Instruction] = set()
    for instruction in order:
        shape = instruction.shape
        if not isinstance(shape, Shape) or shape.is_dynamic or shape.nbytes > MOST_BYTES:
            continue
        if instruction.op in (CONSTANT, IOTA):
            known.add(instruction)
            continue
        op = instruction.op
        is_plain = (op.is_elementwise or op.family == "layout") and not instruction.computations
        if not is_plain or not all(operand in known for operand in instruction.operands):
            continue
        if instruction.has_effect or interpret.get(instruction.op) is None:
            continue
        known.add(instruction)
        is_function = instruction.op.family in ("elementwise", "elementwise_unary")
        own = is_function and instruction.op not in _CHEAP and shape.size >= LEAST_ELEMENTS
        inside = any(operand in costly for operand in instruction.operands)
        # What repeats a value is no longer one to keep.
        if own or (inside and instruction.op is not BROADCAST_IN_DIM):
            costly.add(instruction)
    return costly
