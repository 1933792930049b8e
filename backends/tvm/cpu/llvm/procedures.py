"""LLVM functions that loop over memory: what vector kernels are made of whose code must be small.

    procedure = Procedure("twice", ["x"], ["count"], lanes=8)
    def block(i):
        at = procedure.address("%x", procedure.product(i, "32"))
        procedure.put(procedure.get(FLOAT32, at) * 2.0, at)
    procedure.loop("%count", block)
    statement = procedure.called(body, [memory.data, count])

TVM's passes see one call, and LLVM sees values and no memory for them. It inlines the procedure at
every call, so one that is called in several places is code as many times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Function, Value, literal, module_text
from tracejit.backends.tvm.cpu.llvm.kinds import FLOAT32, Kind
from tracejit.backends.tvm.ir.tir import Evaluate, Expr, Stmt, importing, tirx

GROUP = "tracejit-group"
"""The attribute of an LLVM function that tells its group."""
_GROUP = re.compile(f'"{GROUP}"="([^"]*)"')


def _known(number: str) -> bool:
    """Whether the text of an integer is a literal."""
    return number[0] != "%"


class Procedure(Function):
    """``int32 name(ptr …, i64 …)`` under construction, which returns 0.

    Its parameters are called by their names, after a percent sign. Integers are the texts of i64
    values, addresses those of pointers; vectors are `Value`. One that has a ``group`` is the same
    in all programs that have it, and so are the others of the group, which come with it.
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
        self._parameters = [f"ptr %{p}" for p in pointers] + [f"i64 %{i}" for i in integers]

    def _made(self, instruction: str) -> str:
        (name,) = self.fresh("%n")
        self._lines.append(f"  {name} = {instruction}")
        return name

    def bits(self, instruction: str) -> str:
        """Append an instruction that makes a value of any type; its text."""
        return self._made(instruction)

    def make_room(self, allocation: str) -> None:
        """An instruction that allocates memory, before all others."""
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
        """The quotient of numbers that are not negative, and the rest."""
        if _known(a) and _known(b):
            return str(int(a) // int(b)), str(int(a) % int(b))
        return self._made(f"udiv i64 {a}, {b}"), self._made(f"urem i64 {a}, {b}")

    def parity(self, a: str) -> str:
        """0 or 1, as a number is even or odd."""
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
        """A vector in memory."""
        return self.emit(kind, f"load {self.type(kind)}, ptr {address}, align {kind.bits // 8}")

    def put(self, value: Value, address: str) -> None:
        kind = value.kind
        self._lines.append(f"  store {value.typed}, ptr {address}, align {kind.bits // 8}")

    def everywhere(self, kind: Kind, address: str) -> Value:
        """A number in memory, in all lanes."""
        number = f"load {kind.llvm}, ptr {address}, align {kind.bits // 8}"
        if self.lanes == 1:
            return self.emit(kind, number)
        vector, first = self.type(kind), f"{kind.llvm} {self._made(number)}"
        single = self._made(f"insertelement {vector} poison, {first}, i64 0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(kind, f"shufflevector {vector} {single}, {vector} poison, {lanes}")

    def pair(self, kind: Kind, address: str) -> Value:
        """Two numbers in memory, by turns in all lanes."""
        align = kind.bits // 8
        if kind is not FLOAT32 or self.lanes == 2:
            two = f"<2 x {kind.llvm}>"
            pair = self._made(f"load {two}, ptr {address}, align {align}")
            mask = ", ".join(f"i32 {lane % 2}" for lane in range(self.lanes))
            lanes = f"<{self.lanes} x i32> <{mask}>"
            return self.emit(kind, f"shufflevector {two} {pair}, {two} poison, {lanes}")
        # Half as many lanes are half the work for LLVM.
        half = self.lanes // 2
        whole = f"<{half} x double>"
        pair = self._made(f"load double, ptr {address}, align {align}")
        first = self._made(f"insertelement {whole} poison, double {pair}, i64 0")
        zeros = f"<{half} x i32> zeroinitializer"
        splat = self._made(f"shufflevector {whole} {first}, {whole} poison, {zeros}")
        return self.emit(kind, f"bitcast {whole} {splat} to {self.type(kind)}")

    def by_turns(self, kind: Kind, first: float, second: float) -> Value:
        """Two constants, by turns in all lanes."""
        one, other = (f"{kind.llvm} {literal(kind, x)}" for x in (first, second))
        lanes = ", ".join([one, other] * (self.lanes // 2))
        return Value(self, kind, f"<{lanes}>")

    def shuffled(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Lanes of ``a``, numbered from 0, and of ``b``, numbered on."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.emit(
            a.kind, f"shufflevector {a.typed}, {b.typed}, <{len(lanes)} x i32> <{mask}>"
        )

    def halves(self, vector: Value) -> list[Value]:
        """Both halves of a vector; from now on vectors have half as many lanes."""
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
        """``body`` of 0 … count - 1, at least once: ``count`` is positive."""
        if count == "1":
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
        """``body`` if the i1 ``condition`` holds; it makes no value that is used later."""
        then, done = self.fresh("then", "done")
        self._lines.append(f"  br i1 {condition}, label %{then}, label %{done}")
        self.start(then)
        body()
        self.jump(done)
        self.start(done)

    def branches(self, condition: str, body: Callable[[], None], other: Callable[[], None]) -> None:
        """``body`` if the i1 ``condition`` holds, else ``other``, as `when` does."""
        then, otherwise, done = self.fresh("then", "else", "done")
        self.act(f"br i1 {condition}, label %{then}, label %{otherwise}")
        for label, run in ((then, body), (otherwise, other)):
            self.start(label)
            run()
            self.jump(done)
        self.start(done)

    def invoke(self, other: Procedure, arguments: Sequence[str]) -> None:
        """Call another procedure."""
        kinds = (parameter.partition(" ")[0] for parameter in other._parameters)
        given = ", ".join(f"{kind} {text}" for kind, text in zip(kinds, arguments, strict=True))
        self._made(f"call i32 @{other.name}({given})")
        self._invoked[other.name] = other

    def texts(self) -> dict[str, str]:
        """The texts of the procedure and of those that it calls, by their names."""
        made = {
            name: text for each in self._invoked.values() for name, text in each.texts().items()
        }
        return {**made, self.name: self.whole()}

    def whole(self) -> str:
        """The text of the procedure."""
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
        """A call, pointers before integers, with the text of the procedure."""
        call = Evaluate(tirx.call_extern("int32", self.name, *arguments))
        return importing(module_text([*self.texts().values()]), call)


def procedures_of(text: str) -> dict[str, str]:
    """The procedures of a text by their names, each with its own constants."""
    made: dict[str, str] = {}
    for piece in text.split("\n}")[:-1]:
        before, _, after = piece.rpartition("define ")
        constants = [line for line in before.splitlines() if line.startswith("@")]
        name = after.partition("@")[2].partition("(")[0]
        made[name] = "\n".join([*constants, f"define {after}", "}"])
    return made


def declaration(procedure: str) -> str:
    """What a procedure is to those who call it."""
    return "declare " + procedure.rpartition("define ")[2].partition(" {")[0]


def group_of(procedure: str) -> str | None:
    """What a procedure is shared with, if it is."""
    found = _GROUP.search(procedure)
    return None if found is None else found[1]
