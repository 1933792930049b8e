"""Optimises the computations of loops and branches, after the graph around them.

with_optimized_computations(graph, context, optimized)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tracejit.backends.tvm.analysis.mapped_loops import mapped_loop
from tracejit.backends.tvm.fusion.kernel import is_given
from tracejit.backends.tvm.ir.graph import FlatComputation, Graph, flattened_graph, with_graph
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.backends.tvm.ir.tuples import arrays_of
from tracejit.backends.tvm.passes.manager import Context
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import PARAMETER
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.layout import reshape
from tracejit.traversal import in_order, substitute, transform

Optimize = Callable[[Graph, Context], Graph]


def with_optimized_computations(graph: Graph, context: Context, optimized: Optimize) -> Graph:
    """The graph with the computations of its loops and branches optimised."""
    if not any(instruction.op in (WHILE, CONDITIONAL) for instruction in in_order(graph.roots)):
        return graph
    numbers = {WHILE: 0, CONDITIONAL: 0}

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
        # All instructions are rebuilt, since kernels run in order of creation. Constants in memory
        # are not: one that several computations use has one buffer.
        if is_given(instruction):
            return instruction
        attributes = instruction.attributes
        if instruction.op in numbers:
            name = f"{instruction.op.function}{numbers[instruction.op]}"
            numbers[instruction.op] += 1
            made = iter(_computations(instruction, operands, name, context, optimized))
            attributes = {key: _with_next(value, made) for key, value in attributes.items()}
        return Instruction(
            instruction.op, operands, instruction.shape, attributes, instruction.source
        )

    return graph.with_roots(transform(graph.roots, visit)).with_ordered_effects()


def _with_next(value: Any, computations: Iterator[Computation]) -> Any:
    if isinstance(value, Computation):
        return next(computations)
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return tuple([next(computations) for _ in value])
    return value


def _computations(
    instruction: Instruction,
    operands: Sequence[Instruction],
    name: str,
    context: Context,
    optimized: Optimize,
) -> list[FlatComputation]:
    """The optimised computations of a loop or branch, in the order of its attributes."""
    made = []
    for number, computation in enumerate(instruction.computations):
        graph = flattened_graph(computation)
        if instruction.op is CONDITIONAL:
            graph = with_one_of_each(graph, list(map(base_buffer, arrays_of(operands[1 + number]))))
        inside = context.inside(f"{name}.{computation.name}")
        if instruction.op is WHILE and mapped_loop(instruction, context.limits) is not None:
            # A thread runs whole iterations.
            inside = replace(inside, limits=replace(context.limits, threads=1))
        made.append(with_graph(computation, _optimized_but_kept(graph, inside, optimized)))
    return made


def with_one_of_each(graph: Graph, arrays: Sequence[object]) -> Graph:
    """The graph with parameters merged whose ``arrays`` are the same."""
    first = [arrays.index(array) for array in arrays]
    instead = {
        given: reshape(graph.parameters[first[number]], given.array_shape.dimensions)
        for number, given in enumerate(graph.parameters)
        if first[number] < number
    }
    if not instead.keys() & {*in_order(graph.roots)}:
        return graph
    return graph.with_roots(substitute(graph.roots, instead))


def _optimized_but_kept(graph: Graph, context: Context, optimized: Optimize) -> Graph:
    """The graph optimised, except outputs that are parameters."""
    kept = {n for n, o in enumerate(graph.outputs) if base_buffer(o).op is PARAMETER}
    wanted = [output for n, output in enumerate(graph.outputs) if n not in kept]
    inner = optimized(Graph(graph.parameters, wanted, graph.effects), context)
    made = iter(inner.outputs)
    outputs = [o if n in kept else next(made) for n, o in enumerate(graph.outputs)]
    return Graph(graph.parameters, outputs, inner.effects)
