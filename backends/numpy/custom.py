"""CustomCall, evaluated by the function that is registered for its target."""

from __future__ import annotations

import functools

import numpy as np

from tracejit.backends.numpy.extents import joined, split
from tracejit.backends.numpy.interpreter import Value, evaluate, interpret
from tracejit.graph import Computation, Instruction
from tracejit.hlo import parse
from tracejit.ops.custom import (
    CUSTOM_CALL,
    DYNAMIC_TARGET,
    INFEED_TARGET,
    OUTFEED_TARGET,
    RECV_TARGET,
    SEND_TARGET,
)
from tracejit.queues import channel, current_feeds
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import call_target


@interpret.attach(CUSTOM_CALL)
def custom_call(instruction: Instruction, *operands: Value) -> Value:
    attributes = instruction.attributes
    if attributes["custom_call_target"] == DYNAMIC_TARGET:
        entry = _computation(attributes["backend_config"])
        pairs = zip(entry.parameters, operands, strict=True)
        made = evaluate(entry, [joined(p.shape, value) for p, value in pairs])
        return split(entry.root.shape, made)
    if attributes["custom_call_target"] == INFEED_TARGET:
        return current_feeds()[0].take(instruction.shape, instruction.source)
    if attributes["custom_call_target"] == OUTFEED_TARGET:
        current_feeds()[1].put(*operands)
        return ()
    if attributes["custom_call_target"] == RECV_TARGET:
        return channel(attributes["backend_config"]).take(instruction.shape, instruction.source)
    if attributes["custom_call_target"] == SEND_TARGET:
        channel(attributes["backend_config"]).put(*operands)
        return ()
    constraints = attributes["operand_layout_constraints"] or [
        o.shape for o in instruction.operands
    ]
    laid_out = [_laid_out(o, c) for o, c in zip(operands, constraints, strict=True)]
    return call_target(
        attributes["custom_call_target"],
        laid_out,
        instruction.shape,
        attributes["backend_config"],
        instruction.source,
        attributes["output_to_operand_aliasing"],
        attributes["operand_layout_constraints"],
    )


def _laid_out(value: Value, wanted: AnyShape) -> Value:
    """An operand whose memory is in the order that a layout constraint asks for."""
    if isinstance(wanted, TupleShape):
        return tuple(_laid_out(v, s) for v, s in zip(value, wanted.elements, strict=True))
    if not isinstance(wanted, Shape) or wanted.layout is None or not isinstance(value, np.ndarray):
        return value
    order = wanted.layout.minor_to_major[::-1]
    return np.ascontiguousarray(value.transpose(order)).transpose(np.argsort(order))


@functools.lru_cache(maxsize=1024)
def _computation(text: str) -> Computation:
    return parse(text).entry
