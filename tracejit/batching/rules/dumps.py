"""The ops of dumps: identities on any value, and computations by another name."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batch_computation, batching, uniform
from tracejit.batching.sequential import one_by_one
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import constant, elements_of, get_tuple_element, tuple_
from tracejit.ops.control import call
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
from tracejit.ops.layout import full
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape

batching.attach(BITCAST)(one_by_one)


@batching.attach(COPY, DOMAIN, ASYNC_UPDATE)
def identity(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    (operand,) = operands
    return Batched(make(instruction.op, operand.value, **instruction.attributes), operand.flag)


@batching.attach(COPY_START)
def copy_start(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    (operand,) = operands
    context = constant(0, ElementType.U32)
    bundle = tuple_([operand.value, operand.value, context])
    return Batched(bundle, (operand.flag, operand.flag, False))


@batching.attach(COPY_DONE)
def copy_done(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    (bundle,) = operands
    assert not isinstance(bundle.flag, bool)
    return Batched(elements_of(bundle.value)[0], bundle.flag[0])


@batching.attach(FUSION)
def fusion(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    return _called(instruction, operands, size)


def _called(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    flags = [operand.flag for operand in operands]
    computation, flag = batch_computation(instruction.attributes["calls"], flags, size)
    return Batched(call(computation, [operand.value for operand in operands]), flag)


@batching.attach(ASYNC_START)
def async_start(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    result = _called(instruction, operands, size)
    contexts = instruction.element_shapes[2:]
    values = tuple_([operand.value for operand in operands])
    bundle = tuple_([values, result.value, *map(_zeros, contexts)])
    flags = tuple(operand.flag for operand in operands)
    return Batched(bundle, (flags, result.flag, *(uniform(c, False) for c in contexts)))


def _zeros(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_zeros(element) for element in shape.elements])
    assert isinstance(shape, Shape)
    return full(shape, 0)


@batching.attach(ASYNC_DONE)
def async_done(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    (bundle,) = operands
    assert not isinstance(bundle.flag, bool)
    return Batched(get_tuple_element(bundle.value, 1), bundle.flag[1])
