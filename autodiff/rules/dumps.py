"""The ops of dumps: identities, and computations by another name."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.autodiff.reverse import Cotangent, Nested, differentiate
from tracejit.autodiff.rules.control import pullback_of_call
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
    bitcast,
)
from tracejit.ops.elementwise import add


@differentiate.attach(BITCAST)
def bitcast_rule(instruction: Instruction, cotangent: Instruction) -> Sequence[Cotangent]:
    given, wanted = instruction.operands[0].array_shape, instruction.array_shape
    if given.element_type is not wanted.element_type:
        return [None]
    given = given.with_layout(instruction.attributes["operand_layout"])
    laid_out = Instruction(COPY, (cotangent,), wanted, {}, instruction.source)
    return [bitcast(laid_out, given)]


@differentiate.attach(ASYNC_UPDATE, COPY, DOMAIN)
def identity(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [cotangent]


@differentiate.attach(COPY_START)
def copy_start(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    assert not isinstance(cotangent, Instruction)
    assert cotangent is not None
    copied, itself, _ = cotangent
    if isinstance(copied, Instruction) and isinstance(itself, Instruction):
        return [add(copied, itself)]
    return [copied if itself is None else itself]


@differentiate.attach(COPY_DONE)
def copy_done(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return [[cotangent, None, None]]


@differentiate.attach(FUSION)
def fusion(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    return pullback_of_call(instruction, instruction.attributes["calls"], cotangent)


@differentiate.attach(ASYNC_START)
def async_start(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    assert not isinstance(cotangent, Instruction)
    assert cotangent is not None
    return pullback_of_call(instruction, instruction.attributes["calls"], cotangent[1])


@differentiate.attach(ASYNC_DONE)
def async_done(instruction: Instruction, cotangent: Nested) -> Sequence[Nested]:
    parts: list[Nested] = [None] * len(instruction.operands[0].element_shapes)
    parts[1] = cotangent
    return [parts]
