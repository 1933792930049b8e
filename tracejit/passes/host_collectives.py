"""Collective ops become calls of the host, for a program that runs on several devices.

    with_host_collectives(module)       the same for one device, with a CustomCall for each op

The pass runs before a module is compiled. A call has the op as HLO text in its ``backend_config``,
so that a program from the disk cache needs nothing else, and it has a side effect, so that calls
stay in the order in which the ops were created, which is the same on every device.

    r = all-gather(x)      ->   r = custom-call(x), target="tracejit.collective"
    s = all-reduce-start(x)     s = custom-call(x), target="tracejit.collective_start"     (u32[])
    r = all-reduce-done(s)      r = custom-call(s, x), target="tracejit.collective_done"

An AllReduce that is not needed at once becomes both halves as well: it is begun where it stands,
and waited for before the first op that needs it. The ops in between overlap it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction, Module, Op
from tracejit.hlo import to_text
from tracejit.ops.base import make
from tracejit.ops.channels import RECV, RECV_DONE, SEND, SEND_DONE, pairs_of
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.ops.control import CALL
from tracejit.ops.custom import (
    COLLECTIVE_DONE_TARGET,
    COLLECTIVE_START_TARGET,
    COLLECTIVE_TARGET,
    custom_call,
)
from tracejit.ops.layout import full
from tracejit.ops.permutes import COLLECTIVE_PERMUTE, RAGGED_ALL_TO_ALL
from tracejit.ops.replicas import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    PARTITION_ID,
    REDUCE_SCATTER,
    REPLICA_ID,
)
from tracejit.ops.starts import (
    ALL_GATHER_DONE,
    ALL_GATHER_START,
    ALL_REDUCE_DONE,
    ALL_REDUCE_START,
    COLLECTIVE_PERMUTE_DONE,
    COLLECTIVE_PERMUTE_START,
)
from tracejit.ops.tokens import after_all
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape
from tracejit.sources import Source
from tracejit.traversal import called_computations, in_order, unreached

Effects = list[Instruction]
_Begun = tuple[Instruction, str, list[Instruction]]
"""The number that a begun op has, its text, and its operands."""

Rule = Callable[["_Rewriting", Instruction, list[Instruction], Effects], Instruction]

_BLOCKING = frozenset(
    {
        ALL_GATHER,
        ALL_REDUCE,
        ALL_TO_ALL,
        COLLECTIVE_BROADCAST,
        COLLECTIVE_PERMUTE,
        RAGGED_ALL_TO_ALL,
        REDUCE_SCATTER,
    }
)
_STARTS: Mapping[Op, Op] = {
    ALL_GATHER_START: ALL_GATHER,
    ALL_REDUCE_START: ALL_REDUCE,
    COLLECTIVE_PERMUTE_START: COLLECTIVE_PERMUTE,
}
_DONES = frozenset({ALL_GATHER_DONE, ALL_REDUCE_DONE, COLLECTIVE_PERMUTE_DONE})
_NUMBERS = frozenset({PARTITION_ID, REPLICA_ID})

COLLECTIVES = frozenset(
    {*_BLOCKING, *_STARTS, *_DONES, *_NUMBERS, SEND, SEND_DONE, RECV, RECV_DONE}
)


def with_host_collectives(module: Module) -> Module:
    """The module as one device runs it, with a call of the host for each collective op.

    Raises `UnsupportedError` for a half of an op whose other half is not its operand, and for a
    Send or Recv that does not say its source_target_pairs.
    """
    rewriting = _Rewriting()
    for computation in called_computations(module):
        rewriting.computation(computation)
    entry = rewriting.computation(module.entry)
    return replace(module, entry=entry, replica_count=1, num_partitions=1)


def sources_of(module: Module) -> dict[str, Source]:
    """The user's line of every collective op, by the text of its call; of equal ops the first."""
    found: dict[str, Source] = {}
    for computation in called_computations(module):
        for instruction in in_order([computation.root, *computation.effects]):
            target = instruction.attributes.get("custom_call_target", "")
            if str(target).startswith(COLLECTIVE_TARGET) and instruction.source is not None:
                found.setdefault(instruction.attributes["backend_config"], instruction.source)
    return found


