"""Compiles a loop that maps to one kernel, whose threads run whole iterations.

    on_threads(mapped, fragment, state, constants, threads, name)     the step, or None

    parallel w: for i of w: scores = q[i] @ k[i].T; rows; out[i] = scores @ v[i]

Kernel by kernel, threads would wait for each other at the end of each, and read what others have
computed. An iteration's temporaries are its thread's own. Blocks of arrays are read and written
where they are: without a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tvm.ir import Call as Called
from tvm.ir import Op, TensorLoad
from tvm_ffi import structural_map, structural_walk

from tracejit.backends.tvm.analysis.kernel_stats import NOTHING, KernelStats, together
from tracejit.backends.tvm.analysis.mapped_loops import MappedLoop
from tracejit.backends.tvm.cpu.kernels.sharing import on_workers, share
from tracejit.backends.tvm.cpu.objects.partition import cost_to_compile
from tracejit.backends.tvm.cpu.objects.tir_pipeline import STACK_LIMIT, contents
from tracejit.backends.tvm.ir.tir import (
    IMPORT,
    PARALLEL,
    SERIAL,
    Buffer,
    BufferStore,
    Expr,
    For,
    SeqStmt,
    Stmt,
    buffer,
    const,
    i32,
    itemsize,
    loop,
    nbytes,
    seq,
    tirx,
    var,
)
from tracejit.backends.tvm.program.program import Argument, Call, Kernel, Memory
from tracejit.backends.tvm.program.thunks import Fragment, KernelStep, Owner, Scratch
from tracejit.graph import Instruction

Indices = Callable[[Sequence[Expr]], Sequence[Expr]]
"""Indices in memory that holds a kernel's array, given indices in the array."""

SCHEDULE = "whole iterations"
MOST_KERNELS = 16
MOST_CODE = 2000
"""Units of `cost_to_compile`: a kernel is compiled by one thread."""
MOST_BYTES = 64 << 20
"""The most bytes of temporaries, of all threads."""
MOST_ITEMS = 1 << 30
"""Larger arrays need 64-bit addresses, which the kernels of blocks may not have."""


def on_threads(
    mapped: MappedLoop,
    fragment: Fragment,
    state: Sequence[Instruction],
    constants: Sequence[Instruction],
    threads: int,
    name: str,
) -> KernelStep | None:
    """The loop as one step, from the ``fragment`` of an iteration, written for one thread.

    ``state`` are the arrays of the loop's state. None for iterations that take too long to compile,
    call back or allocate too much, or that have loops of unknown length.
    """
    if len(fragment.all_kernels) > MOST_KERNELS or not all(
        isinstance(node, Call) for node in fragment.calls
    ):
        return None
    if sum(cost_to_compile(kernel.body) for kernel in fragment.all_kernels) > MOST_CODE:
        return None
    if not all(_is_plain(kernel) for kernel in fragment.all_kernels):
        return None
    try:
        return _Iterations(mapped, fragment, state, constants, threads).step(name)
    except _UnsuitableError:
        return None


class _UnsuitableError(Exception):
    """The iterations cannot be one kernel."""


def _is_plain(kernel: Kernel) -> bool:
    """Whether a kernel has no callbacks and no imported code."""
    found: list[bool] = []
    structural_walk(
        kernel.body,
        [
            (tirx.AttrStmt, lambda node: found.append(node.attr_key == IMPORT)),
            (Called, lambda node: found.append(any(map(node.op.same_as, _CALLS)))),
        ],
    )
    return kernel.stats is not NOTHING and not any(found)


_CALLS = [Op.get("tirx.tvm_call_packed"), Op.get("tirx.call_extern")]


