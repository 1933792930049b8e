"""Translates TIR kernels to LLVM text directly, without TVM's and most of LLVM's passes.

    translated = translate_kernels(kernels, quick)      # TVM compiles the others

A kernel is translated if it consists of calls of procedures, or of whole-vector operations in few
loops: values are in SSA form from the start, so only instruction selection is left. An addition is
built in a third of the time that TVM takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tvm.ir import Call, Op
from tvm.tirx import AttrStmt

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.expressions import Head, LlvmExpressions, known
from tracejit.backends.tvm.cpu.llvm.procedures import procedures_of
from tracejit.backends.tvm.cpu.llvm.registers import (
    State,
    UntranslatableError,
    VectorSlice,
    in_registers,
    is_added_to,
    is_arithmetic,
    is_straight,
    stored_in,
)
from tracejit.backends.tvm.cpu.objects.tir_pipeline import STACK_LIMIT
from tracejit.backends.tvm.ir.contracts import FILLS
from tracejit.backends.tvm.ir.tir import (
    IMPORT,
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    nbytes,
    tirx,
)
from tracejit.backends.tvm.program.program import Kernel

LAUNCH = "TVMBackendParallelLaunch"
DECLARED = "\n".join(
    [
        f"declare i32 @{LAUNCH}(ptr, ptr, i32)",
        "declare i32 @tracejit_poll(ptr)",
        "declare i32 @tracejit_count(ptr, i32, i32)",
    ]
)
"""Declarations of the runtime function that starts TVM's threads, and of those by which signals end
a program (see `cpu.objects.interrupts`)."""

_WORD, _LINE = 8, 64
_FEW = 4
"""The most statements of a loop that is unrolled."""
_CHAIN = 8
"""The most iterations of a loop whose iterations may depend on the one before."""
_PROMOTED_BYTES = 2048
"""The most bytes of an array on the stack that LLVM's passes promote to registers."""
_TASKS = 8
"""The offset of the number of tasks in TVM's parallel group."""
_CALL = Op.get("tirx.call_extern")


@dataclass(frozen=True)
class TranslatedKernels:
    """LLVM functions by name: ``glue`` that need not be fast, and hot ``code``.

    They are the functions of ``kernels``, of their threads, and of the procedures that they call;
    two procedures of one name are equal.
    """

    kernels: frozenset[str]
    glue: Mapping[str, str]
    code: Mapping[str, str]


def translate_kernels(kernels: Sequence[Kernel], quick: Collection[str] = ()) -> TranslatedKernels:
    """Translate all kernels that can be translated.

    Kernels may only call procedures, except those named in ``quick``, which may compute as well.
    """
    glue: dict[str, str] = {}
    code: dict[str, str] = {}
    names = []
    for kernel in kernels:
        own: dict[str, str] = {}
        called: dict[str, str] = {}
        pointers = {
            hash(parameter): f"%p{number}" for number, parameter in enumerate(kernel.parameters)
        }
        parameters = [f"ptr noalias {name}" for name in pointers.values()]
        shared = _Shared(in_registers(kernel.body), own, called, kernel.name in quick)
        body = _Body(Head(kernel.name, parameters, pointers), shared)
        with suppress(UntranslatableError):
            body.state(kernel.body)
            own[kernel.name] = body.whole()
            (code if shared.computes else glue).update(own)
            code |= called
            names.append(kernel.name)
    return TranslatedKernels(frozenset(names), glue, code)


@dataclass
class _Shared:
    """The state that the functions of one kernel share.

    ``registers`` are buffers that are SSA values, ``rooms`` those on the stack, of ``stack_bytes``
    in all; ``threads`` are the functions that its threads run, ``procedures`` its callees.
    ``computes`` is set when it does more than call procedures, which only a ``quick`` kernel may.
    """

    registers: set[int]
    threads: dict[str, str]
    procedures: dict[str, str]
    quick: bool
    rooms: set[int] = field(default_factory=set)
    stack_bytes: int = 0
    computes: bool = False


