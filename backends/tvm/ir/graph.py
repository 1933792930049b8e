"""`Graph`: the input and result of a pass: parameters, outputs, and effects in order.

Graph.of(computation)          the computation as it is
flattened_graph(computation)   with a parameter for each array, tuples flattened
graph.computation(name)        the inverse, for printing and verifying
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tracejit.backends.tvm.ir.tuples import flattened
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import parameter, tuple_
from tracejit.shapes import AnyShape, TupleShape
from tracejit.traversal import effects_of, rebuild, substitute, unreached


@dataclass(frozen=True, eq=False)
class Graph:
    """The body of a computation: ``parameters``, ``outputs``, and all its ``effects``, in order.

    An effect that an output needs is among the effects as well.
    """

    parameters: Sequence[Instruction]
    outputs: Sequence[Instruction]
    effects: Sequence[Instruction] = ()

    @staticmethod
    def of(computation: Computation) -> Graph:
        """The graph of a computation, whose root is the one output."""
        return Graph(computation.parameters, [computation.root], effects_of(computation))

    @property
    def roots(self) -> list[Instruction]:
        """Everything that must be kept: the outputs, then the effects."""
        return [*self.outputs, *self.effects]

    def with_roots(self, roots: Sequence[Instruction]) -> Graph:
        """The same graph with other outputs and effects."""
        count = len(self.outputs)
        return replace(self, outputs=roots[:count], effects=roots[count:])

    def with_ordered_effects(self) -> Graph:
        """The same graph with its effects collected again, in program order.

        A pass may replace an effect by several, or by none, and may rebuild a later one first: the
        order of ``effects`` decides, and within the operands of each the order of creation.
        """
        if not self.effects:
            return self
        order = _operands_first([*self.effects, *self.outputs])
        effects = [i for i in order if i.has_effect]
        if all(a.serial < b.serial for a, b in pairwise(effects)):
            return replace(self, effects=effects)
        new: dict[Instruction, Instruction] = {}
        for instruction in order:
            operands = [new[o] for o in instruction.operands]
            changed = any(a is not b for a, b in zip(operands, instruction.operands, strict=True))
            changed |= instruction.has_effect
            new[instruction] = rebuild(instruction, operands) if changed else instruction
        return replace(
            self, outputs=[new[o] for o in self.outputs], effects=[new[e] for e in effects]
        )

    def computation(self, name: str) -> Computation:
        """A computation that returns the one output, or a tuple of all."""
        root = self.outputs[0] if len(self.outputs) == 1 else tuple_(self.outputs)
        effects = unreached(root, [effect for effect in self.effects if effect.has_effect])
        return Computation(name, tuple(self.parameters), root, effects)


def _operands_first(roots: Sequence[Instruction]) -> list[Instruction]:
    """The roots and their operands in topological order, those of earlier roots first."""
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    for root in roots:
        added: list[Instruction] = []
        stack = [root]
        while stack:
            instruction = stack.pop()
            if instruction not in seen:
                seen.add(instruction)
                added.append(instruction)
                stack.extend(instruction.operands)
        order += sorted(added, key=lambda i: i.serial)
    return order


@dataclass(frozen=True, eq=False)
class FlatComputation(Computation):
    """A computation built from a flat ``graph``, with the same result."""

    graph: Graph = Graph((), ())


def flattened_graph(computation: Computation) -> Graph:
    """The graph of a computation with a parameter for each array, and its root's arrays as
    outputs.
    """
    if isinstance(computation, FlatComputation):
        return computation.graph
    parameters: list[Instruction] = []

    def fresh(shape: AnyShape) -> Instruction:
        if isinstance(shape, TupleShape):
            return tuple_([fresh(element) for element in shape.elements])
        parameters.append(parameter(len(parameters), shape))
        return parameters[-1]

    replacements = {old: fresh(old.shape) for old in computation.parameters}
    root, *effects = substitute([computation.root, *effects_of(computation)], replacements)
    return Graph(parameters, flattened(root), effects)


def with_graph(computation: Computation, graph: Graph) -> FlatComputation:
    """A computation of the same type with the result of the flat ``graph``."""
    parameters = [parameter(n, p.shape) for n, p in enumerate(computation.parameters)]
    arrays = [array for whole in parameters for array in flattened(whole)]
    instead = dict(zip(graph.parameters, arrays, strict=True))
    made = substitute(graph.roots, instead)
    outputs, effects = iter(made[: len(graph.outputs)]), made[len(graph.outputs) :]
    root = _joined(computation.root.shape, outputs)
    kept = unreached(root, effects)
    return FlatComputation(computation.name, tuple(parameters), root, kept, graph)


def _joined(shape: AnyShape, arrays: Iterator[Instruction]) -> Instruction:
    if isinstance(shape, TupleShape):
        return tuple_([_joined(element, arrays) for element in shape.elements])
    return next(arrays)
