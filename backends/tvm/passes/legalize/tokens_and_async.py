"""Removes ops that only order or rename: tokens, queues, fusions, async pairs and copies.

    plain(computation)        the same on arrays alone; side effects are CustomCalls

A token becomes an empty array, pred[0], so that it passes through tuples and loops without memory;
a dynamic array becomes a pair (see `dynamic_shapes`). Side effects are rebuilt in order, which
keeps their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.backends.tvm.passes.legalize.dynamic_shapes import expanded, is_expanded, pair_shape
from tracejit.backends.tvm.passes.legalize.send_recv import carried_within
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.base import make
from tracejit.ops.constants import constant, elements_of, get_tuple_element, parameter, tuple_
from tracejit.ops.control import CALL, OPTIMIZATION_BARRIER, call, optimization_barrier
from tracejit.ops.custom import CUSTOM_CALL, INFEED_TARGET, OUTFEED_TARGET, custom_call
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
from tracejit.ops.element_types import bitcast_convert_type
from tracejit.ops.inlining import inlined
from tracejit.ops.layout import full, reshape, transpose
from tracejit.ops.tokens import ADD_DEPENDENCY, AFTER_ALL, INFEED, OUTFEED
from tracejit.rules import RuleTable
from tracejit.shapes import TOKEN, AnyShape, ElementType, Layout, Shape, TupleShape
from tracejit.traversal import (
    called_computations,
    effects_of,
    in_order,
    rebuild,
    transform,
    unreached,
)

Operands = Sequence[Instruction]
Made = Instruction | tuple[Instruction, Instruction]

simpler_names: RuleTable[Callable[[Instruction, Operands], Made]] = RuleTable("plain")
"""``rule(instruction, operands) -> value``: the replacement on arrays; ``operands`` are replaced
already.

For an op with a side effect, the value and the instruction that has the effect.
"""

_EMPTY = Shape(ElementType.PRED, (0,))


def plain_shape(shape: AnyShape) -> AnyShape:
    """``shape`` with empty arrays for tokens, and pairs for dynamic arrays."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(plain_shape, shape.elements)))
    if isinstance(shape, Shape) and shape.is_dynamic:
        return pair_shape(shape)
    return _EMPTY if shape == TOKEN else shape


def plain(computation: Computation) -> Computation:
    """The computation, and all that it calls, without tokens and renaming ops.

    Calls of computations with side effects are inlined, so that these are ordered with the others.
    """
    written = inlined(computation, rerolls=True)
    rewriting = _Plain()
    for each in called_computations(Module("plain", written)):
        rewriting.computation(each)
    return rewriting.computation(written)


