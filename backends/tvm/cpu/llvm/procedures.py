"""Builds LLVM functions with loops over memory, for vector kernels whose code must be small.

    procedure = Procedure("twice", ["x"], ["count"], lanes=8)
    def block(i):
        at = procedure.address("%x", procedure.product(i, "32"))
        procedure.put(procedure.get(FLOAT32, at) * 2.0, at)
    procedure.loop("%count", block)
    statement = procedure.called(body, [memory.data, count])

TVM's passes see one call; LLVM sees SSA values and no stack memory. LLVM inlines the procedure at
every call, so each call site costs the procedure's code once more.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Function, Value, literal, module_text
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, Kind
from tracejit.backends.tvm.ir.contracts import Accesses, Contract, Region, declare
from tracejit.backends.tvm.ir.tir import Evaluate, Expr, Stmt, importing, tirx

GROUP = "tracejit-group"
"""The LLVM attribute that names a procedure's group."""
_GROUP = re.compile(f'"{GROUP}"="([^"]*)"')


def _known(number: str) -> bool:
    """Whether the text of an integer is a literal."""
    return number[0] != "%"


class Procedure(Function):
    """``int32 name(ptr …, i64 …)`` under construction, which returns 0.

    Its parameters are called by their names, after a percent sign. Integers are the texts of i64
    values, addresses the texts of pointers; vectors are `Value`. Programs share the code of a
    procedure with a ``group``: all procedures of a group are compiled together, once.
    """

    def __init__(
        self,
        name: str,
        pointers: Sequence[str],
        integers: Sequence[str],
        lanes: int,
        group: str = "",
    ) -> None:
        super().__init__(name, [], lanes)
        self._group = group
        self._invoked: dict[str, Procedure] = {}
        self._names = [*pointers, *integers]
        self._parameters = [f"ptr %{p}" for p in pointers] + [f"i64 %{i}" for i in integers]

    def touches(
        self,
        reads: Sequence[Region],
        writes: Sequence[Region],
        permutes: bool = False,
        scratch: Sequence[Region] = (),
        counts: Sequence[tuple[Region, str]] = (),
    ) -> None:
        """Say what a call reads and writes, for the verifier; see `Contract`."""
        contract = Contract(tuple(self._names), reads, writes, permutes, scratch, counts)
        declare(self.name, contract)

    def accesses(self, statement: Accesses) -> None:
        """Say what a call reads and writes as a loop nest; see `Contract`."""
        declare(self.name, Contract(tuple(self._names), (), (), accesses=statement))

    def _made(self, instruction: str) -> str:
        (name,) = self.fresh("%n")
        self._lines.append(f"  {name} = {instruction}")
        return name

    def bits(self, instruction: str) -> str:
        """Append an instruction with a result of any type; returns the result's text."""
        return self._made(instruction)

    def make_room(self, allocation: str) -> None:
        """Append an instruction that allocates stack memory, at the function's entry."""
        self._rooms.append(f"  {allocation}")

    def sum(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) + int(b))
        return b if a == "0" else a if b == "0" else self._made(f"add nsw i64 {a}, {b}")

    def difference(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) - int(b))
        return a if b == "0" else self._made(f"sub nsw i64 {a}, {b}")

    def product(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(int(a) * int(b))
        if "0" in (a, b):
            return "0"
        return b if a == "1" else a if b == "1" else self._made(f"mul nsw i64 {a}, {b}")

    def quotient(self, a: str, b: str) -> tuple[str, str]:
        """The quotient and the remainder of non-negative numbers."""
        if _known(a) and _known(b):
            return str(int(a) // int(b)), str(int(a) % int(b))
        return self._made(f"udiv i64 {a}, {b}"), self._made(f"urem i64 {a}, {b}")

    def parity(self, a: str) -> str:
        """``a % 2``."""
        return str(int(a) % 2) if _known(a) else self._made(f"and i64 {a}, 1")

    def lesser(self, a: str, b: str) -> str:
        if _known(a) and _known(b):
            return str(min(int(a), int(b)))
        return self.chosen(self.holds("slt", a, b), "i64", a, b)

    def holds(self, how: str, a: str, b: str) -> str:
        """The i1 of a comparison."""
        return self._made(f"icmp {how} i64 {a}, {b}")

    def chosen(self, condition: str, kind: str, a: str, b: str) -> str:
        return self._made(f"select i1 {condition}, {kind} {a}, {kind} {b}")

    def address(self, base: str, offset: str) -> str:
        """``offset`` bytes after ``base``."""
        return base if offset == "0" else self._made(f"getelementptr i8, ptr {base}, i64 {offset}")

    def number(self, memory: str, index: int | str) -> str:
        """The i64 at ``index`` in memory."""
        address = self._made(f"getelementptr i64, ptr {memory}, i64 {index}")
        return self._made(f"load i64, ptr {address}, align 8")

    def get(self, kind: Kind, address: str) -> Value:
        """Load a vector."""
        return self.emit(kind, f"load {self.type(kind)}, ptr {address}, align {kind.bits // 8}")

    def put(self, value: Value, address: str) -> None:
        kind = value.kind
        self._lines.append(f"  store {value.typed}, ptr {address}, align {kind.bits // 8}")

    def pair(self, kind: Kind, address: str) -> Value:
        """Load two numbers and repeat them alternately in the lanes."""
        align = kind.bits // 8
        if kind is not FLOAT32 or self.lanes == 2:
            two = f"<2 x {kind.llvm}>"
            pair = self._made(f"load {two}, ptr {address}, align {align}")
            mask = ", ".join(f"i32 {lane % 2}" for lane in range(self.lanes))
            lanes = f"<{self.lanes} x i32> <{mask}>"
            return self.emit(kind, f"shufflevector {two} {pair}, {two} poison, {lanes}")
        # LLVM compiles half as many lanes in half the time.
        half = self.lanes // 2
        whole = f"<{half} x double>"
        pair = self._made(f"load double, ptr {address}, align {align}")
        first = self._made(f"insertelement {whole} poison, double {pair}, i64 0")
        zeros = f"<{half} x i32> zeroinitializer"
        splat = self._made(f"shufflevector {whole} {first}, {whole} poison, {zeros}")
        return self.emit(kind, f"bitcast {whole} {splat} to {self.type(kind)}")

    def by_turns(self, kind: Kind, first: float, second: float) -> Value:
        """Two constants, alternating in the lanes."""
        one, other = (f"{kind.llvm} {literal(kind, x)}" for x in (first, second))
        lanes = ", ".join([one, other] * (self.lanes // 2))
        return Value(self, kind, f"<{lanes}>")

    def shuffled(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """A shuffle: lanes of ``a`` are numbered from 0, those of ``b`` after them."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.emit(
            a.kind, f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{mask}>"
        )

    def halves(self, vector: Value) -> list[Value]:
        """Both halves of a vector; from then on vectors have half as many lanes."""
        width = self.lanes // 2
        typed, nothing = vector.typed, f"{self.type(vector.kind)} poison"
        self.lanes = width
        made = []
        for begin in (0, width):
            mask = ", ".join(f"i32 {begin + lane}" for lane in range(width))
            part = f"shufflevector {typed}, {nothing}, <{width} x i32> <{mask}>"
            if width == 1:
                part = f"extractelement {typed}, i64 {begin}"
            made.append(self.emit(vector.kind, part))
        return made

    def loop(self, count: str, body: Callable[[str], None]) -> None:
        """``body(i)`` for i in 0 … count - 1; ``count`` must be positive, or a literal."""
        if _known(count) and int(count) <= 1:
            if int(count) == 1:
                body("0")
            return
        index, following, top, done, left = self.fresh("%i", "%next", "loop", "done", "%left")
        before = self.block
        self.jump(top)
        self.start(top)
        place = self.reserve(1)[0]
        body(index)
        self.fill(place, index, f"phi i64 [ 0, %{before} ], [ {following}, %{self.block} ]")
        self._lines.append(f"  {following} = add nuw nsw i64 {index}, 1")
        self._lines.append(f"  {left} = icmp slt i64 {following}, {count}")
        self._lines.append(f"  br i1 {left}, label %{top}, label %{done}")
        self.start(done)

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """``body`` if the i1 ``condition`` holds; later code may not use values from it."""
        then, done = self.fresh("then", "done")
        self._lines.append(f"  br i1 {condition}, label %{then}, label %{done}")
        self.start(then)
        body()
        self.jump(done)
        self.start(done)

    def branches(self, condition: str, body: Callable[[], None], other: Callable[[], None]) -> None:
        """``body`` if the i1 ``condition`` holds, else ``other``; later code may not use their
        values.
        """
        then, otherwise, done = self.fresh("then", "else", "done")
        self.act(f"br i1 {condition}, label %{then}, label %{otherwise}")
        for label, run in ((then, body), (otherwise, other)):
            self.start(label)
            run()
            self.jump(done)
        self.start(done)

    def share(self, stem: str) -> None:
        """Name the procedure by its code, which programs then share."""
        digest = hashlib.sha256(self.whole().encode()).hexdigest()[:16]
        self.name = self._group = f"{stem}_{digest}"

    def invoke(self, other: Procedure, arguments: Sequence[str]) -> None:
        """Call another procedure."""
        kinds = (parameter.partition(" ")[0] for parameter in other._parameters)
        given = ", ".join(f"{kind} {text}" for kind, text in zip(kinds, arguments, strict=True))
        self._made(f"call i32 @{other.name}({given})")
        self._invoked[other.name] = other

    def texts(self) -> dict[str, str]:
        """The texts of the procedure and of its callees, by name."""
        made = {
            name: text for each in self._invoked.values() for name, text in each.texts().items()
        }
        return {**made, self.name: self.whole()}

    def whole(self) -> str:
        """The text of the procedure and its callees."""
        group = f'"{GROUP}"="{self._group}" ' if self._group else ""
        return "\n".join(
            [
                f"define i32 @{self.name}({', '.join(self._parameters)}) {group}{{",
                "entry:",
                *self._rooms,
                *self._lines,
                "  ret i32 0",
                "}",
            ]
        )

    def called(self, arguments: Sequence[Expr]) -> Stmt:
        """A TIR call, pointers before integers, that carries the procedure's text."""
        call = Evaluate(tirx.call_extern("int32", self.name, *arguments))
        return importing(module_text([*self.texts().values()]), call)


def procedures_of(text: str) -> dict[str, str]:
    """The procedures of a text by name, each with its own constants."""
    made: dict[str, str] = {}
    for piece in text.split("\n}")[:-1]:
        before, _, after = piece.rpartition("define ")
        constants = [line for line in before.splitlines() if line.startswith("@")]
        name = after.partition("@")[2].partition("(")[0]
        made[name] = "\n".join([*constants, f"define {after}", "}"])
    return made


def declaration(procedure: str) -> str:
    """The LLVM declaration of a procedure."""
    return "declare " + procedure.rpartition("define ")[2].partition(" {")[0]


def group_of(procedure: str) -> str | None:
    """The procedure's group, None if programs do not share it."""
    found = _GROUP.search(procedure)
    return None if found is None else found[1]