class _Iterations:
    """The kernel under construction."""

    def __init__(
        self,
        mapped: MappedLoop,
        fragment: Fragment,
        state: Sequence[Instruction],
        constants: Sequence[Instruction],
        threads: int,
    ) -> None:
        self._mapped = mapped
        self._fragment = fragment
        self._state = state
        self._constants = constants
        self._workers = min(threads, mapped.count)
        self._held: dict[Owner, Buffer] = {}
        self._scratch: dict[tuple[int, tuple[int, ...], str], Scratch] = {}
        self._written: set[Owner] = set()

    def step(self, name: str) -> KernelStep:
        kernels = {kernel.name: kernel for kernel in self._fragment.all_kernels}
        calls = [node for node in self._fragment.calls if isinstance(node, Call)]
        if len({call.kernel for call in calls}) < len(calls):
            raise _UnsuitableError

        def worker(w: Expr) -> Stmt:
            first, count = share(w, self._mapped.count, self._workers)
            return loop(count, lambda i: self._iteration(kernels, calls, w, first + i))

        body = on_workers(self._workers, worker)
        if contents(body).stack_bytes > STACK_LIMIT:
            raise _UnsuitableError
        if sum(scratch.nbytes for scratch in self._scratch.values()) > MOST_BYTES:
            raise _UnsuitableError
        rank = {
            owner: (owner in self._written) + isinstance(owner, Scratch) for owner in self._held
        }
        parameters = sorted(self._held.items(), key=lambda pair: rank[pair[0]])
        reads = sum(not each for each in rank.values())
        stats = _repeated([kernels[call.kernel].stats for call in calls], self._mapped.count)
        is_thorough = any(kernel.is_thorough for kernel in kernels.values())
        return KernelStep(name, body, parameters, reads, stats, is_thorough)

    def _iteration(
        self, kernels: Mapping[str, Kernel], calls: Sequence[Call], w: Expr, i: Expr
    ) -> Stmt:
        numbers: dict[Argument, Expr] = {}
        statements = []
        for call in calls:
            kernel = kernels[call.kernel]
            pairs = [*zip(call.arguments, kernel.parameters, strict=True)]
            for argument, own in pairs[kernel.reads :]:
                # The memory of a number that nobody reads any more, or a new value of it.
                value = numbers.pop(argument, None)
                if value is not None and _may_read(kernel, own):
                    raise _UnsuitableError
            known = [(own, numbers[a]) for a, own in pairs if a in numbers]
            counter = Argument.input(self._mapped.counter.number)
            known += [(own, self._counter(own, i)) for a, own in pairs if a == counter]
            bound = self._bound(kernel, pairs, known)
            if bound is not None:
                statements += [tirx.Bind(name, value) for _, name, value in bound]
                numbers |= {argument: name for argument, name, _ in bound}
                continue
            places = [
                (own, *self._place(argument, own, w, i, number >= kernel.reads))
                for number, (argument, own) in enumerate(pairs)
                if argument not in numbers and argument != counter
            ]
            statements.append(_moved(kernel.body, known, places))
        return seq(*statements)

    def _counter(self, own: Buffer, i: Expr) -> Expr:
        """The loop's counter in iteration ``i``."""
        counter, kind = self._mapped.counter, str(own.dtype)
        return i.astype(kind) * const(counter.step, kind) + const(counter.first, kind)

    def _bound(
        self,
        kernel: Kernel,
        pairs: Sequence[tuple[Argument, Buffer]],
        known: Sequence[tuple[Buffer, Expr]],
    ) -> list[tuple[Argument, Expr, Expr]] | None:
        """The temporaries of a kernel that only computes integers, each with a variable and its
        value; None for other kernels.

        Their values are then seen where they are indices.
        """
        body = kernel.body
        stores = [*body.seq] if isinstance(body, SeqStmt) else [body]
        if len(pairs) != kernel.reads + len(stores):
            return None
        targets = {hash(own): argument for argument, own in pairs[kernel.reads :]}
        made = []
        for each in stores:
            argument = targets.get(hash(each.buffer)) if isinstance(each, BufferStore) else None
            if argument is None or argument.memory is not Memory.WORKSPACE:
                return None
            kind = str(each.buffer.dtype)
            if nbytes(each.buffer) != itemsize(each.buffer) or kind not in ("int32", "int64"):
                return None
            value = _moved(each, known, []).value
            if _loads(value):
                return None
            made.append((argument, var("number", kind), value))
        return made

    def _place(
        self, argument: Argument, own: Buffer, w: Expr, i: Expr, is_written: bool
    ) -> tuple[Buffer, Indices]:
        """The memory of a kernel's argument, and its indices of the argument's indices."""
        shape, kind = [int(extent) for extent in own.shape], str(own.dtype)
        if argument.memory is Memory.WORKSPACE:
            key = argument.offset, (*shape,), kind
            scratch = self._scratch.setdefault(key, Scratch(self._workers * nbytes(own)))
            if self._workers == 1:
                return self._buffer(scratch, shape, kind), _same
            if len(shape) > 1:
                return self._buffer(scratch, [self._workers, *shape], kind), partial(_within, w)
            held = self._buffer(scratch, [self._workers * shape[0]], kind)
            return held, partial(_moved_by, w * shape[0])
        if argument.offset or len(shape) != 1:
            raise _UnsuitableError
        owner, is_block = self._owner(argument)
        (size,), whole = shape, owner.array_shape.nbytes // itemsize(own)
        held = self._buffer(owner, [whole], kind)
        if is_written:
            self._written.add(owner)
        if not is_block:
            return held, _same
        first = i * size
        if self._mapped.count * size != whole:
            first = tirx.min(first, i32(whole - size))
        return held, partial(_moved_by, first)

    def _owner(self, argument: Argument) -> tuple[Instruction, bool]:
        """The array that an argument is in, and whether it is one block of it."""
        mapped, number = self._mapped, argument.index
        if argument.memory is Memory.CONSTANT:
            return self._constants[number], False
        if argument.memory is Memory.OUTPUT:
            return self._state[mapped.made[number]], True
        whole = len(self._state)
        return self._state[
            number if number < whole else mapped.read[number - whole]
        ], number >= whole

    def _buffer(self, owner: Owner, shape: list[int], kind: str) -> Buffer:
        if owner not in self._held:
            self._held[owner] = buffer("held", shape, kind)
        held = self._held[owner]
        is_same = str(held.dtype) == kind and [int(extent) for extent in held.shape] == shape
        if not is_same or math.prod(shape) >= MOST_ITEMS:
            raise _UnsuitableError
        return held