_LONG = frozenset({"contraction", "convolution", "control", "linalg", "reduction", "windows"})
"""The families of ops that take long enough for a collective op to go on beside them."""


def _overlapping(order: Sequence[Instruction]) -> set[Instruction]:
    """The AllReduces that something long, or another one, stands between and their first user."""
    waiting: dict[Instruction, bool] = {}
    found = set()
    for instruction in order:
        for operand in instruction.operands:
            if waiting.pop(operand, False):
                found.add(operand)
        if instruction.op is ALL_REDUCE or instruction.op.family in _LONG:
            waiting = dict.fromkeys(waiting, True)
        if instruction.op is ALL_REDUCE:
            waiting[instruction] = False
    return found | {instruction for instruction, is_passed in waiting.items() if is_passed}


class _Rewriting:
    def __init__(self) -> None:
        self._made: dict[Computation, Computation] = {}
        self._begun: dict[Instruction, _Begun] = {}

    def computation(self, computation: Computation) -> Computation:
        if computation not in self._made:
            self._made[computation] = self._rewritten(computation)
        return self._made[computation]

    def _rewritten(self, computation: Computation) -> Computation:
        order = in_order([*computation.parameters, computation.root, *computation.effects])
        new: dict[Instruction, Instruction] = {}
        effects: Effects = []
        open_starts: dict[Instruction, _Begun] = {}

        def value(operand: Instruction) -> Instruction:
            begun = open_starts.pop(operand, None)
            if begun is not None:
                new[operand] = self._end(operand, begun, effects)
            return new[operand]

        overlapping = _overlapping(order)
        for instruction in order:
            operands = [value(o) for o in instruction.operands]
            if instruction in overlapping:
                open_starts[instruction] = self._begin(ALL_REDUCE, instruction, operands, effects)
            else:
                new[instruction] = self._instruction(instruction, operands, effects)
        for instruction in tuple(open_starts):
            value(instruction)
        if all(made is instruction for instruction, made in new.items()):
            return computation
        root = new[computation.root]
        kept = unreached(root, effects)
        return Computation(computation.name, computation.parameters, root, kept)

    def _instruction(
        self, instruction: Instruction, operands: list[Instruction], effects: Effects
    ) -> Instruction:
        if instruction.op in COLLECTIVES and not _is_host_transfer(instruction):
            return self._call(instruction, operands, effects)
        attributes = {name: self._attribute(v) for name, v in instruction.attributes.items()}
        if instruction.op is CALL:  # machine code needs no derivative, and another process has none
            attributes["derivative"] = None
        same = all(a is b for a, b in zip(operands, instruction.operands, strict=True))
        same &= all(v is instruction.attributes[n] for n, v in attributes.items())
        if same and not instruction.has_effect:
            return instruction
        made = Instruction(
            instruction.op, tuple(operands), instruction.shape, attributes, instruction.source
        )
        if made.has_effect:
            effects.append(made)
        return made

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Computation):
            return self.computation(value)
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            new = tuple(map(self.computation, value))
            return new if any(a is not b for a, b in zip(new, value, strict=True)) else value
        return value

    def _call(
        self, instruction: Instruction, operands: list[Instruction], effects: Effects
    ) -> Instruction:
        op = instruction.op
        if op in _NUMBERS:
            # A device's own number never changes: the call has no effect and equal ones are one.
            return _host_call(COLLECTIVE_TARGET, instruction, [], instruction.shape, _text(op, []))
        if op in _STARTS:
            return self._start(instruction, operands, effects)
        if op in _DONES:
            return self._done(instruction, effects)
        if op is SEND:
            data, token = operands
            text = _text(SEND, [data, None], **instruction.attributes)
            _require_pairs(instruction)
            nothing = TupleShape(())
            effects.append(_host_call(COLLECTIVE_TARGET, instruction, [data], nothing, text, True))
            return tuple_([data, constant(0, ElementType.U32), token])
        if op is SEND_DONE:
            return after_all([])
        if op is RECV:
            _require_pairs(instruction)
            data_shape = instruction.element_shapes[0]
            return tuple_([_zeros(data_shape), constant(0, ElementType.U32), after_all([])])
        if op is RECV_DONE:
            return self._recv_done(instruction, effects)
        text = _text(op, operands, **instruction.attributes)
        made = _host_call(COLLECTIVE_TARGET, instruction, operands, instruction.shape, text, True)
        effects.append(made)
        return made

    def _start(
        self, instruction: Instruction, operands: list[Instruction], effects: Effects
    ) -> Instruction:
        """Nothing but the other half may read the result."""
        op = _STARTS[instruction.op]
        self._begun[instruction] = self._begin(op, instruction, operands, effects)
        return _zeros(instruction.shape)

    def _begin(
        self, op: Op, instruction: Instruction, operands: list[Instruction], effects: Effects
    ) -> _Begun:
        attributes = dict(instruction.attributes)
        if "shape" in attributes:
            result = instruction.element_shapes[1]
            del attributes["shape"]
            if op is ALL_GATHER:
                attributes["shape"] = result
        text = _text(op, operands, **attributes)
        number = Shape(ElementType.U32)
        begun = _host_call(COLLECTIVE_START_TARGET, instruction, operands, number, text, True)
        effects.append(begun)
        return begun, text, operands

    def _done(self, instruction: Instruction, effects: Effects) -> Instruction:
        (start,) = instruction.operands
        if start not in self._begun:
            raise UnsupportedError(
                f"{instruction.op.function}: its operand must be the op that starts it",
                instruction.source,
            )
        return self._end(instruction, self._begun[start], effects)

    def _end(self, instruction: Instruction, begun: _Begun, effects: Effects) -> Instruction:
        # The operands stay alive, and what they lie in is not written over, until the end.
        number, text, operands = begun
        made = _host_call(
            COLLECTIVE_DONE_TARGET, instruction, [number, *operands], instruction.shape, text, True
        )
        effects.append(made)
        return made

    def _recv_done(self, instruction: Instruction, effects: Effects) -> Instruction:
        (begun,) = instruction.operands
        if begun.op is not RECV:
            raise UnsupportedError("recv_done: its operand must be a recv", instruction.source)
        text = _text(RECV, [None], **begun.attributes)
        data = instruction.element_shapes[0]
        made = _host_call(COLLECTIVE_TARGET, instruction, [], data, text, True)
        effects.append(made)
        return tuple_([made, after_all([])])


