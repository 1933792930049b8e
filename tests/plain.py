"""Ops that only compiled modules hold, said with ops that any module may hold.

XLA parses such ops, but its compiler, which makes them itself, takes none from outside.
"""

from __future__ import annotations

from typing import Any

from tests.alone import Alone
from tests.samples.custom import SAID
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.reduction import REDUCE, SORT, TOP_K
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.traversal import transform

_PASSING = {"Copy", "Domain", "AsyncUpdate"}
# XLA has no code for products of types of two bits, for those of f4e2m1fn with results of another
# type, and for reductions of several arrays and top-k, if one array is of so few bits. Its sort of
# two bits writes beyond its memory.
_NOT_NARROW = {CONV_GENERAL_DILATED, DOT_GENERAL, REDUCE, SORT, TOP_K}
_WIDER = {
    ElementType.S2: ElementType.S8,
    ElementType.U2: ElementType.U8,
    ElementType.F4E2M1FN: ElementType.F32,
}


def plain(computation: Computation) -> Computation:
    """The computation, and all that it calls, without copies, fusions, bit casts and the like.

    Collective ops that XLA has no code for are those of one device, and those that it
    lacks in the narrowest types are in wider ones. Queues hold no data.
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
        if _is_too_narrow(instruction, operands):
            return _wider(instruction, operands)
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


def _is_too_narrow(instruction: Instruction, operands: tuple[Instruction, ...]) -> bool:
    """Whether XLA has no code for the op because of its operands' types."""
    if instruction.op not in _NOT_NARROW:
        return False
    is_tuple = isinstance(instruction.shape, TupleShape)
    types = {o.array_shape.element_type for o in operands}
    return not types.isdisjoint(_WIDER) and (is_tuple or instruction.op is not REDUCE)


def _wider(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
    """The op in wider types, whose results are converted back: integers wrap."""
    attributes = {
        n: _of_wider(plain(v)) if isinstance(v, Computation) else v
        for n, v in instruction.attributes.items()
    }
    made = Instruction(
        instruction.op,
        tuple(_as(o, _wider_shape(o.shape)) for o in operands),
        _wider_shape(instruction.shape),
        attributes,
        instruction.source,
    )
    return _as(made, instruction.shape)


def _of_wider(computation: Computation) -> Computation:
    """The computation with parameters and results of wider types."""
    parameters = tuple(
        ops.parameter(n, _wider_shape(p.shape)) for n, p in enumerate(computation.parameters)
    )
    given = [_as(w, p.shape) for w, p in zip(parameters, computation.parameters, strict=True)]
    made = ops.call(computation, given)
    root = _as(made, _wider_shape(made.shape))
    return Computation(computation.name, parameters, root)


def _wider_shape(shape: AnyShape) -> AnyShape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_wider_shape(element) for element in shape.elements))
    assert isinstance(shape, Shape)
    return shape.with_element_type(_WIDER.get(shape.element_type, shape.element_type))


def _as(value: Instruction, shape: AnyShape) -> Instruction:
    """The arrays of ``value``, converted to the element types of ``shape``."""
    if isinstance(shape, TupleShape):
        parts = zip(ops.elements_of(value), shape.elements, strict=True)
        return ops.tuple_([_as(*part) for part in parts])
    assert isinstance(shape, Shape)
    if value.array_shape.element_type is shape.element_type:
        return value
    return ops.convert_element_type(value, shape.element_type)
