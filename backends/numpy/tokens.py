"""AfterAll, AddDependency, Infeed and Outfeed, evaluated. A token's value is the shape `TOKEN`."""

from __future__ import annotations

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.tokens import ADD_DEPENDENCY, AFTER_ALL, INFEED, OUTFEED
from tracejit.queues import current_feeds
from tracejit.shapes import TOKEN, TupleShape


@interpret.attach(AFTER_ALL)
def after_all(instruction: Instruction, *tokens: Value) -> Value:
    return TOKEN


@interpret.attach(ADD_DEPENDENCY)
def add_dependency(instruction: Instruction, operand: Value, token: Value) -> Value:
    return operand


@interpret.attach(INFEED)
def infeed(instruction: Instruction, token: Value) -> Value:
    shape = instruction.element_shapes[0]
    if shape == TupleShape(()):
        return (), TOKEN
    return current_feeds()[0].take(shape, instruction.source), TOKEN


@interpret.attach(OUTFEED)
def outfeed(instruction: Instruction, operand: Value, token: Value) -> Value:
    current_feeds()[1].put(operand)
    return TOKEN
