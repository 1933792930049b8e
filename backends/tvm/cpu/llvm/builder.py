"""LLVM functions over whole vectors, written as Python formulas.

    function = Function("twice_plus_one", [FLOAT32], lanes=8)
    (x,) = function.arguments
    function.text(fma(x, 2.0, 1.0))     # the text of a function on <8 x float>

A `Value` is one SSA value; operators, and the functions of `cpu.mathematics.vocabulary`, append
instructions to the function under construction and follow IEEE 754 strictly. TVM lets LLVM fuse a
product into a sum, so a formula that depends on the rounding says `fma` or `product`. On a
processor without fused multiply-add LLVM calls the C library's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.kinds import BOOL, Kind

_UNLIKELY = "!0"


class Function:
    """An LLVM function under construction: its instructions so far and the block they end in."""

    def __init__(self, name: str, parameters: Sequence[Kind], lanes: int) -> None:
        self.name = name
        self.lanes = lanes
        self.arguments = [Value(self, kind, f"%a{i}") for i, kind in enumerate(parameters)]
        self._lines: list[str] = []
        self._rooms: list[str] = []
        self._count = 0
        self.block = "entry"

    def type(self, kind: Kind) -> str:
        """The LLVM type of a value of this kind."""
        return kind.llvm if self.lanes == 1 else f"<{self.lanes} x {kind.llvm}>"

    def suffix(self, kind: Kind) -> str:
        """How this type appears in the name of an overloaded intrinsic."""
        element = f"f{kind.bits}" if kind.is_float else kind.llvm
        return element if self.lanes == 1 else f"v{self.lanes}{element}"

    def literal(self, kind: Kind, number: float) -> Value:
        """A constant in every lane, rounded to ``kind``."""
        text = literal(kind, number)
        return Value(self, kind, text if self.lanes == 1 else f"splat ({kind.llvm} {text})")

    def emit(self, kind: Kind, instruction: str) -> Value:
        """Append an instruction that makes a value of ``kind``."""
        name = self._fresh("%v")
        self._lines.append(f"  {name} = {instruction}")
        return Value(self, kind, name)

    def act(self, instruction: str) -> None:
        """Append an instruction that has no result."""
        self._lines.append(f"  {instruction}")

    def call(self, kind: Kind, intrinsic: str, *operands: Value | str) -> Value:
        """Append a call of an LLVM intrinsic; text operands are immediate arguments."""
        arguments = ", ".join(o if isinstance(o, str) else o.typed for o in operands)
        return self.emit(kind, f"call {self.type(kind)} @llvm.{intrinsic}({arguments})")

    def reserve(self, count: int) -> list[int]:
        """Reserve the next ``count`` instructions; `fill` writes them later."""
        self._lines.extend([""] * count)
        return list(range(len(self._lines) - count, len(self._lines)))

    def fill(self, place: int, name: str, instruction: str) -> None:
        """Write a reserved instruction."""
        self._lines[place] = f"  {name} = {instruction}"

    def room(self, kind: Kind) -> tuple[Kind, str]:
        """Stack memory for a vector: its kind and its address."""
        (name,) = self.fresh("%m")
        self._rooms.append(f"  {name} = alloca {self.type(kind)}")
        return kind, name

    def memory(self, value: Value) -> tuple[Kind, str]:
        """Stack memory that is initialised with a vector: its kind and its address."""
        kind, name = self.room(value.kind)
        self.stored(value, name, "0")
        return kind, name

    def loaded(self, kind: Kind, memory: str, first: str) -> Value:
        """Load a vector from the elements in memory that begin at index ``first``, an i64."""
        address = self._address(kind, memory, first)
        return self.emit(kind, f"load {self.type(kind)}, ptr {address}, align {kind.bits // 8}")

    def stored(self, value: Value, memory: str, first: str) -> None:
        """Store a vector to the elements in memory that begin at index ``first``, an i64."""
        address = self._address(value.kind, memory, first)
        self._lines.append(f"  store {value.typed}, ptr {address}, align {value.kind.bits // 8}")

    def _address(self, kind: Kind, memory: str, first: str) -> str:
        (name,) = self.fresh("%at")
        self._lines.append(f"  {name} = getelementptr {kind.llvm}, ptr {memory}, i64 {first}")
        return name

    def advance(self, number: str, following: str, step: int, loop: str, done: str) -> None:
        """End the block: ``following`` is ``number + step``; jump to ``loop`` while lanes are
        left.
        """
        (left,) = self.fresh("%left")
        self._lines.append(f"  {following} = add i64 {number}, {step}")
        self._lines.append(f"  {left} = icmp ult i64 {following}, {self.lanes}")
        self._lines.append(f"  br i1 {left}, label %{loop}, label %{done}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the block: jump to ``then``, which is marked unlikely, if the i1 ``condition``
        holds.
        """
        self._lines.append(
            f"  br i1 {condition}, label %{then}, label %{otherwise}, !prof {_UNLIKELY}"
        )

    def jump(self, label: str) -> None:
        """End the block: jump to ``label``."""
        self._lines.append(f"  br label %{label}")

    def start(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self.block = label

    def fresh(self, *stems: str) -> list[str]:
        """New names, of blocks or (with a leading percent sign) of values."""
        return [self._fresh(stem) for stem in stems]

    def text(self, result: Value) -> str:
        """The whole function, returning ``result``."""
        parameters = ", ".join(argument.typed for argument in self.arguments)
        return "\n".join(
            [
                f"define {self.type(result.kind)} @{self.name}({parameters}) {{",
                "entry:",
                *self._rooms,
                *self._lines,
                f"  ret {result.typed}",
                "}",
            ]
        )

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"


def module_text(functions: Sequence[str]) -> str:
    """LLVM text that defines ``functions``, as `Function.text` gives them."""
    weights = f'{_UNLIKELY} = !{{!"branch_weights", i32 1, i32 1048575}}'
    return "\n".join([*functions, weights, ""])


def literal(kind: Kind, number: float) -> str:
    if not kind.is_float:
        value = int(number) & ((1 << kind.bits) - 1)
        return str(value - (1 << kind.bits) if value >> (kind.bits - 1) else value)
    if kind.bits == 32:
        (number,) = struct.unpack("f", struct.pack("f", number))
    (bits,) = struct.unpack("Q", struct.pack("d", number))
    return f"0x{bits:016X}"


@dataclass(frozen=True, eq=False)
class Value:
    """One SSA value: a vector, or a scalar in a function of one lane."""

    function: Function
    kind: Kind
    text: str

    @property
    def typed(self) -> str:
        """The operand with its type, as calls and returns take it."""
        return f"{self.function.type(self.kind)} {self.text}"

    def like(self, number: float) -> Value:
        """A constant of the same kind."""
        return self.function.literal(self.kind, number)

    def operand(self, other: Operand) -> Value:
        """``other`` as a value, of the same kind where it is a number."""
        return other if isinstance(other, Value) else self.like(other)

    def _binary(
        self, of_floats: str, of_integers: str, other: Operand, swap: bool = False
    ) -> Value:
        a, b = self, self.operand(other)
        if a.kind.bits != b.kind.bits or a.kind.is_float != b.kind.is_float:
            raise TypeError(f"operands of different kinds: {a.kind.name} and {b.kind.name}")
        if swap:
            a, b = b, a
        opcode = of_floats if self.kind.is_float else of_integers
        return self.function.emit(self.kind, f"{opcode} {a.typed}, {b.text}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", other, swap=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", other, swap=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", other, swap=True)

    def __truediv__(self, other: Operand) -> Value:
        """The quotient; of integers truncated towards zero."""
        return self._binary("fdiv", "sdiv" if self.kind.is_signed else "udiv", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "sdiv" if self.kind.is_signed else "udiv", other, swap=True)

    def __mod__(self, other: Operand) -> Value:
        """The remainder of the truncated quotient."""
        return self._binary("frem", "srem" if self.kind.is_signed else "urem", other)

    def __neg__(self) -> Value:
        if self.kind.is_float:
            return self.function.emit(self.kind, f"fneg {self.typed}")
        return 0 - self

    def __and__(self, other: Operand) -> Value:
        return self._binary("", "and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("", "or", other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("", "xor", other)

    def __invert__(self) -> Value:
        return self ^ -1

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("", "shl", other)

    def __rshift__(self, other: Operand) -> Value:
        """Arithmetic for signed integers, logical for unsigned ones."""
        return self._binary("", "ashr" if self.kind.is_signed else "lshr", other)

    def _compare(self, of_floats: str, of_integers: str, other: Operand) -> Value:
        operand = self.operand(other)
        sign = "s" if self.kind.is_signed else "u"
        how = of_integers if of_integers in ("eq", "ne") else sign + of_integers
        opcode = f"fcmp {of_floats}" if self.kind.is_float else f"icmp {how}"
        return self.function.emit(BOOL, f"{opcode} {self.typed}, {operand.text}")

    def __lt__(self, other: Operand) -> Value:
        return self._compare("olt", "lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("ole", "le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("ogt", "gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("oge", "ge", other)

    def equals(self, other: Operand) -> Value:
        """Whether equal; False where an operand is NaN."""
        return self._compare("oeq", "eq", other)

    def differs(self, other: Operand) -> Value:
        """Whether not equal; True where an operand is NaN."""
        return self._compare("une", "ne", other)

    def is_other(self, other: Operand) -> Value:
        """Whether not equal; False where an operand is NaN."""
        return self._compare("one", "ne", other)

    @property
    def is_nan(self) -> Value:
        return self.function.emit(BOOL, f"fcmp uno {self.typed}, {self.text}")


Operand = Value | float
