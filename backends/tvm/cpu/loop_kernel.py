"""Compiles a small loop to a single kernel that keeps the scalars of its state in registers.

    in_registers(loop, name, places)     steps that run the whole loop; None for larger loops

Otherwise a program calls the kernels of a loop one by one, and they exchange scalars through
memory: nanoseconds each. In one function the bodies follow each other, and a scalar buffer is a
variable. Larger state stays in memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm.ir import Call as Called
from tvm.ir import Op, TensorLoad
from tvm_ffi import structural_map, structural_walk

from tracejit.backends.explanation import WHOLE_LOOP
from tracejit.backends.tvm.analysis.kernel_stats import NOTHING, together
from tracejit.backends.tvm.buffers.assignment import BufferAssignment
from tracejit.backends.tvm.cpu.objects.partition import cost_to_compile
from tracejit.backends.tvm.cpu.objects.tir_pipeline import STACK_LIMIT, contents
from tracejit.backends.tvm.ir.tir import (
    IMPORT,
    PARALLEL,
    AllocBuffer,
    Buffer,
    BufferStore,
    For,
    IfThenElse,
    Stmt,
    While,
    buffer,
    const,
    i32,
    itemsize,
    nbytes,
    seq,
    store,
    tirx,
)
from tracejit.backends.tvm.program.control_flow import WhileStep
from tracejit.backends.tvm.program.program import Argument, Branch, Call, Kernel, Loop, Memory, Node
from tracejit.backends.tvm.program.thunks import KernelStep, Owner
from tracejit.graph import Instruction

MOST_KERNELS = 64
MOST_CODE = 800
"""Units of `cost_to_compile`: for more, the calls cost little compared with the work."""
MOST_WORK = 4096
"""The most operations and bytes of an iteration, for each kernel."""
NUMBERS = 2
"""The most elements of a state array that is held in registers."""
STACK_BYTES = 16 << 10
"""The most bytes of an iteration's local buffers on the stack."""


def in_registers(
    loop: WhileStep, name: str, places: BufferAssignment
) -> Sequence[KernelStep] | None:
    """Steps that copy the initial arrays, and one that runs the loop; None for larger loops."""
    begun = [step for step in loop.start if _gives_numbers(step, loop, places)]
    own = [kernel for step in (*begun, *loop.updates) for kernel in step.kernels()]
    kernels = [*loop.condition.all_kernels, *loop.body.all_kernels, *own]
    if loop.ping_pong is not None or not _are_small(kernels):
        return None
    try:
        whole = _Whole(loop, begun, {kernel.name: kernel for kernel in kernels}, places.constants)
        return [*(step for step in loop.start if step not in begun), whole.step(name)]
    except _LargeError:
        return None


def _gives_numbers(step: KernelStep, loop: WhileStep, places: BufferAssignment) -> bool:
    """Whether an initial step only computes the first value of a scalar, without reading other
    state.
    """
    *given, (_, target) = step.parameters
    state = {places.root_buffer(owner) for owner in loop.state}
    is_apart = all(places.root_buffer(owner) not in state for owner, _ in given)
    return is_apart and _size(target) <= NUMBERS


class _LargeError(Exception):
    """The loop does not qualify."""


def _are_small(kernels: Sequence[Kernel]) -> bool:
    if len(kernels) > MOST_KERNELS or len({kernel.name for kernel in kernels}) < len(kernels):
        return False
    for kernel in kernels:
        stats = kernel.stats
        work = stats.flops + 16 * stats.transcendentals + stats.bytes_read + stats.bytes_written
        if stats is NOTHING or work > MOST_WORK or not _is_plain(kernel.body):
            return False
    return sum(cost_to_compile(kernel.body) for kernel in kernels) <= MOST_CODE


