"""Lowers planned kernels to TIR one by one, and emits copies between arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tracejit.affine import Affine
from tracejit.attributes import WindowDimension
from tracejit.backends.tvm.analysis.cost_model import cost_of
from tracejit.backends.tvm.analysis.kernel_stats import copy_stats, kernel_stats
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import RootRule
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.fusion.kernel import Fusion, FusionPlan, packed_scalars, read_by
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.dtypes import words
from tracejit.backends.tvm.ir.tir import Buffer, nbytes
from tracejit.backends.tvm.lower.kernel_key import text_of
from tracejit.backends.tvm.lower.structural_hash import form_of
from tracejit.backends.tvm.program.control_flow import leaf_shapes
from tracejit.backends.tvm.program.thunks import KernelStep, Owner, Scratch
from tracejit.backends.tvm.target.target import Target
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs
from tracejit.backends.tvm.tune.policy import MODELLED, TuningPolicy
from tracejit.errors import CompilationError
from tracejit.graph import Instruction
from tracejit.ops.constants import parameter
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE
from tracejit.shapes import Shape

# The items of an array from which addresses need 64 bits: intermediate sums may be larger.
WIDE = 1 << 30


class KernelSteps:
    """Emits kernels for a machine with the knobs of ``decisions``, on the memory in ``places``.

    If kernels ``may_become_one`` function, each has its own body; otherwise kernels of equal
    structure share one.
    """

    def __init__(
        self,
        plan: FusionPlan,
        places: BufferAssignment,
        target: Target,
        decisions: TuningPolicy,
        may_become_one: bool = False,
    ) -> None:
        self._plan = plan
        self._places = places
        self._target = target
        self._schedules = target.schedules
        self._decisions = decisions
        self._is_written_anew = may_become_one or decisions is not MODELLED
        self._known: dict[Any, tuple[KernelStep, Sequence[Instruction]]] = {}

    def has_memory(self, instruction: Instruction) -> bool:
        """Whether an instruction's value is in memory."""
        return instruction in self._plan.memory

    def kernel(self, fused: Fusion, results: Sequence[Instruction], name: str) -> KernelStep:
        """A kernel that computes ``results``, the arrays of a fusion."""
        phases = fused.phases if isinstance(fused, RowKernel) else [fused]
        inside = {i for phase in phases for i in _inside(phase.results, self._plan.memory)}
        ordered = sorted(inside, key=lambda i: i.serial)
        written = partial(self._written, fused, ordered, results, name)
        if self._is_written_anew:
            return self._decisions.settle(written, partial(self._text, fused, ordered, results))
        form = form_of(fused, ordered, results, self._plan, self._places)
        known = None if form is None else self._known.get(form.key)
        if form is None or known is None:
            step = written(MODEL)
            if form is not None and {o for o in step.owners if not isinstance(o, Scratch)} <= {
                *form.instructions
            }:
                self._known[form.key] = step, form.instructions
            return step
        return _renamed(*known, form.instructions, name)

    def copy(self, source: Instruction, target: Owner, name: str) -> KernelStep:
        """A kernel that stores the value of ``source``, computed if it has no memory."""
        inside = _inside([source], self._plan.memory)
        frame = self._frame(inside, [source], {})
        memory = frame.outputs[0]
        store = Store(source, memory, compute=not self.has_memory(source))
        body = self._schedules.pointwise(frame, source.array_shape.dimensions, [store], frame.cost)
        facts = copy_stats(source.array_shape)
        if store.compute:
            facts = kernel_stats(inside, [source], "elementwise")
        inputs = [*frame.inputs.items()]
        return KernelStep(name, body, [*inputs, (target, memory)], len(inputs), facts)

    def move(self, shape: Shape, source: Owner, target: Owner, name: str) -> KernelStep:
        """A kernel that copies one array's memory to another's."""
        stand_in = parameter(0, shape)
        dtype = _index_dtype([stand_in])
        frame = Frame(lambda i: i is stand_in, [shape], self._target.limits, {}, dtype, 1)
        store = Store(stand_in, frame.outputs[0], compute=False)
        body = self._schedules.pointwise(frame, shape.dimensions, [store], 1)
        parameters = [(source, frame.inputs[stand_in]), (target, frame.outputs[0])]
        return KernelStep(name, body, parameters, 0, copy_stats(shape))

    def _frame(
        self,
        inside: Sequence[Instruction],
        results: Sequence[Instruction],
        shared: Mapping[Instruction, int],
        choices: Knobs = MODEL,
        siblings: Sequence[Instruction] = (),
    ) -> Frame:
        cost = 1 + sum(cost_of(i) for i in inside)
        shapes = [r.array_shape for r in results]
        dtype = _index_dtype([*inside, *results])
        # Other ops that read the array that they overwrite write all of it.
        in_place = any(map(self._places.is_update, results))
        in_place &= not shared or results[0].op in (DYNAMIC_UPDATE_SLICE, SCATTER)
        return Frame(
            self.has_memory,
            shapes,
            self._target.limits,
            self._plan.uses,
            dtype,
            cost,
            in_place,
            shared,
            choices,
            siblings,
            self._schedules.pointwise,
        )

    def _text(
        self, fused: Fusion, inside: Sequence[Instruction], results: Sequence[Instruction]
    ) -> str:
        """A kernel's computation and the layout of its results, as text that is equal in every
        process.
        """
        places = [
            f"{n}: {'update' if self._places.is_update(r) else 'over an operand'}"
            for n, r in enumerate(results)
            if self._places.is_update(r) or r in self._places.shared
        ]
        kind = "rows" if isinstance(fused, RowKernel) else ""
        return "\n".join([text_of(inside, results), kind, *places])

    def _written(
        self,
        fused: Fusion,
        ordered: Sequence[Instruction],
        results: Sequence[Instruction],
        name: str,
        choices: Knobs,
    ) -> KernelStep:
        shared = {
            self._places.shared[r]: n for n, r in enumerate(results) if r in self._places.shared
        }
        frame = self._frame(ordered, results, shared, choices, fused.siblings)
        pairs = list(zip(results, frame.outputs, strict=True))
        if isinstance(fused, RowKernel):
            body = self._schedules.rows(frame, fused, pairs)
        elif fused.anchor is None:
            stores = [store for pair in pairs for store in _stores(*pair)]
            body = self._schedules.pointwise(frame, fused.dimensions, stores, frame.cost)
        else:
            body = self._rule(fused.anchor)(frame, fused.anchor, pairs)
        inputs = [pair for pair in frame.inputs.items() if pair[0] not in frame.shared]
        parameters = [*inputs, *pairs, *_scratch(frame)]
        in_place = {r for r in results if self._places.is_update(r)}
        schedule = frame.schedule or (fused.anchor or results[-1]).op.opcode
        facts = kernel_stats(ordered, results, schedule, in_place)
        is_thorough = self._schedules.is_thorough(facts, choices)
        how = facts, is_thorough, frame.library
        return KernelStep(name, body, parameters, len(inputs), *how)

    def _rule(self, anchor: Instruction) -> RootRule:
        """What writes the kernel of an anchor: a schedule, or else a library's call."""
        rule = self._schedules.anchored(anchor.op) or self._target.libraries.call(anchor.op)
        if rule is None:
            raise CompilationError(
                f"{anchor.op.function}: {_called(anchor)}cannot be compiled for "
                f"{self._target.name}",
                anchor.source,
            )
        return rule