def _is_host_transfer(instruction: Instruction) -> bool:
    if instruction.op in (SEND_DONE, RECV_DONE):
        return _is_host_transfer(instruction.operands[0])
    return bool(instruction.attributes.get("is_host_transfer"))


def _require_pairs(instruction: Instruction) -> None:
    if pairs_of(instruction.attributes["frontend_attributes"]) is None:
        raise UnsupportedError(
            f"{instruction.op.function}: compiled code needs source_target_pairs to know which "
            "device sends to which",
            instruction.source,
        )


def _zeros(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_zeros(element) for element in shape.elements])
    assert isinstance(shape, Shape)
    return full(shape, 0)


def _text(op: Op, operands: Sequence[Instruction | None], **attributes: Any) -> str:
    """A computation that does the op on parameters, one for each array; None is a token."""
    parameters: list[Instruction] = []

    def stand_in(shape: AnyShape) -> Instruction:
        if isinstance(shape, TupleShape):
            return tuple_([stand_in(element) for element in shape.elements])
        parameters.append(parameter(len(parameters), shape))
        return parameters[-1]

    given = [after_all([]) if o is None else stand_in(o.shape) for o in operands]
    called = Computation("collective", tuple(parameters), make(op, *given, **attributes))
    return to_text(Module(op.function, called))


def _arrays(value: Instruction) -> list[Instruction]:
    if not isinstance(value.shape, TupleShape):
        return [value]
    return [array for element in elements_of(value) for array in _arrays(element)]


def _host_call(
    target: str,
    instruction: Instruction,
    operands: Sequence[Instruction],
    shape: AnyShape,
    text: str,
    has_side_effect: bool = False,
) -> Instruction:
    arrays = [array for operand in operands for array in _arrays(operand)]
    made = custom_call(target, arrays, shape, text, has_side_effect)
    return Instruction(made.op, made.operands, made.shape, made.attributes, instruction.source)
