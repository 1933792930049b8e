"""The LLVM procedures of a vectorised quicksort: partition, base case, recursion.

    division(plan)      # partitions elements by the first pivot, converting them to keys
    sorted_part(plan)   # sorts keys
    restored(plan)      # restores the order of zeros of both signs, and of NaN
    short_row(plan, n)  # sorts a row of n elements in registers

Memory is given as pointers, and the beginning of a row or part as an element index. All but the
last serve rows of any length, in all programs of a process.
"""

from __future__ import annotations

import functools

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortPlan
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_steps import PartitionCode
from tracejit.backends.tvm.ir.contracts import span

# Groups that are compiled together, once in a process: the largest network takes as long to
# compile as all the rest.
_NETWORK, _QUICKSORT, _MORE_THREADS = "sort network", "quicksort", "quicksort for more threads"
# The depth of the stack of parts: the longer of two parts is pushed first, so 40 would do for a
# terabyte.
_WAITING = 64
# The words of a part: its beginning, its length, the memory of its keys, and the kind of pivot.
_WORDS = 4


@functools.cache
def division(plan: SortPlan, enter: bool) -> Procedure:
    """Partition ``count`` elements from ``first`` on; writes the size of the first part to
    ``said``.

    With ``enter`` elements are converted to keys, and the second word of ``said`` is not 0 if
    there are zeros or NaN to restore.
    """
    stem, group = ("sort_enter", _QUICKSORT) if enter else ("sort_divide", _MORE_THREADS)
    code = PartitionCode(plan, stem, ("source", "target", "said"), ("first", "count"), group)
    target_part, said = span("target", "first", "count"), span("said", 0, 2 if enter else 1)
    first_part = span("said", 0, 1), "count"
    reads = [span("source", "first", "count")]
    code.touches(reads, [target_part, said], permutes=True, counts=[first_part])
    source, target = code.at("%source", "%first"), code.at("%target", "%first")
    restores = enter and plan.restores
    special = code.variable("0")
    number = _divided(code, source, target, "%count", enter, special if restores else "")
    code.act(f"store i64 {number}, ptr %said, align 8")
    if enter:
        code.act(f"store i64 {code.read(special)}, ptr {code.address('%said', '8')}, align 8")
    return code


def _divided(
    code: PartitionCode, source: str, target: str, count: str, enter: bool, special: str
) -> str:
    """By a sampled pivot if there are enough elements; otherwise all come first."""
    pivot = code.room(code.kind)[1]
    code.stored(code.literal(code.kind, code.greatest), pivot, "0")

    def sampled() -> None:
        code.stored(code.sample(source, count, enter), pivot, "0")

    code.when(code.holds("sgt", count, str(code.most)), sampled)
    return code.divide(source, target, count, code.loaded(code.kind, pivot, "0"), enter, special)


@functools.cache
def sorted_part(plan: SortPlan) -> Procedure:
    """Sort ``count`` keys from ``first`` on in ``source``; ``other`` is free memory of the same
    size.

    The elements go to ``target``, which is one of the two. The first pivot is from a sample, or
    the middle of the range of keys if ``halve`` is not 0.
    """
    pointers, integers = ("source", "other", "target"), ("first", "count", "halve")
    code = PartitionCode(plan, "sort_part", pointers, integers, _QUICKSORT)
    source_part, other_part, target_part = (span(each, "first", "count") for each in pointers)
    scratch = [source_part, other_part]
    code.touches([source_part], [target_part], permutes=True, scratch=scratch)
    stack = _WorkStack(code)
    stack.push("%first", "%count", "0", "%halve")
    stack.work("%source", "%other", "%target")
    return code


@functools.cache
def _network(plan: SortPlan, registers: int) -> Procedure:
    """Sort ``count`` keys, at most what ``registers`` hold, and store their elements.

    There are more than the next smaller network sorts.
    """
    small = plan.registers // 2
    is_small = registers == small
    least, group = (0, _QUICKSORT) if is_small else (small * plan.lanes + 1, _NETWORK)
    code = PartitionCode(plan, f"sort_{registers}", ("source", "target"), ("count",), group)
    code.sorted_in(registers, "%source", "%target", "%count", least=least)
    return code


def _leaf(code: PartitionCode, source: str, target: str, count: str) -> None:
    """Sort up to `PartitionCode.most` keys, and store their elements."""

    def by(registers: int) -> None:
        code.invoke(_network(code.plan, registers), [source, target, count])

    small = code.plan.registers // 2
    is_small = code.holds("sle", count, str(small * code.lanes))
    code.branches(is_small, lambda: by(small), lambda: by(2 * small))


def is_short(plan: SortPlan, count: int) -> bool:
    """Whether a row is sorted in registers, without scratch memory."""
    return count <= plan.registers * plan.lanes


def short_row(plan: SortPlan, count: int) -> Procedure:
    """Sort a short row of ``count`` elements from ``first`` on into the same indices of
    ``target``.

    Integers may be sorted in place.
    """
    code = PartitionCode(plan, f"sort_row_{count}", ("source", "target"), ("first",))
    source_row, target_row = (span(each, "first", count) for each in ("source", "target"))
    code.touches([source_row], [target_row], permutes=True)
    source, target = code.at("%source", "%first"), code.at("%target", "%first")
    special = code.variable("0") if plan.restores else ""
    code.short(source, target, count, special)
    if plan.restores:
        some = code.holds("ne", code.read(special), "0")
        code.when(some, lambda: _restore(code, source, target, str(count)))
    return code


