"""The reference interpreter: evaluates a computation op by op with NumPy.

    evaluate(computation, [x, y])

Arrays go in and out as NumPy arrays of the element types' dtypes; a tuple is a Python tuple, a
token `shapes.TOKEN`.
Inputs are never written to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.backends.numpy.extents import concrete, is_dynamic, wrapped
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.bounds import passes_on
from tracejit.ops.constants import PARAMETER
from tracejit.rules import RuleTable
from tracejit.shapes import Shape
from tracejit.traversal import instructions

Value = Any  # an np.ndarray, or a tuple of Values
InterpretRule = Callable[..., Value]

interpret: RuleTable[InterpretRule] = RuleTable("interpret", "tracejit.backends.numpy")
"""``rule(instruction, *operand_values) -> value``; arrays may come back as NumPy scalars."""


def evaluate_instruction(instruction: Instruction, operands: Sequence[Value]) -> Value:
    """The value of one instruction, of exactly its shape's dtype and dimensions."""
    rule = interpret.get(instruction.op)
    if rule is None:
        raise UnsupportedError(
            f"{instruction.op.function}: the interpreter does not evaluate it", instruction.source
        )
    if passes_on(instruction.op) or not is_dynamic(instruction, operands):
        with np.errstate(all="ignore"):
            value = rule(instruction, *operands)
    else:
        value = evaluate_instruction(*concrete(instruction, operands))
    if not isinstance(instruction.shape, Shape) or instruction.shape.is_dynamic:
        return wrapped(instruction.shape, value)
    array = np.asarray(value)
    shape = instruction.shape
    assert array.dtype == shape.dtype, f"{instruction}: made {array.dtype}"
    assert array.shape == shape.dimensions, f"{instruction}: made {array.shape}"
    return array


OpFunction = Callable[[Instruction, Sequence[Value]], Value]


class _Stepping(threading.local):
    """What works out each instruction of the computations that this thread evaluates."""

    def __init__(self) -> None:
        self.step: OpFunction = evaluate_instruction


_stepping = _Stepping()


@contextmanager
def stepping(step: OpFunction) -> Iterator[None]:
    """Has ``step`` work out every instruction evaluated in the block, in loops and calls too."""
    before, _stepping.step = _stepping.step, step
    try:
        yield
    finally:
        _stepping.step = before


def evaluate(computation: Computation, arguments: Sequence[Value]) -> Value:
    """The value of a computation's root for ``arguments``, one for each parameter."""
    step = _stepping.step
    order = instructions(computation)
    last_use: dict[Instruction, int] = {}
    for position, instruction in enumerate(order):
        for operand in instruction.operands:
            last_use[operand] = position
    last_use[computation.root] = len(order)
    values: dict[Instruction, Value] = dict(zip(computation.parameters, arguments, strict=True))
    for position, instruction in enumerate(order):
        if instruction.op is not PARAMETER:
            operands = [values[o] for o in instruction.operands]
            values[instruction] = step(instruction, operands)
        for operand in instruction.operands:
            if last_use[operand] == position:
                values.pop(operand, None)
    return values[computation.root]
