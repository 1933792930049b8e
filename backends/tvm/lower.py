"""From a graph to a program: simplify, legalise, fuse, emit each kernel, lay out memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm import emit
from tracejit.backends.tvm.cost import cost_of
from tracejit.backends.tvm.fuse import Kernel as Fused
from tracejit.backends.tvm.fuse import Plan, fuse, is_given, stripped
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.legalise import legalise
from tracejit.backends.tvm.memory import Lifetime, pack
from tracejit.backends.tvm.program import Argument, Call, Kernel, Program
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.pointwise import Store, pointwise
from tracejit.backends.tvm.simplify import simplify
from tracejit.backends.tvm.tir import Buffer, Stmt, nbytes
from tracejit.backends.tvm.types import words
from tracejit.errors import CompilationError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, elements_of
from tracejit.shapes import Shape, TupleShape

# Sizes in items from which addresses need 64 bits.
WIDE = 1 << 31


def lower(computation: Computation, machine: Machine) -> Program:
    """The program whose outputs are the elements of the computation's root, tuples flattened."""
    outputs = simplify(legalise(simplify(_flattened(computation.root))))
    return _Lowering(computation, outputs, machine).program()


def _flattened(root: Instruction) -> list[Instruction]:
    if not isinstance(root.shape, TupleShape):
        return [root]
    return [leaf for element in elements_of(root) for leaf in _flattened(element)]


@dataclass(frozen=True, eq=False)
class Scratch:
    """Memory that one kernel needs while it runs."""

    nbytes: int


Memory = Instruction | Scratch | int
"""What a kernel's parameter is: an instruction's memory, scratch, or an output by number."""


@dataclass
class Emitted:
    """A kernel with its TIR, and what memory each parameter is."""

    name: str
    body: Stmt
    parameters: list[tuple[Memory, Buffer]]