class _Plain:
    def __init__(self) -> None:
        self.made: dict[Computation, Computation] = {}

    def computation(self, computation: Computation) -> Computation:
        if computation not in self.made:
            self.made[computation] = self._rewritten(computation)
        return self.made[computation]

    def _rewritten(self, computation: Computation) -> Computation:
        order = in_order([computation.root, *computation.effects])
        carried = carried_within(order)
        new: dict[Instruction, Instruction] = {}
        for p in computation.parameters:
            shape = plain_shape(p.shape)
            number = p.attributes["parameter_number"]
            new[p] = p if shape == p.shape else parameter(number, shape)
        effects: list[Instruction] = []
        for instruction in order:
            if instruction not in new:
                operands = [new[o] for o in carried.get(instruction, instruction.operands)]
                new[instruction] = self._instruction(instruction, operands, effects)
        if all(made is instruction for instruction, made in new.items()):
            return computation
        parameters = tuple(new[p] for p in computation.parameters)
        root = new[computation.root]
        return Computation(computation.name, parameters, root, unreached(root, effects))

    def _instruction(
        self, instruction: Instruction, operands: Operands, effects: list[Instruction]
    ) -> Instruction:
        if is_expanded(instruction):
            return expanded(instruction, operands, plain_shape(instruction.shape))
        rule = simpler_names.get(instruction.op)
        if rule is not None:
            made = rule(instruction, operands)
            if isinstance(made, Instruction):
                return made
            value, effect = made
            effects.append(effect)
            return value
        attributes = {n: self._attribute(v) for n, v in instruction.attributes.items()}
        if instruction.op in CALLS:
            called = attributes["to_apply" if instruction.op is CALL else "calls"]
            result = self._called(instruction, called, operands, effects)
            if instruction.op is not ASYNC_START:
                return result
            contexts = [zeros(plain_shape(shape)) for shape in instruction.element_shapes[2:]]
            return tuple_([tuple_(operands), result, *contexts])
        changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
        changed |= any(v is not instruction.attributes[n] for n, v in attributes.items())
        if not changed and not instruction.has_effect:
            return instruction
        shape = plain_shape(instruction.shape)
        new = Instruction(instruction.op, tuple(operands), shape, attributes, instruction.source)
        if new.has_effect:
            effects.append(new)
        return new

    def _called(
        self,
        instruction: Instruction,
        computation: Computation,
        operands: Operands,
        effects: list[Instruction],
    ) -> Instruction:
        if computation.has_effect:
            given = dict(zip(computation.parameters, operands, strict=True))
            own = effects_of(computation)
            root, *done = transform([computation.root, *own], _anew, given)
            effects.extend(done)
            return root
        if instruction.op is CALL and computation is instruction.attributes["to_apply"]:
            if all(a is b for a, b in zip(operands, instruction.operands, strict=True)):
                return instruction
        return call(computation, operands)

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Computation):
            return self.computation(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            new = tuple(map(self.computation, value))
            return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
        return value


CALLS = frozenset({CALL, FUSION, ASYNC_START})


def _anew(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
    """A separate side effect for each call."""
    return rebuild(instruction, operands) if instruction.has_effect else None


def zeros(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([zeros(element) for element in shape.elements])
    assert isinstance(shape, Shape)
    return full(shape, 0)


def no_token() -> Instruction:
    return constant(np.zeros(0, np.bool_))


@simpler_names.attach(AFTER_ALL)
def _after_all(instruction: Instruction, operands: Operands) -> Instruction:
    return no_token()


@simpler_names.attach(ADD_DEPENDENCY, ASYNC_UPDATE, COPY, DOMAIN)
def _first(instruction: Instruction, operands: Operands) -> Instruction:
    return operands[0]


@simpler_names.attach(OPTIMIZATION_BARRIER)
def _barrier(instruction: Instruction, operands: Operands) -> Instruction:
    """A barrier for each array."""
    return _apart(operands[0], optimization_barrier)


def _apart(
    value: Instruction, function: Callable[[Instruction], Instruction] = lambda array: array
) -> Instruction:
    """A value with its tuples as Tuple instructions, and ``function`` applied to each array."""
    if isinstance(value.shape, TupleShape):
        return tuple_([_apart(element, function) for element in elements_of(value)])
    return function(value)


@simpler_names.attach(COPY_START)
def _copy_start(instruction: Instruction, operands: Operands) -> Instruction:
    return tuple_([operands[0], operands[0], constant(0, ElementType.U32)])


@simpler_names.attach(COPY_DONE)
def _copy_done(instruction: Instruction, operands: Operands) -> Instruction:
    return get_tuple_element(operands[0], 0)


@simpler_names.attach(ASYNC_DONE)
def _async_done(instruction: Instruction, operands: Operands) -> Instruction:
    return get_tuple_element(operands[0], 1)


def _order(layout: Layout | None, rank: int) -> tuple[int, ...]:
    return tuple(range(rank)) if layout is None else layout.minor_to_major[::-1]


@simpler_names.attach(BITCAST)
def _bitcast(instruction: Instruction, operands: Operands) -> Instruction:
    (operand,) = operands
    given, wanted = operand.array_shape, instruction.array_shape
    if not given.rank and not wanted.rank:  # as in a comparator
        same = given.element_type is wanted.element_type
        return operand if same else bitcast_convert_type(operand, wanted.element_type)
    order = _order(instruction.attributes["operand_layout"], given.rank)
    flat = reshape(transpose(operand, order), (given.size,))
    if given.element_type is not wanted.element_type:
        flat = _retyped(flat, wanted.element_type)
    order = _order(wanted.layout, wanted.rank)
    laid_out = reshape(flat, [wanted.dimensions[d] for d in order])
    back = [order.index(d) for d in range(wanted.rank)]
    return transpose(laid_out, back)


def _retyped(flat: Instruction, element_type: ElementType) -> Instruction:
    """The bytes of an array of rank 1 as another element type, of rank 1 again."""
    shape = flat.array_shape
    if shape.element_type.bits < element_type.bits:
        ratio = element_type.bits // shape.element_type.bits
        flat = reshape(flat, (shape.size // ratio, ratio))
    made = bitcast_convert_type(flat, element_type)
    return reshape(made, (made.array_shape.size,))


@simpler_names.attach(INFEED)
def _infeed(instruction: Instruction, operands: Operands) -> Made:
    data = instruction.element_shapes[0]
    if data == TupleShape(()):
        return tuple_([tuple_([]), no_token()])
    made = at_source(instruction, custom_call(INFEED_TARGET, [], data, has_side_effect=True))
    return tuple_([made, no_token()]), made


@simpler_names.attach(OUTFEED)
def _outfeed(instruction: Instruction, operands: Operands) -> Made:
    nothing = TupleShape(())
    made = custom_call(OUTFEED_TARGET, [_apart(operands[0])], nothing, has_side_effect=True)
    return no_token(), at_source(instruction, made)


@simpler_names.attach(CUSTOM_CALL)
def _custom_call(instruction: Instruction, operands: Operands) -> Made:
    """The call without tokens; it returns empty arrays in their place."""
    given = [
        _apart(operand) if isinstance(operand.shape, TupleShape) else operand
        for operand, old in zip(operands, instruction.operands, strict=True)
        if old.shape != TOKEN
    ]
    shape = instruction.shape
    unchanged = tuple(given) == instruction.operands and plain_shape(shape) == shape
    if unchanged and not instruction.has_effect:
        return instruction
    attributes = dict(instruction.attributes)
    if not unchanged:
        attributes["operand_layout_constraints"] = None
        attributes["output_to_operand_aliasing"] = ()
        attributes["shape"] = _without_tokens(shape)
    made = at_source(instruction, make(CUSTOM_CALL, *given, **attributes))
    value = _with_tokens(shape, made)
    return (value, made) if made.has_effect else value


def at_source(instruction: Instruction, made: Instruction) -> Instruction:
    """The replacement of ``instruction``, with its source line."""
    return Instruction(made.op, made.operands, made.shape, made.attributes, instruction.source)


def _without_tokens(shape: AnyShape) -> AnyShape:
    if shape == TOKEN:
        return TupleShape(())
    if not isinstance(shape, TupleShape):
        return shape
    return TupleShape(tuple(_without_tokens(e) for e in shape.elements if e != TOKEN))


def _with_tokens(shape: AnyShape, made: Instruction) -> Instruction:
    """``made``, of type `_without_tokens`, with an empty array for each token of ``shape``."""
    if shape == TOKEN:
        return no_token()
    if not isinstance(shape, TupleShape) or plain_shape(shape) == shape:
        return made
    parts = iter(elements_of(made))
    return tuple_(
        [no_token() if e == TOKEN else _with_tokens(e, next(parts)) for e in shape.elements]
    )
