"""CustomCall, evaluated by the function that is registered for its target."""

from __future__ import annotations

from tracejit.backends.numpy.interpreter import Value, interpret
from tracejit.graph import Instruction
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.targets import call_target


@interpret.attach(CUSTOM_CALL)
def custom_call(instruction: Instruction, *operands: Value) -> Value:
    attributes = instruction.attributes
    return call_target(
        attributes["custom_call_target"],
        operands,
        instruction.shape,
        attributes["backend_config"],
        instruction.source,
    )