class _Lowering:
    def __init__(
        self, computation: Computation, outputs: Sequence[Instruction], machine: Machine
    ) -> None:
        self.parameters = {p: i for i, p in enumerate(computation.parameters)}
        self.outputs = list(outputs)
        self.machine = machine
        self.plan: Plan = fuse([o for o in outputs if o.array_shape.size])
        self.constants: dict[Instruction, int] = {}

    def program(self) -> Program:
        emitted = [self._kernel(k, n) for n, k in enumerate(self.plan.kernels)]
        emitted = [e for e in emitted if e is not None]
        owners, copies = self._output_owners()
        emitted += [self._copy(source, index) for source, index in copies]
        places, workspace = self._workspace(emitted, owners)

        def argument(memory: Memory) -> Argument:
            if isinstance(memory, int):
                return Argument.output(memory)
            if isinstance(memory, Scratch):
                return Argument.workspace(places[memory])
            if memory in owners:
                return Argument.output(owners[memory])
            if memory in self.parameters:
                return Argument.input(self.parameters[memory])
            if memory.op is CONSTANT:
                return Argument.constant(self.constants.setdefault(memory, len(self.constants)))
            return Argument.workspace(places[memory])

        calls = [Call(e.name, [argument(m) for m, _ in e.parameters]) for e in emitted]
        return Program(
            kernels=[Kernel(e.name, [b for _, b in e.parameters], e.body) for e in emitted],
            calls=calls,
            inputs=[_spec(p.array_shape) for p in self.parameters],
            outputs=[_spec(o.array_shape) for o in self.outputs],
            constants=[_held(c) for c in self.constants],
            workspace_bytes=workspace,
        )

    def _has_memory(self, instruction: Instruction) -> bool:
        return instruction in self.plan.memory

    def _kernel(self, fused: Fused, number: int) -> Emitted | None:
        results = [r for result in fused.results for r in _leaves(result, self.plan)]
        if all(r.array_shape.size == 0 for r in results):
            return None
        heart = fused.heart
        inside = _inside(fused, self.plan.memory)
        frame = Frame(
            self._has_memory,
            [r.array_shape for r in results],
            self.machine,
            self.plan.uses,
            self._index_dtype(inside, results),
            1 + sum(cost_of(i) for i in inside),
        )
        pairs = list(zip(results, frame.outputs, strict=True))
        if heart is None:
            stores = [Store(result, target) for result, target in pairs]
            body = pointwise(frame, fused.dimensions, stores, frame.cost)
        else:
            rule = emit.rooted.get(heart.op)
            if rule is None:
                raise CompilationError(
                    f"{heart.op.function}: cannot be compiled for the CPU", heart.source
                )
            body = rule(frame, heart, pairs)
        name = f"k{number}_{(heart or fused.results[-1]).op.function}"
        return Emitted(name, body, [*frame.inputs.items(), *pairs, *_scratch(frame)])

    def _index_dtype(self, inside: Sequence[Instruction], results: Sequence[Instruction]) -> str:
        everything = [*inside, *results, *(o for i in inside for o in i.operands)]
        shapes = [s for i in everything for s in i.element_shapes if isinstance(s, Shape)]
        largest = max((s.size * words(s.element_type) for s in shapes), default=0)
        return "int64" if largest >= WIDE else "int32"

    def _output_owners(self) -> tuple[dict[Instruction, int], list[tuple[Instruction, int]]]:
        """Which instruction is computed straight into which output, and what must be copied."""
        owners: dict[Instruction, int] = {}
        copies = []
        for index, output in enumerate(self.outputs):
            if output.array_shape.size == 0:
                continue
            source = stripped(output)
            if is_given(source) or source in owners:
                copies.append((source, index))
            else:
                owners[source] = index
        return owners, copies

    def _copy(self, source: Instruction, index: int) -> Emitted:
        shape = source.array_shape
        dtype = self._index_dtype([], [source])
        frame = Frame(self._has_memory, [shape], self.machine, {}, dtype, 1)
        target = frame.outputs[0]
        body = pointwise(frame, shape.dimensions, [Store(source, target, compute=False)], 1)
        return Emitted(f"copy{index}", body, [*frame.inputs.items(), (index, target)])

    def _workspace(
        self, emitted: Sequence[Emitted], owners: dict[Instruction, int]
    ) -> tuple[dict[Instruction | Scratch, int], int]:
        first: dict[Instruction | Scratch, int] = {}
        last: dict[Instruction | Scratch, int] = {}
        for step, kernel in enumerate(emitted):
            for memory, _ in kernel.parameters:
                if isinstance(memory, int) or memory in owners:
                    continue
                if isinstance(memory, Instruction) and is_given(memory):
                    continue
                first.setdefault(memory, step)
                last[memory] = step
        lifetimes = [Lifetime(_nbytes(m), first[m], last[m]) for m in first]
        offsets, total = pack(lifetimes)
        return dict(zip(first, offsets, strict=True)), total


def _leaves(result: Instruction, plan: Plan) -> list[Instruction]:
    """The arrays that a result consists of: itself, or the elements of a tuple."""
    if not isinstance(result.shape, TupleShape):
        return [result]
    known = {
        i.attributes["index"]: i
        for i in plan.memory
        if i.op is GET_TUPLE_ELEMENT and i.operands[0] is result
    }
    elements = elements_of(result)
    return [known.get(n, element) for n, element in enumerate(elements)]


def _inside(fused: Fused, memory: set[Instruction]) -> list[Instruction]:
    """Every instruction that the kernel computes."""
    found: set[Instruction] = set()
    stack = list(fused.results)
    while stack:
        instruction = stack.pop()
        if instruction in found:
            continue
        found.add(instruction)
        stack.extend(o for o in instruction.operands if o not in memory)
    return sorted(found, key=lambda i: i.serial)


def _scratch(frame: Frame) -> list[tuple[Memory, Buffer]]:
    return [(Scratch(nbytes(buffer)), buffer) for buffer in frame.scratch]


def _nbytes(memory: Instruction | Scratch) -> int:
    return memory.nbytes if isinstance(memory, Scratch) else memory.array_shape.nbytes


def _spec(shape: Shape) -> ArraySpec:
    return ArraySpec(shape.dtype, shape.dimensions)


def _held(constant: Instruction) -> np.ndarray:
    return np.ascontiguousarray(constant.attributes["literal"])
