"""Lowers loops and branches: each computation that they call becomes a nested fragment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tracejit.backends.tvm.analysis.induction import trip_count
from tracejit.backends.tvm.analysis.kernel_stats import copy_stats as moved
from tracejit.backends.tvm.analysis.mapped_loops import mapped_loop
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.ir.graph import Graph, flattened_graph
from tracejit.backends.tvm.ir.internal_ops import UNDEFINED
from tracejit.backends.tvm.ir.reshapes import base_buffer, stored_as
from tracejit.backends.tvm.ir.tuples import arrays_of
from tracejit.backends.tvm.lower.kernels import KernelSteps
from tracejit.backends.tvm.passes.nested_computations import with_one_of_each
from tracejit.backends.tvm.program.control_flow import (
    BranchStep,
    ConditionalStep,
    PingPong,
    WhileStep,
)
from tracejit.backends.tvm.program.thunks import Fragment, KernelStep, Owner, Scratch, Step
from tracejit.backends.tvm.target.target import Target
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import constant, parameter
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import select
from tracejit.ops.layout import full_like
from tracejit.shapes import ElementType, Shape


class Lowering(Protocol):
    """The type of `lower_fragment` for nested graphs."""

    def __call__(
        self,
        graph: Graph,
        *,
        prefix: str,
        replaced: Mapping[Instruction, int],
        target: Target,
    ) -> Fragment: ...


class ControlSteps:
    """Lowers loops and branches, with kernels for the copies into and out of them."""

    def __init__(
        self,
        kernels: KernelSteps,
        places: BufferAssignment,
        target: Target,
        lower_nested: Lowering,
    ) -> None:
        self._kernels = kernels
        self._places = places
        self._target = target
        self._lower_nested = lower_nested

    def loop(
        self, instruction: Instruction, results: Sequence[Instruction], name: str
    ) -> Sequence[Step]:
        """The steps of a While whose state is ``results``."""
        mapped = self._mapped(instruction, results, name)
        if mapped is not None:
            return mapped
        (init,) = instruction.operands
        test = flattened_graph(instruction.attributes["condition"])
        condition, _ = self._nested(test, f"{name}_condition_", {})
        every = {number: number for number in range(len(results))}
        step = flattened_graph(instruction.attributes["body"])
        body, changed = self._nested(step, f"{name}_body_", every)
        fresh = [
            results[n] if k in body.in_place else Scratch(results[n].array_shape.nbytes)
            for k, n in enumerate(changed)
        ]
        moved = sum(r.nbytes for r in fresh if isinstance(r, Scratch))
        in_turn = (
            moved >= self._target.limits.swapped_state
            and not instruction.attributes["condition"].has_effect
        )
        loop = WhileStep(
            start=self._starts(arrays_of(init), results, range(len(results)), name),
            condition=condition,
            body=body,
            state=results,
            changed=changed,
            fresh=fresh,
            updates=[
                self._kernels.move(results[n].array_shape, scratch, results[n], f"{name}_update{n}")
                for n, scratch in zip(changed, fresh, strict=True)
                if results[n].array_shape.size and scratch is not results[n]
            ],
            predicate=Scratch(1),
            workspace=Scratch(max(condition.workspace_bytes, body.workspace_bytes)),
            ping_pong=self._ping_pong(f"{name}_turn") if in_turn else None,
            steps=trip_count(instruction),
        )
        whole = self._target.schedules.whole_loop(loop, name, self._places)
        return [loop] if whole is None else whole

    def _mapped(
        self, instruction: Instruction, results: Sequence[Instruction], name: str
    ) -> Sequence[Step] | None:
        """The steps of a While whose iterations are independent, if the target has such ones."""
        limits = self._target.limits
        mapped = mapped_loop(instruction, limits)
        if mapped is None:
            return None
        alone = replace(self._target, limits=replace(limits, threads=1))
        block = self._lower_nested(mapped.graph, prefix=f"{name}_", replaced={}, target=alone)
        known = self._places.constants
        step = self._target.schedules.iterations(
            mapped, block, results, known, limits.threads, name
        )
        if step is None:
            return None
        counter = mapped.counter
        init = [*arrays_of(instruction.operands[0])]
        kind = init[counter.number].array_shape.element_type
        init[counter.number] = constant(counter.at(counter.count), kind)
        others = [n for n in range(len(results)) if n not in mapped.made]
        if not self._kernels.has_memory(results[counter.number]):  # nobody uses it
            others.remove(counter.number)
        return [*self._starts(init, results, others, name), step]

    def _starts(
        self,
        init: Sequence[Instruction],
        results: Sequence[Instruction],
        numbers: Sequence[int],
        name: str,
    ) -> list[KernelStep]:
        """The copies of initial arrays to the state, of those that do not share its memory."""
        return [
            self._kernels.copy(init[n], results[n], f"{name}_start{n}")
            for n in numbers
            if init[n].array_shape.size
            and init[n].op is not UNDEFINED
            and not self._places.shares_buffer(init[n], results[n])
        ]

    def conditional(
        self, instruction: Instruction, results: Sequence[Instruction], name: str
    ) -> ConditionalStep:
        """The steps of a Conditional with these ``results``."""
        attributes = instruction.attributes
        computations = attributes["branch_computations"] or (
            attributes["true_computation"],
            attributes["false_computation"],
        )
        selector, *operands = instruction.operands
        number = Scratch(4)
        branches = [
            self._branch(computation, operand, results, f"{name}_branch{n}")
            for n, (computation, operand) in enumerate(zip(computations, operands, strict=True))
        ]
        return ConditionalStep(
            select=self._kernels.copy(_branch_number(selector), number, f"{name}_select"),
            selector=number,
            branches=branches,
            results=results,
            workspace=Scratch(max(b.fragment.workspace_bytes for b in branches)),
        )

    def _branch(
        self,
        computation: Computation,
        operand: Instruction,
        results: Sequence[Instruction],
        name: str,
    ) -> BranchStep:
        arrays = [self._in_memory(array) for array in arrays_of(operand)]
        root_buffers = [self._places.root_buffer(array) for array in arrays]
        # Arguments that share a buffer are equal; the branch takes the buffer once.
        first = [root_buffers.index(root_buffer) for root_buffer in root_buffers]
        # Maps arguments to the results that share their buffer.
        places = {
            n: k
            for k, result in enumerate(results)
            for n in sorted({*first})
            if self._places.shares_buffer(arrays[n], result)
        }
        graph = with_one_of_each(flattened_graph(computation), root_buffers)
        fragment, made = self._nested(graph, f"{name}_", places)
        arguments: list[Owner] = []
        prepare = []
        for n, array in enumerate(arrays):
            if self._kernels.has_memory(array) or not array.array_shape.size:
                arguments.append(array)
                continue
            scratch = Scratch(array.array_shape.nbytes)
            arguments.append(scratch)
            prepare.append(self._kernels.copy(array, scratch, f"{name}_argument{n}"))
        outputs: list[Owner] = []
        updates = []
        for n, k in enumerate(made):
            result = results[k]
            if k not in places.values() or n in fragment.in_place or not result.array_shape.size:
                outputs.append(result)
                continue
            scratch = Scratch(result.array_shape.nbytes)
            outputs.append(scratch)
            move = self._kernels.move(result.array_shape, scratch, result, f"{name}_update{k}")
            updates.append(move)
        return BranchStep(arguments, prepare, fragment, outputs, updates)

    def _in_memory(self, array: Instruction) -> Instruction:
        """The instruction whose buffer holds an array, if there is one."""
        source = stored_as(array, self._kernels.has_memory)
        return source if self._kernels.has_memory(source) else array

    def _nested(
        self, graph: Graph, prefix: str, places: Mapping[int, int]
    ) -> tuple[Fragment, list[int]]:
        """A graph's fragment, and the numbers of the outputs that the fragment computes.

        ``places`` maps parameters to the outputs that share their memory, both by number. An
        output that is such a parameter unchanged is left out; others may be written over it.
        """
        parameters, outputs = graph.parameters, graph.outputs
        kept = {k for n, k in places.items() if base_buffer(outputs[k]) is parameters[n]}
        made = [k for k in range(len(outputs)) if k not in kept]
        wanted = replace(graph, outputs=[outputs[k] for k in made])
        replaced = {parameters[n]: made.index(k) for n, k in places.items() if k not in kept}
        fragment = self._lower_nested(wanted, prefix=prefix, replaced=replaced, target=self._target)
        return fragment, made

    def _ping_pong(self, name: str) -> PingPong:
        """A kernel that converts a pred to a branch number: 0 for true, 1 for false."""
        predicate, selector = Scratch(1), Scratch(4)
        given = parameter(0, Shape(ElementType.PRED))
        number = Shape(ElementType.S32)
        frame = Frame(lambda i: i is given, [number], self._target.limits, {}, "int32", 1)
        store = Store(_branch_number(given), frame.outputs[0])
        body = self._target.schedules.pointwise(frame, (), [store], 1)
        parameters = [(predicate, frame.inputs[given]), (selector, frame.outputs[0])]
        return PingPong(predicate, selector, KernelStep(name, body, parameters, 0, moved(number)))


def _branch_number(selector: Instruction) -> Instruction:
    """The branch number as s32: 0 for a true pred; an index out of range selects no branch."""
    element_type = selector.array_shape.element_type
    if element_type is ElementType.PRED:
        number = full_like(convert_element_type(selector, ElementType.S32), 0)
        return select(selector, number, full_like(number, 1))
    return convert_element_type(selector, ElementType.S32)
