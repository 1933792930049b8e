"""The LLVM procedures of a top-k selection.

    selected(plan, block)               # of a part: the least keys of blocks, then a few blocks
    merged_parts(plan)                  # of a row, from those of its parts
    values_at(plan)                     # stores the values
    indices_as(plan, dtype)             # stores the indices

The first elements are held as sorted keys and indices in memory, 64-bit integers; equal keys are
in the order of their indices. The code is small, so programs share none of it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from tracejit.backends.tvm.cpu.llvm.kinds import KINDS
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure
from tracejit.backends.tvm.cpu.schedule.sort.quicksort_code import SortCode, SortPlan
from tracejit.backends.tvm.ir.contracts import for_each, span
from tracejit.backends.tvm.ir.tir import Expr, Stmt, seq

# The most elements that are selected.
SELECTED = 128
_BEYOND = str((1 << 63) - 1)
# What a selection writes: the list.
_FIRST = (span("keys", 0, "kept"), span("places", 0, "kept"))
# Vectors of a block that one iteration processes.
_STEPS = 8


class _First(SortCode):
    """A procedure over the sorted list of the ``kept`` first pairs, in memory."""

    def word(self, memory: str, index: str) -> str:
        """The address of a 64-bit number."""
        return self.address(memory, self.product(index, "8"))

    def put_word(self, value: str, memory: str, index: str) -> None:
        self.act(f"store i64 {value}, ptr {self.word(memory, index)}, align 8")

    def precedes(self, key: str, place: str, keys: str, places: str, index: str) -> str:
        """Whether a pair precedes the one at ``index`` of the list."""
        other = self.number(keys, index)
        is_less = self.holds("slt", key, other)
        is_same = self.holds("eq", key, other)
        is_before = self.holds("slt", place, self.number(places, index))
        return self.made(f"or i1 {is_less}, {self.made(f'and i1 {is_same}, {is_before}')}")

    def clear(self, keys: str, places: str) -> None:
        """Empty the list: fill it with keys that follow all elements."""

        def one(index: str) -> None:
            self.put_word(str(self.greatest), keys, index)
            self.put_word(_BEYOND, places, index)

        self.loop("%kept", one)

    def offer(self, key: str, place: str, keys: str, places: str) -> None:
        """Insert a pair if it precedes the last."""
        last = self.difference("%kept", "1")

        def enter() -> None:
            self.invoke(_entered(self.plan.of_one), [keys, places, key, place, "%kept"])

        self.when(self.precedes(key, place, keys, places, last), enter)

    def widened(self, key: str) -> str:
        element = self.kind.llvm
        return key if element == "i64" else self.made(f"sext {element} {key} to i64")

    def last_key(self) -> str:
        """The key of the last pair, as narrow as elements are."""
        key = self.number("%keys", self.difference("%kept", "1"))
        element = self.kind.llvm
        return key if element == "i64" else self.made(f"trunc i64 {key} to {element}")


@functools.cache
def _entered(plan: SortPlan) -> Procedure:
    """Insert a pair that precedes the last."""
    code = _First(plan, "first_enter", ("keys", "places"), ("key", "place", "kept"))

    def goes_on(hole: str) -> str:
        before = code.made(f"call i64 @llvm.smax.i64(i64 {code.sum(hole, '-1')}, i64 0)")
        is_first = code.precedes("%key", "%place", "%keys", "%places", before)
        return code.made(f"and i1 {is_first}, {code.holds('sgt', hole, '0')}")

    def shift(hole: str) -> list[str]:
        before = code.sum(hole, "-1")
        for memory in ("%keys", "%places"):
            code.put_word(code.number(memory, before), memory, hole)
        return [before]

    (hole,) = code.carried([code.difference("%kept", "1")], goes_on, shift)
    code.put_word("%key", "%keys", hole)
    code.put_word("%place", "%places", hole)
    return code


@functools.cache
def _offered(plan: SortPlan) -> Procedure:
    """Offer element ``index`` of ``source``, whose index in the row is ``place``."""
    pointers, integers = ("source", "keys", "places"), ("index", "place", "kept")
    # One lane: the caller's vector procedures pass a scalar.
    code = _First(plan.of_one, "first_offer", pointers, integers)
    key = code.key(code.get(code.kind, code.at("%source", "%index")))
    code.offer(code.widened(key.text), "%place", "%keys", "%places")
    return code


@functools.cache
def _scanned(plan: SortPlan) -> Procedure:
    """Offer ``count`` elements of ``source`` from ``first`` on; the first has index ``place``."""
    pointers, integers = ("source", "keys", "places"), ("first", "place", "count", "kept")
    code = _First(plan, "first_scan", pointers, integers)
    lanes = str(plan.lanes)

    def one(number: str) -> None:
        index, place = code.sum("%first", number), code.sum("%place", number)
        code.invoke(_offered(plan), ["%source", "%keys", "%places", index, place, "%kept"])

    def vector(number: str) -> None:
        begin = code.product(number, lanes)
        key = code.key(code.get(code.kind, code.at("%source", code.sum("%first", begin))))
        bits = code.bits_of(key <= code.splat(code.last_key()))

        def lane(left: str) -> list[str]:
            number = code.made(f"call i64 @llvm.cttz.i64(i64 {left}, i1 true)")
            one(code.sum(begin, number))
            return [code.made(f"and i64 {left}, {code.sum(left, '-1')}")]

        code.carried([bits], lambda left: code.holds("ne", left, "0"), lane)

    whole, rest = code.quotient("%count", lanes)
    code.when(code.holds("ne", whole, "0"), lambda: code.loop(whole, vector))
    begin = code.product(whole, lanes)
    some = code.holds("ne", rest, "0")
    code.when(some, lambda: code.loop(rest, lambda number: one(code.sum(begin, number))))
    return code


@functools.cache
def selected(plan: SortPlan, block: int) -> Procedure:
    """Select the ``kept`` first of ``count`` elements of ``source`` from ``first`` on.

    The first of them has index ``place`` in its row. Blocks have ``block`` elements, and there are
    at least ``kept`` blocks; 0 searches all elements.
    """
    pointers, integers = ("source", "keys", "places"), ("first", "place", "count", "kept")
    code = _First(plan, f"first_of_{block}", pointers, integers)
    code.touches([span("source", "first", "count")], _FIRST)
    code.clear("%keys", "%places")
    memories = "%source", "%keys", "%places"

    def scan(begin: str, count: str) -> None:
        first, place = code.sum("%first", begin), code.sum("%place", begin)
        code.invoke(_scanned(plan), [*memories, first, place, count, "%kept"])

    if not block:
        scan("0", "%count")
        return code
    least, numbers = code.words(SELECTED), code.words(SELECTED)
    code.clear(least, numbers)
    size = str(block)

    def offer(number: str) -> None:
        begin = code.at("%source", code.sum("%first", code.product(number, size)))
        code.offer(code.widened(_least(code, begin, block)), number, least, numbers)

    blocks, rest = code.quotient("%count", size)
    code.loop(blocks, offer)
    code.loop("%kept", lambda n: scan(code.product(code.number(numbers, n), size), size))
    code.when(code.holds("ne", rest, "0"), lambda: scan(code.product(blocks, size), rest))
    return code


def _least(code: _First, address: str, block: int) -> str:
    """The least key of a block, as narrow as elements are."""
    vectors = block // code.lanes
    steps = min(vectors, _STEPS)
    least = code.room(code.kind)[1]
    code.stored(code.literal(code.kind, code.greatest), least, "0")

    def turn(number: str) -> None:
        first = code.product(number, str(steps * code.lanes))
        places = [code.sum(first, str(step * code.lanes)) for step in range(steps)]
        keys = [code.key(code.get(code.kind, code.at(address, place))) for place in places]
        while len(keys) > 1:
            keys = [code.lesser_of(*keys[n : n + 2]) for n in range(0, len(keys), 2)]
        code.stored(code.lesser_of(code.loaded(code.kind, least, "0"), keys[0]), least, "0")

    code.loop(str(vectors // steps), turn)
    made = code.loaded(code.kind, least, "0")
    name = f"llvm.vector.reduce.smin.{code.suffix(code.kind)}"
    return code.made(f"call {code.kind.llvm} @{name}({made.typed})")


@functools.cache
def merged_parts(plan: SortPlan) -> Procedure:
    """Select the ``kept`` first of ``count`` pairs, those of the parts of a row."""
    pointers = ("of_parts", "places_of_parts", "keys", "places")
    code = _First(plan, "first_of_parts", pointers, ("count", "kept"))
    code.touches([span(pointer, 0, "count") for pointer in pointers[:2]], _FIRST)
    code.clear("%keys", "%places")

    def one(index: str) -> None:
        pair = code.number("%of_parts", index), code.number("%places_of_parts", index)
        code.offer(*pair, "%keys", "%places")

    code.loop("%count", one)
    return code


@functools.cache
def values_at(plan: SortPlan) -> Procedure:
    """Store the elements at ``kept`` indices, counted from element ``first`` of ``source`` on."""
    pointers, integers = ("source", "places", "target"), ("first", "kept")
    code = _First(plan.of_one, "first_values", pointers, integers)

    def accesses(given: Mapping[str, Any]) -> Stmt:
        # The indices are those of the row, which `selected` has put into the list.
        def value(index: Expr) -> Stmt:
            return seq(given["places"].load(index), given["target"].store(index))

        return seq(given["source"].load_all(), for_each(value, given["kept"]))

    code.accesses(accesses)

    def one(index: str) -> None:
        place = code.sum("%first", code.number("%places", index))
        code.put(code.get(code.kind, code.at("%source", place)), code.at("%target", index))

    code.loop("%kept", one)
    return code


@functools.cache
def indices_as(plan: SortPlan, dtype: str) -> Procedure:
    """Store ``kept`` indices as numbers of ``dtype``, ``int32`` or ``int64``."""
    code = _First(plan.of_one, f"first_places_{dtype}", ("places", "target"), ("kept",))
    code.touches([span("places", 0, "kept")], [span("target", 0, "kept")])
    kind = KINDS[dtype]

    def one(index: str) -> None:
        place = code.number("%places", index)
        if kind.bits < 64:
            place = code.made(f"trunc i64 {place} to {kind.llvm}")
        size = kind.bits // 8
        address = code.address("%target", code.product(index, str(size)))
        code.act(f"store {kind.llvm} {place}, ptr {address}, align {size}")

    code.loop("%kept", one)
    return code
