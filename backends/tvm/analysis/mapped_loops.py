"""Loops that map: each iteration computes one block of each of its results, and reads no other.

    mapped_loop(loop, limits)       the computation of one iteration, or None

    for i in range(8): out[i] = softmax(q[i] @ k[i].T) @ v[i]   # block: softmax(q @ k.T) @ v

The blocks of a result follow each other in memory and fill it, so that the iterations may run in
any order, on several threads. If the last block ends with the array and overlaps the one before,
one thread has to run them. If an iteration reads only its own block of an array, it is given that
block; every other array it is given whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate_instruction, interpret
from tracejit.backends.tvm.analysis.induction import Counter, constant_counter
from tracejit.backends.tvm.ir.graph import Graph, flattened_graph
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.work import work_of
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, TUPLE, parameter
from tracejit.ops.layout import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE
from tracejit.shapes import Shape
from tracejit.traversal import in_order, substitute, users_of

MOST_ITERATIONS = 1 << 10
"""The indices of blocks are evaluated for each iteration."""
_EVEN = 4
"""Iterations for each thread from which it matters little that the last ones leave threads idle."""
_TRANSCENDENTAL = 16
"""The operations that a transcendental function takes."""


@dataclass(frozen=True)
class MappedLoop:
    """``count`` independent iterations, and the ``graph`` of one.

    Its parameters are those of the loop's body, then a block of each state element in ``read``; its
    outputs are a block of each state element in ``made``.
    """

    counter: Counter
    graph: Graph
    read: Sequence[int]
    made: Sequence[int]

    @property
    def count(self) -> int:
        return self.counter.count

    @property
    def is_even(self) -> bool:
        """Whether no two iterations write to one element."""
        wholes = [self.graph.parameters[number].array_shape.size for number in self.made]
        blocks = [output.array_shape.size for output in self.graph.outputs]
        return all(w == self.count * b for w, b in zip(wholes, blocks, strict=True))


def mapped_loop(loop: Instruction, limits: Limits) -> MappedLoop | None:
    """A While as a map; None if its iterations may depend on each other, or if the threads of
    ``limits`` had better share each iteration.
    """
    counter = constant_counter(loop) if limits.runs_iterations and not loop.has_effect else None
    if counter is None or not 2 <= counter.count <= MOST_ITERATIONS:
        return None
    if counter.count % limits.threads and counter.count < _EVEN * limits.threads:
        return None
    body = flattened_graph(loop.attributes["body"])
    shapes = [each.shape for each in loop.operands[0].operands]
    if shapes != [each.shape for each in body.parameters] or body.effects:
        return None
    found = _mapped(body, counter)
    if found is None or _work(found.graph) < limits.parallel_work:
        return None
    return found if found.is_even or limits.threads == 1 else None


def _mapped(body: Graph, counter: Counter) -> MappedLoop | None:
    order = in_order(body.roots)
    users = users_of(order)
    given = body.parameters[counter.number]
    made, kept = [], {}
    for number, (array, output) in enumerate(zip(body.parameters, body.outputs, strict=True)):
        if number == counter.number:
            continue
        if output is array:
            kept[array] = number
            continue
        is_own = users.get(array, ()) == [output] and not users.get(output)
        if not is_own or output.op is not DYNAMIC_UPDATE_SLICE or output.operands[0] is not array:
            return None
        if not _follow(array, output.operands[1], output.operands[2:], given, counter):
            return None
        made.append(number)
    if not made:
        return None
    parameters, read, blocks = [*body.parameters], [], {}
    for instruction in order:
        if instruction.op is DYNAMIC_SLICE and instruction.operands[0] in kept:
            array, *starts = instruction.operands
            if _follow(array, instruction, starts, given, counter):
                blocks[instruction] = parameter(len(parameters), instruction.array_shape)
                parameters.append(blocks[instruction])
                read.append(kept[array])
    outputs = substitute([body.outputs[number].operands[1] for number in made], blocks)
    return MappedLoop(counter, Graph(parameters, outputs), read, made)


def _follow(
    array: Instruction,
    block: Instruction,
    starts: Sequence[Instruction],
    given: Instruction,
    counter: Counter,
) -> bool:
    """Whether the blocks of all iterations, in order, are the array from begin to end; the last
    one may overlap the one before.
    """
    sizes, lengths = array.array_shape.dimensions, block.array_shape.dimensions
    axes = [axis for axis, size in enumerate(sizes) if size != lengths[axis]]
    if len(axes) != 1 or not array.array_shape.size:
        return False
    (axis,) = axes
    length = lengths[axis]
    last = sizes[axis] - length
    if math.prod(sizes[:axis]) != 1 or counter.count != -(-sizes[axis] // length):
        return False
    found = _values(starts[axis], given, counter)
    return found == [min(number * length, last) for number in range(counter.count)]


def _values(start: Instruction, given: Instruction, counter: Counter) -> list[int] | None:
    """An index in every iteration; None if it depends on more than the counter ``given``."""
    order = in_order([start])
    for each in order:
        is_number = isinstance(each.shape, Shape) and not each.shape.rank
        is_plain = each.op is CONSTANT or (each.op.is_elementwise and not each.has_effect)
        is_known = is_plain and interpret.get(each.op) is not None
        if not is_number or not (each is given or is_known):
            return None
    found = []
    for iteration in range(counter.count):
        values = {given: np.asarray(counter.at(iteration), given.array_shape.dtype)}
        for each in order:
            if each is not given:
                operands = [values[operand] for operand in each.operands]
                values[each] = np.asarray(evaluate_instruction(each, operands))
        found.append(int(values[start]))
    return found


def _work(graph: Graph) -> int:
    """The operations of an iteration, and the elements that it computes."""
    total = 0
    for instruction in in_order(graph.outputs):
        if instruction.op is not TUPLE:
            flops, transcendentals = work_of(instruction)
            total += flops + _TRANSCENDENTAL * transcendentals
            total += sum(s.size for s in instruction.element_shapes if isinstance(s, Shape))
    return total