def _is_plain(body: Stmt) -> bool:
    """Whether a body has no callbacks, threads or imported code."""
    found: list[bool] = []
    packed = Op.get("tirx.tvm_call_packed")
    structural_walk(
        body,
        [
            (For, lambda node: found.append(int(node.kind) == int(PARALLEL))),
            (tirx.AttrStmt, lambda node: found.append(node.attr_key == IMPORT)),
            (Called, lambda node: found.append(packed.same_as(node.op))),
        ],
    )
    return not any(found)


class _Whole:
    """The single kernel of a loop, under construction."""

    def __init__(
        self,
        loop: WhileStep,
        begun: Sequence[KernelStep],
        kernels: Mapping[str, Kernel],
        constants: Sequence[Instruction],
    ) -> None:
        self._loop = loop
        self._begun = begun
        self._kernels = kernels
        self._owners: dict[Argument, Owner] = {
            Argument.output(number): owner for number, owner in enumerate(loop.state)
        }
        self._owners.update((Argument.constant(n), c) for n, c in enumerate(constants))
        self._memory: dict[Argument, Buffer] = {}
        self._written: set[Argument] = set()
        self._given: set[Argument] = set()
        self._guarded: set[Argument] = set()
        self._called: set[str] = set()

    def step(self, name: str) -> KernelStep:
        loop = self._loop
        state = [Argument.output(number) for number in range(len(loop.state))]
        fresh = [
            state[number] if owner is loop.state[number] else Argument.input(place)
            for place, (number, owner) in enumerate(zip(loop.changed, loop.fresh, strict=True))
        ]
        predicate = Argument.input(len(fresh))
        places = dict(zip([*loop.state, *loop.fresh], [*state, *fresh], strict=True))
        begin = [*self._statements(self._starts(places, len(fresh) + 1))]
        again = [*self._statements(loop.condition.at(state, [predicate], Argument.workspace(0)))]
        inside = loop.body.at(state, fresh, Argument(Memory.WORKSPACE, 1))
        inside += [node for update in loop.updates for node in update.nodes(places.__getitem__)]
        holds = self._memory[predicate]
        step = IfThenElse(self._is_set(holds), seq(*self._statements(inside)), None)
        body = seq(
            *begin,
            store(holds, i32(0), const(1, str(holds.dtype))),
            While(self._is_set(holds), seq(*again, step)),
        )
        return self._with_state(name, body)

    def _starts(self, places: Mapping[Owner, Argument], free: int) -> list[Node]:
        """The initial calls that set scalars of the state, if all their buffers have arguments."""
        known = dict(places)
        for step in self._begun:
            for owner in step.owners:
                if owner not in known:
                    known[owner] = Argument.input(free)
                    self._owners[known[owner]] = owner
                    free += 1
        self._given = {known[step.parameters[-1][0]] for step in self._begun}
        return [node for step in self._begun for node in step.nodes(known.__getitem__)]

    @staticmethod
    def _is_set(predicate: Buffer) -> Any:
        value = predicate[0]
        return value if str(predicate.dtype) == "bool" else value != const(0, str(value.ty))

    def _with_state(self, name: str, body: Stmt) -> KernelStep:
        """The kernel: loads the scalar state before the loop, and stores it afterwards."""
        parameters: list[tuple[Argument, Buffer]] = []
        locals_, before, after = [], [], []
        for argument, memory in self._memory.items():
            owner = self._owners.get(argument)
            is_number = _size(memory) <= NUMBERS
            if owner is None or (is_number and argument.memory is Memory.OUTPUT):
                if argument in self._guarded:
                    # LLVM may write past the element: `cpu.objects.tir_pipeline.Contents`
                    # describes this for parameters.
                    raise _LargeError
                locals_.append(AllocBuffer(memory))
            if owner is None:
                continue
            given = memory
            if is_number and argument.memory is Memory.OUTPUT:
                given = buffer("state", [_size(memory)], str(memory.dtype))
                for place in range(_size(memory)):
                    if argument not in self._given:
                        before.append(store(memory, i32(place), given[place]))
                    if argument in self._written:
                        after.append(store(given, i32(place), memory[place]))
            parameters.append((argument, given))
        parameters.sort(key=lambda pair: pair[0] in self._written)
        if sum(nbytes(each.buffer) for each in locals_) > STACK_BYTES:
            raise _LargeError
        whole = seq(*locals_, *before, body, *after)
        if contents(whole).stack_bytes > STACK_LIMIT:
            raise _LargeError
        told = [kernel.stats for kernel in self._kernels.values()]
        inside = [each.repeated for each in told if each.repeated is not None]
        is_known = self._loop.steps is not None and len(inside) == len(told)
        repeated = (self._loop.steps or 0) * max(inside) if is_known else None
        stats = replace(together(told, WHOLE_LOOP), repeated=repeated)
        return KernelStep(
            name,
            whole,
            [(self._owners[argument], given) for argument, given in parameters],
            sum(argument not in self._written for argument, _ in parameters),
            stats,
            is_thorough=True,
        )

    def _statements(self, nodes: Sequence[Node]) -> Iterator[Stmt]:
        for node in nodes:
            if isinstance(node, Loop):
                raise _LargeError
            if isinstance(node, Branch):
                yield self._branch(node)
            else:
                yield self._call(node)

    def _branch(self, node: Branch) -> Stmt:
        *branches, last = [seq(*self._statements(branch)) for branch in node.branches]
        chosen = last
        for number, branch in reversed([*enumerate(branches)]):
            chosen = IfThenElse(self._memory[node.selector][0] == i32(number), branch, chosen)
        return chosen

    def _call(self, node: Call) -> Stmt:
        """The kernel's body, with the loop's own buffers in place of its parameters."""
        kernel = self._kernels[node.kernel]
        if node.kernel in self._called:
            raise _LargeError
        self._called.add(node.kernel)
        memory = []
        for number, (argument, own) in enumerate(
            zip(node.arguments, kernel.parameters, strict=True)
        ):
            memory.append((own, self._held(argument, own)))
            if number >= kernel.reads:
                self._written.add(argument)
                if _is_narrow(own) and contents(kernel.body).guards_narrow_stores:
                    self._guarded.add(argument)

        def found(given: Buffer) -> Buffer:
            return next((held for own, held in memory if given.same_as(own)), given)

        def load(node: Any) -> Any:
            return tirx.BufferLoad(found(node.source), node.indices)

        def stored(node: Any) -> Any:
            return BufferStore(found(node.buffer), node.value, node.indices)

        body = structural_map(kernel.body, [(TensorLoad, load), (BufferStore, stored)])
        _require_gone([own for own, _ in memory], body)
        return body

    def _held(self, argument: Argument, own: Buffer) -> Buffer:
        """The loop's buffer for an argument; all kernels must use one shape for it."""
        held = self._memory.get(argument)
        if held is None:
            if len(own.shape) != 1 or not _size(own):  # an empty array cannot be a variable
                raise _LargeError
            held = buffer("held", [_size(own)], str(own.dtype))
            self._memory[argument] = held
        if str(held.dtype) != str(own.dtype) or len(own.shape) != 1 or _size(held) != _size(own):
            raise _LargeError
        return held


def _require_gone(buffers: Sequence[Buffer], body: Stmt) -> None:
    """Raises if a body takes the address of its parameters."""
    found: list[bool] = []
    pointers = [each.data for each in buffers]
    structural_walk(
        body,
        [(tirx.Var, lambda node: found.append(any(node.same_as(one) for one in pointers)))],
    )
    if any(found):
        raise _LargeError


def _is_narrow(memory: Buffer) -> bool:
    """Whether an array's elements are so narrow that LLVM's masked stores are wrong: see
    `Contents`.
    """
    return _size(memory) > 1 and itemsize(memory) < 4


def _size(memory: Buffer) -> int:
    return math.prod(int(extent) for extent in memory.shape)