def _same(indices: Sequence[Expr]) -> Sequence[Expr]:
    return indices


def _moved_by(first: Expr, indices: Sequence[Expr]) -> Sequence[Expr]:
    (index,) = indices
    return [first.astype(_kind(index)) + index]


def _within(number: Expr, indices: Sequence[Expr]) -> Sequence[Expr]:
    return [number.astype(_kind(indices[0])), *indices]


def _kind(index: Expr) -> str:
    kind = str(index.ty)
    if kind not in ("int32", "int64"):
        raise _UnsuitableError
    return kind


def _moved(
    body: Stmt,
    numbers: Sequence[tuple[Buffer, Expr]],
    places: Sequence[tuple[Buffer, Buffer, Indices]],
) -> Stmt:
    """A kernel's body for one thread, with numbers and other memory in place of its parameters."""
    values = {hash(own): value for own, value in numbers}
    memory = {hash(own): (held, indices) for own, held, indices in places}

    def load(node: Any) -> Any:
        if hash(node.source) in values:
            return values[hash(node.source)]
        held, indices = memory.get(hash(node.source), (node.source, _same))
        return tirx.BufferLoad(held, indices(node.indices))

    def stored(node: Any) -> Any:
        held, indices = memory.get(hash(node.buffer), (node.buffer, _same))
        return BufferStore(held, node.value, indices(node.indices))

    def serial(node: Any) -> Any:
        kind = SERIAL if int(node.kind) == int(PARALLEL) else node.kind
        return For(node.loop_var, node.min, node.extent, kind, node.body)

    made = structural_map(body, [(TensorLoad, load), (BufferStore, stored), (For, serial)])
    _require_gone([own.data for own in (*[o for o, _ in numbers], *[p[0] for p in places])], made)
    return made


def _require_gone(pointers: Sequence[Expr], body: Stmt) -> None:
    """Raises if a body takes the address of its parameters."""
    found: list[bool] = []
    structural_walk(
        body,
        [(tirx.Var, lambda node: found.append(any(node.same_as(one) for one in pointers)))],
    )
    if any(found):
        raise _UnsuitableError


def _may_read(kernel: Kernel, own: Buffer) -> bool:
    """Whether a kernel reads a parameter."""
    found: list[bool] = []
    structural_walk(kernel.body, (TensorLoad, lambda node: found.append(node.source.same_as(own))))
    return any(found)


def _loads(value: Expr) -> bool:
    """Whether an expression reads memory."""
    found: list[bool] = []
    structural_walk(value, (TensorLoad, lambda node: found.append(True)))
    return bool(found)


def _repeated(counted: Sequence[KernelStats], times: int) -> KernelStats:
    """The statistics of kernels that run one after the other, ``times`` times."""
    once = together(counted, SCHEDULE)
    return replace(
        once,
        bytes_read=times * once.bytes_read,
        bytes_written=times * once.bytes_written,
        flops=times * once.flops,
        transcendentals=times * once.transcendentals,
        in_vectors=all(each.in_vectors for each in counted),
    )
