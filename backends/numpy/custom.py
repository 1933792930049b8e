"""CustomCall, evaluated by the function that is registered for its target."""

from __future__ import annotations

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.custom import CUSTOM_CALL, INFEED_TARGET, OUTFEED_TARGET
from tracejit.queues import current_feeds
from tracejit.targets import call_target


@interpret.attach(CUSTOM_CALL)
def custom_call(instruction: Instruction, *operands: Value) -> Value:
    attributes = instruction.attributes
    if attributes["custom_call_target"] == INFEED_TARGET:
        return current_feeds()[0].take(instruction.shape, instruction.source)
    if attributes["custom_call_target"] == OUTFEED_TARGET:
        current_feeds()[1].put(*operands)
        return ()
    return call_target(
        attributes["custom_call_target"],
        operands,
        instruction.shape,
        attributes["backend_config"],
        instruction.source,
    )
