"""The entry function of a program: reads its arguments as `abi` says, then calls the kernels.

It is compiled apart from the kernels: TVM tells LLVM that different buffers never alias, which
holds inside a kernel but would be a lie about two kernels inlined into one function.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import DataType, tirx
from tvm.ir import PointerType, PrimType
from tvm.tirx import For

from tracejit.backends.abi import (
    ALIGNMENT,
    C_CONTIGUOUS_AND_ALIGNED,
    ENTRY,
    LAYOUT,
    STACK_BYTES,
    WRITEABLE,
)
from tracejit.backends.tvm.codegen import MakeFunction, packed_function
from tracejit.backends.tvm.program import Argument, Branch, Call, Loop, Memory, Node, Program
from tracejit.backends.tvm.tir import (
    SERIAL,
    AllocBuffer,
    Buffer,
    DeclBuffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    While,
    buffer,
    i32,
    i64,
    seq,
    store,
    var,
)

# Buffers over memory whose extent TIR is not told.
_UNBOUNDED = 1 << 40
_WORD = 8

# `return -1`, the only value but 0 that a function may return.
_FAIL = Evaluate(tirx.tvm_throw_last_error())


def entry_function(program: Program, make: MakeFunction) -> tirx.PrimFunc:
    """``int32 tracejit_main(int64 address)`` of a checked program whose kernels ``make`` made."""
    address = var("address")
    statements: list[Stmt] = []
    builder = _Entry(program, make is packed_function, address, statements)
    builder.verify()
    builder.bind()
    statements += builder.calls(program.calls)
    return make(ENTRY, [address], seq(*statements))


class _Entry:
    """The function under construction; addresses are 64-bit integers until a kernel gets them."""

    def __init__(
        self, program: Program, packed: bool, address: Expr, statements: list[Stmt]
    ) -> None:
        self._program = program
        self._packed = packed
        self._statements = statements
        self._arguments = len(program.inputs) + len(program.outputs)
        self._tuple = _memory(address, "int64", statements)
        self._items = _memory(address + i64(LAYOUT.items), "int64", statements)
        table = _memory(self._items[i64(0)], "int64", statements)
        self._table = _memory(_field(table, LAYOUT.data), "int64", statements)
        self._bases: dict[tuple[Memory, int], Expr] = {}

    @property
    def _passes_workspace(self) -> bool:
        return self._program.workspace_bytes > STACK_BYTES

    def verify(self) -> None:
        """Fail unless every input and output is the array that the table describes."""
        length = 1 + self._arguments + self._passes_workspace
        position = buffer("position", (1,), "int64")
        first_record = 1 + len(self._program.constants)
        index = var("argument")
        self._statements += [
            _fail_if(_field(self._tuple, LAYOUT.length) != i64(length)),
            AllocBuffer(position),
            store(position, 0, i64(first_record)),
            For(index, i64(0), i64(self._arguments), SERIAL, self._verify_one(index, position)),
        ]

    def _verify_one(self, index: Expr, position: Buffer) -> Stmt:
        """Compare one array with its record: dtype, rank and dimensions, from ``position`` on.

        Outputs must be writable as well.
        """
        body: list[Stmt] = []
        array = _memory(self._items[index + i64(1)], "int64", body)
        record, table = position[0], self._table
        rank = table[record + i64(1)]
        wanted = tirx.Select(
            index < i64(len(self._program.inputs)),
            i64(C_CONTIGUOUS_AND_ALIGNED),
            i64(C_CONTIGUOUS_AND_ALIGNED | WRITEABLE),
        )
        dimension = var("dimension")
        # The type comes first: only of an ndarray may the other fields be read.
        body.append(_fail_if(_field(array, LAYOUT.type) != table[i64(0)]))
        body.append(_fail_if(_field(array, LAYOUT.dtype) != table[record]))
        body.append(_fail_if((_field(array, LAYOUT.rank) & i64(0xFFFFFFFF)) != rank))
        body.append(_fail_if((_field(array, LAYOUT.flags) & wanted) != wanted))
        dimensions = _memory(_field(array, LAYOUT.dimensions), "int64", body)
        differs = dimensions[dimension] != table[record + i64(2) + dimension]
        body.append(For(dimension, i64(0), rank, SERIAL, _fail_if(differs)))
        body.append(store(position, 0, record + i64(2) + rank))
        return seq(*body)

    def bind(self) -> None:
        """Name the address of everything that an argument of a kernel can lie in."""
        program = self._program
        for index in range(len(program.inputs)):
            self._bases[Memory.INPUT, index] = self._item(1 + index)
        for index in range(len(program.outputs)):
            self._bases[Memory.OUTPUT, index] = self._item(1 + len(program.inputs) + index)
        for index in range(len(program.constants)):
            self._bases[Memory.CONSTANT, index] = self._named(self._table[i64(1 + index)])
        if program.workspace_bytes:
            self._bases[Memory.WORKSPACE, 0] = self._workspace()

    def _item(self, index: int) -> Expr:
        array = _memory(self._items[i64(index)], "int64", self._statements)
        return self._named(_field(array, LAYOUT.data))

    def _workspace(self) -> Expr:
        if self._passes_workspace:
            address = self._item(1 + self._arguments)
        else:
            memory = buffer("workspace", (self._program.workspace_bytes + ALIGNMENT,), "uint8")
            self._statements.append(AllocBuffer(memory))
            address = tirx.reinterpret("int64", memory.data)
        return self._named((address + i64(ALIGNMENT - 1)) & i64(-ALIGNMENT))

    def _named(self, value: Expr) -> Expr:
        name = var("at")
        self._statements.append(tirx.Bind(name, value))
        return name

    def _address(self, argument: Argument) -> Expr:
        base = self._bases[argument.memory, argument.index]
        return base + i64(argument.offset) if argument.offset else base

    def calls(self, nodes: Sequence[Node]) -> list[Stmt]:
        statements: list[Stmt] = []
        for node in nodes:
            if isinstance(node, Call):
                statements += self._call(node)
            elif isinstance(node, Loop):
                statements += self._loop(node)
            else:
                statements += self._branch(node)
        return statements

    def _call(self, call: Call) -> list[Stmt]:
        pointers = [tirx.reinterpret("handle", self._address(a)) for a in call.arguments]
        if self._packed:
            return [Evaluate(tirx.call_packed(call.kernel, *pointers))]
        status = var("status", "int32")
        return [
            tirx.Bind(status, tirx.call_extern("int32", call.kernel, *pointers)),
            _fail_if(status != i32(0)),
        ]

    def _loop(self, loop: Loop) -> list[Stmt]:
        before = self.calls(loop.condition)
        predicate = _memory(self._address(loop.predicate), "uint8", before)
        body = self.calls(loop.body) + self.calls(loop.condition)
        holds = predicate[i64(0)] != tirx.const(0, "uint8")
        return [*before, While(holds, seq(*body))]

    def _branch(self, branch: Branch) -> list[Stmt]:
        statements: list[Stmt] = []
        selector = _memory(self._address(branch.selector), "int32", statements)
        bodies = [seq(*self.calls(nodes), Evaluate(i32(0))) for nodes in branch.branches]
        chosen = bodies[-1]
        for number, body in reversed(list(enumerate(bodies[:-1]))):
            chosen = IfThenElse(selector[i64(0)] == i32(number), body, chosen)
        return [*statements, chosen]


def _memory(address: Expr, dtype: str, statements: list[Stmt]) -> Buffer:
    """What lies at an address, as a buffer of ``dtype``; its declaration goes to ``statements``."""
    pointer = tirx.Var("pointer", PointerType(PrimType(dtype)))
    item = DataType(dtype).itemsize
    whole = tirx.decl_buffer((_UNBOUNDED,), dtype, name="memory", data=pointer, data_alignment=item)
    value = tirx.reinterpret(PointerType(PrimType(dtype)), address)
    statements += [tirx.Bind(pointer, value), DeclBuffer(whole, data=pointer)]
    return whole


def _field(words: Buffer, offset: int) -> Expr:
    return words[i64(offset // _WORD)]


def _fail_if(condition: Expr) -> Stmt:
    return IfThenElse(condition, _FAIL, None)
