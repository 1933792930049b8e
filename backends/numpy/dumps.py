"""The ops of dumps, evaluated: what is asynchronous happens at its start."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate, interpret
from tracejit.graph import Instruction
from tracejit.ops.dumps import (
    ASYNC_DONE,
    ASYNC_START,
    ASYNC_UPDATE,
    BITCAST,
    COPY,
    COPY_DONE,
    COPY_START,
    DOMAIN,
    FUSION,
)
from tracejit.shapes import TOKEN, AnyShape, Layout, Shape, TupleShape


def _order(layout: Layout | None, rank: int) -> tuple[int, ...]:
    """The dimensions of an array, the one that varies slowest in memory first."""
    return tuple(range(rank)) if layout is None else layout.minor_to_major[::-1]


@interpret.attach(BITCAST)
def bitcast(instruction: Instruction, operand: np.ndarray) -> np.ndarray:
    shape = instruction.array_shape
    packed = np.ascontiguousarray(
        operand.transpose(_order(instruction.attributes["operand_layout"], operand.ndim))
    )
    flat = packed.reshape(-1).view(shape.dtype)
    order = _order(shape.layout, shape.rank)
    laid_out = flat.reshape([shape.dimensions[d] for d in order])
    result: np.ndarray = laid_out.transpose(np.argsort(order))
    return result


@interpret.attach(COPY, DOMAIN)
def copy(instruction: Instruction, operand: Value) -> Value:
    return operand


@interpret.attach(COPY_START)
def copy_start(instruction: Instruction, operand: np.ndarray) -> Value:
    return operand, operand, np.uint32(0)


@interpret.attach(COPY_DONE)
def copy_done(instruction: Instruction, bundle: Value) -> Value:
    return bundle[0]


@interpret.attach(FUSION)
def fusion(instruction: Instruction, *operands: Value) -> Value:
    return evaluate(instruction.attributes["calls"], operands)


@interpret.attach(ASYNC_START)
def async_start(instruction: Instruction, *operands: Value) -> Value:
    result = evaluate(instruction.attributes["calls"], operands)
    contexts = [_zero(shape) for shape in instruction.element_shapes[2:]]
    return (operands, result, *contexts)


def _zero(shape: AnyShape) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(map(_zero, shape.elements))
    return np.zeros(shape.dimensions, shape.dtype) if isinstance(shape, Shape) else TOKEN


@interpret.attach(ASYNC_UPDATE)
def async_update(instruction: Instruction, bundle: Value) -> Value:
    return bundle


@interpret.attach(ASYNC_DONE)
def async_done(instruction: Instruction, bundle: Value) -> Value:
    return bundle[1]
