"""What a quicksort of numbers in vector registers is written in, as LLVM procedures.

Numbers are sorted as signed integers, their keys: what enters is turned into keys while the first
pivot divides it, what is in order is turned back while it is stored. A vector is divided by two
compressions, for either end of where it goes. Short parts are sorted by a network in registers.
Elements go back and forth between the result and as much scratch memory.

A sample that chooses badly is followed by a pivot halfway between the least and the greatest key,
so that no order of elements takes more than some log n + bits passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure

# Instructions for lanes in an order that a vector says.
_PERMUTED = {32: "permvar.si.512", 64: "permvar.di.512"}


@dataclass(frozen=True)
class Plan:
    """What is sorted: elements of ``kind`` (TVM's name), and how many fill a vector.

    ``total`` orders of floats tell zeros and NaN apart.
    """

    kind: str
    lanes: int
    descending: bool
    total: bool

    @property
    def restores(self) -> bool:
        """Whether elements that are equal can be told apart."""
        return self.kind.startswith("float") and not self.total

    @property
    def of_one(self) -> Plan:
        """The same of one element at a time."""
        return replace(self, lanes=1)

    @property
    def name(self) -> str:
        """This plan in the names of its procedures."""
        way = "down" if self.descending else "up"
        return f"{self.kind}x{self.lanes}_{way}{'_total' if self.total else ''}"


class SortCode(Procedure):
    """A procedure over keys, with variables."""

    def __init__(
        self,
        plan: Plan,
        stem: str,
        pointers: tuple[str, ...],
        integers: tuple[str, ...],
        group: str = "",
    ) -> None:
        whole = f"{group} {plan.name}" if group else ""
        super().__init__(f"{stem}_{plan.name}", pointers, integers, plan.lanes, whole)
        self.plan = plan
        self.given = KINDS[plan.kind]
        self.kind = self.given.integer
        self.bytes = str(self.kind.bits // 8)
        self.greatest = (1 << (self.kind.bits - 1)) - 1
        self.least = -self.greatest - 1
        self.vector = self.type(self.kind)

    # Variables of 64 bits, which LLVM keeps in registers.

    def variable(self, begin: str) -> str:
        (name,) = self.fresh("%c")
        self._rooms.append(f"  {name} = alloca i64")
        self.write(name, begin)
        return name

    def words(self, count: int) -> str:
        """Memory for so many numbers of 64 bits."""
        (name,) = self.fresh("%w")
        self._rooms.append(f"  {name} = alloca [{count} x i64]")
        return name

    def read(self, variable: str) -> str:
        return self.made(f"load i64, ptr {variable}")

    def write(self, variable: str, value: str) -> None:
        self.act(f"store i64 {value}, ptr {variable}")

    def made(self, instruction: str) -> str:
        return self._made(instruction)

    def is_poor(self, count: str, whole: str) -> str:
        """1 if a part is too small for its pivot to have been a good one, else 0."""
        sixteenth = self.quotient(whole, "16")[0]
        return self.made(f"zext i1 {self.holds('slt', count, sixteenth)} to i64")

    def middle(self, low: str, high: str) -> str:
        """Between two keys, or the lower of neighbours."""
        element = self.kind.llvm
        same = self.made(f"and {element} {low}, {high}")
        half = self.made(f"ashr {element} {self.made(f'xor {element} {low}, {high}')}, 1")
        return self.made(f"add {element} {same}, {half}")

    def repeat(self, condition: Callable[[], str], body: Callable[[], None]) -> None:
        """``body`` while the i1 of ``condition`` holds."""
        top, inside, done = self.fresh("while", "inside", "done")
        self.jump(top)
        self.start(top)
        self.act(f"br i1 {condition()}, label %{inside}, label %{done}")
        self.start(inside)
        body()
        self.jump(top)
        self.start(done)

    def carried(
        self,
        begin: Sequence[str],
        condition: Callable[..., str],
        body: Callable[..., Sequence[str]],
    ) -> list[str]:
        """Numbers that ``body`` makes of themselves while the i1 of ``condition`` of them holds."""
        top, inside, done = self.fresh("while", "inside", "done")
        before = self.block
        self.jump(top)
        self.start(top)
        places, numbers = self.reserve(len(begin)), self.fresh(*["%p"] * len(begin))
        self.act(f"br i1 {condition(*numbers)}, label %{inside}, label %{done}")
        self.start(inside)
        following = body(*numbers)
        for place, number, first, then in zip(places, numbers, begin, following, strict=True):
            self.fill(place, number, f"phi i64 [ {first}, %{before} ], [ {then}, %{self.block} ]")
        self.jump(top)
        self.start(done)
        return numbers

    # Masks and memory.

    def at(self, memory: str, number: str) -> str:
        """The address of an element."""
        return self.address(memory, self.product(number, self.bytes))

    def bits_of(self, mask: Value) -> str:
        """A mask as an i64."""
        word = f"i{self.lanes}"
        bits = self.made(f"bitcast {mask.typed} to {word}")
        return self.made(f"zext {word} {bits} to i64")

    def count(self, mask: Value) -> str:
        """How many lanes a mask holds."""
        return self.made(f"call i64 @llvm.ctpop.i64(i64 {self.bits_of(mask)})")

    def below(self, count: str, first: int = 0) -> Value:
        """The lanes whose number, counted from ``first`` on, is below ``count``."""
        element = self.kind.llvm
        narrow = count if element == "i64" else self.made(f"trunc i64 {count} to {element}")
        numbers = self.numbers(range(first, first + self.lanes))
        return self.splat(narrow) > Value(self, self.kind, numbers)

    def splat(self, number: str) -> Value:
        """An integer in every lane."""
        one = self.made(f"insertelement {self.vector} poison, {self.kind.llvm} {number}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(
            self.kind, f"shufflevector {self.vector} {one}, {self.vector} poison, {zeros}"
        )

    def get_some(self, address: str, mask: Value, rest: int) -> Value:
        """Lanes in memory; ``rest`` elsewhere."""
        other = self.literal(self.kind, rest)
        name = f"llvm.masked.load.{self.suffix(self.kind)}.p0"
        return self.emit(
            self.kind,
            f"call {self.vector} @{name}"
            f"(ptr align {self.bytes} {address}, {mask.typed}, {other.typed})",
        )

    def put_some(self, value: Value, address: str, mask: Value) -> None:
        name = f"llvm.masked.store.{self.suffix(value.kind)}.p0"
        self.act(
            f"call void @{name}({value.typed}, ptr align {self.bytes} {address}, {mask.typed})"
        )

    def packed(self, value: Value, mask: Value) -> Value:
        """The lanes of a mask first."""
        name = f"experimental.vector.compress.{self.suffix(self.kind)}"
        return self.call(self.kind, name, value, mask, f"{self.vector} poison")

    def from_here(self, value: Value) -> Value:
        """The same vector, of which nothing is made before what is stored so far."""
        return self.emit(value.kind, f'call {self.vector} asm sideeffect "", "=v,0"({value.typed})')

    def numbers(self, numbers: Iterable[int]) -> str:
        """A vector of constants."""
        return "<" + ", ".join(f"{self.kind.llvm} {number}" for number in numbers) + ">"

    def permuted(self, value: Value, lanes: Value) -> Value:
        """Lanes in an order that a vector says."""
        return self.call(self.kind, f"x86.avx512.{_PERMUTED[self.kind.bits]}", value, lanes)

    def turned(self, value: Value, distance: str) -> Value:
        """Every lane so much further on, the last lanes first."""
        element = self.kind.llvm
        back = distance if element == "i64" else self.made(f"trunc i64 {distance} to {element}")
        lanes = Value(self, self.kind, self.numbers(range(self.lanes)))
        return self.permuted(value, lanes - self.splat(back))

    def chosen_lanes(self, mask: Value, a: Value, b: Value) -> Value:
        return self.emit(a.kind, f"select {mask.typed}, {a.typed}, {b.typed}")

    def lesser_of(self, a: Value, b: Value) -> Value:
        return self.call(self.kind, f"smin.{self.suffix(self.kind)}", a, b)

    def greater_of(self, a: Value, b: Value) -> Value:
        return self.call(self.kind, f"smax.{self.suffix(self.kind)}", a, b)

    # Keys.

    def as_given(self, bits: Value) -> Value:
        return self.emit(self.given, f"bitcast {bits.typed} to {self.type(self.given)}")

    def is_special(self, bits: Value) -> Value:
        """Which are NaN, or negative zero."""
        return self.as_given(bits).is_nan | bits.equals(self.least)

    def key(self, bits: Value) -> Value:
        made = bits
        if self.given.is_float:
            made = self._turned(bits)
            if not self.plan.total:
                made = self.chosen_lanes(bits.equals(self.least), self.literal(self.kind, 0), made)
                greatest = self.literal(self.kind, self.greatest)
                made = self.chosen_lanes(self.as_given(bits).is_nan, greatest, made)
        elif not self.given.is_signed:
            made = bits ^ self.least
        return ~made if self.plan.descending else made

    def element(self, key: Value) -> Value:
        """The bits of a key's element; those of the first zero and of some NaN."""
        made = ~key if self.plan.descending else key
        if self.given.is_float:
            return self._turned(made)
        return made if self.given.is_signed else made ^ self.least

    def _turned(self, bits: Value) -> Value:
        """Negative floats as falling integers, and back."""
        return bits ^ ((bits >> (self.kind.bits - 1)) & self.greatest)
