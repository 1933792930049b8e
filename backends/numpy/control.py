"""Call, Map, Conditional, While and OptimizationBarrier, evaluated."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate, interpret
from tracejit.backends.numpy.scalars import evaluate_elementwise
from tracejit.backends.numpy.words import threefry
from tracejit.graph import Instruction
from tracejit.ops.control import CALL, CONDITIONAL, MAP, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.random_maps import threefry_computation


@interpret.attach(CALL)
def call(instruction: Instruction, *operands: Value) -> Value:
    return evaluate(instruction.attributes["to_apply"], operands)


@interpret.attach(MAP)
def map_(instruction: Instruction, *operands: np.ndarray) -> Value:
    computation = instruction.attributes["to_apply"]
    if computation is threefry_computation():
        return threefry(*operands)  # the same, faster
    return evaluate_elementwise(computation, operands)


@interpret.attach(CONDITIONAL)
def conditional(instruction: Instruction, selector: np.ndarray, *operands: Value) -> Value:
    branches = instruction.computations
    if selector.dtype == np.bool_:
        chosen = 0 if selector else 1
    else:
        chosen = int(selector) if 0 <= selector < len(branches) else len(branches) - 1
    return evaluate(branches[chosen], [operands[chosen]])


@interpret.attach(WHILE)
def while_(instruction: Instruction, init: Value) -> Value:
    condition, body = instruction.attributes["condition"], instruction.attributes["body"]
    value = init
    while evaluate(condition, [value]):
        value = evaluate(body, [value])
    return value


@interpret.attach(OPTIMIZATION_BARRIER)
def optimization_barrier(instruction: Instruction, operand: Value) -> Value:
    return operand
