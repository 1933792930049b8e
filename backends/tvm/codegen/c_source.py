"""TIR as C, statement by statement: what all targets that a compiler of C builds for share.

    printer = CPrinter(functions)
    printer.statement(body)
    "\n".join(printer.lines)

Numbers wrap as TIR's do, products round before they are added, and no conversion is left to C.
Functions whose names begin with ``tj_`` are the target's; some take a type first.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir import Call, Op, TensorLoad

from tracejit.backends.tvm.ir.tir import (
    UNROLLED,
    AllocBuffer,
    Buffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    tirx,
)
from tracejit.errors import CompilationError

TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "unsigned short",
    "float32": "float",
    "float64": "double",
}
"""The C types of TVM's element types; halves are bits in an integer."""

_BINARY = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.Div: "/",
    tirx.Mod: "%",
    tirx.LT: "<",
    tirx.LE: "<=",
    tirx.GT: ">",
    tirx.GE: ">=",
    tirx.EQ: "==",
    tirx.NE: "!=",
    tirx.And: "&&",
    tirx.Or: "||",
    tirx.BitwiseAnd: "&",
    tirx.BitwiseOr: "|",
    tirx.BitwiseXor: "^",
    tirx.LShift: "<<",
    tirx.RShift: ">>",
}
_WRAPPING = frozenset({tirx.Add, tirx.Sub, tirx.Mul, tirx.LShift})
_TRUTHS = frozenset(
    {tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE, tirx.And, tirx.Or, tirx.Not}
)
_FUNCTIONS = {
    tirx.Min: "tj_smaller",
    tirx.Max: "tj_larger",
    tirx.FloorDiv: "tj_floor_div",
    tirx.FloorMod: "tj_floor_mod",
}
_CALLS = {
    "tirx.shift_left": "<<",
    "tirx.shift_right": ">>",
    "tirx.bitwise_and": "&",
    "tirx.bitwise_or": "|",
    "tirx.bitwise_xor": "^",
}
_ROUNDING = {
    "tirx.fabs": "tj_fabs",
    "tirx.floor": "tj_floor",
    "tirx.ceil": "tj_ceil",
    "tirx.trunc": "tj_trunc",
    "tirx.sqrt": "tj_sqrt",
    "tirx.nearbyint": "tj_rint",
    "tirx.fma": "tj_fma",
}
_EXTERN = ("tirx.call_extern", "tirx.call_pure_extern")
UNROLL = "#pragma unroll"

Functions = Callable[[Any], str]
"""The name of the function that a call of an intrinsic becomes; it may be collected."""


