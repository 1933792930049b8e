"""Constant folding: evaluates instructions that depend on no argument at compile time.

    fold_constants(roots)

    sin(iota() * 0.1)        constant([0, 0.0998, …])

Cheap instructions are left: they may be fused, and take no memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate_instruction, interpret
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, IOTA, constant
from tracejit.ops.layout import BROADCAST_IN_DIM
from tracejit.shapes import Shape
from tracejit.traversal import in_order, transform

MOST_BYTES = 1 << 20
"""The most elements of a folded value, and of its operands."""
MOST_BYTES_IN_ALL = 2 << 20
LEAST_ELEMENTS = 2
"""Scalars are cheap, and folded if all of their operands are literals."""


def fold_constants(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` in which expensive constant expressions are constants."""
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
    """Instructions of moderate size that depend only on constants, and take a function call."""
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
        is_function = op.family in ("elementwise", "elementwise_unary")
        own = is_function and not op.is_cheap and shape.size >= LEAST_ELEMENTS
        inside = any(operand in costly for operand in instruction.operands)
        # A broadcast's operand is kept instead.
        if own or (inside and instruction.op is not BROADCAST_IN_DIM):
            costly.add(instruction)
    return costly
