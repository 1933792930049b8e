"""Collective ops in two halves, evaluated: the first brings the operands, the second waits."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.devices import current_device
from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.backends.numpy.permutes import Permute
from tracejit.backends.numpy.replicas import concatenated, of_shape, reduced, require_gathered
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction, Op
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)
from tracejit.shapes import AnyShape, Shape, TupleShape


def _placeholder(shape: AnyShape) -> Value:
    """Zeros for a result that is not there yet, which nothing but the second half may read."""
    if isinstance(shape, TupleShape):
        return tuple(map(_placeholder, shape.elements))
    assert isinstance(shape, Shape)
    return np.zeros(shape.dimensions, shape.dtype)


def _begin(instruction: Instruction, operands: tuple[np.ndarray, ...]) -> None:
    device = current_device()
    members = device.group(instruction)
    assert members is not None, "every device is in a group"
    device.pending[instruction].append(device.meet(instruction, members, operands))


def _begun(instruction: Instruction, op: Op) -> tuple[Instruction, list[tuple[np.ndarray, ...]]]:
    """The first half of ``instruction``, and what all devices of its group have brought."""
    start = _start_of(instruction, op)
    device = current_device()
    return start, device.attend(instruction, device.pending[start].popleft())


def _start_of(instruction: Instruction, op: Op) -> Instruction:
    (start,) = instruction.operands
    if start.op is not op or not current_device().pending[start]:
        raise UnsupportedError(
            f"{instruction.op.function}: its operand must be an {op.opcode}, used once",
            instruction.source,
        )
    return start


@interpret.attach(ALL_REDUCE_START)
def all_reduce_start(instruction: Instruction, *operands: np.ndarray) -> Value:
    _begin(instruction, operands)
    return _placeholder(instruction.shape)


@interpret.attach(ALL_REDUCE_DONE)
def all_reduce_done(instruction: Instruction, context: Value) -> Value:
    start, gathered = _begun(instruction, ALL_REDUCE_START)
    return of_shape(instruction, reduced(start, gathered))


@interpret.attach(ALL_GATHER_START)
def all_gather_start(instruction: Instruction, *operands: np.ndarray) -> Value:
    _begin(instruction, operands)
    return _placeholder(instruction.shape)


@interpret.attach(ALL_GATHER_DONE)
def all_gather_done(instruction: Instruction, context: Value) -> Value:
    start, gathered = _begun(instruction, ALL_GATHER_START)
    results = concatenated(start, gathered)
    require_gathered(instruction, instruction.element_shapes, results)
    return of_shape(instruction, results)


@interpret.attach(COLLECTIVE_PERMUTE_START)
def collective_permute_start(instruction: Instruction, *operands: Value) -> Value:
    current_device().pending[instruction].append(Permute(instruction, operands))
    return _placeholder(instruction.shape)


@interpret.attach(COLLECTIVE_PERMUTE_DONE)
def collective_permute_done(instruction: Instruction, context: Value) -> Value:
    start = _start_of(instruction, COLLECTIVE_PERMUTE_START)
    permute: Permute = current_device().pending[start].popleft()
    return permute.result()
