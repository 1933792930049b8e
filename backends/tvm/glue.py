"""Kernels that do nothing but call procedures, as LLVM's own text.

    written = written_kernels(kernels)      # the others are TVM's to compile

A procedure is written as LLVM would make it of anything else: TVM's passes have nothing to do with
it, nor have LLVM's, but for those that make machine code of it. So a Fourier transform is built in
a third of the time. What surrounds its calls is little: memory on the stack, loops, and work
divided among threads. It is not even made fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tvm.ir import Call, Op, TensorLoad
from tvm.tirx import AttrStmt

from tracejit.backends.tvm.mathematics.procedures import Procedure, procedures_of
from tracejit.backends.tvm.program import Kernel
from tracejit.backends.tvm.tir import (
    IMPORT,
    PARALLEL,
    SERIAL,
    AllocBuffer,
    Buffer,
    BufferStore,
    Evaluate,
    Expr,
    For,
    SeqStmt,
    Stmt,
    itemsize,
    nbytes,
    tirx,
)

LAUNCH = "TVMBackendParallelLaunch"
DECLARED = f"declare i32 @{LAUNCH}(ptr, ptr, i32)"
"""What texts may call that none of them defines: it has TVM's threads do something."""

_WORD, _LINE = 8, 64
_TASKS = 8
"""Where TVM's parallel group has the number of its tasks."""
_CALL, _DATA, _ADDRESS = (
    Op.get(f"tirx.{name}") for name in ("call_extern", "buffer_data", "address_of")
)


class _UnknownError(Exception):
    """Something that TVM must compile."""


@dataclass(frozen=True)
class Written:
    """The texts of functions by their names: of kernels and their threads, and of procedures.

    Procedures of one name are one and the same.
    """

    kernels: Mapping[str, str]
    procedures: Mapping[str, str]


def written_kernels(kernels: Sequence[Kernel]) -> Written:
    """All of those that do nothing but call procedures."""
    functions: dict[str, str] = {}
    procedures: dict[str, str] = {}
    for kernel in kernels:
        own: dict[str, str] = {}
        called: dict[str, str] = {}
        known = {parameter: f"%p{number}" for number, parameter in enumerate(kernel.parameters)}
        names = [name[1:] for name in known.values()]
        body = _Body(kernel.name, names, known, {}, own, called)
        with suppress(_UnknownError):
            body.state(kernel.body)
            functions |= {**own, kernel.name: body.whole()}
            procedures |= called
    return Written(functions, procedures)