def _renamed(
    step: KernelStep, of: Sequence[Instruction], now: Sequence[Instruction], name: str
) -> KernelStep:
    """The same step for other instructions of the same structure."""
    others = dict(zip(of, now, strict=True))
    parameters = [
        (Scratch(owner.nbytes) if isinstance(owner, Scratch) else others[owner], buffer)
        for owner, buffer in step.parameters
        if not isinstance(owner, int)
    ]
    return replace(step, name=name, parameters=parameters)


def _stores(result: Instruction, target: Buffer) -> list[Store]:
    """The stores of a result in a pointwise kernel: whole, or element by element."""
    scalars = packed_scalars(result)
    if not scalars:
        return [Store(result, target)]
    return [Store(s, target, partial(_at, place), compute=False) for place, s in enumerate(scalars)]


def _at(place: int, _: Sequence[Index]) -> Affine:
    """The address of an element of a short vector."""
    return Affine() + place


def _inside(results: Sequence[Instruction], memory: set[Instruction]) -> list[Instruction]:
    """Every instruction that a kernel for ``results`` computes."""
    found: set[Instruction] = set()
    stack = list(results)
    while stack:
        instruction = stack.pop()
        if instruction in found:
            continue
        found.add(instruction)
        stack.extend(o for o in read_by(instruction) if o not in memory)
    return sorted(found, key=lambda i: i.serial)


def _index_dtype(instructions: Sequence[Instruction]) -> str:
    everything = [*instructions, *(o for i in instructions for o in i.operands)]
    shapes = [shape for i in everything for shape in leaf_shapes(i.shape)]
    sizes = [s.size * words(s.element_type) for s in shapes]
    padded = [math.prod(map(_span, i.attributes.get("window") or ())) for i in instructions]
    return "int64" if max([*sizes, *padded], default=0) >= WIDE else "int32"


def _span(window: WindowDimension) -> int:
    """The extent of a window and of the padding along a dimension."""
    return window.dilated_size + abs(window.padding_low) + abs(window.padding_high)


def _scratch(frame: Frame) -> list[tuple[Owner, Buffer]]:
    return [(Scratch(nbytes(buffer)), buffer) for buffer in frame.scratch]


def _called(instruction: Instruction) -> str:
    """The function that a custom call is of, for messages; nothing for other ops."""
    name = instruction.attributes.get("custom_call_target")
    return f"{name!r} " if name else ""
