"""Random modules that repeat themselves: loops that update large arrays, steps written out.

repeated(choices)       a verified module with a While over large arrays, or a long chain of steps

The state of a loop is written by DynamicUpdateSlice and Scatter, swapped, kept, and read after it
was written; chains are as long as those that compilers may roll up, some with a step that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.choices import Choices
from tests.fuzz.graph import Graph
from tests.fuzz.graphs import results
from tests.fuzz.table import grow
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.loops import loop
from tracejit.shapes import ElementType, Shape
from tracejit.traversal import in_order
from tracejit.verifier import verify

S32 = ElementType.S32
TYPES = (ElementType.F32, ElementType.F64, ElementType.S32, ElementType.U8, ElementType.BF16)
# From a few bytes to some pages; two sizes each, so that states of a loop can be swapped.
SHAPES = ((40, 32), (7, 5), (600,), (3, 4, 160), (1100,), (33, 33), (8,))
# A chain has at least so many instructions, constants not counted, in at least so many steps.
CHAIN = 900
LEAST_STEPS = 14

Values = Sequence[Instruction]
Write = Callable[[Instruction, Instruction, Instruction], Instruction]
"""A new state of a value, another value of its shape and the number of the step."""
Plan = Sequence[tuple[Write, int, int]]
"""What a step writes, over which state, with which other one."""


def _tamed(value: Instruction) -> Instruction:
    """The value brought back to where another step can start, so that nothing grows."""
    shape = value.array_shape
    if shape.element_type.is_floating:
        return ops.mul(ops.tanh(value), ops.full(shape, 0.75))
    return ops.and_(value, ops.full(shape, 63))


def _starts(shape: Shape, number: Instruction, stride: int) -> list[Instruction]:
    """Places that move on with every step, some of them outside the array."""
    stepped = ops.mul(number, ops.constant(stride, S32))
    return [ops.sub(stepped, ops.constant(d, S32)) for d in range(shape.rank)]


def _slice_written(choices: Choices) -> Write:
    part, stride = choices.pick((1, 2, 4)), choices.pick((1, 3, 0))
    moved = choices.chance(2)

    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        shape = value.array_shape
        sizes = [max(size // part, 1) for size in shape.dimensions]
        sizes[0] = 1 if part > 1 else sizes[0]
        starts = _starts(shape, number, stride)
        if moved:
            read = _starts(shape, number, stride + 1)
            update = _tamed(ops.dynamic_slice(other, read, sizes))
        else:
            update = ops.slice_(other, [0] * shape.rank, sizes)
        return ops.dynamic_update_slice(value, update, starts)

    return write


def _scattered(choices: Choices) -> Write:
    name = choices.pick(("replace", "add", "max"))
    count = choices.pick((1, 3, 8))

    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        shape = value.array_shape
        kind = shape.element_type
        rest = shape.dimensions[1:]
        indices = ops.iota(Shape(S32, (count, 1)), 0)
        offset = ops.broadcast_in_dim(number, (count, 1), ())
        indices = ops.add(indices, ops.mul(offset, ops.full_like(offset, 2)))
        row = ops.slice_(other, [0] * shape.rank, [1, *rest])
        updates = ops.broadcast_in_dim(ops.reshape(row, rest), (count, *rest), range(1, shape.rank))
        if name == "replace":
            combine = ops.replace_computation(kind)
        else:
            combine = ops.scalar_computation(name, kind)
        window = tuple(range(1, shape.rank))
        numbers = ops.ScatterDimensionNumbers(window, (0,), (0,), 1)
        return ops.scatter(value, indices, updates, combine, numbers)

    return write


def _combined(choices: Choices) -> Write:
    kind = choices.pick(("add", "sub", "max", "select", "mul"))

    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        if kind == "select":
            return ops.select(ops.gt(value, other), other, _tamed(value))
        made = {"add": ops.add, "sub": ops.sub, "max": ops.max, "mul": ops.mul}[kind](value, other)
        return _tamed(made)

    return write


def _turned(choices: Choices) -> Write:
    dimension = choices.integer(0, 2)

    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        return ops.add(_tamed(other), ops.rev(value, [dimension % value.array_shape.rank]))

    return write


def _reduced(choices: Choices) -> Write:
    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        shape = value.array_shape
        larger = ops.scalar_computation("max", shape.element_type)
        first = ops.slice_(value, [0] * shape.rank, [1] * shape.rank)
        total = ops.reduce(other, ops.reshape(first, ()), larger, [shape.rank - 1])
        kept = tuple(range(shape.rank - 1))
        return _tamed(ops.sub(value, ops.broadcast_in_dim(total, shape.dimensions, kept)))

    return write


def _sorted(choices: Choices) -> Write:
    def write(value: Instruction, other: Instruction, number: Instruction) -> Instruction:
        return ops.sort(ops.add(_tamed(value), other))

    return write


WRITES = (_slice_written, _scattered, _combined, _slice_written, _turned, _reduced, _sorted)
IN_PLACE = (_slice_written, _scattered)


def _plan(
    choices: Choices, count: int, length: int, writes: Sequence[Callable[[Choices], Write]]
) -> Plan:
    """``length`` writes over ``count`` states."""
    return [
        (
            choices.pick(writes)(choices),
            choices.integer(0, count - 1),
            choices.integer(0, count - 1),
        )
        for _ in range(length)
    ]


def _stepped(plan: Plan, order: Sequence[int], states: Values, number: Instruction) -> Values:
    """The next states, in another order."""
    new = list(states)
    for write, at, source in plan:
        new[at] = write(new[at], new[source], number)
    return [new[n] for n in order]


def _loop(graph: Graph, states: Values) -> Values:
    """A While of up to twelve steps over the states."""
    choices = graph.choices
    plan = _plan(choices, len(states), choices.integer(1, 3), choices.pick((IN_PLACE, WRITES)))
    order = choices.permutation(len(states)) if choices.chance(2) else range(len(states))
    total = choices.pick((3, 4, 5, 12, 1, 0))
    init = [ops.constant(0, S32), *states]
    made = loop(
        "repeats",
        init,
        lambda number, *_: ops.lt(number, ops.constant(total, S32)),
        lambda number, *held: [
            ops.add(number, ops.constant(1, S32)),
            *_stepped(plan, order, held, number),
        ],
    )
    return made[1:]


def _chain(graph: Graph, states: Values) -> Values:
    """The same step, written out again and again; now and then one is another."""
    choices = graph.choices
    plan = _plan(choices, len(states), choices.integer(2, 5), WRITES)
    order = choices.permutation(len(states)) if choices.chance(2) else range(len(states))
    counted = choices.chance(5)
    odd = choices.integer(0, 40) if choices.chance(3) else -1
    held: list[Values] = [states]
    steps = 0
    start = _size(states)
    while steps < LEAST_STEPS or _size(held[-1]) - start < CHAIN:
        number = ops.constant(steps if counted else 2, S32)
        made = _stepped(plan, order, held[-1], number)
        if steps == odd:
            made = [_tamed(value) for value in made]
        held.append(made)
        steps += 1
    last = list(held[-1])
    if choices.chance(3):
        last += choices.pick(held)
    return last


def _size(states: Values) -> int:
    """How many instructions make the states."""
    return sum(i.op.name not in ("Constant", "BroadcastInDim") for i in in_order(states))


def repeated(choices: Choices) -> Module:
    """A few random steps, a loop or a chain over what they made, some steps more."""
    graph = Graph(choices, 3000)
    grow(graph, choices.integer(0, 4))
    shape = Shape(choices.pick(TYPES), choices.pick(SHAPES))
    states = [_state(graph, shape) for _ in range(choices.integer(1, 3))]
    kept = [s for s in states if choices.chance(4)]
    for _ in range(choices.integer(1, 2)):
        made = (_chain if choices.chance(2) else _loop)(graph, states)
        graph.add(*made)
        states = list(made[: len(states)])
    grow(graph, choices.integer(0, 4))
    roots = [*states, *kept, *results(graph)]
    entry = Computation("entry", tuple(graph.parameters), ops.tuple_(roots))
    return verify(Module("repeats", entry))


def _state(graph: Graph, shape: Shape) -> Instruction:
    """An array that a loop may start from: handed in, computed, a constant, or one there is."""
    made = graph.parameter(shape) if graph.choices.chance(2) else graph.like(shape)
    return _tamed(made) if graph.choices.chance(2) else made
