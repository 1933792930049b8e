"""`lower`: from a computation to a program: optimise, fuse, emit each kernel, assign buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.buffers.donation import usable
from tracejit.backends.tvm.buffers.in_place import order_updates_last
from tracejit.backends.tvm.fusion.kernel import Fusion
from tracejit.backends.tvm.fusion.planner import fuse
from tracejit.backends.tvm.fusion.row_fusion import RowKernel, fuse_rows
from tracejit.backends.tvm.ir.graph import Graph
from tracejit.backends.tvm.ir.native_records import recorded_call
from tracejit.backends.tvm.ir.reshapes import base_buffer
from tracejit.backends.tvm.ir.tuples import Leaves
from tracejit.backends.tvm.lower.control import ControlSteps
from tracejit.backends.tvm.lower.kernels import KernelSteps
from tracejit.backends.tvm.pipeline import optimized
from tracejit.backends.tvm.program.program import Program
from tracejit.backends.tvm.program.thunks import Fragment, Step
from tracejit.backends.tvm.target.target import Target
from tracejit.backends.tvm.tune.policy import MODELLED, TuningPolicy
from tracejit.graph import Computation, Instruction
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.shapes import Shape


def lower(
    computation: Computation,
    target: Target,
    aliases: Mapping[int, int] | None = None,
    decisions: TuningPolicy = MODELLED,
) -> Program:
    """The program of a computation; tuples among its parameters and results are flattened.

    ``aliases`` maps donated parameters to the results that may reuse their memory, by number.
    ``decisions`` chooses the variant of each kernel.

    Raises `CompilationError` for an op that has no rule, naming the user's line.
    """
    constants: dict[Instruction, int] = {}
    graph = optimized(computation, target.limits)
    fragment = lower_fragment(graph, target, decisions, constants, "", donated=aliases)
    return Program(
        kernels=fragment.all_kernels,
        calls=fragment.calls,
        inputs=[_spec(p.array_shape) for p in graph.parameters],
        outputs=[_spec(o.array_shape) for o in graph.outputs],
        constants=[np.ascontiguousarray(c.attributes["literal"]) for c in constants],
        workspace_bytes=fragment.workspace_bytes,
        aliases=fragment.aliases,
        native_calls={n: call for c, n in constants.items() if (call := recorded_call(c))},
    )


def lower_fragment(
    graph: Graph,
    target: Target,
    decisions: TuningPolicy,
    constants: dict[Instruction, int],
    prefix: str,
    replaced: Mapping[Instruction, int] | None = None,
    donated: Mapping[int, int] | None = None,
) -> Fragment:
    """The kernels and calls that compute the outputs of an optimised graph, and run its effects.

    ``prefix`` makes kernel names unique. ``replaced`` maps parameters that are dead afterwards to
    the outputs that may replace them, by number; ``donated`` maps parameters to the outputs that
    share their memory.
    """
    parameters, outputs = graph.parameters, graph.outputs
    shared = usable(parameters, outputs, donated or {})
    limits = target.limits
    plan = fuse([output for output in outputs if output.array_shape.size], graph.effects, limits)
    needed = [base_buffer(output) for output in outputs]
    groups = fuse_rows(plan.kernels, plan.memory, needed, limits)
    kernels = order_updates_last(groups, plan.memory)
    leaves = Leaves(plan.memory)
    places = BufferAssignment(
        parameters, outputs, kernels, leaves, plan.memory, constants, replaced or {}, shared
    )
    writer = KernelSteps(plan, places, target, decisions, may_become_one=bool(prefix))
    nested = partial(lower_fragment, decisions=decisions, constants=constants)
    control = ControlSteps(writer, places, target, nested)
    return _Lowering(kernels, leaves, places, writer, control, prefix).fragment()


@dataclass(frozen=True)
class _Lowering:
    """The steps of a fused computation, and its fragment."""

    kernels: Sequence[Fusion]
    leaves: Leaves
    places: BufferAssignment
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

    def _steps(self, fused: Fusion, number: int) -> Sequence[Step]:
        results = [leaf for result in fused.results for leaf in self.leaves.of(result)]
        anchor = fused.anchor
        has_effect = anchor is not None and anchor.has_effect
        if not has_effect and all(r.array_shape.size == 0 for r in results):
            return []
        what = "rows" if isinstance(fused, RowKernel) else (anchor or results[-1]).op.function
        name = f"{self.prefix}k{number}_{what}"
        if anchor is not None and anchor.op is WHILE:
            return self.control.loop(anchor, results, name)
        if anchor is not None and anchor.op is CONDITIONAL:
            return [self.control.conditional(anchor, results, name)]
        return [self.writer.kernel(fused, results, name)]


def _spec(shape: Shape) -> ArraySpec:
    return ArraySpec(shape.dtype, shape.dimensions)