class _Body(Procedure):
    """A function under construction, and the texts of the variables that it knows.

    ``threads`` are the functions that its threads run, ``procedures`` what it calls.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        pointers: Mapping[Any, str],
        integers: Mapping[Any, str],
        threads: dict[str, str],
        procedures: dict[str, str],
    ) -> None:
        super().__init__(name, parameters, [], lanes=1)
        self._pointers = dict(pointers)
        self._integers = dict(integers)
        self._threads = threads
        self._procedures = procedures

    def whole(self) -> str:
        return super().whole().removesuffix("}") + "failed:\n  ret i32 -1\n}"

    def state(self, statement: Stmt) -> None:
        """Write a statement. Raises `_UnknownError`."""
        if isinstance(statement, SeqStmt):
            for each in statement:
                self.state(each)
        elif isinstance(statement, AttrStmt) and statement.attr_key == IMPORT:
            self._import(str(statement.value.value))
            self.state(statement.body)
        elif isinstance(statement, AllocBuffer):
            (room,) = self.fresh("%room")
            size = nbytes(statement.buffer)
            self._rooms.append(f"  {room} = alloca [{size} x i8], align {_LINE}")
            self._pointers[statement.buffer] = room
        elif isinstance(statement, Evaluate) and isinstance(statement.value, Call):
            self._call(statement.value)
        elif isinstance(statement, BufferStore):
            value = self._integer(statement.value)
            place = self._word_at(statement.buffer, statement.indices)
            self.act(f"store i64 {value}, ptr {place}, align {_WORD}")
        elif isinstance(statement, For):
            self._repeat(statement)
        else:
            raise _UnknownError

    def _import(self, text: str) -> None:
        """A text with some procedures."""
        self._procedures.update(procedures_of(text))

    def _call(self, call: Any) -> None:
        if not call.op.same_as(_CALL) or str(call.args[0].value) not in self._procedures:
            raise _UnknownError
        function, *arguments = call.args
        given = ", ".join(map(self._argument, arguments))
        self._made(f"call i32 @{function.value}({given})")

    def _argument(self, argument: Expr) -> str:
        if isinstance(argument, Call) and argument.op.same_as(_DATA):
            return f"ptr {self._pointers[argument.args[0]]}"
        if isinstance(argument, Call) and argument.op.same_as(_ADDRESS):
            (element,) = argument.args
            return f"ptr {self._element(element.source, element.indices)}"
        return f"i64 {self._integer(argument)}"

    def _integer(self, value: Expr) -> str:
        """The text of an integer; all are computed in 64 bits."""
        if isinstance(value, tirx.IntImm):
            return str(int(value))
        if isinstance(value, tirx.Var):
            known: str = self._integers[value]
            return known
        if isinstance(value, tirx.Cast):
            return self._integer(value.value)
        if isinstance(value, TensorLoad):
            place = self._word_at(value.source, value.indices)
            return self._made(f"load i64, ptr {place}, align {_WORD}")
        if not isinstance(value, tirx.Add | tirx.Sub | tirx.Mul | tirx.Min | tirx.Max):
            raise _UnknownError
        a, b = self._integer(value.a), self._integer(value.b)
        if isinstance(value, tirx.Add):
            return self.sum(a, b)
        if isinstance(value, tirx.Sub):
            return self.sum(a, self.product(b, "-1"))
        if isinstance(value, tirx.Mul):
            return self.product(a, b)
        is_less = self.holds("slt", a, b)
        first, other = (a, b) if isinstance(value, tirx.Min) else (b, a)
        return self.chosen(is_less, "i64", first, other)

    def _word_at(self, memory: Buffer, indices: Sequence[Expr]) -> str:
        """The address of a number of 64 bits. Raises `_UnknownError` for others."""
        if str(memory.dtype) != "int64":
            raise _UnknownError
        return self._element(memory, indices)

    def _element(self, memory: Buffer, indices: Sequence[Expr]) -> str:
        """The address of an element. Raises `_UnknownError`."""
        if len(indices) != 1:
            raise _UnknownError
        offset = self.product(self._integer(indices[0]), str(itemsize(memory)))
        return self.address(self._pointers[memory], offset)

    def _repeat(self, loop: Any) -> None:
        kind, extent = int(loop.kind), self._integer(loop.extent)
        if kind == int(PARALLEL):
            self._share(loop, extent)
        elif kind != int(SERIAL):
            raise _UnknownError
        elif isinstance(loop.extent, tirx.IntImm):
            self.loop(extent, lambda number: self.step(loop, number))
        else:
            some = self.holds("sgt", extent, "0")
            self.when(some, lambda: self.loop(extent, lambda number: self.step(loop, number)))

    def step(self, loop: Any, number: str) -> None:
        """Write the body of a loop. Raises `_UnknownError`."""
        self._integers[loop.loop_var] = number
        self.state(loop.body)

    def _share(self, loop: Any, extent: str) -> None:
        """A loop whose steps threads share: a function that is told what is known, word by word."""
        (told,) = self.fresh("%told")
        words = [(pointer, "ptr") for pointer in self._pointers.values()]
        words += [(integer, "i64") for integer in (*self._integers.values(), extent)]
        self._rooms.append(f"  {told} = alloca [{len(words)} x i64]")
        for number, (word, kind) in enumerate(words):
            at = self.address(told, str(_WORD * number))
            self._lines.append(f"  store {kind} {word}, ptr {at}")
        name = f"{self.name}_{len(self._threads)}"
        known = self._pointers, self._integers
        worker = _Worker(name, *known, self._threads, self._procedures)
        worker.work(loop)
        self._threads[name] = worker.whole()
        self._end_unless_zero(self._made(f"call i32 @{LAUNCH}(ptr @{name}, ptr {told}, i32 0)"))

    def _end_unless_zero(self, status: str) -> None:
        (going_on,) = self.fresh("on")
        failed = self._made(f"icmp ne i32 {status}, 0")
        self._lines.append(f"  br i1 {failed}, label %failed, label %{going_on}")
        self.start(going_on)


class _Worker(_Body):
    """What one of TVM's threads does of a loop: as many of its steps as any other, in a row."""

    def __init__(
        self,
        name: str,
        pointers: Mapping[Any, str],
        integers: Mapping[Any, str],
        threads: dict[str, str],
        procedures: dict[str, str],
    ) -> None:
        super().__init__(name, [], {}, {}, threads, procedures)
        self._parameters = ["i32 %task", "ptr %group", "ptr %told"]
        words = range(0, _WORD * len(pointers), _WORD)
        self._pointers = {v: self._word("ptr", at) for v, at in zip(pointers, words, strict=True)}
        words = range(words.stop, words.stop + _WORD * len(integers), _WORD)
        self._integers = {v: self._word("i64", at) for v, at in zip(integers, words, strict=True)}
        self._extent = self._word("i64", words.stop)

    def _word(self, kind: str, offset: int) -> str:
        return self._made(f"load {kind}, ptr {self.address('%told', str(offset))}")

    def work(self, loop: Any) -> None:
        """Write the steps. Raises `_UnknownError`."""
        task = self._made("zext i32 %task to i64")
        tasks = self._made(f"load i32, ptr {self.address('%group', str(_TASKS))}")
        tasks = self._made(f"zext i32 {tasks} to i64")
        most, _ = self.quotient(self.sum(self.sum(self._extent, tasks), "-1"), tasks)
        first = self._made(f"mul i64 {task}, {most}")
        rest = self.sum(self._extent, self._made(f"sub i64 0, {first}"))
        count = self.lesser(most, rest)
        some = self.holds("sgt", count, "0")
        self.when(some, lambda: self.loop(count, lambda n: self.step(loop, self.sum(first, n))))
