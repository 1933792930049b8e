"""`SortCode`: the vocabulary of the vectorised quicksort, as LLVM procedures over integer keys.

Elements are sorted as signed integers, their keys: the first partition converts elements to keys,
and the final stores convert them back. A vector is partitioned by two compressions, for either end
of the target. Short parts are sorted by a network in registers. Elements alternate between the
result and scratch memory of equal size.

After a bad pivot from a sample, the next pivot is halfway between the least and the greatest key,
so that no input takes more than about log n + bits passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure

# Permutation instructions with variable indices, by the bytes of a vector.
_PERMUTED = {64: "x86.avx512.permvar.si.512", 32: "x86.avx2.permd"}
_PERMUTED_PAIRS = "x86.avx512.permvar.di.512"


@dataclass(frozen=True)
class SortPlan:
    """The elements of a sort: ``kind`` (TVM's name), and the number of lanes of a vector.

    ``total`` orders of floats distinguish zeros and NaN.
    """

    kind: str
    lanes: int
    descending: bool
    total: bool

    @property
    def vector_bytes(self) -> int:
        return self.lanes * KINDS[self.kind].bits // 8

    @property
    def is_wide(self) -> bool:
        """Whether the processor has AVX-512: it compresses, and permutes two vectors at once."""
        return self.vector_bytes == 64

    @property
    def registers(self) -> int:
        """The registers of the largest network. A larger one would take long to compile, or not
        stay in the registers.
        """
        return 16 if self.is_wide else 8

    @property
    def restores(self) -> bool:
        """Whether equal keys belong to distinguishable elements."""
        return self.kind.startswith("float") and not self.total

    @property
    def name(self) -> str:
        """The name of this plan in the names of its procedures."""
        way = "down" if self.descending else "up"
        return f"{self.kind}x{self.lanes}_{way}{'_total' if self.total else ''}"


class SortCode(Procedure):
    """A procedure over keys, with mutable variables."""

    def __init__(
        self,
        plan: SortPlan,
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
        self._orders = ""

    # 64-bit variables, which LLVM promotes to registers.

    def variable(self, begin: str) -> str:
        (name,) = self.fresh("%c")
        self._rooms.append(f"  {name} = alloca i64")
        self.write(name, begin)
        return name

    def words(self, count: int) -> str:
        """Stack memory for ``count`` 64-bit numbers."""
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
        """1 if a part is so small that its pivot was a bad one, else 0."""
        sixteenth = self.quotient(whole, "16")[0]
        return self.made(f"zext i1 {self.holds('slt', count, sixteenth)} to i64")

    def middle(self, low: str, high: str) -> str:
        """The midpoint of two keys, rounded down."""
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
        """A while loop with loop-carried values: ``body`` maps them while ``condition`` of them
        holds.
        """
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

    # Masks and memory

    def at(self, memory: str, number: str) -> str:
        """The address of an element."""
        return self.address(memory, self.product(number, self.bytes))

    def bits_of(self, mask: Value) -> str:
        """A mask as an i64."""
        word = f"i{self.lanes}"
        bits = self.made(f"bitcast {mask.typed} to {word}")
        return self.made(f"zext {word} {bits} to i64")

    def count(self, mask: Value) -> str:
        """The number of lanes that are set in a mask."""
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
        """A masked load; ``rest`` in the other lanes."""
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
        """Compress: the lanes of a mask first; the others follow where a table has the order."""
        if self.plan.is_wide:
            name = f"experimental.vector.compress.{self.suffix(self.kind)}"
            return self.call(self.kind, name, value, mask, f"{self.vector} poison")
        self._orders = f"{self.name}_orders"
        row = self.made(f"getelementptr i64, ptr @{self._orders}, i64 {self.bits_of(mask)}")
        row = self.made(f"load i64, ptr {row}")
        lanes = self.made(f"bitcast i64 {row} to <{self.lanes} x i8>")
        lanes = self.made(f"zext <{self.lanes} x i8> {lanes} to {self.vector}")
        return self.permuted(value, Value(self, self.kind, lanes))

    def parted(self, value: Value, mask: Value, number: str) -> tuple[Value, Value]:
        """A vector that begins with the ``number`` lanes of a mask, and one that ends with the
        others.
        """
        first = self.packed(value, mask)
        if not self.plan.is_wide:
            return first, first
        # Separate code for both ends would take LLVM twice as long to compile.
        return first, self.rotated(self.packed(self.from_here(value), ~mask), number)

    def whole(self) -> str:
        text = super().whole()
        if not self._orders:
            return text
        rows = ", ".join(f"i64 {_order(mask, self.lanes)}" for mask in range(1 << self.lanes))
        return f"@{self._orders} = internal constant [{1 << self.lanes} x i64] [{rows}]\n{text}"

    def from_here(self, value: Value) -> Value:
        """The same vector, behind a barrier: computations on it follow all stores so far."""
        return self.emit(value.kind, f'call {self.vector} asm sideeffect "", "=v,0"({value.typed})')

    def numbers(self, numbers: Iterable[int]) -> str:
        """A vector of constants."""
        return "<" + ", ".join(f"{self.kind.llvm} {number}" for number in numbers) + ">"

    def permuted(self, value: Value, lanes: Value) -> Value:
        """A permutation with a vector of lane indices."""
        name = _PERMUTED[self.plan.vector_bytes] if self.kind.bits == 32 else _PERMUTED_PAIRS
        return self.call(self.kind, name, value, lanes)

    def rotated(self, value: Value, distance: str) -> Value:
        """The vector rotated by ``distance`` lanes."""
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

    # Keys

    def as_given(self, bits: Value) -> Value:
        return self.emit(self.given, f"bitcast {bits.typed} to {self.type(self.given)}")

    def is_special(self, bits: Value) -> Value:
        """The lanes that are NaN or negative zero."""
        return self.as_given(bits).is_nan | bits.equals(self.least)

    def key(self, bits: Value) -> Value:
        made = bits
        if self.given.is_float:
            made = self._monotonic(bits)
            if not self.plan.total:
                made = self.chosen_lanes(bits.equals(self.least), self.literal(self.kind, 0), made)
                greatest = self.literal(self.kind, self.greatest)
                made = self.chosen_lanes(self.as_given(bits).is_nan, greatest, made)
        elif not self.given.is_signed:
            made = bits ^ self.least
        return ~made if self.plan.descending else made

    def element(self, key: Value) -> Value:
        """The bits of a key's element; for zeros and NaN those of one representative."""
        made = ~key if self.plan.descending else key
        if self.given.is_float:
            return self._monotonic(made)
        return made if self.given.is_signed else made ^ self.least

    def _monotonic(self, bits: Value) -> Value:
        """Maps negative floats to falling integers, and back."""
        return bits ^ ((bits >> (self.kind.bits - 1)) & self.greatest)


def _order(mask: int, lanes: int) -> int:
    """The lanes of a mask, then the others, a byte each, the first one lowest."""
    order = sorted(range(lanes), key=lambda lane: not mask >> lane & 1)
    return int.from_bytes(bytes(order), "little")
