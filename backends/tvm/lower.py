"""From a graph to a program: simplify, legalise, fuse, emit each kernel, lay out memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tracejit.backends.abi import ArraySpec
from tracejit.backends.tvm import emit
from tracejit.backends.tvm.affine import Affine, Index
from tracejit.backends.tvm.aliases import usable
from tracejit.backends.tvm.choices import MODEL, Choices, either
from tracejit.backends.tvm.control import (
    BranchStep,
    ConditionalStep,
    Turn,
    WhileStep,
    flat,
    leaf_shapes,
)
from tracejit.backends.tvm.cost import cost_of
from tracejit.backends.tvm.dead_state import without_dead_state
from tracejit.backends.tvm.decisions import MODELLED, Decisions
from tracejit.backends.tvm.facts import counted, is_soon_built, moved
from tracejit.backends.tvm.fuse import Kernel as Fused
from tracejit.backends.tvm.fuse import fuse, gathered, is_given, read_by
from tracejit.backends.tvm.in_place import State, TakenOver, updates_last
from tracejit.backends.tvm.kernel_text import text_of
from tracejit.backends.tvm.kernels.machine import Machine
from tracejit.backends.tvm.legalise import legalise
from tracejit.backends.tvm.loop_constants import with_loop_constants
from tracejit.backends.tvm.memory import Lifetime, pack
from tracejit.backends.tvm.merge_loops import merge_loops
from tracejit.backends.tvm.program import Argument, Program
from tracejit.backends.tvm.reshapes import stripped
from tracejit.backends.tvm.rolling import rolled
from tracejit.backends.tvm.rows import RowKernel, joined
from tracejit.backends.tvm.scalars import in_scalars
from tracejit.backends.tvm.scan_products import products_of_all_steps
from tracejit.backends.tvm.scans import merge_scans
from tracejit.backends.tvm.schedule.frame import Frame
from tracejit.backends.tvm.schedule.pointwise import Store, pointwise
from tracejit.backends.tvm.schedule.rows import row_kernel
from tracejit.backends.tvm.simplify import simplify
from tracejit.backends.tvm.single_device import for_one_device
from tracejit.backends.tvm.steps import Fragment, KernelStep, Owner, Scratch, Step
from tracejit.backends.tvm.tir import Buffer, nbytes
from tracejit.backends.tvm.types import words
from tracejit.backends.tvm.unused_results import without_unused_results
from tracejit.errors import CompilationError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    elements_of,
    get_tuple_element,
    parameter,
)
from tracejit.ops.control import CONDITIONAL, OPTIMIZATION_BARRIER, WHILE
from tracejit.ops.element_types import convert_element_type
from tracejit.ops.elementwise import select
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE, full_like
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.traversal import in_order, transform

# Sizes in items from which addresses need 64 bits.
WIDE = 1 << 31
# Bytes of a loop's state from which it is not copied back after every step.
LARGE_STATE = 2 << 10


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
        outputs = rolled(outputs)
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
    legal = merge_loops(legalise(scanned))
    legal = without_dead_state(with_loop_constants(legal))
    simple = without_unused_results(without_barriers(simplify(legal)))
    if prefix:
        # A loop's body or a branch.
        simple = simplify(in_scalars(simple))
    made, done = simple[: len(outputs)], []
    if effects:
        done = [instruction for instruction in in_order(simple) if instruction.has_effect]
    shared = usable(parameters, made, donated or {})
    return _Lowering(
        parameters, made, done, machine, decisions, constants, prefix, replaced or {}, shared
    ).fragment()


def without_barriers(roots: Sequence[Instruction]) -> list[Instruction]:
    """The roots without OptimizationBarriers, which only what came before had to respect."""
    return transform(
        roots, lambda i, operands: operands[0] if i.op is OPTIMIZATION_BARRIER else None
    )


def flattened(root: Instruction) -> list[Instruction]:
    """The arrays that a root consists of."""
    if not isinstance(root.shape, TupleShape):
        return [root]
    return [leaf for element in elements_of(root) for leaf in flattened(element)]


class _Lowering:
    def __init__(
        self,
        parameters: Sequence[Instruction],
        outputs: Sequence[Instruction],
        effects: Sequence[Instruction],
        machine: Machine,
        decisions: Decisions,
        constants: dict[Instruction, int],
        prefix: str,
        replaced: Mapping[Instruction, int],
        donated: Mapping[Instruction, int],
    ) -> None:
        self.parameters = {p: i for i, p in enumerate(parameters)}
        self.outputs = list(outputs)
        self.machine = machine
        self.decisions = decisions
        self.constants = constants
        self.prefix = prefix
        self.plan = fuse([o for o in outputs if o.array_shape.size], effects)
        self.elements = {
            (i.operands[0], i.attributes["index"]): i
            for i in self.plan.memory
            if i.op is GET_TUPLE_ELEMENT
        }
        groups = joined(self.plan.kernels, self.plan.memory, [stripped(o) for o in outputs])
        self.kernels = updates_last(groups, self.plan.memory)
        self.donated = donated
        self.owners, self.copies = self._output_owners()
        taken = self._taken_over({**replaced, **donated})
        self.homes, self.shared = taken.homes, taken.shared
        self.late = self._stored_late()
        # An output that took over memory is computed, from the first update on, where it belongs.
        for result, home in self.homes.items():
            if result in self.owners and not is_given(home):
                self.owners[home] = self.owners[result]

    def _stored_late(self) -> list[tuple[Instruction, int]]:
        """Results that come in the place of a parameter that is read until later, and their places.

        They are made in memory of their own and copied when all is done.
        """
        late = []
        sources = {number: source for source, number in self.owners.items()}
        for given, number in self.donated.items():
            source = sources.get(number)
            if source is not None and self.homes.get(source) is not given:
                del self.owners[source]
                late.append((source, number))
        return late

    def _taken_over(self, replaced: Mapping[Instruction, int]) -> TakenOver:
        kept = [source for source, _ in self.copies]
        kept += [p for p, number in self.donated.items() if stripped(self.outputs[number]) is p]
        found = TakenOver(self.kernels, self.plan.memory, self.owners, replaced, kept)
        for number, kernel in enumerate(self.kernels):
            heart = kernel.heart
            if heart is None or heart.op is not WHILE:
                found.add_kernel(number, kernel)
                if replaced:
                    found.add_results(number, kernel)
                continue
            parameters, root, _ = flat(heart.attributes["body"])
            following = flattened(root)
            states = zip(
                self._arrays(heart.operands[0]),
                self._leaves(heart),
                parameters,
                following,
                strict=True,
            )
            found.add_loop(number, [State(a, r, p is not f) for a, r, p, f in states])
        return found

    def fragment(self) -> Fragment:
        steps = [s for n, k in enumerate(self.kernels) for s in self._steps(k, n)]
        copies = [*self.copies, *self.late]
        steps += [self.copy(s, index, f"{self.prefix}copy{index}") for s, index in copies]
        places, workspace = self._workspace(steps)

        def place(owner: Owner) -> Argument:
            if isinstance(owner, int):
                return Argument.output(owner)
            if isinstance(owner, Scratch):
                return Argument.workspace(places[owner])
            owner = self.homes.get(owner, owner)
            if owner in self.owners:
                return Argument.output(self.owners[owner])
            if owner in self.parameters:
                return Argument.input(self.parameters[owner])
            if owner.op is CONSTANT:
                return Argument.constant(self.constants.setdefault(owner, len(self.constants)))
            return Argument.workspace(places[owner])

        return Fragment(
            [kernel for step in steps for kernel in step.kernels()],
            [node for step in steps for node in step.nodes(place)],
            workspace,
            frozenset(
                number
                for result, number in self.owners.items()
                if self.homes.get(result) in self.parameters
            ),
            {number: self.parameters[given] for given, number in self.donated.items()},
        )

    def _has_memory(self, instruction: Instruction) -> bool:
        return instruction in self.plan.memory

    def _steps(self, fused: Fused, number: int) -> list[Step]:
        results = [leaf for result in fused.results for leaf in self._leaves(result)]
        heart = fused.heart
        has_effect = heart is not None and heart.has_effect
        if not has_effect and all(r.array_shape.size == 0 for r in results):
            return []
        what = "rows" if isinstance(fused, RowKernel) else (heart or results[-1]).op.function
        name = f"{self.prefix}k{number}_{what}"
        if heart is not None and heart.op is WHILE:
            return [self._while(heart, results, name)]
        if heart is not None and heart.op is CONDITIONAL:
            return [self._conditional(heart, results, name)]
        return [self._kernel(fused, results, name)]

    def _leaves(self, result: Instruction) -> list[Instruction]:
        """The arrays that a result consists of, as the instructions that users know them by."""
        if not isinstance(result.shape, TupleShape):
            return [result]
        elements = []
        for n in range(len(result.shape.elements)):
            if (result, n) not in self.elements:
                self.elements[result, n] = get_tuple_element(result, n)
            elements.append(self.elements[result, n])
        return [leaf for element in elements for leaf in self._leaves(element)]

    def _frame(
        self,
        inside: Sequence[Instruction],
        results: Sequence[Instruction],
        shared: Mapping[Instruction, int],
        choices: Choices = MODEL,
    ) -> Frame:
        cost = 1 + sum(cost_of(i) for i in inside)
        shapes = [r.array_shape for r in results]
        dtype = _index_dtype([*inside, *results])
        # Other ops that read what they are written over write all of it.
        in_place = any(map(self._is_update, results))
        in_place &= not shared or results[0].op is DYNAMIC_UPDATE_SLICE
        return Frame(
            self._has_memory,
            shapes,
            self.machine,
            self.plan.uses,
            dtype,
            cost,
            in_place,
            shared,
            choices,
        )

    def _is_update(self, result: Instruction) -> bool:
        """Whether a result lies where its first operand does, which it need not copy then.

        It may also have come to lie in the place of a parameter that its kernel does not read.
        """
        return bool(result.operands) and self._is_at_home(result.operands[0], result)

    def _kernel(self, fused: Fused, results: Sequence[Instruction], name: str) -> KernelStep:
        phases = fused.phases if isinstance(fused, RowKernel) else [fused]
        inside = {i for phase in phases for i in _inside(phase.results, self.plan.memory)}
        ordered = sorted(inside, key=lambda i: i.serial)
        return self.decisions.settle(
            partial(self._written, fused, ordered, results, name),
            partial(self._text, fused, ordered, results),
        )

    def _text(
        self, fused: Fused, inside: Sequence[Instruction], results: Sequence[Instruction]
    ) -> str:
        """What a kernel computes, and where its results lie, the same in every process."""
        places = [
            f"{n}: {'update' if self._is_update(r) else 'over an operand'}"
            for n, r in enumerate(results)
            if self._is_update(r) or r in self.shared
        ]
        kind = "rows" if isinstance(fused, RowKernel) else ""
        return "\n".join([text_of(inside, results), kind, *places])

    def _written(
        self,
        fused: Fused,
        ordered: Sequence[Instruction],
        results: Sequence[Instruction],
        name: str,
        choices: Choices,
    ) -> KernelStep:
        shared = {self.shared[r]: n for n, r in enumerate(results) if r in self.shared}
        frame = self._frame(ordered, results, shared, choices)
        pairs = list(zip(results, frame.outputs, strict=True))
        if isinstance(fused, RowKernel):
            body = row_kernel(frame, fused, pairs)
        elif fused.heart is None:
            stores = [store for pair in pairs for store in _stores(*pair)]
            body = pointwise(frame, fused.dimensions, stores, frame.cost)
        else:
            rule = emit.rooted.get(fused.heart.op)
            if rule is None:
                raise CompilationError(
                    f"{fused.heart.op.function}: cannot be compiled for the CPU",
                    fused.heart.source,
                )
            body = rule(frame, fused.heart, pairs)
        inputs = [pair for pair in frame.inputs.items() if pair[0] not in frame.shared]
        parameters = [*inputs, *pairs, *_scratch(frame)]
        in_place = {r for r in results if self._is_update(r)}
        schedule = frame.schedule or (fused.heart or results[-1]).op.opcode
        facts = counted(ordered, results, schedule, in_place)
        is_thorough = is_soon_built(facts) and choices.of(
            "passes of LLVM", either(False, "all", "few")
        )
        return KernelStep(name, body, parameters, len(inputs), facts, is_thorough)

    def copy(self, source: Instruction, target: Owner, name: str) -> KernelStep:
        """A kernel that stores the value of ``source``, computed if it has no memory."""
        inside = _inside([source], self.plan.memory)
        frame = self._frame(inside, [source], {})
        memory = frame.outputs[0]
        store = Store(source, memory, compute=not self._has_memory(source))
        body = pointwise(frame, source.array_shape.dimensions, [store], frame.cost)
        facts = moved(source.array_shape)
        if store.compute:
            facts = counted(inside, [source], "elementwise")
        inputs = [*frame.inputs.items()]
        return KernelStep(name, body, [*inputs, (target, memory)], len(inputs), facts)

    def move(self, shape: Shape, source: Owner, target: Owner, name: str) -> KernelStep:
        """A kernel that copies one array's memory to another's."""
        stand_in = parameter(0, shape)
        dtype = _index_dtype([stand_in])
        frame = Frame(lambda i: i is stand_in, [shape], self.machine, {}, dtype, 1)
        store = Store(stand_in, frame.outputs[0], compute=False)
        body = pointwise(frame, shape.dimensions, [store], 1)
        parameters = [(source, frame.inputs[stand_in]), (target, frame.outputs[0])]
        return KernelStep(name, body, parameters, 0, moved(shape))

    def _nested(
        self, computation: Computation, prefix: str, unchanged: bool = False
    ) -> tuple[Fragment, list[int]]:
        """A computation's fragment, and which of its root's arrays the fragment makes.

        With ``unchanged`` those that are its own parameters, in the same position, are left out,
        and others may come to lie in the memory of the parameter in their position.
        """
        parameters, root, effects = flat(computation)
        outputs = flattened(root)
        made = [
            n for n, output in enumerate(outputs) if not (unchanged and output is parameters[n])
        ]
        wanted = [outputs[n] for n in made]
        replaced = {parameters[n]: k for k, n in enumerate(made)} if unchanged else {}
        fragment = lower_fragment(
            parameters,
            wanted,
            effects,
            self.machine,
            self.decisions,
            self.constants,
            prefix,
            replaced,
        )
        return fragment, made

    def _while(
        self, instruction: Instruction, results: Sequence[Instruction], name: str
    ) -> WhileStep:
        (init,) = instruction.operands
        condition, _ = self._nested(instruction.attributes["condition"], f"{name}_condition_")
        body, changed = self._nested(instruction.attributes["body"], f"{name}_body_", True)
        fresh = [
            results[n] if k in body.in_place else Scratch(results[n].array_shape.nbytes)
            for k, n in enumerate(changed)
        ]
        starts = zip(self._arrays(init), results, strict=True)
        moved = sum(r.nbytes for r in fresh if isinstance(r, Scratch))
        in_turn = moved >= LARGE_STATE and not instruction.attributes["condition"].has_effect
        return WhileStep(
            start=[
                self.copy(source, target, f"{name}_start{n}")
                for n, (source, target) in enumerate(starts)
                if source.array_shape.size and not self._is_at_home(source, target)
            ],
            condition=condition,
            body=body,
            state=results,
            changed=changed,
            fresh=fresh,
            updates=[
                self.move(results[n].array_shape, scratch, results[n], f"{name}_update{n}")
                for n, scratch in zip(changed, fresh, strict=True)
                if results[n].array_shape.size and scratch is not results[n]
            ],
            predicate=Scratch(1),
            workspace=Scratch(max(condition.workspace_bytes, body.workspace_bytes)),
            turn=self._turn(f"{name}_turn") if in_turn else None,
        )

    def _turn(self, name: str) -> Turn:
        """A kernel that makes the number of a branch of a pred: 0 for true, 1 for false."""
        predicate, selector = Scratch(1), Scratch(4)
        given = parameter(0, Shape(ElementType.PRED))
        number = Shape(ElementType.S32)
        frame = Frame(lambda i: i is given, [number], self.machine, {}, "int32", 1)
        body = pointwise(frame, (), [Store(_branch_number(given), frame.outputs[0])], 1)
        parameters = [(predicate, frame.inputs[given]), (selector, frame.outputs[0])]
        return Turn(predicate, selector, KernelStep(name, body, parameters, 0, moved(number)))

    def _is_at_home(self, source: Instruction, target: Instruction) -> bool:
        """Whether both are the same memory, so that there is nothing to copy."""
        source = stripped(source)
        return target in self.homes and self.homes[target] == self.homes.get(source, source)

    def _arrays(self, operand: Instruction) -> list[Instruction]:
        """The arrays of an operand, whose tuples are Tuple instructions (see `legalise`)."""
        if not isinstance(operand.shape, TupleShape):
            return [operand]
        return [leaf for element in operand.operands for leaf in self._arrays(element)]

    def _conditional(
        self, instruction: Instruction, results: Sequence[Instruction], name: str
    ) -> ConditionalStep:
        attributes = instruction.attributes
        computations = attributes["branch_computations"] or (
            attributes["true_computation"],
            attributes["false_computation"],
        )
        selector, *operands = instruction.operands
        number = Scratch(4)
        branches = [
            self._branch(computation, operand, f"{name}_branch{n}")
            for n, (computation, operand) in enumerate(zip(computations, operands, strict=True))
        ]
        return ConditionalStep(
            select=self.copy(_branch_number(selector), number, f"{name}_select"),
            selector=number,
            branches=branches,
            results=results,
            workspace=Scratch(max(b.fragment.workspace_bytes for b in branches)),
        )

    def _branch(self, computation: Computation, operand: Instruction, name: str) -> BranchStep:
        fragment, _ = self._nested(computation, f"{name}_")
        arguments: list[Owner] = []
        prepare = []
        for n, array in enumerate(self._arrays(operand)):
            if self._has_memory(array) or not array.array_shape.size:
                arguments.append(array)
                continue
            scratch = Scratch(array.array_shape.nbytes)
            arguments.append(scratch)
            prepare.append(self.copy(array, scratch, f"{name}_argument{n}"))
        return BranchStep(arguments, prepare, fragment)

    def _output_owners(self) -> tuple[dict[Instruction, int], list[tuple[Instruction, int]]]:
        """Which instruction is computed straight into which output, and what must be copied."""
        owners: dict[Instruction, int] = {}
        copies = []
        for index, output in enumerate(self.outputs):
            if output.array_shape.size == 0:
                continue
            source = stripped(output)
            if self.donated.get(source) == index:
                continue
            if is_given(source) or source in owners:
                copies.append((source, index))
            else:
                owners[source] = index
        return owners, copies

    def _workspace(self, steps: Sequence[Step]) -> tuple[dict[Instruction | Scratch, int], int]:
        first: dict[Instruction | Scratch, int] = {}
        last: dict[Instruction | Scratch, int] = {}
        for number, step in enumerate(steps):
            for owner in step.owners:
                if isinstance(owner, Instruction):
                    owner = self.homes.get(owner, owner)
                if isinstance(owner, int) or owner in self.owners:
                    continue
                if isinstance(owner, Instruction) and is_given(owner):
                    continue
                first.setdefault(owner, number)
                last[owner] = number
        lifetimes = [Lifetime(_nbytes(m), first[m], last[m]) for m in first]
        offsets, total = pack(lifetimes)
        # Even an empty array needs an address.
        return dict(zip(first, offsets, strict=True)), max(total, min(len(lifetimes), 1))


def _stores(result: Instruction, target: Buffer) -> list[Store]:
    """How a pointwise kernel stores a result, whole or number by number."""
    scalars = gathered(result)
    if not scalars:
        return [Store(result, target)]
    return [Store(s, target, partial(_at, place), compute=False) for place, s in enumerate(scalars)]


def _at(place: int, _: Sequence[Index]) -> Affine:
    """The address of a number in a short vector."""
    return Affine() + place


def _branch_number(selector: Instruction) -> Instruction:
    """The number of the branch as s32: of a pred, 0 for true; out of range, no branch's number."""
    element_type = selector.array_shape.element_type
    if element_type is ElementType.PRED:
        number = full_like(convert_element_type(selector, ElementType.S32), 0)
        return select(selector, number, full_like(number, 1))
    return convert_element_type(selector, ElementType.S32)


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
    largest = max((s.size * words(s.element_type) for s in shapes), default=0)
    return "int64" if largest >= WIDE else "int32"


def _scratch(frame: Frame) -> list[tuple[Owner, Buffer]]:
    return [(Scratch(nbytes(buffer)), buffer) for buffer in frame.scratch]


def _nbytes(memory: Instruction | Scratch) -> int:
    return memory.nbytes if isinstance(memory, Scratch) else memory.array_shape.nbytes


def _spec(shape: Shape) -> ArraySpec:
    return ArraySpec(shape.dtype, shape.dimensions)