@functools.cache
def restored(plan: SortPlan) -> Procedure:
    """Restore the original order of zeros and NaN if the second word of ``said`` is not 0."""
    code = PartitionCode(
        plan, "sort_restore", ("source", "target", "said"), ("first", "count"), _QUICKSORT
    )
    source_part, target_part = (span(each, "first", "count") for each in ("source", "target"))
    code.touches([source_part, span("said", 1, 1)], [], scratch=[target_part])
    source, target = code.at("%source", "%first"), code.at("%target", "%first")
    some = code.holds("ne", code.number("%said", 1), "0")
    code.when(some, lambda: _restore(code, source, target, "%count"))
    return code


def _restore(code: PartitionCode, source: str, target: str, count: str) -> None:
    zeros, nans = code.variable("0"), code.variable("0")

    def numbers(bits: Value) -> tuple[Value, Value, Value]:
        """The number of elements before the zeros, of zeros, and of NaN."""
        given = code.as_given(bits)
        nan = given.is_nan
        before = (given > 0.0) | nan if code.plan.descending else given < 0.0
        return before, given.equals(0.0), nan

    def add(variable: str, mask: Value) -> None:
        code.write(variable, code.sum(code.read(variable), code.count(mask)))

    def counted(first: str, mask: Value | None = None) -> None:
        address = code.at(source, first)
        bits = code.get(code.kind, address) if mask is None else code.get_some(address, mask, 0)
        before, _, nan = numbers(bits)
        add(zeros, before)
        add(nans, nan)

    def placed(first: str, mask: Value | None = None) -> None:
        address = code.at(source, first)
        # The bits of 1 are not those of a zero.
        bits = code.get(code.kind, address) if mask is None else code.get_some(address, mask, 1)
        _, zero, nan = numbers(bits)
        for variable, which in ((zeros, zero), (nans, nan)):
            there = code.at(target, code.read(variable))
            code.put_some(code.packed(bits, which), there, code.below(code.count(which)))
            add(variable, which)

    code.by_vectors(count, counted, counted)
    begin = "0" if code.plan.descending else code.difference(count, code.read(nans))
    code.write(nans, begin)
    code.by_vectors(count, placed, placed)


class _WorkStack:
    """The stack of parts that are still to be sorted, the shortest on top."""

    def __init__(self, code: PartitionCode) -> None:
        self.code = code
        self.memory = code.words(_WAITING * _WORDS)
        self.top = code.variable("0")

    def push(self, first: str, count: str, side: str, halve: str) -> None:
        """Push a part with keys in memory ``side``; ``halve`` says how to choose its pivot."""
        code = self.code
        top = code.read(self.top)
        for number, word in enumerate((first, count, side, halve)):
            address = code.address(self.memory, code.product(code.sum(top, str(number)), "8"))
            code.act(f"store i64 {word}, ptr {address}, align 8")
        code.write(self.top, code.sum(top, str(_WORDS)))

    def push_both(self, first: str, count: str, number: str, side: str) -> None:
        """Push both parts of a partition, the first with ``number`` keys."""
        code = self.code
        rest = code.difference(count, number)
        is_more = code.holds("sgt", number, rest)
        middle = code.sum(first, number)
        long_first = code.chosen(is_more, "i64", first, middle)
        short_first = code.chosen(is_more, "i64", middle, first)
        long = code.chosen(is_more, "i64", number, rest)
        short = code.chosen(is_more, "i64", rest, number)
        self.push(long_first, long, side, code.is_poor(short, count))
        self.push(short_first, short, side, "0")

    def work(self, memory: str, other: str, target: str) -> None:
        """Sort all parts on the stack; keys are in ``memory``, elements go to ``target``."""
        code = self.code

        def one() -> None:
            top = code.sum(code.read(self.top), str(-_WORDS))
            code.write(self.top, top)
            base = code.address(self.memory, code.product(top, "8"))
            first, count, side, halve = (code.number(base, n) for n in range(_WORDS))
            is_other = code.holds("ne", side, "0")
            source = code.at(code.chosen(is_other, "ptr", other, memory), first)
            free = code.at(code.chosen(is_other, "ptr", memory, other), first)
            result = code.at(target, first)
            code.branches(
                code.holds("sle", count, str(code.most)),
                lambda: _leaf(code, source, result, count),
                lambda: divided(first, count, side, halve, source, free, result),
            )

        def divided(
            first: str, count: str, side: str, halve: str, source: str, free: str, result: str
        ) -> None:
            pivot = code.room(code.kind)[1]
            is_one = code.variable("0")

            def halved() -> None:
                low, high = code.extremes(source, count)
                code.stored(code.splat(code.middle(low, high)), pivot, "0")

                def equal() -> None:
                    code.write(is_one, "1")
                    code.filled(result, count, low)

                code.when(code.made(f"icmp eq {code.kind.llvm} {low}, {high}"), equal)

            def sampled() -> None:
                code.stored(code.sample(source, count, False), pivot, "0")

            def both() -> None:
                key = code.loaded(code.kind, pivot, "0")
                number = code.divide(source, free, count, key, False)
                opposite = code.made(f"xor i64 {side}, 1")
                self.push_both(first, count, number, opposite)

            code.branches(code.holds("ne", halve, "0"), halved, sampled)
            code.when(code.holds("eq", code.read(is_one), "0"), both)

        code.repeat(lambda: code.holds("ne", code.read(self.top), "0"), one)
