"""From a graph to a program: simplify, legalise, fuse, emit each kernel, lay out memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm.aliases import usable
from tracejit.backends.tvm.bounded import with_bounds
from tracejit.backends.tvm.boxes import in_boxes
from tracejit.backends.tvm.control import flat
from tracejit.backends.tvm.control_steps import ControlSteps
from tracejit.backends.tvm.dead_state import without_dead_state
from tracejit.backends.tvm.decisions import MODELLED, Decisions
from tracejit.backends.tvm.first_sorted import with_first_alone
from tracejit.backends.tvm.fuse import fuse
from tracejit.backends.tvm.fused import Kernel as Fused
from tracejit.backends.tvm.in_place import updates_last
from tracejit.backends.tvm.index_vectors import with_index_vectors
from tracejit.backends.tvm.kernel_steps import KernelSteps
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.known_values import with_known_values
from tracejit.backends.tvm.leaves import Leaves, flattened
from tracejit.backends.tvm.legalise import legalise
from tracejit.backends.tvm.loop_constants import with_loop_constants
from tracejit.backends.tvm.merge_loops import merge_loops
from tracejit.backends.tvm.places import Places
from tracejit.backends.tvm.program import Program
from tracejit.backends.tvm.reshapes import stripped
from tracejit.backends.tvm.rolling import rolled
from tracejit.backends.tvm.row_blocks import in_row_blocks
from tracejit.backends.tvm.rows import RowKernel, joined
from tracejit.backends.tvm.scalars import in_scalars
from tracejit.backends.tvm.scan_products import products_of_all_steps
from tracejit.backends.tvm.scans import merge_scans
from tracejit.backends.tvm.schedule.sort_vectors import VECTOR_BYTES
from tracejit.backends.tvm.simplify import simplify
from tracejit.backends.tvm.single_device import for_one_device
from tracejit.backends.tvm.sorted_parts import without_unused_parts
from tracejit.backends.tvm.stencil_blocks import in_stencil_blocks
from tracejit.backends.tvm.steps import Fragment, Step
from tracejit.backends.tvm.unused_results import without_unused_results
from tracejit.backends.tvm.vector_steps import with_vector_steps
from tracejit.backends.tvm.wide_sorts import with_wide_sorts
from tracejit.graph import Computation, Instruction
from tracejit.ops.control import CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.shapes import Shape
from tracejit.traversal import in_order, transform


def lower(
    computation: Computation,
    machine: Machine,
    aliases: Mapping[int, int] | None = None,
    decisions: Decisions = MODELLED,
) -> Program:
    """The program of a computation; tuples among its parameters and results are taken apart.

    ``aliases`` are parameters whose memory is given away, each with the result that may have it,
    by their numbers. ``decisions`` says how each kernel is written.

    Raises `CompilationError` for an op that has no rule, naming the user's line.
    """
    constants: dict[Instruction, int] = {}
    parameters, root, effects = flat(for_one_device(computation))
    outputs = flattened(root)
    if not effects:
        outputs = rolled(with_vector_steps(with_known_values(outputs)))
    fragment = lower_fragment(
        parameters, outputs, effects, machine, decisions, constants, "", donated=aliases
    )
    return Program(
        kernels=fragment.all_kernels,
        calls=fragment.calls,
        inputs=[_spec(p.array_shape) for p in parameters],
        outputs=[_spec(o.array_shape) for o in outputs],
        constants=[np.ascontiguousarray(c.attributes["literal"]) for c in constants],
        workspace_bytes=fragment.workspace_bytes,
        aliases=fragment.aliases,
    )


def lower_fragment(
    parameters: Sequence[Instruction],
    outputs: Sequence[Instruction],
    effects: Sequence[Instruction],
    machine: Machine,
    decisions: Decisions,
    constants: dict[Instruction, int],
    prefix: str,
    replaced: Mapping[Instruction, int] | None = None,
    donated: Mapping[int, int] | None = None,
) -> Fragment:
    """The kernels and calls that make ``outputs`` and do all ``effects`` once, in their order.

    ``prefix`` keeps kernel names apart. ``replaced`` are parameters that are not needed any more
    when all is done, each with the number of the output that comes in its place; ``donated`` the
    numbers of those whose memory is that output's.
    """
    scanned = products_of_all_steps(merge_scans(simplify([*outputs, *effects])))
    legal = merge_loops(legalise(in_row_blocks(scanned, machine)))
    legal = without_dead_state(with_loop_constants(legal))
    simple = without_unused_results(without_barriers(simplify(legal)))
    simple = with_first_alone(without_unused_parts(simple))
    if machine.vector_bytes == VECTOR_BYTES:
        simple = with_wide_sorts(simple)
    simple = with_index_vectors(simple)
    if prefix:
        # A loop's body or a branch.
        simple = simplify(with_bounds(simplify(in_scalars(simple))))
    simple = in_boxes(in_stencil_blocks(simple, machine))
    made, done = simple[: len(outputs)], []
    if effects:
        done = [instruction for instruction in in_order(simple) if instruction.has_effect]
    shared = usable(parameters, made, donated or {})
    plan = fuse([output for output in made if output.array_shape.size], done)
    groups = joined(plan.kernels, plan.memory, [stripped(output) for output in made])
    kernels = updates_last(groups, plan.memory)
    leaves = Leaves(plan.memory)
    places = Places(
        parameters, made, kernels, leaves, plan.memory, constants, replaced or {}, shared
    )
    writer = KernelSteps(plan, places, machine, decisions, may_become_one=bool(prefix))
    nested = partial(lower_fragment, machine=machine, decisions=decisions, constants=constants)
    control = ControlSteps(writer, places, machine, nested)
    return _Lowering(kernels, leaves, places, writer, control, prefix).fragment()


def without_barriers(roots: Sequence[Instruction]) -> list[Instruction]:
    """The roots without OptimizationBarriers, which only what came before had to respect."""
    return transform(
        roots, lambda i, operands: operands[0] if i.op is OPTIMIZATION_BARRIER else None
    )


@dataclass(frozen=True)
class _Lowering:
    """The steps of a fused computation, and the fragment that they make."""

    kernels: Sequence[Fused]
    leaves: Leaves
    places: Places
    writer: KernelSteps
    control: ControlSteps
    prefix: str

    def fragment(self) -> Fragment:
        steps = [s for n, k in enumerate(self.kernels) for s in self._steps(k, n)]
        copies = self.places.copies
        steps += [self.writer.copy(s, index, f"{self.prefix}copy{index}") for s, index in copies]
        place, workspace = self.places.settled(steps)
        return Fragment(
            [kernel for step in steps for kernel in step.kernels()],
            [node for step in steps for node in step.nodes(place)],
            workspace,
            self.places.in_place,
            self.places.aliases,
        )

    def _steps(self, fused: Fused, number: int) -> Sequence[Step]:
        results = [leaf for result in fused.results for leaf in self.leaves.of(result)]
        heart = fused.heart
        has_effect = heart is not None and heart.has_effect
        if not has_effect and all(r.array_shape.size == 0 for r in results):
            return []
        what = "rows" if isinstance(fused, RowKernel) else (heart or results[-1]).op.function
        name = f"{self.prefix}k{number}_{what}"
        if heart is not None and heart.op is WHILE:
            return self.control.loop(heart, results, name)
        if heart is not None and heart.op is CONDITIONAL:
            return [self.control.conditional(heart, results, name)]
        return [self.writer.kernel(fused, results, name)]


def _spec(shape: Shape) -> ArraySpec:
    return ArraySpec(shape.dtype, shape.dimensions)
