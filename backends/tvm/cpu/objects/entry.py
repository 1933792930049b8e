"""The entry function of a program: checks and unpacks its arguments as in `abi`, and calls
kernels.

    program_texts(program, target, written, 2)  # LLVM modules, as texts
    entry_statement(program, handles, call, at) # a statement for this process alone

It is compiled apart from the kernels: TVM tells LLVM that different buffers never alias, which
holds inside a kernel but not for two kernels inlined into one function. It runs for nanoseconds,
so only its compile time matters, and that is least for LLVM text.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from tracejit.backends.abi import (
    ALIGNMENT,
    C_CONTIGUOUS_AND_ALIGNED,
    ENTRY,
    LAYOUT,
    STACK_BYTES,
    STATE_WORDS,
    WRITEABLE,
    SignalState,
)
from tracejit.backends.tvm.cpu.llvm.builder import module_text
from tracejit.backends.tvm.cpu.llvm.modules import kernel_texts
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.llvm.tir_to_llvm import TranslatedKernels
from tracejit.backends.tvm.cpu.objects.interrupts import MOST_ITERATIONS
from tracejit.backends.tvm.cpu.processor import Processor
from tracejit.backends.tvm.ir.tir import (
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    i32,
    importing,
    seq,
    tirx,
    var,
)
from tracejit.backends.tvm.program.program import (
    Argument,
    Branch,
    Call,
    Loop,
    Memory,
    Node,
    Program,
)

_WORD = 8
_RANK_MASK = 0xFFFFFFFF
_POINTER = 4  # kTVMFFIOpaquePtr
_CHECK = "tracejit_check"
_CHECKING = f"declare i32 @{_CHECK}(ptr, ptr, i64, i64, i64, i64)"
_ANY = "{ i64, ptr }"  # TVMFFIAny: a type index and a value


def program_texts(
    program: Program, target: Processor, written: TranslatedKernels, most: int
) -> list[str]:
    """LLVM modules of a program's kernels; the first contains ``int32 tracejit_main(ptr tuple)``.

    The program is checked already, and its kernels are C functions.
    """
    entry = EntryFunction(program).whole()
    return kernel_texts(program.kernels, written, target, most, [entry], [_CHECKING])


def entry_statement(program: Program, handles: Mapping[str, int], call: int, address: Expr) -> Stmt:
    """The entry as a TIR statement; TVM calls the kernels by these ``handles``.

    ``call`` is the address of ``TVMFFIFunctionCall``, ``address`` that of the tuple.
    """
    entry = _OfHandles(program, handles, call)
    status = var("status", "int32")
    called = tirx.call_extern("int32", entry.name, tirx.reinterpret("handle", address))
    # `return -1`, the only value other than 0 that a function may return.
    fail = Evaluate(tirx.tvm_throw_last_error())
    body = seq(tirx.Bind(status, called), IfThenElse(status != i32(0), fail, None))
    return importing(module_text([checking(), entry.whole()]), body)


class _Failing(Procedure):
    """A function that returns -1 if a check fails."""

    def whole(self) -> str:
        returned = super().whole()
        return returned.removesuffix("}") + "failed:\n  ret i32 -1\n}"

    def _pointer(self, memory: str, index: int | str) -> str:
        """The pointer at ``index`` in memory."""
        at = self._made(f"getelementptr ptr, ptr {memory}, i64 {index}")
        return self._made(f"load ptr, ptr {at}")

    def _field(self, memory: str, offset: int) -> str:
        """The pointer at an offset of bytes."""
        return self._pointer(memory, offset // _WORD)

    def _word(self, memory: str, offset: int) -> str:
        """The integer at an offset of bytes."""
        return self.number(memory, offset // _WORD)

    def _unless(self, condition: str) -> None:
        """Return -1 unless the i1 ``condition`` holds."""
        (going_on,) = self.fresh("on")
        self._lines.append(f"  br i1 {condition}, label %{going_on}, label %failed")
        self.start(going_on)

    def _equal(self, a: str, b: str) -> None:
        """Return -1 unless two integers are equal."""
        self._unless(self.holds("eq", a, b))


class _Check(_Failing):
    """``int32 name(ptr tuple, ptr table, i64 length, i64 arrays, i64 inputs, i64 position)``.

    The arguments are: the call's tuple, the table of expected arrays, the expected length of the
    tuple, the number of arrays and of inputs among it, and the position of their records in the
    table.
    """

    def __init__(self) -> None:
        super().__init__(
            _CHECK, ["tuple", "table"], ["length", "arrays", "inputs", "position"], lanes=1
        )
        self._equal(self._word("%tuple", LAYOUT.length), "%length")
        self._rooms.append("  %at = alloca i64")
        self._lines.append("  store i64 %position, ptr %at")
        self._items = self.address("%tuple", str(LAYOUT.items))
        some = self.holds("ne", "%arrays", "0")
        self.when(some, lambda: self.loop("%arrays", self._verify_one))

    def _verify_one(self, number: str) -> None:
        """Compare one array with its record: dtype, rank and dimensions, from the position on.

        Outputs must be writable as well.
        """
        array = self._pointer(self._items, self.sum(number, "1"))
        position = self.number("%at", 0)
        record = self._made(f"getelementptr i64, ptr %table, i64 {position}")
        rank = self.number(record, 1)
        is_input = self.holds("slt", number, "%inputs")
        of_inputs = str(C_CONTIGUOUS_AND_ALIGNED)
        of_outputs = str(C_CONTIGUOUS_AND_ALIGNED | WRITEABLE)
        wanted = self.chosen(is_input, "i64", of_inputs, of_outputs)
        # The type comes first: other fields may be read only if it is an ndarray.
        self._equal(self._word(array, LAYOUT.type), self.number("%table", 0))
        self._equal(self._word(array, LAYOUT.dtype), self.number(record, 0))
        known = self._made(f"and i64 {self._word(array, LAYOUT.rank)}, {_RANK_MASK}")
        self._equal(known, rank)
        flags = self._word(array, LAYOUT.flags)
        self._equal(self._made(f"and i64 {flags}, {wanted}"), wanted)
        dimensions = self._field(array, LAYOUT.dimensions)
        described = self._made(f"getelementptr i64, ptr {record}, i64 2")

        def compare(dimension: str) -> None:
            self._equal(self.number(dimensions, dimension), self.number(described, dimension))

        self.when(self.holds("ne", rank, "0"), lambda: self.loop(rank, compare))
        following = self.sum(self.sum(position, "2"), rank)
        self._lines.append(f"  store i64 {following}, ptr %at")


@functools.cache
def checking() -> str:
    """The function that compares a call's arguments with the table, as `abi` says."""
    return _Check().whole()


