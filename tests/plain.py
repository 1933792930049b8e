"""Ops that only compiled modules hold, said with ops that any module may hold.

XLA parses such ops, but its compiler, which makes them itself, takes none from outside.
"""

from __future__ import annotations

from typing import Any

from tests.alone import Alone
from tests.samples.custom import SAID
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.shapes import Shape
from tracejit.traversal import transform

_PASSING = {"Copy", "Domain", "AsyncUpdate"}


def plain(computation: Computation) -> Computation:
    """The computation, and all that it calls, without copies, fusions, bit casts and the like.

    Collective ops that XLA has no code for are those of one device. Queues hold no data.
    """
    called: dict[Computation, Computation] = {}
    alone = Alone()

    def inside(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([inside(element) for element in value])
        if isinstance(value, Computation):
            return called.setdefault(value, plain(value))
        return value

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        name = instruction.op.name
        if name in _PASSING:
            return operands[0]
        if name == "Bitcast":
            shape = instruction.array_shape
            assert operands[0].array_shape.element_type is shape.element_type
            return ops.reshape(operands[0], Shape(shape.element_type, shape.dimensions))
        if name == "CopyStart":
            return ops.tuple_([operands[0], operands[0]])
        if name == "CopyDone":
            return ops.get_tuple_element(operands[0], 0)
        if name == "Fusion":
            return ops.call(inside(instruction.attributes["calls"]), operands)
        if name == "AsyncStart":
            called_now = ops.call(inside(instruction.attributes["calls"]), operands)
            return ops.tuple_([ops.tuple_(operands), called_now])
        if name == "AsyncDone":
            return ops.get_tuple_element(operands[0], 1)
        if name == "Infeed":
            return ops.tuple_([ops.tuple_([]), operands[0]])
        if name == "Outfeed":
            return operands[1]
        if name == "CustomCall":
            return SAID[instruction.attributes["custom_call_target"]](*operands)
        made = alone.visit(instruction, operands)
        if made is not None or not instruction.computations:
            return made
        attributes = {n: inside(v) for n, v in instruction.attributes.items()}
        return Instruction(
            instruction.op, operands, instruction.shape, attributes, instruction.source
        )

    root, *effects = transform([computation.root, *computation.effects], visit)
    effects = [effect for effect in effects if effect.has_effect]
    return Computation(computation.name, computation.parameters, root, tuple(effects))
