"""The pass that batches a graph: graph in, graph out.

    batch([y], {x: xs}, 8)      y for each of the 8 slices of xs, stacked

A batched array has the batch as its first dimension; what no batched value reaches stays as it
is. A tuple has one flag for each element, since some of them may be batched and others not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    GET_TUPLE_ELEMENT,
    TUPLE,
    elements_of,
    get_tuple_element,
    parameter,
    tuple_,
)
from tracejit.ops.layout import broadcast_in_dim, full
from tracejit.rules import RuleTable
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.sources import on_behalf_of
from tracejit.traversal import effects_of, in_order, rebuild, unreached

Flag = bool | tuple["Flag", ...]
"""Whether a value is batched; for a tuple, whether each of its elements is."""


@dataclass(frozen=True)
class Batched:
    """A value of the batched graph, and whether the batch is its first dimension."""

    value: Instruction
    flag: Flag

    @property
    def is_batched(self) -> bool:
        """Whether the value, or any part of it, is batched."""
        return any_of(self.flag)

    def stretched(self, size: int) -> Instruction:
        """The value with every array batched; what was not is repeated."""
        return stretch(self.value, self.flag, True, size)


BatchRule = Callable[[Instruction, Sequence[Batched], int], Instruction | Batched]
"""``rule(instruction, operands, size)``, at least one operand batched, ``size`` above zero.

A plain instruction means that all of the result is batched.
"""

batching: RuleTable[BatchRule] = RuleTable("batch", "tracejit.batching.rules")


def any_of(flag: Flag) -> bool:
    """Whether any array of a value is batched."""
    return flag if isinstance(flag, bool) else any(any_of(part) for part in flag)


def uniform(shape: AnyShape, batched: bool) -> Flag:
    """The flag of a value of ``shape`` whose arrays are all batched, or none of them."""
    if isinstance(shape, TupleShape):
        return tuple(uniform(element, batched) for element in shape.elements)
    return batched and isinstance(shape, Shape)


def union(first: Flag, second: Flag) -> Flag:
    """Batched wherever one of both is."""
    if isinstance(first, bool) or isinstance(second, bool):
        return bool(first) or bool(second)
    return tuple(union(a, b) for a, b in zip(first, second, strict=True))


def batched_shape(shape: AnyShape, flag: Flag, size: int) -> AnyShape:
    """What ``shape`` becomes with the batch in front of its batched arrays."""
    if isinstance(shape, TupleShape):
        assert not isinstance(flag, bool)
        parts = zip(shape.elements, flag, strict=True)
        return TupleShape(tuple(batched_shape(element, part, size) for element, part in parts))
    if not flag:
        return shape
    assert isinstance(shape, Shape)
    return shape.with_dimensions((size, *shape.dimensions))


def stretch(value: Instruction, flag: Flag, wanted: Flag | bool, size: int) -> Instruction:
    """``value`` with every array batched where ``wanted``; True means all arrays."""
    if isinstance(value.shape, TupleShape):
        assert not isinstance(flag, bool)
        wishes = [wanted] * len(flag) if isinstance(wanted, bool) else wanted
        parts = list(zip(elements_of(value), flag, wishes, strict=True))
        made = [stretch(element, part, wish, size) for element, part, wish in parts]
        if all(new is old for new, (old, _, _) in zip(made, parts, strict=True)):
            return value
        return tuple_(made)
    if flag or not wanted or not isinstance(value.shape, Shape):
        return value
    dimensions = value.shape.dimensions
    return broadcast_in_dim(value, (size, *dimensions), range(1, 1 + len(dimensions)))


def batch(
    outputs: Sequence[Instruction],
    known: Mapping[Instruction, Batched],
    size: int,
) -> list[Batched]:
    """``outputs`` with the keys of ``known`` exchanged for what they are in the batched graph.

    Raises `UnsupportedError`, naming the user's line, for an op that cannot be batched.
    """
    new = dict(known)
    for instruction in in_order(outputs):
        if instruction not in new:
            new[instruction] = applied(instruction, [new[o] for o in instruction.operands], size)
    return [new[output] for output in outputs]


def batch_computation(
    computation: Computation, flags: Sequence[Flag], size: int
) -> tuple[Computation, Flag]:
    """The computation for parameters that are batched as ``flags`` say, and its root's flag."""
    parameters = tuple(
        parameter(number, batched_shape(p.shape, flag, size))
        for number, (p, flag) in enumerate(zip(computation.parameters, flags, strict=True))
    )
    given = [Batched(p, flag) for p, flag in zip(parameters, flags, strict=True)]
    known = dict(zip(computation.parameters, given, strict=True))
    root, *effects = batch([computation.root, *effects_of(computation)], known, size)
    values = [value for effect in effects for value in in_order([effect.value])]
    kept = unreached(root.value, [value for value in values if value.has_effect])
    made = Computation(f"{computation.name}_batched", parameters, root.value, kept)
    return made, root.flag


def applied(instruction: Instruction, operands: Sequence[Batched], size: int) -> Batched:
    """One op on what its operands are in the batched graph; raises as `batch` does."""
    if instruction.op is TUPLE:
        return Batched(tuple_([o.value for o in operands]), tuple(o.flag for o in operands))
    if instruction.op is GET_TUPLE_ELEMENT:
        (operand,), index = operands, instruction.attributes["index"]
        assert not isinstance(operand.flag, bool)
        return Batched(get_tuple_element(operand.value, index), operand.flag[index])
    if not any(operand.is_batched for operand in operands):
        values = [operand.value for operand in operands]
        changed = any(a is not b for a, b in zip(values, instruction.operands, strict=True))
        # Side effects happen in order of creation, and others may be made anew.
        made = rebuild(instruction, values) if changed or instruction.has_effect else instruction
        return Batched(made, uniform(instruction.shape, False))
    if size == 0:
        return Batched(_empty(instruction.shape), uniform(instruction.shape, True))
    rule = batching.get(instruction.op)
    if rule is None:
        reason = batching.reason(instruction.op) or "has no batching rule"
        raise UnsupportedError(f"{instruction.op.function}: {reason}", instruction.source)
    result = on_behalf_of(instruction.source, rule, instruction, operands, size)
    if isinstance(result, Instruction):
        result = Batched(result, uniform(instruction.shape, True))
    expected = batched_shape(instruction.shape, result.flag, size)
    assert str(result.value.shape) == str(expected), (
        f"{instruction.op} of {instruction.shape} was batched to {result.value.shape}"
    )
    return result


def _empty(shape: AnyShape) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_empty(element) for element in shape.elements])
    assert isinstance(shape, Shape)
    return full(shape.with_dimensions((0, *shape.dimensions)), 0)
