"""Constants that a dump leaves out, ``constant({...})``, as parameters.

They come after the module's own parameters, in the order in which they stand in the text. One that
stands in a computation that is called, by Call, Fusion, While or Conditional, reaches it through
its callers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.ops.control import CALL, CONDITIONAL, WHILE
from tracejit.ops.dumps import FUSION
from tracejit.shapes import AnyShape, TupleShape

THREADED = frozenset({CALL, FUSION, WHILE, CONDITIONAL})
"""The ops that can hand more arguments to what they call."""

Places = Sequence[int]
"""Where in the text each constant stands."""


def with_more(
    instruction: Instruction,
    places: Callable[[Computation], Places],
    values: dict[int, Instruction],
) -> Instruction:
    """What an instruction computes when computations that it calls take more parameters.

    The instruction was made before: its operands lack them. ``places`` says which constants a
    computation takes after its own parameters, ``values`` has the value of each.
    """

    def more(computation: Computation) -> list[Instruction]:
        return [values[place] for place in places(computation)]

    op, operands, attributes = instruction.op, instruction.operands, instruction.attributes
    if op is WHILE:
        return _while(instruction, more)
    if op is CONDITIONAL:
        branches = instruction.computations
        packed = [ops.tuple_([o, *more(b)]) for o, b in zip(operands[1:], branches, strict=True)]
        openers = [
            _of_tuple(b.name, p.shape, partial(ops.call, b))
            for b, p in zip(branches, packed, strict=True)
        ]
        if attributes["branch_computations"]:
            return ops.conditional_indexed(operands[0], openers, packed)
        return ops.conditional(operands[0], packed[0], openers[0], packed[1], openers[1])
    (computation,) = instruction.computations
    return ops.call(computation, [*operands, *more(computation)])


def _of_tuple(
    name: str, shape: AnyShape, build: Callable[[list[Instruction]], Instruction]
) -> Computation:
    """A computation of one tuple, which ``build`` gets in parts."""
    assert isinstance(shape, TupleShape)
    parameter = ops.parameter(0, shape)
    parts = [ops.get_tuple_element(parameter, i) for i in range(len(shape.elements))]
    return Computation(name, (parameter,), build(parts))


def _while(
    instruction: Instruction, more: Callable[[Computation], list[Instruction]]
) -> Instruction:
    """The state becomes a tuple of itself and what condition and body take more."""
    (init,) = instruction.operands
    condition, body = instruction.attributes["condition"], instruction.attributes["body"]
    for_condition, for_body = more(condition), more(body)
    shape = TupleShape((init.shape, *[m.shape for m in (*for_condition, *for_body)]))
    split = 1 + len(for_condition)

    def goes_on(parts: list[Instruction]) -> Instruction:
        return ops.call(condition, [parts[0], *parts[1:split]])

    def step(parts: list[Instruction]) -> Instruction:
        return ops.tuple_([ops.call(body, [parts[0], *parts[split:]]), *parts[1:]])

    looped = ops.while_(
        _of_tuple(condition.name, shape, goes_on),
        _of_tuple(body.name, shape, step),
        ops.tuple_([init, *for_condition, *for_body]),
    )
    return ops.get_tuple_element(looped, 0)
