"""Scalar promotion: array elements that all iterations of a loop write become separate state.

    promote_scalars(loop, instruction)      the final state of an equal loop, and that loop

    for k in range(n): c[i, j] += a[i, k] * b[k, j]     s = c[i, j]
                                                        for k in range(n): s += a[i, k] * b[k, j]
                                                        c[i, j] = s

The scalar stays in a register, and the vectoriser recognises a sum. Nothing else may write to the
array, and other reads of it must provably be of other elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.array_regions import (
    are_apart,
    read_region,
    region_of,
    versions_of,
)
from tracejit.backends.tvm.analysis.induction import CountedLoop
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    PARAMETER,
    get_tuple_element,
    parameter,
    tuple_,
)
from tracejit.ops.control import while_
from tracejit.ops.layout import DYNAMIC_SLICE, SLICE, dynamic_slice, dynamic_update_slice, reshape
from tracejit.shapes import TupleShape
from tracejit.traversal import in_order, rebuild, substitute, transform, users_of

Users = Mapping[Instruction, Sequence[Instruction]]


@dataclass(frozen=True)
class _PromotedSlice:
    """The writes to a slice, in order, its reads, and the other reads of the array."""

    writes: Sequence[Instruction]
    reads: frozenset[Instruction]
    others: frozenset[Instruction]

    @property
    def starts(self) -> Sequence[Instruction]:
        return self.writes[0].operands[2:]

    @property
    def sizes(self) -> Sequence[int]:
        return self.writes[0].operands[1].array_shape.dimensions

    @property
    def longer_sizes(self) -> Sequence[int]:
        """The sizes other than 1: a slice of one element is held as a scalar."""
        return [size for size in self.sizes if size != 1]


def promote_scalars(
    loop: CountedLoop, instruction: Instruction
) -> tuple[Instruction, list[Instruction]] | None:
    """An equal loop that holds such slices, and its final state; None if there are none.

    ``instruction`` is the loop.
    """
    users = users_of(in_order([loop.body.root]))
    with loop.known():
        found = {number: _held(loop, number, users) for number in range(len(loop.init))}
    held = {number: part for number, part in found.items() if part is not None}
    return _rewritten(loop, instruction, held) if held else None


def _held(loop: CountedLoop, number: int, users: Users) -> _PromotedSlice | None:
    """The slice of an array that all iterations write to; None if it moves, or more is needed."""
    versions = versions_of(loop.parts[number], loop.made[number])
    writes = versions[1:]
    if not writes:
        return None
    _, update, *starts = writes[0].operands
    is_one = all(
        write.operands[1].shape == update.shape and [*write.operands[2:]] == starts
        for write in writes
    )
    if not is_one or update.shape == writes[0].shape or not _are_kept(loop, starts):
        return None
    written = region_of(writes[0], update, starts)
    reads, others = set(), set()
    for version, following in zip(versions, (*writes, loop.body.root), strict=True):
        for user in users.get(version, ()):
            if user is following and user.operands.count(version) == 1:
                continue
            if user.op not in (DYNAMIC_SLICE, SLICE):
                return None
            if user.shape == update.shape and _begins_at(user, starts):
                reads.add(user)
            elif are_apart(read_region(user), written):
                others.add(user)
            else:
                return None
    return _PromotedSlice(writes, frozenset(reads), frozenset(others))


def _begins_at(read: Instruction, starts: Sequence[Instruction]) -> bool:
    if read.op is DYNAMIC_SLICE:
        return [*read.operands[1:]] == starts
    cuts = zip(read.attributes["slice"], starts, strict=True)
    return all(
        cut.stride == 1 and place.op is CONSTANT and place.attributes["literal"] == cut.start
        for cut, place in cuts
    )


def _are_kept(loop: CountedLoop, values: Sequence[Instruction]) -> bool:
    """Whether values are loop-invariant."""
    kept = {part for number, part in enumerate(loop.parts) if loop.is_kept(number)}
    stack = list(values)
    while stack:
        value = stack.pop()
        if value in kept:
            continue
        if value.op in (PARAMETER, GET_TUPLE_ELEMENT) or value.has_effect or value.computations:
            return False
        stack.extend(value.operands)
    return True


def _rewritten(
    loop: CountedLoop, instruction: Instruction, held: Mapping[int, _PromotedSlice]
) -> tuple[Instruction, list[Instruction]]:
    before = dict(zip(loop.parts, loop.init, strict=True))
    starts = {number: substitute(part.starts, before) for number, part in held.items()}
    init = list(loop.init)
    wholes: dict[int, int] = {}
    for number, part in held.items():
        given = dynamic_slice(loop.init[number], starts[number], part.sizes)
        init[number] = reshape(given, part.longer_sizes)
        if part.others:
            wholes[number] = len(init)
            init.append(loop.init[number])
    state = TupleShape(tuple(value.shape for value in init))
    made = while_(
        _condition(instruction.attributes["condition"], state),
        _body(loop, held, wholes, state),
        tuple_(init),
    )
    final = [get_tuple_element(made, number) for number in range(len(loop.init))]
    for number, part in held.items():
        update = reshape(final[number], part.sizes)
        final[number] = dynamic_update_slice(loop.init[number], update, starts[number])
    return made, final


def _condition(old: Computation, state: TupleShape) -> Computation:
    (given,), new = old.parameters, parameter(0, state)
    parts = {
        i: get_tuple_element(new, i.attributes["index"])
        for i in in_order([old.root])
        if i.op is GET_TUPLE_ELEMENT and i.operands[0] is given
    }
    return Computation(old.name, (new,), substitute([old.root], parts)[0])


def _body(
    loop: CountedLoop,
    held: Mapping[int, _PromotedSlice],
    wholes: Mapping[int, int],
    state: TupleShape,
) -> Computation:
    """The body with each version of an array replaced by the value of its slice."""
    new = parameter(0, state)
    numbers = {
        instruction: number
        for number, part in held.items()
        for instruction in (*part.writes, *part.reads, *part.others)
    }

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        number = numbers.get(instruction)
        if number is None:
            return None
        if instruction in held[number].writes:
            return reshape(operands[1], held[number].longer_sizes)
        if instruction in held[number].reads:
            return reshape(operands[0], held[number].sizes)
        return rebuild(instruction, [get_tuple_element(new, wholes[number]), *operands[1:]])

    parts = {part: get_tuple_element(new, n) for n, part in enumerate(loop.parts)}
    made = transform(loop.made, visit, parts)
    kept = [get_tuple_element(new, whole) for whole in wholes.values()]
    return Computation(loop.body.name, (new,), tuple_([*made, *kept]))
