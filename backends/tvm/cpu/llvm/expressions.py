"""Translates TIR expressions to LLVM values: scalars, or vectors over the lanes of a vectorised
loop.

    code = Expressions(Head("name", parameters, pointers, integers), registers)
    value, lanes = code.expression(x + y)

A value that is equal in all lanes stays a scalar until it meets a vector. Addresses are computed
in 64 bits, and never overflow; elements wrap. Functions of vector mathematics are expanded inline.
Common subexpressions within a block are computed once. Loop-invariant parts of addresses are
computed before the loop: sums are reassociated for that, the terms of outer loops first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.ir import Call, Op, TensorLoad

from tracejit.backends.tvm.cpu.llvm.builder import Operand, Value
from tracejit.backends.tvm.cpu.llvm.kinds import BOOL, INT64, MOVED, Kind
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.llvm.registers import RegisterContents, UntranslatableError
from tracejit.backends.tvm.cpu.mathematics.operations import (
    formula_of,
    is_division,
    is_identity,
    is_operation,
)
from tracejit.backends.tvm.cpu.mathematics.vocabulary import convert, reinterpret, select
from tracejit.backends.tvm.cpu.objects.deinterleave_vectors import MOST_STRIDE
from tracejit.backends.tvm.ir.tir import Buffer, Expr, tirx

_DATA, _ADDRESS, _REINTERPRET, *_EXTERN = (
    Op.get(f"tirx.{name}")
    for name in ("buffer_data", "address_of", "reinterpret", "call_extern", "call_pure_extern")
)
_ARITHMETIC: dict[type, Callable[[Any, Any], Value]] = {
    tirx.Add: lambda a, b: a + b,
    tirx.Sub: lambda a, b: a - b,
    tirx.Mul: lambda a, b: a * b,
    tirx.Div: lambda a, b: a / b,
    tirx.Mod: lambda a, b: a % b,
    tirx.Min: lambda a, b: select(a < b, a, b),
    tirx.Max: lambda a, b: select(a > b, a, b),
    tirx.LT: lambda a, b: a < b,
    tirx.LE: lambda a, b: a <= b,
    tirx.GT: lambda a, b: a > b,
    tirx.GE: lambda a, b: a >= b,
    tirx.EQ: lambda a, b: a.equals(b),
    tirx.NE: lambda a, b: a.is_other(b),
    tirx.And: lambda a, b: a & b,
    tirx.Or: lambda a, b: a | b,
    tirx.BitwiseAnd: lambda a, b: a & b,
    tirx.BitwiseOr: lambda a, b: a | b,
    tirx.BitwiseXor: lambda a, b: a ^ b,
    tirx.LShift: lambda a, b: a << b,
    tirx.RShift: lambda a, b: a >> b,
}
_FLOORED = (tirx.FloorDiv, tirx.FloorMod)
_OF_PLACES = frozenset(
    (tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max, tirx.Div, tirx.Mod, *_FLOORED)
)
_ZEROS = ("0", "splat (i8 0)")
# Instructions without side effects, which common subexpression elimination covers.
_PURE = frozenset(
    "add sub mul and or xor shl lshr ashr icmp fcmp select getelementptr sext zext trunc fpext "
    "fptrunc sitofp uitofp fptosi fptoui bitcast insertelement extractelement shufflevector fadd "
    "fsub fmul fdiv fneg".split()
)

_EVERYWHERE = 1 << 30
"""The depth of values that are not hoisted."""

Held = tuple[Operand, int]
"""A value and its number of lanes; 0 lanes for a Python number, which fits any vector."""


@dataclass(frozen=True)
class Head:
    """A function's name and parameters, and the values that are known at its entry.

    ``pointers`` and ``integers`` map the hashes of buffers and of loop variables, which are their
    addresses in Python, to LLVM text.
    """

    name: str
    parameters: Sequence[str]
    pointers: Mapping[int, str] = field(default_factory=dict)
    integers: Mapping[int, str] = field(default_factory=dict)


class LlvmExpressions(Procedure):
    """A function under construction; buffers in ``registers`` are SSA values, not memory."""

    def __init__(self, head: Head, registers: set[int]) -> None:
        self._known: dict[str, str] = {}
        self._conditions: dict[str, Value] = {}
        self._loads: dict[tuple[str, int, str], Value] = {}
        self._offsets: dict[str, tuple[str, int]] = {}
        self._terms: dict[str, list[str]] = {}
        self._depths: dict[str, int] = {}
        # For each loop around the current instruction, the invariant ones before it.
        self._before: list[dict[str, str]] = []
        super().__init__(head.name, [], [], lanes=1)
        self._parameters = [*head.parameters]
        self._pointers = dict(head.pointers)
        self._integers = dict(head.integers)
        self._depths |= dict.fromkeys([*self._pointers.values(), *self._integers.values()], 0)
        self._is_register = registers
        self.registers = RegisterContents(self)
        self._lane: int | None = None
        self._width = 1

    # Common subexpression elimination

    def emit(self, kind: Kind, instruction: str) -> Value:
        return Value(self, kind, self._made(instruction))

    def _made(self, instruction: str) -> str:
        if instruction.partition(" ")[0] not in _PURE:
            name = super()._made(instruction)
        elif instruction in self._known:
            return self._known[instruction]
        else:
            self._known[instruction] = name = super()._made(instruction)
        self._depths[name] = len(self._before)
        return name

    # Loop-invariant code motion

    def loop(self, count: str, body: Callable[[str], None]) -> None:
        (place,) = self.reserve(1)
        depth = len(self._before)
        self._before.append({})

        def inside(index: str) -> None:
            if index[0] == "%":
                self._depths[index] = depth + 1
            body(index)

        super().loop(count, inside)
        invariant = self._before.pop()
        self._lines[place] = "\n".join(f"  {name} = {text}" for text, name in invariant.items())

    def _depth(self, operand: str) -> int:
        """How many loops are around a value."""
        return self._depths.get(operand, _EVERYWHERE if operand[0] == "%" else 0)

    def _outside(self, instruction: str, *operands: str) -> str:
        """An instruction without side effects, before the outermost loop in which its operands are
        known.
        """
        depth = max(map(self._depth, operands))
        if depth >= len(self._before):
            return self._made(instruction)
        before = self._before[depth]
        if instruction not in before:
            (name,) = self.fresh("%n")
            before[instruction] = name
            self._depths[name] = depth
        return before[instruction]

    def _sum_of(self, terms: Sequence[str]) -> str:
        """A sum of values, those of outer loops first."""
        ordered = sorted(terms, key=self._depth)
        total = ordered[0]
        for number, term in enumerate(ordered[1:], 2):
            total = self._outside(f"add nsw i64 {total}, {term}", total, term)
            self._terms[total] = ordered[:number]
        return total

    def _times(self, value: str, factor: str) -> str:
        if factor == "1":
            return value
        return self._outside(f"mul nsw i64 {value}, {factor}", value)

    def holds(self, how: str, a: str, b: str) -> str:
        return self._outside(f"icmp {how} i64 {a}, {b}", a, b)

    def chosen(self, condition: str, kind: str, a: str, b: str) -> str:
        return self._outside(f"select i1 {condition}, {kind} {a}, {kind} {b}", condition, a, b)

    def start(self, label: str) -> None:
        super().start(label)
        self._known.clear()
        self._loads.clear()

    # Indices that differ by constants are one index and displacements, which cost no instruction

    def sum(self, a: str, b: str) -> str:
        (base, offset), (other, more) = self._parted(a), self._parted(b)
        if other == "0" or base == "0":
            return self._displaced(base if other == "0" else other, offset + more)
        terms = [*self._terms.get(base, (base,)), *self._terms.get(other, (other,))]
        return self._displaced(self._sum_of(terms), offset + more)

    def difference(self, a: str, b: str) -> str:
        (base, offset), (other, more) = self._parted(a), self._parted(b)
        return self._displaced(super().difference(base, other), offset - more)

    def product(self, a: str, b: str) -> str:
        if a[0] != "%":
            a, b = b, a
        base, offset = self._parted(a)
        if b[0] == "%" or base == "0" or b == "0":
            return super().product(a, b)
        terms = [self._times(term, b) for term in self._terms.get(base, (base,))]
        return self._displaced(self._sum_of(terms), offset * int(b))

    def _parted(self, number: str) -> tuple[str, int]:
        """A number as a sum of another one, which is the same for its neighbours, and a literal."""
        return ("0", int(number)) if number[0] != "%" else self._offsets.get(number, (number, 0))

    def _displaced(self, base: str, offset: int) -> str:
        made = super().sum(base, str(offset))
        if made[0] == "%" and offset:
            self._offsets[made] = base, offset
        return made

    # Values

    def expression(self, e: Expr) -> Held:
        """Translate an expression. Raises `UntranslatableError`."""
        kind = type(e)
        if kind is tirx.FloatImm:
            return float(e.value), 0
        if kind is tirx.IntImm:
            return int(e.value), 0
        if kind in _ARITHMETIC:
            (a, b), lanes = self._operands(e.a, e.b)
            return self._decided(kind, a, b) or _ARITHMETIC[kind](a, b), lanes
        if kind is TensorLoad:
            return self._load(e)
        if kind is tirx.Var:
            return self._variable(e)
        if kind is tirx.Cast:
            return self._cast(e)
        if kind is tirx.Select:
            (condition, a, b), lanes = self._operands(e.condition, e.true_value, e.false_value)
            made = select(condition, a, b)
            if _is_number(e.true_value, 1) and _is_number(e.false_value, 0):
                self._conditions[made.text] = condition
            return made, lanes
        if kind in (tirx.Not, tirx.BitwiseNot):
            (a,), lanes = self._operands(e.a)
            return ~a, lanes
        if isinstance(e, Call):
            return self._called(e)
        if kind in _FLOORED:
            self.lanes = 1
            return convert(Value(self, INT64, self._integer(e)), kind_of(e)), 1
        raise UntranslatableError

    def _decided(self, how: type, a: Value, b: Value) -> Value | None:
        """The i1 behind ``select(condition, 1, 0)`` when that number is compared with 0."""
        condition = self._conditions.get(a.text)
        if condition is None or how not in (tirx.EQ, tirx.NE) or b.text not in _ZEROS:
            return None
        return condition if how is tirx.NE else ~condition

    def vector(self, e: Expr, lanes: int) -> Value:
        """Translate an expression to a vector of exactly ``lanes`` lanes."""
        value, has = self.expression(e)
        if has > lanes:
            raise UntranslatableError
        return self._widened(value, has, lanes, kind_of(e))

    def _operands(self, *expressions: Expr) -> tuple[list[Value], int]:
        """Translate operands to vectors of one width: that of the widest."""
        held = [self.expression(e) for e in expressions]
        lanes = max(1, *(has for _, has in held))
        pairs = zip(held, expressions, strict=True)
        made = [self._widened(value, has, lanes, kind_of(e)) for (value, has), e in pairs]
        self.lanes = lanes
        return made, lanes

    def _widened(self, value: Operand, has: int, lanes: int, kind: Kind) -> Value:
        self.lanes = lanes
        if not isinstance(value, Value):
            return self.literal(kind, value)
        if has == lanes:
            return value
        whole = self.type(kind)
        first = self._made(f"insertelement {whole} poison, {kind.llvm} {value.text}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.emit(kind, f"shufflevector {whole} {first}, {whole} poison, {zeros}")

    def _variable(self, e: Any) -> Held:
        kind = kind_of(e)
        if self._is_lane(e):
            numbers = ", ".join(f"{kind.llvm} {lane}" for lane in range(self._width))
            return Value(self, kind, f"<{numbers}>"), self._width
        self.lanes = 1
        return convert(Value(self, INT64, self._number(e)), kind), 1

    def _cast(self, e: Any) -> Held:
        (a,), lanes = self._operands(e.value)
        kind = kind_of(e)
        if kind is BOOL and a.kind is not BOOL:
            raise UntranslatableError
        return convert(a, kind), lanes

    def _called(self, e: Any) -> Held:
        if is_operation(e):
            operands, lanes = self._operands(*e.args)
            if is_division(e) and not operands[0].kind.is_float:
                # LLVM's passes turn divisions by constants into products; here they would stay
                # divisions.
                raise UntranslatableError
            return formula_of(e)(*operands), lanes
        if _REINTERPRET.same_as(e.op):
            (a,), lanes = self._operands(e.args[0])
            return reinterpret(a, kind_of(e)), lanes
        if any(op.same_as(e.op) for op in _EXTERN):
            given, kind = self._given(e), kind_of(e)
            self.lanes = 1
            return self.emit(kind, f"call {kind.llvm} @{e.args[0].value}({given})"), 1
        raise UntranslatableError

    def _given(self, call: Any) -> str:
        """The typed arguments of a call."""
        return ", ".join(map(self._argument, call.args[1:]))

    def _argument(self, argument: Expr) -> str:
        if isinstance(argument, Call) and _DATA.same_as(argument.op):
            return f"ptr {self._pointer(argument.args[0])}"
        if isinstance(argument, Call) and _ADDRESS.same_as(argument.op):
            element = argument.args[0]
            return f"ptr {self._at(element.source, self._scalar(element.indices, element.source))}"
        kind = kind_of(argument)
        if kind is INT64:
            return f"i64 {self._integer(argument)}"
        return self.vector(argument, 1).typed

    # Memory

    def _pointer(self, memory: Buffer) -> str:
        found = self._pointers.get(hash(memory))
        if found is None:
            raise UntranslatableError
        return found

    def _at(self, memory: Buffer, index: str) -> str:
        """The address of one element in memory."""
        pointer = self._pointer(memory)
        if index == "0":
            return pointer
        element = kind_named(memory.dtype).llvm
        base, offset = self._parted(index)
        if base != "0":
            *outer, inner = self._terms.get(base, (base,))
            for part in [self._sum_of(outer), inner] if outer else [inner]:
                moved = f"getelementptr {element}, ptr {pointer}, i64 {part}"
                pointer = self._outside(moved, pointer, part)
        if not offset:
            return pointer
        return self._made(f"getelementptr {element}, ptr {pointer}, i64 {offset}")

    def _load(self, e: Any) -> Held:
        first, stride = self.place(e.indices, e.source)
        lanes = self._width if stride else 1
        if hash(e.source) in self._is_register:
            if stride not in (0, 1):
                raise UntranslatableError
            return self.registers.read(e.source, known(first), lanes), lanes
        if stride in (0, 1):
            return self._read(e.source, first, lanes), lanes
        if stride == -1:
            start = self.sum(first, str(1 - lanes))
            vector = self._read(e.source, start, lanes)
            return self.shuffled(vector, vector, range(lanes - 1, -1, -1)), lanes
        if stride > MOST_STRIDE:
            return self._gathered(e.source, first, stride, lanes), lanes
        if stride != 2:
            raise UntranslatableError
        # Unaligned width: two overlapping vectors, the second ending with the last element.
        late = self.sum(first, str(lanes - 1))
        begin, end = (self._read(e.source, start, lanes) for start in (first, late))
        places = [2 * lane + (2 * lane >= lanes) for lane in range(lanes)]
        return self.shuffled(begin, end, places), lanes

    def _read(self, memory: Buffer, first: str, lanes: int) -> Value:
        """Load a contiguous vector."""
        kind = kind_named(memory.dtype)
        if kind is BOOL:
            raise UntranslatableError
        self.lanes = lanes
        key = kind.name, lanes, self._at(memory, first)
        if key not in self._loads:
            self._loads[key] = self.get(kind, key[-1])
        return self._loads[key]

    def _gathered(self, memory: Buffer, first: str, stride: int, lanes: int) -> Value:
        """Load a vector element by element."""
        kind = kind_named(memory.dtype)
        self.lanes = lanes
        vector = Value(self, kind, "poison")
        for lane in range(lanes):
            number = self._read(memory, self.sum(first, str(lane * stride)), 1)
            element = f"{kind.llvm} {number.text}"
            self.lanes = lanes
            vector = self.emit(kind, f"insertelement {vector.typed}, {element}, i64 {lane}")
        return vector

    def store(self, memory: Buffer, indices: Sequence[Expr], e: Expr) -> None:
        """Store a value to memory, or set a register buffer."""
        first, stride = self.place(indices, memory)
        if stride not in (0, 1):
            raise UntranslatableError
        lanes = self._width if stride else 1
        value, has = self.expression(e)
        kind = kind_named(memory.dtype)
        if has > lanes:
            raise UntranslatableError
        made = self._widened(value, has, lanes, kind)
        if hash(memory) in self._is_register:
            self.registers.write(memory, known(first), lanes, made)
            return
        if kind is BOOL:
            raise UntranslatableError
        self.put(made, self._at(memory, first))
        self._loads.clear()

    # Indices

    def place(self, indices: Sequence[Expr], memory: Buffer) -> tuple[str, int]:
        """The linear index of an element: in the first lane, and the stride from lane to lane."""
        if len(indices) == 1:
            return self._line(indices[0])
        base, stride = "0", 0
        for index, extent in zip(indices, memory.shape, strict=True):
            first, step = self._line(index)
            size = self._integer(extent)
            base, stride = self.sum(self.product(base, size), first), stride * known(size) + step
        return base, stride

    def _scalar(self, indices: Sequence[Expr], memory: Buffer) -> str:
        first, stride = self.place(indices, memory)
        if stride:
            raise UntranslatableError
        return first

    def _integer(self, e: Expr) -> str:
        """A lane-invariant integer, in 64 bits."""
        first, stride = self._line(e)
        if stride:
            raise UntranslatableError
        return first

    def _is_lane(self, e: Any) -> bool:
        return self._lane == hash(e)

    def _line(self, e: Expr) -> tuple[str, int]:
        """An integer in 64 bits that is affine in the lane: its value in the first lane, and the
        stride.
        """
        kind = type(e)
        if kind is tirx.IntImm:
            return str(int(e.value)), 0
        if kind is tirx.Var:
            return ("0", 1) if self._is_lane(e) else (self._number(e), 0)
        if kind is tirx.Cast and _is_place(e.value):
            return self._line(e.value)
        if kind is TensorLoad and hash(e.source) in self._is_register:
            return self._counted(e), 0
        if kind is Call and is_identity(e):
            self.lanes = 1
            return formula_of(e)(Value(self, INT64, self._integer(e.args[0]))).text, 0
        if kind not in _OF_PLACES:
            # LLVM's passes hoist loop-invariant loads; this translation does not.
            raise UntranslatableError
        (a, more), (b, more_b) = self._line(e.a), self._line(e.b)
        if kind is tirx.Add:
            return self.sum(a, b), more + more_b
        if kind is tirx.Sub:
            return self.difference(a, b), more - more_b
        if kind is tirx.Mul and not (more and more_b):
            step = more * known(b) if more else more_b * known(a) if more_b else 0
            return self.product(a, b), step
        if more or more_b:
            raise UntranslatableError
        if kind in (tirx.Min, tirx.Max):
            low, high = (a, b) if kind is tirx.Min else (b, a)
            return self.between(a, b, low, high), 0
        if kind in _FLOORED:
            return self.floored(a, known(b), kind is tirx.FloorMod), 0
        return self.divided(a, b, kind is tirx.Mod), 0

    def _counted(self, e: Any) -> str:
        """An integer that is loaded from a register buffer."""
        held, lanes = self._load(e)
        assert isinstance(held, Value)
        if lanes > 1 or held.kind.is_float:
            raise UntranslatableError
        self.lanes = 1
        return convert(held, INT64).text

    def _number(self, variable: Any) -> str:
        """The value of a loop variable."""
        found = self._integers.get(hash(variable))
        if found is None:
            raise UntranslatableError
        return found

    def between(self, a: str, b: str, less: str, other: str) -> str:
        """``less`` if a < b, else ``other``."""
        if a[0] != "%" and b[0] != "%":
            return less if int(a) < int(b) else other
        return self.chosen(self.holds("slt", a, b), "i64", less, other)

    def divided(self, a: str, b: str, rest: bool) -> str:
        """The quotient, truncated towards zero, or the remainder."""
        if a[0] != "%" and b[0] != "%" and int(a) >= 0 and int(b) > 0:
            return str(int(a) % int(b) if rest else int(a) // int(b))
        return self._made(f"{'srem' if rest else 'sdiv'} i64 {a}, {b}")

    def floored(self, a: str, b: int, rest: bool) -> str:
        """The quotient by a literal, rounded down, or the remainder.

        Raises `UntranslatableError` for a literal that is not positive.
        """
        if b <= 0:
            raise UntranslatableError
        if a[0] != "%":
            return str(int(a) % b if rest else int(a) // b)
        if b & (b - 1):
            left = self._made(f"srem i64 {a}, {b}")
            left = self.chosen(self.holds("slt", left, "0"), "i64", self.sum(left, str(b)), left)
            return left if rest else self._made(f"sdiv i64 {self.difference(a, left)}, {b}")
        return self._made(
            f"and i64 {a}, {b - 1}" if rest else f"ashr i64 {a}, {b.bit_length() - 1}"
        )


def known(number: str) -> int:
    """The value of a literal. Raises `UntranslatableError` for a computed number."""
    if number[0] == "%":
        raise UntranslatableError
    return int(number)


def kind_of(e: Expr) -> Kind:
    """The kind of an expression. Raises `UntranslatableError` for types that no register holds."""
    return kind_named(e.ty)


def kind_named(dtype: Any) -> Kind:
    kind = MOVED.get(str(dtype))
    if kind is None:
        raise UntranslatableError
    return kind


def _is_number(e: Expr, number: int) -> bool:
    return type(e) is tirx.IntImm and int(e.value) == number


def _is_place(e: Expr) -> bool:
    """Whether an integer depends on loop variables and constants only."""
    kind = type(e)
    if kind in _OF_PLACES:
        return _is_place(e.a) and _is_place(e.b)
    return kind in (tirx.Var, tirx.IntImm) or (kind is tirx.Cast and _is_place(e.value))