class EntryFunction(_Failing):
    """The function under construction."""

    def __init__(self, program: Program) -> None:
        super().__init__(ENTRY, ["tuple"], [], lanes=1)
        self._program = program
        self._arguments = len(program.inputs) + len(program.outputs)
        self._items = self.address("%tuple", str(LAYOUT.items))
        self._table = self._field(self._pointer(self._items, 0), LAYOUT.data)
        self._bases: dict[tuple[Memory, int], str] = {}
        self._verify()
        self._bind()
        self._state = None if program.state is None else self._interrupts(program.state)
        self._run(program.calls)

    @property
    def _passes_workspace(self) -> bool:
        return self._program.workspace_bytes > STACK_BYTES

    # Arguments

    def _verify(self) -> None:
        """Return -1 unless every input and output matches the table."""
        length = 1 + self._arguments + self._passes_workspace
        position = 1 + len(self._program.constants)
        numbers = length, self._arguments, len(self._program.inputs), position
        told = ", ".join(f"i64 {number}" for number in numbers)
        status = self._made(f"call i32 @{_CHECK}(ptr %tuple, ptr {self._table}, {told})")
        self._unless(self._made(f"icmp eq i32 {status}, 0"))

    def _bind(self) -> None:
        """Compute the base address of every buffer that an argument of a kernel may be in."""
        program = self._program
        for index in range(len(program.inputs)):
            self._bases[Memory.INPUT, index] = self._data(1 + index)
        for index in range(len(program.outputs)):
            self._bases[Memory.OUTPUT, index] = self._data(1 + len(program.inputs) + index)
        for index in range(len(program.constants)):
            self._bases[Memory.CONSTANT, index] = self._pointer(self._table, 1 + index)
        if program.workspace_bytes:
            self._bases[Memory.WORKSPACE, 0] = self._workspace()

    def _data(self, item: int) -> str:
        return self._field(self._pointer(self._items, item), LAYOUT.data)

    def _workspace(self) -> str:
        if not self._passes_workspace:
            size = self._program.workspace_bytes
            self._rooms.append(f"  %workspace = alloca [{size} x i8], align {ALIGNMENT}")
            return "%workspace"
        start = self._made(f"ptrtoint ptr {self._data(1 + self._arguments)} to i64")
        aligned = self._made(f"and i64 {self.sum(start, str(ALIGNMENT - 1))}, {-ALIGNMENT}")
        return self._made(f"inttoptr i64 {aligned} to ptr")

    def _place(self, argument: Argument) -> str:
        return self.address(self._bases[argument.memory, argument.index], str(argument.offset))

    def _interrupts(self, state: Argument) -> str:
        """Initialise the state that polls use; returns its address."""
        program = self._program
        specs = [*program.inputs, *program.outputs]
        last = 1 + len(program.constants) + sum(2 + len(spec.shape) for spec in specs)
        made = self._place(state)
        words = [f"[{STATE_WORDS} x i64] zeroinitializer, ptr {made}"]
        at = self.address(made, str(SignalState.RECORD * _WORD))
        words += [f"ptr {self._pointer(self._table, last)}, ptr {at}"]
        self._lines += [f"  store {word}, align 8" for word in words]
        return made

    # Calls and control flow

    def _run(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Call):
                pointers = [self._place(argument) for argument in node.arguments]
                status = self._called(node.kernel, pointers)
                self._unless(self._made(f"icmp eq i32 {status}, 0"))
                if node.kernel in self._program.polled:
                    ended = self._made(f"call i32 @tracejit_poll(ptr {self._state})")
                    self._unless(self._made(f"icmp eq i32 {ended}, 0"))
            elif isinstance(node, Loop):
                self._loop(node)
            else:
                self._branch(node)

    def _called(self, kernel: str, pointers: Sequence[str]) -> str:
        """Call a kernel; returns the text of its status."""
        return self._made(f"call i32 @{kernel}({', '.join(f'ptr {p}' for p in pointers)})")

    def _loop(self, loop: Loop) -> None:
        again, body, done = self.fresh("again", "body", "done")
        (left,) = self.fresh("%left")
        if self._state is not None:
            self._rooms.append(f"  {left} = alloca i32")
            self._lines.append(f"  store i32 1, ptr {left}")
        self.jump(again)
        self.start(again)
        self._run(loop.condition)
        holds = self._made(f"load i8, ptr {self._place(loop.predicate)}")
        is_done = self._made(f"icmp eq i8 {holds}, 0")
        self._lines.append(f"  br i1 {is_done}, label %{done}, label %{body}")
        self.start(body)
        if self._state is not None:
            self._look(left, self._state)
        self._run(loop.body)
        self.jump(again)
        self.start(done)

    def _look(self, left: str, state: str) -> None:
        """Count an iteration; return -1 if a signal has ended the program."""
        asking, on = self.fresh("asking", "on")
        fewer = self._made(f"add i32 {self._made(f'load i32, ptr {left}')}, -1")
        self._lines.append(f"  store i32 {fewer}, ptr {left}")
        self.branch(self._made(f"icmp eq i32 {fewer}, 0"), asking, on)
        self.start(asking)
        count = self._made(f"call i32 @tracejit_count(ptr {state}, i32 1, i32 {MOST_ITERATIONS})")
        self._lines.append(f"  store i32 {count}, ptr {left}")
        self._unless(self._made(f"icmp ne i32 {count}, 0"))
        self.jump(on)
        self.start(on)

    def _branch(self, branch: Branch) -> None:
        selector = self._made(f"load i32, ptr {self._place(branch.selector)}")
        *numbered, last = labels = self.fresh(*["branch"] * len(branch.branches))
        (done,) = self.fresh("done")
        cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(numbered))
        self._lines.append(f"  switch i32 {selector}, label %{last} [ {cases} ]")
        for label, nodes in zip(labels, branch.branches, strict=True):
            self.start(label)
            self._run(nodes)
            self.jump(done)
        self.start(done)


class _OfHandles(EntryFunction):
    """An entry that calls kernels through TVM."""

    def __init__(self, program: Program, handles: Mapping[str, int], call: int) -> None:
        self._handles = handles
        self._call = call
        super().__init__(program)

    def _called(self, kernel: str, pointers: Sequence[str]) -> str:
        given, made = self.fresh("%given", "%made")
        self._rooms.append(f"  {given} = alloca [{len(pointers)} x {_ANY}]")
        self._rooms.append(f"  {made} = alloca {_ANY}")
        self._lines.append(f"  store {_ANY} zeroinitializer, ptr {made}")
        for number, pointer in enumerate(pointers):
            kind = self.address(given, str(2 * _WORD * number))
            self._lines.append(f"  store i64 {_POINTER}, ptr {kind}")
            value = self.address(given, str(2 * _WORD * number + _WORD))
            self._lines.append(f"  store ptr {pointer}, ptr {value}")
        handle, call = (
            f"inttoptr (i64 {word} to ptr)" for word in (self._handles[kernel], self._call)
        )
        arguments = f"ptr {handle}, ptr {given}, i32 {len(pointers)}, ptr {made}"
        return self._made(f"call i32 {call}({arguments})")
