"""The steps of a vectorised quicksort: sampling a pivot, partitioning, sorting networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.schedule.sort.network import Shuffle, network
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortCode, SortPlan

# Two-source permutation instructions with variable indices.
_JOINED = {32: "vpermi2var.d.512", 64: "vpermi2var.q.512"}


class PartitionCode(SortCode):
    """A procedure that sorts or partitions parts of a row."""

    def __init__(
        self,
        plan: SortPlan,
        stem: str,
        pointers: tuple[str, ...],
        integers: tuple[str, ...],
        group: str = "",
    ) -> None:
        super().__init__(plan, stem, pointers, integers, group)
        self._table = f"{self.name}_lanes"
        self._tables: dict[tuple[int, ...], int] = {}

    @property
    def most(self) -> int:
        """The most elements that a network sorts."""
        return self.plan.registers * self.lanes

    def short(self, source: str, target: str, count: int, special: str) -> None:
        """Sort up to `most` elements that are not keys yet."""
        registers = max(2, 1 << (-(-count // self.lanes) - 1).bit_length())
        self.sorted_in(registers, source, target, str(count), count, True, special)

    def sorted_in(
        self,
        registers: int,
        source: str,
        target: str,
        count: str,
        least: int = 0,
        enter: bool = False,
        special: str = "",
    ) -> None:
        """Sort ``count`` elements, at least ``least``, in ``registers`` registers."""
        values: list[Value] = []
        masks: list[Value | None] = []
        for register in range(registers):
            first = register * self.lanes
            address = self.at(source, str(first))
            mask = None if first + self.lanes <= least else self.below(count, first)
            masks.append(mask)
            value = (
                self.get(self.kind, address)
                if mask is None
                else self.get_some(address, mask, 0 if enter else self.greatest)
            )
            if enter:
                if special:
                    bits = self.bits_of(self.is_special(value))
                    self.write(special, self.made(f"or i64 {self.read(special)}, {bits}"))
                value = self.key(value)
                if mask is not None:
                    rest = self.literal(self.kind, self.greatest)
                    value = self.chosen_lanes(mask, value, rest)
            values.append(value)
        plan = network(registers, self.lanes)
        for step in plan.steps:
            if isinstance(step, Shuffle):
                a, b = values[step.first], values[step.second]
                values[step.first] = self.joined(a, b, step.onto_first)
                if step.onto_second is not None:
                    values[step.second] = self.joined(a, b, step.onto_second)
                continue
            a, b = values[step.lesser], values[step.greater]
            values[step.lesser] = self.lesser_of(a, b)
            values[step.greater] = self.greater_of(a, b)
        for value, block in zip(values, plan.order, strict=True):
            made, mask = self.element(value), masks[block]
            address = self.at(target, str(block * self.lanes))
            if mask is None:
                self.put(made, address)
            else:
                self.put_some(made, address, mask)

    def whole(self) -> str:
        text = super().whole()
        if not self._tables:
            return text
        rows = ", ".join(f"{self.vector} {self.numbers(lanes)}" for lanes in self._tables)
        kind = f"[{len(self._tables)} x {self.vector}]"
        return f"@{self._table} = internal constant {kind} [{rows}], align 64\n{text}"

    def joined(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """A permutation: lanes of ``a`` are numbered from 0, those of ``b`` after them.

        The indices are loaded from a table that is opaque to LLVM, which would otherwise spend a
        third of its time on a search for better instructions.
        """
        if not self.plan.is_wide:
            return self.shuffled(a, b, lanes)
        if not self._tables:
            self._rooms.append(f'  %lanes = call ptr asm "", "=r,0"(ptr @{self._table})')
        number = self._tables.setdefault(tuple(lanes), len(self._tables))
        width = self.lanes * self.kind.bits // 8
        index = self.get(self.kind, self.address("%lanes", str(width * number)))
        if max(lanes) < self.lanes:
            return self.permuted(a, index)
        return self.call(self.kind, f"x86.avx512.{_JOINED[self.kind.bits]}", a, index, b)

    def loaded_key(self, address: str, enter: bool) -> Value:
        value = self.get(self.kind, address)
        return self.key(value) if enter else value

    def sample(self, source: str, count: str, enter: bool) -> Value:
        """A pivot in every lane: a median of medians of 81 of ``count`` elements.

        ``count`` is at least the number of lanes.
        """
        step = self.made(f"lshr i64 {self.sum(count, str(-self.lanes))}, 3")
        keys = [
            self.loaded_key(self.at(source, self.product(step, str(n))), enter) for n in range(9)
        ]
        while len(keys) > 1:
            third = len(keys) // 3
            keys = [self._median(*keys[n::third]) for n in range(third)]
        (key,) = keys
        for distance in (1, 3):
            once = [(lane + distance) % self.lanes for lane in range(self.lanes)]
            second = self.shuffled(key, key, once)
            key = self._median(key, second, self.shuffled(second, second, once))
        return self.shuffled(key, key, [0] * self.lanes)

    def _median(self, a: Value, b: Value, c: Value) -> Value:
        low, high = self.lesser_of(a, b), self.greater_of(a, b)
        return self.greater_of(low, self.lesser_of(high, c))

    def by_vectors(
        self, count: str, whole: Callable[[str], None], part: Callable[[str, Value], None]
    ) -> None:
        """Elements 0 … count - 1 in whole vectors, then the remainder under a mask."""
        place = self.variable("0")
        end = self.difference(count, str(self.lanes))

        def body() -> None:
            first = self.read(place)
            whole(first)
            self.write(place, self.sum(first, str(self.lanes)))

        self.repeat(lambda: self.holds("sle", self.read(place), end), body)
        first = self.read(place)
        rest = self.difference(count, first)
        self.when(self.holds("sgt", rest, "0"), lambda: part(first, self.below(rest)))

    def divide(
        self, source: str, target: str, count: str, pivot: Value, enter: bool, special: str = ""
    ) -> str:
        """Partition keys by the pivot, those up to it first; returns the size of the first part.

        The free gap of the target is as large as the unread part of the source, so a whole vector
        may be stored while one is left to read.
        """
        width = str(self.lanes)

        def keys(value: Value, seen: str) -> tuple[Value, str]:
            if special:
                seen = self.made(f"or i64 {seen}, {self.bits_of(self.is_special(value))}")
            return (self.key(value) if enter else value), seen

        def vector(place: str, low: str, high: str, seen: str) -> list[str]:
            value, seen = keys(self.get(self.kind, self.at(source, place)), seen)
            before = value <= pivot
            number = self.count(before)
            first, last = self.parted(value, before, number)
            self.put(first, self.at(target, low))
            self.put(last, self.at(target, self.difference(high, width)))
            low = self.sum(low, number)
            # The gap is as large as the number of unread elements.
            high = self.difference(self.sum(high, number), width)
            return [self.sum(place, width), low, high, seen]

        def rest(place: str, low: str, high: str, seen: str) -> list[str]:
            mask = self.below(self.difference(count, place))
            # Zero bits are no special number, and lanes without an element are not stored.
            value, seen = keys(self.get_some(self.at(source, place), mask, 0), seen)
            before = (value <= pivot) & mask
            after = ~before & mask
            number, left = self.count(before), self.count(after)
            high = self.difference(high, left)
            self.put_some(self.packed(value, before), self.at(target, low), self.below(number))
            self.put_some(self.packed(value, after), self.at(target, high), self.below(left))
            return [self.sum(place, width), self.sum(low, number), high, seen]

        # Whole vectors may be stored at both ends while the gap has room for two.
        most = self.difference(count, str(2 * self.lanes))
        begin = self.carried(
            ["0", "0", count, "0"], lambda place, *_: self.holds("sle", place, most), vector
        )
        _, low, _, seen = self.carried(
            begin, lambda place, *_: self.holds("slt", place, count), rest
        )
        if special:
            self.write(special, seen)
        return low

    def extremes(self, source: str, count: str) -> tuple[str, str]:
        """The least and the greatest key of at least one vector."""
        ends = [self.room(self.kind)[1] for _ in range(2)]
        for end in ends:
            self.stored(self.get(self.kind, source), end, "0")

        def whole(first: str) -> None:
            both(self.get(self.kind, self.at(source, first)))

        def both(value: Value, other: Value | None = None) -> None:
            low, high = (self.loaded(self.kind, end, "0") for end in ends)
            self.stored(self.lesser_of(low, value), ends[0], "0")
            self.stored(self.greater_of(high, value if other is None else other), ends[1], "0")

        def part(first: str, mask: Value) -> None:
            address = self.at(source, first)
            both(
                self.get_some(address, mask, self.greatest),
                self.get_some(address, mask, self.least),
            )

        self.by_vectors(count, whole, part)
        element, suffix = self.kind.llvm, self.suffix(self.kind)
        low, high = (self.loaded(self.kind, end, "0") for end in ends)
        return (
            self.made(f"call {element} @llvm.vector.reduce.smin.{suffix}({low.typed})"),
            self.made(f"call {element} @llvm.vector.reduce.smax.{suffix}({high.typed})"),
        )

    def filled(self, target: str, count: str, key: str) -> None:
        made = self.element(self.splat(key))
        self.by_vectors(
            count,
            lambda first: self.put(made, self.at(target, first)),
            lambda first, mask: self.put_some(made, self.at(target, first), mask),
        )