class _Body(LlvmExpressions):
    """Translates statements: a function under construction, and the variables in scope."""

    def __init__(self, head: Head, shared: _Shared) -> None:
        super().__init__(head, shared.registers)
        self._shared = shared

    def whole(self) -> str:
        return super().whole().removesuffix("}") + "failed:\n  ret i32 -1\n}"

    def state(self, statement: Stmt) -> None:
        """Translate a statement. Raises `UntranslatableError`."""
        if isinstance(statement, SeqStmt):
            for each in statement:
                self.state(each)
        elif isinstance(statement, BufferStore):
            self._shared.computes |= not self._is_note(statement.buffer)
            if self._shared.computes and not self._shared.quick:
                raise UntranslatableError
            is_short = nbytes(statement.buffer) <= _PROMOTED_BYTES
            if is_short and hash(statement.buffer) in self._shared.rooms and is_added_to(statement):
                # LLVM's passes promote it to registers.
                raise UntranslatableError
            self.store(statement.buffer, statement.indices, statement.value)
        elif isinstance(statement, For):
            self._repeat(statement)
        elif isinstance(statement, While):
            self._repeat_while(statement)
        elif isinstance(statement, tirx.Bind):
            self._integers[hash(statement.var)] = self._integer(statement.value)
        elif isinstance(statement, AllocBuffer):
            self._allocate(statement.buffer)
        elif isinstance(statement, IfThenElse):
            self._choose(statement)
        elif isinstance(statement, AttrStmt) and statement.attr_key == IMPORT:
            self._import(str(statement.value.value))
            self.state(statement.body)
        elif isinstance(statement, AttrStmt) and statement.attr_key == FILLS:
            self.state(statement.body)
        elif isinstance(statement, Evaluate):
            self._evaluate(statement.value)
        else:
            raise UntranslatableError

    def _is_note(self, memory: Buffer) -> bool:
        """Whether a store passes a number to a procedure."""
        is_own = hash(memory) in self._shared.rooms
        return is_own and str(memory.dtype) == "int64" and self._lane is None

    def _allocate(self, memory: Buffer) -> None:
        if hash(memory) in self._shared.registers:
            self.registers.forget(memory)
            return
        self._shared.stack_bytes += nbytes(memory)
        if self._shared.stack_bytes > STACK_LIMIT:
            raise UntranslatableError
        (room,) = self.fresh("%room")
        self._rooms.append(f"  {room} = alloca [{nbytes(memory)} x i8], align {_LINE}")
        self._pointers[hash(memory)] = room
        self._depths[room] = 0
        self._shared.rooms.add(hash(memory))

    def _import(self, text: str) -> None:
        """Import the procedures of a text."""
        self._shared.procedures.update(procedures_of(text))

    def _evaluate(self, value: Expr) -> None:
        if isinstance(value, tirx.IntImm):
            return
        is_call = isinstance(value, Call) and value.op.same_as(_CALL)
        if not is_call or str(value.args[0].value) not in self._shared.procedures:
            raise UntranslatableError
        self._made(f"call i32 @{value.args[0].value}({self._given(value)})")
        self._loads.clear()

    # Control

    def _repeat(self, loop: Any) -> None:
        if not isinstance(loop.min, tirx.IntImm) or int(loop.min):
            raise UntranslatableError
        kind, extent = int(loop.kind), self._integer(loop.extent)
        if extent[0] != "%" and int(extent) <= 0:
            return  # such as range(i) in the only iteration, i = 0, of a loop around it
        if kind in (int(VECTORIZED), int(UNROLLED)) or _is_short(loop):
            self._unroll(loop, kind, known(extent))
        elif self._lane is not None:
            raise UntranslatableError
        elif kind == int(PARALLEL):
            self._share(loop, extent)
        elif kind == int(SERIAL):
            if extent[0] == "%":
                some = self.holds("sgt", extent, "0")
                self._either(some, lambda: self._run(loop, extent), lambda: None)
            else:
                self._run(loop, extent)
        else:
            raise UntranslatableError

    def _unroll(self, loop: Any, kind: int, extent: int) -> None:
        """Unroll a loop completely."""
        if kind == int(VECTORIZED) and extent > 1:
            if self._lane is not None:
                raise UntranslatableError
            self._lane, self._width = hash(loop.loop_var), extent
            self.state(loop.body)
            self._lane, self._width = None, 1
            return
        for number in range(extent):
            self.step(loop, str(number))

    def step(self, loop: Any, number: str) -> None:
        """Translate the body of a loop for one iteration. Raises `UntranslatableError`."""
        self._integers[hash(loop.loop_var)] = number
        self.state(loop.body)

    def _run(self, loop: Any, extent: str, first: str = "0") -> None:
        """A loop of at least one iteration; register buffers are loop-carried values."""
        carried = self._carried(loop.body)
        initial = [self.registers.read(*each) for each in carried]
        waits = len(carried) == 1 and (extent[0] == "%" or int(extent) > _CHAIN)
        if waits and carried[0][2] * initial[0].kind.bits < 8 * _LINE:
            # Iterations depend on the one before; LLVM's passes interleave several such loops.
            raise UntranslatableError
        if any(value.kind.bits == 8 for value in initial):
            # LLVM's passes convert i8 flags to conditions.
            raise UntranslatableError
        at_once = 1
        if waits and extent[0] != "%" and int(extent) % _FEW == 0 and is_arithmetic(loop.body):
            # A loop that counts down is better for branch prediction.
            at_once, extent = _FEW, str(int(extent) // _FEW)

        def step(number: str) -> None:
            end = self._enter(carried, before)
            begin = self.sum(first, self.product(number, str(at_once)))
            for part in range(at_once):
                self.step(loop, self.sum(begin, str(part)))
            end()

        before = self.block
        if extent == "1":
            self.step(loop, first)
        else:
            self.loop(extent, step)

    def _repeat_while(self, loop: Any) -> None:
        """A While loop; register buffers are loop-carried values."""
        if self._lane is not None:
            raise UntranslatableError
        before, carried = self.block, self._carried(loop.body)
        top, inside, done = self.fresh("while", "inside", "done")
        self.jump(top)
        self.start(top)
        end = self._enter(carried, before)
        going_on = self.vector(loop.condition, 1)
        held = self.registers.state
        self.act(f"br i1 {going_on.text}, label %{inside}, label %{done}")
        self.start(inside)
        self.state(loop.body)
        end()
        self.jump(top)
        self.start(done)
        self.registers.state = held

    def _carried(self, body: Stmt) -> list[tuple[Buffer, int, int]]:
        """The parts of register buffers that are set before a loop and change in its body."""
        stored = [memory for memory in stored_in(body) if hash(memory) in self.registers.state]
        return [(memory, *part) for memory in stored for part in self.registers.parts(memory)]

    def _enter(self, carried: Sequence[tuple[Buffer, int, int]], before: str) -> Callable[[], None]:
        """Begin a loop's first block, entered from ``before``, with phi nodes for what is carried.

        The function that is returned ends the last block, from which the loop goes back.
        """
        registers = self.registers
        initial = [registers.read(*each) for each in carried]
        held = [Value(self, value.kind, *self.fresh("%held")) for value in initial]
        places = self.reserve(len(carried))
        for (memory, start, count), value in zip(carried, held, strict=True):
            registers.write(memory, start, count, value)

        def end() -> None:
            made = [registers.read(*each) for each in carried]
            rows = zip(places, carried, initial, held, made, strict=True)
            for place, (_, _, self.lanes), old, name, new in rows:
                incoming = f"[ {old.text}, %{before} ], [ {new.text}, %{self.block} ]"
                self.fill(place, name.text, f"phi {self.type(old.kind)} {incoming}")

        return end

    def _choose(self, statement: Any) -> None:
        if self._lane is not None:
            raise UntranslatableError
        condition = self.vector(statement.condition, 1)
        other = statement.else_case
        self._either(
            condition.text,
            lambda: self.state(statement.then_case),
            lambda: None if other is None else self.state(other),
        )

    def _either(
        self, condition: str, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        """An if-else on the i1 ``condition``."""
        labels = self.fresh("then", "else")
        (done,) = self.fresh("done")
        self._lines.append(f"  br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        before = self.registers.state
        ends: list[tuple[str, State]] = []
        for label, write in zip(labels, (then, otherwise), strict=True):
            self.start(label)
            self.registers.state = before
            write()
            ends.append((self.block, self.registers.state))
            self.jump(done)
        self.start(done)
        (one, state), (two, other) = ends
        self.registers.state = {}
        for memory in state.keys() & other.keys():
            self.registers.state[memory] = self._merged(one, state[memory], two, other[memory])

    def _merged(
        self,
        one: str,
        parts: Mapping[int, VectorSlice],
        two: str,
        others: Mapping[int, VectorSlice],
    ) -> dict[int, VectorSlice]:
        """The contents of a buffer after a branch: phi nodes of both blocks' contents."""
        if parts.keys() != others.keys():
            raise UntranslatableError
        made: dict[int, VectorSlice] = {}
        for start, part in parts.items():
            other = others[start]
            if part == other:
                made[start] = part
                continue
            if not part.is_whole or not other.is_whole or part.count != other.count:
                raise UntranslatableError
            self.lanes, kind = part.count, part.value.kind
            incoming = f"[ {part.value.text}, %{one} ], [ {other.value.text}, %{two} ]"
            value = self.emit(kind, f"phi {self.type(kind)} {incoming}")
            made[start] = VectorSlice(value, part.width, 0, part.count)
        return made

    # Threads

    def _share(self, loop: Any, extent: str) -> None:
        """A parallel loop: a function for the threads, which receives the live values as an array
        of words.
        """
        (told,) = self.fresh("%told")
        words = [(pointer, "ptr") for pointer in self._pointers.values()]
        # Variables of loops that have ended are not known here.
        free = {hash(variable) for variable in tirx.analysis.undefined_vars(loop, [])}
        integers = {key: name for key, name in self._integers.items() if key in free}
        words += [(integer, "i64") for integer in (*integers.values(), extent)]
        self._rooms.append(f"  {told} = alloca [{len(words)} x i64]")
        for number, (word, kind) in enumerate(words):
            at = self.address(told, str(_WORD * number))
            self._lines.append(f"  store {kind} {word}, ptr {at}")
        name = f"{self.name}_{len(self._shared.threads)}"
        worker = _Worker(name, self._pointers, integers, self._shared)
        worker.work(loop)
        self._shared.threads[name] = worker.whole()
        self._end_unless_zero(self._made(f"call i32 @{LAUNCH}(ptr @{name}, ptr {told}, i32 0)"))
        self._loads.clear()

    def _end_unless_zero(self, status: str) -> None:
        (going_on,) = self.fresh("on")
        failed = self._made(f"icmp ne i32 {status}, 0")
        self._lines.append(f"  br i1 {failed}, label %failed, label %{going_on}")
        self.start(going_on)


def _is_short(loop: Any) -> bool:
    """Whether unrolling takes less time to build than a loop."""
    if int(loop.kind) != int(SERIAL) or not isinstance(loop.extent, tirx.IntImm):
        return False
    steps = int(loop.extent)
    return steps == 1 or (steps <= _FEW and is_straight(loop.body))


class _Worker(_Body):
    """The function that one of TVM's threads runs: a contiguous share of the iterations."""

    def __init__(
        self,
        name: str,
        pointers: Mapping[int, str],
        integers: Mapping[int, str],
        shared: _Shared,
    ) -> None:
        super().__init__(Head(name, ["i32 %task", "ptr %group", "ptr %told"]), shared)
        words = range(0, _WORD * len(pointers), _WORD)
        self._pointers = {v: self._word("ptr", at) for v, at in zip(pointers, words, strict=True)}
        words = range(words.stop, words.stop + _WORD * len(integers), _WORD)
        self._integers = {v: self._word("i64", at) for v, at in zip(integers, words, strict=True)}
        self._extent = self._word("i64", words.stop)

    def _share(self, loop: Any, extent: str) -> None:
        """TVM's threads start no others."""
        raise UntranslatableError

    def _word(self, kind: str, offset: int) -> str:
        return self._made(f"load {kind}, ptr {self.address('%told', str(offset))}")

    def work(self, loop: Any) -> None:
        """Translate the iterations. Raises `UntranslatableError`."""
        task = self._made("zext i32 %task to i64")
        tasks = self._made(f"load i32, ptr {self.address('%group', str(_TASKS))}")
        tasks = self._made(f"zext i32 {tasks} to i64")
        most, _ = self.quotient(self.sum(self.sum(self._extent, tasks), "-1"), tasks)
        first = self._made(f"mul i64 {task}, {most}")
        rest = self.sum(self._extent, self._made(f"sub i64 0, {first}"))
        count = self.lesser(most, rest)
        some = self.holds("sgt", count, "0")
        self._either(some, lambda: self._run(loop, count, first), lambda: None)