class CPrinter:
    """A kernel's text so far, and the names of its buffers and variables.

    ``functions`` names the function that a call of an intrinsic becomes.
    """

    def __init__(self, functions: Functions) -> None:
        self.lines: list[str] = []
        self._functions = functions
        self._names: dict[int, str] = {}
        self._held: list[Any] = []  # what `_names` has the addresses of
        self._scalars: set[int] = set()
        self.depth = 1
        self._count = 0

    def parameter(self, memory: Buffer, name: str) -> str:
        return self._named(memory, name)

    def _named(self, thing: Any, name: str) -> str:
        self._held.append(thing)
        self._names[hash(thing)] = name
        return name

    def fresh(self, thing: Any, stem: str) -> str:
        self._count += 1
        return self._named(thing, f"{stem}{self._count}")

    def name_of(self, thing: Any) -> str:
        found = self._names.get(hash(thing))
        assert found is not None, f"{thing} is used before it is defined"
        return found

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, head: str, body: Stmt | None) -> None:
        self.line(head + " {")
        self.depth += 1
        if body is not None:
            self.statement(body)
        self.depth -= 1
        self.line("}")

    # Statements

    def statement(self, s: Stmt) -> None:
        """Write a statement."""
        if isinstance(s, SeqStmt):
            for each in s:
                self.statement(each)
        elif isinstance(s, BufferStore):
            value = self.value(s.value)
            if str(s.buffer.dtype) == "bool":
                value = f"(bool){value}"
            self.line(f"{self._element(s.buffer, s.indices)} = {value};")
        elif isinstance(s, AllocBuffer):
            self.allocate(s.buffer)
        elif isinstance(s, For):
            self.loop(s)
        elif isinstance(s, While):
            self.block(f"while ({self.value(s.condition)})", s.body)
        elif isinstance(s, IfThenElse):
            self.block(f"if ({self.value(s.condition)})", s.then_case)
            if s.else_case is not None:
                self.block("else", s.else_case)
        elif isinstance(s, Evaluate):
            if isinstance(s.value, Call):
                self.line(self.value(s.value) + ";")
        elif isinstance(s, tirx.AttrStmt):
            self.attribute(s)
        elif isinstance(s, DeclBuffer):
            self._named(s.buffer, self.name_of(s.buffer.data))
        else:
            raise CompilationError(f"no C for a statement of kind {type(s).__name__}")

    def attribute(self, s: Any) -> None:
        """Write what a statement has an attribute for."""
        if s.attr_key.startswith("pragma_import"):
            raise CompilationError("a kernel brings LLVM's text with it, which C cannot call")
        self.statement(s.body)

    def allocate(self, memory: Buffer) -> None:
        """Declare the memory of a thread."""
        kind = TYPES[str(memory.dtype)]
        size = math.prod(int(extent) for extent in memory.shape)
        name = self.fresh(memory, "t")
        if size == 1:
            self._scalars.add(hash(memory))
            self.line(f"{kind} {name};")
        else:
            self.line(f"{kind} {name}[{max(size, 1)}];")

    def loop(self, s: Any) -> None:
        """Write a loop; a target may share its steps among threads."""
        name = self.fresh(s.loop_var, "i")
        kind = TYPES[str(s.loop_var.ty)]
        first, extent = self.index(s.min), self.index(s.extent)
        if first != "0":
            extent = f"{first} + {extent}"
        if int(s.kind) == int(UNROLLED):
            self.line(UNROLL)
        self.block(f"for ({kind} {name} = {first}; {name} < {extent}; ++{name})", s.body)

    # Expressions

    def index(self, e: Expr) -> str:
        """An integer that never overflows: an address, a bound."""
        return self.value(e, wraps=False)

    def _element(self, memory: Buffer, indices: Sequence[Expr]) -> str:
        name = self.name_of(memory)
        if hash(memory) in self._scalars:
            return name
        if len(indices) == 1:
            return f"{name}[{self.index(indices[0])}]"
        flat = self.index(indices[0])
        for extent, index in zip(memory.shape[1:], indices[1:], strict=True):
            flat = f"({flat}) * {int(extent)} + {self.index(index)}"
        return f"{name}[{flat}]"

    def value(self, e: Expr, wraps: bool = True) -> str:
        """An expression, in parentheses where it needs any."""
        kind = type(e)
        dtype = str(e.ty)
        if kind is tirx.IntImm:
            return integer(int(e.value), dtype)
        if kind is tirx.FloatImm:
            return self.floating(float(e.value), dtype)
        if kind is tirx.Var:
            return self.name_of(e)
        if kind is TensorLoad:
            return self._element(e.source, e.indices)
        if kind in _BINARY:
            return self._binary(e, dtype, wraps)
        if kind in _FUNCTIONS:
            a, b = self.value(e.a, wraps), self.value(e.b, wraps)
            return self.generic(_FUNCTIONS[kind], TYPES[dtype], a, b)
        if kind is tirx.Not:
            return f"(!{self.value(e.a)})"
        if kind is tirx.BitwiseNot:
            return f"(({TYPES[dtype]})~{self.value(e.a)})"
        if kind is tirx.Cast:
            return self._cast(e, dtype, wraps)
        if kind is tirx.Select:
            parts = [self.value(p, wraps) for p in (e.condition, e.true_value, e.false_value)]
            return "({} ? {} : {})".format(*parts)
        if kind is tirx.Let:
            raise CompilationError("a kernel binds a variable inside an expression")
        if isinstance(e, Call):
            return self._call(e, dtype)
        raise CompilationError(f"no C for an expression of kind {kind.__name__}")

    def _binary(self, e: Any, dtype: str, wraps: bool) -> str:
        kind = type(e)
        a, b = self.value(e.a, wraps), self.value(e.b, wraps)
        sign = _BINARY[kind]
        operand = str(e.a.ty)
        if kind is tirx.NE and operand.startswith("float"):
            return f"(({a} < {b}) || ({a} > {b}))"  # as LLVM's: false where one is NaN
        if kind in _TRUTHS or operand.startswith("float"):
            return f"({a} {sign} {b})"
        if dtype == "bool":
            return f"((bool)({a} {sign} {b}))"
        if kind in _WRAPPING and wraps and dtype.startswith("int"):
            unsigned = TYPES["u" + dtype]
            return f"(({TYPES[dtype]})(({unsigned}){a} {sign} ({unsigned}){b}))"
        if dtype in ("int32", "int64", "uint32", "uint64"):
            return f"({a} {sign} {b})"
        return f"(({TYPES[dtype]})({a} {sign} {b}))"

    def _cast(self, e: Any, dtype: str, wraps: bool) -> str:
        given = str(e.value.ty)
        value = self.value(e.value, wraps)
        if dtype == given:
            return value
        if given == "float16":
            value = f"tj_half_to_float({value})"
            return value if dtype == "float32" else f"(({TYPES[dtype]}){value})"
        if dtype == "float16":
            return f"tj_float_to_half((float){value})"
        return f"(({TYPES[dtype]}){value})"

    def _call(self, e: Any, dtype: str) -> str:
        name = str(e.op.name) if isinstance(e.op, Op) else ""
        if name == "tirx.reinterpret":
            value = self.value(e.args[0])
            kinds = TYPES[dtype], TYPES[str(e.args[0].ty)]
            return value if kinds[0] == kinds[1] else self.bits(kinds[0], f"({kinds[1]}){value}")
        if name in _EXTERN:
            return f"{e.args[0].value}({', '.join(map(self._argument, e.args[1:]))})"
        if name == "prim.if_then_else":
            return "({} ? {} : {})".format(*map(self.value, e.args))
        if name == "tirx.likely":
            return self.value(e.args[0])
        if name in _CALLS:
            a, b = map(self.value, e.args)
            return f"(({TYPES[dtype]})({a} {_CALLS[name]} {b}))"
        if name == "tirx.bitwise_not":
            return f"(({TYPES[dtype]})~{self.value(e.args[0])})"
        if name in _ROUNDING:
            kind = TYPES[dtype]
            return f"{_ROUNDING[name]}({', '.join(f'({kind}){self.value(a)}' for a in e.args)})"
        if name.startswith("tirx.tracejit."):
            return f"{self._functions(e)}({', '.join(map(self.value, e.args))})"
        raise CompilationError(f"no C for a call of {name or e.op}")

    def _argument(self, e: Expr) -> str:
        """An argument of a function of C: a number, or the address of an element."""
        name = str(e.op.name) if isinstance(e, Call) and isinstance(e.op, Op) else ""
        if name == "tirx.address_of":
            load = e.args[0]
            return f"&{self._element(load.source, load.indices)}"
        if name == "tirx.buffer_data":
            return self.name_of(e.args[0])
        return self.value(e)

    # The two forms of C that there are

    def generic(self, function: str, kind: str, *arguments: str) -> str:
        """A call of a function for a type: a macro's, or a template's."""
        return f"{function}({kind}, {', '.join(arguments)})"

    def bits(self, kind: str, value: str) -> str:
        """A value's bits as another type."""
        return self.generic("tj_bits", kind, value)

    def floating(self, number: float, dtype: str) -> str:
        """A literal of a float type, by its bits where decimals would not do."""
        if dtype == "float16":
            (bits,) = struct.unpack("H", struct.pack("e", number))
            return f"((unsigned short){bits})"
        if not math.isfinite(number):
            single = dtype == "float32"
            form, kind = ("f", "I") if single else ("d", "Q")
            (bits,) = struct.unpack(kind, struct.pack(form, number))
            return self.bits(TYPES[dtype], f"{bits}{'u' if single else 'ull'}")
        text = float(number).hex()
        return f"({text}f)" if dtype == "float32" else f"({text})"


def itemsize_of(kind: str) -> int:
    """Bytes of one of C's integers."""
    return 8 if "long long" in kind else 4


def integer(number: int, dtype: str) -> str:
    """A literal of an integer type."""
    if dtype == "bool":
        return "true" if number else "false"
    if dtype == "int32":
        return str(number) if number >= 0 else f"({number + 1} - 1)"
    if dtype == "int64":
        return f"{number}ll" if number >= 0 else f"({number + 1}ll - 1)"
    if dtype == "uint32":
        return f"{number & 0xFFFFFFFF}u"
    if dtype == "uint64":
        return f"{number & 0xFFFFFFFFFFFFFFFF}ull"
    return f"(({TYPES[dtype]}){number})"
