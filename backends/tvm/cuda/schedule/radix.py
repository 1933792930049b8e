"""Sorts by integer keys: a stable radix sort of keys and places, then the elements by their places.

    radix_sort(frame, operands, order, comparator, dimension, kept, targets)

Rows of a few thousand elements have a block each, which does all passes. Longer ones are cut into
tiles: each pass counts the digits of the tiles, sums the counts and moves the elements, three
launches in which no block waits for another. Where few elements of a long row are kept, its parts
are sorted first, and then the first elements of each part. The kernels are CUDA C,
in ``radix.cuh``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

from tracejit.backends.tvm.analysis.sort_keys import Order, order_of
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.scalar.elements import shared_loop
from tracejit.backends.tvm.codegen.scalar.merge_sort import IndexSort, Targets, merge_sort
from tracejit.backends.tvm.cuda.launches import SOURCE
from tracejit.backends.tvm.ir.tir import (
    Buffer,
    Evaluate,
    Expr,
    IfThenElse,
    Stmt,
    buffer,
    const,
    seq,
    store,
    tirx,
)
from tracejit.cuda.kernels import CudaKernel
from tracejit.graph import Computation, Instruction

THREADS, TILE, DIGITS = 256, 2048, 256
"""As in ``radix.cuh``."""
SHORT = 128
"""Rows up to this length are merged: a radix sort's passes cost the same for one element."""
LONGEST_ROW, LONGEST_OF_MANY = 1 << 13, 1 << 16
"""Rows up to this length have a block each; the second where there are as many as `MANY`."""
MANY = 128
PART = 4096
"""Elements of a part, where few of a row are kept."""
_MOVING = "radix_rows", "radix_move"
_TYPES = {
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "int32": "int",
    "int64": "long long",
}


def sort(
    frame: Frame,
    operands: Sequence[Instruction],
    comparator: Computation,
    dimension: int,
    kept: int,
    targets: Targets,
) -> Stmt:
    """The first ``kept`` of each row of all operands, in the order of ``comparator``."""
    order = order_of(comparator)
    if order is None or operands[0].array_shape.dimensions[dimension] <= SHORT or not kept:
        return merge_sort(frame, operands, comparator, dimension, kept, targets)
    work = _Radix(frame, operands, comparator, dimension, order)
    return work.sorted(kept, targets)


class _Radix(IndexSort):
    """A kernel under construction."""

    def __init__(
        self,
        frame: Frame,
        operands: Sequence[Instruction],
        comparator: Computation,
        dimension: int,
        order: Order,
    ) -> None:
        super().__init__(frame, operands, comparator, dimension)
        self._order = order
        self._key_type = f"uint{order.bits}"
        self._rows = self.before * self.after

    def sorted(self, kept: int, targets: Targets) -> Stmt:
        """The whole kernel."""
        if not self._rows:
            return seq()
        parts = -(-self.length // PART)
        if parts > 1 and 8 * kept <= PART and parts * kept <= LONGEST_ROW:
            self.frame.schedule = "radix sort of parts, then of what they keep"
            return self._selected(kept, parts, targets)
        keys, places = self._pair(self._rows * self.length)
        first = self._keyed(keys, places, self.length)
        longest = LONGEST_OF_MANY if self._rows >= MANY else LONGEST_ROW
        if self.length <= longest:
            self.frame.schedule = "radix sort by block a row"
            passes, found = self._by_rows(keys, places, self._rows, self.length)
        else:
            self.frame.schedule = "radix sort by tiles"
            passes, found = self._by_tiles(keys, places)
        return seq(first, *passes, self.stored(found, kept, targets))

    def _selected(self, kept: int, parts: int, targets: Targets) -> Stmt:
        """Sorts parts, then what is first in each; absent elements have the last key."""
        keys, places = self._pair(self._rows * parts * PART)
        first = self._keyed(keys, places, parts * PART)
        passes, found = self._by_rows(keys, places, self._rows * parts, PART)
        sorted_keys = keys if found is places else self.frame.scratch[-2]
        candidates, theirs = self._pair(self._rows * parts * kept)

        def step_of(number: Expr) -> list[Stmt]:
            part = tirx.truncdiv(number, self.c(kept))
            at = part * self.c(PART) + tirx.truncmod(number, self.c(kept))
            return [
                store(candidates, number, sorted_keys[at]),
                store(theirs, number, found[at]),
            ]

        gathered = shared_loop(self._rows * parts * kept, step_of, self.dtype)
        again, last = self._by_rows(candidates, theirs, self._rows, parts * kept)
        return seq(first, *passes, gathered, *again, self.stored(last, kept, targets, parts * kept))

    def _pair(self, size: int) -> tuple[Buffer, Buffer]:
        """Arrays of keys and of places."""
        made = buffer("keys", (size,), self._key_type), buffer("places", (size,), self.dtype)
        self.frame.scratch += made
        return made

    def _keyed(self, keys: Buffer, places: Buffer, length: int) -> Stmt:
        """The key of each element, in rows of ``length``, and its place."""
        operand = self.operands[self._order.operand]

        def step_of(number: Expr) -> list[Stmt]:
            row = tirx.truncdiv(number, self.c(length))
            at = tirx.truncmod(number, self.c(length))
            emitter = self.emitter()
            value = emitter.bind(emitter.value(operand, self.indices(row, at)), operand)
            made = seq(
                *emitter.allocations,
                *emitter.statements,
                store(keys, number, self._order.key(value)),
            )
            if length == self.length:
                return [made, store(places, number, at)]
            last = store(keys, number, tirx.Cast(self._key_type, const(-1, "int64")))
            return [
                IfThenElse(at < self.c(self.length), made, last),
                store(places, number, at),
            ]

        return shared_loop(self._rows * length, step_of, self.dtype)

    @property
    def _passes(self) -> int:
        return self._order.bits // 8

    def _kernel(
        self, name: str, length: int, blocks: int, threads: int, *arguments: Buffer
    ) -> Stmt:
        numbers = {
            "LENGTH": length,
            "CHUNKS": -(-length // TILE),
            "PASSES": self._passes,
        }
        head = [f"typedef {_TYPES[self._key_type]} Key;", f"typedef {_TYPES[self.dtype]} Place;"]
        head += [f"constexpr int {each} = {number};" for each, number in numbers.items()]
        texts = _texts()
        moves = [texts["radix_moves"]] if name in _MOVING else []
        text = "\n".join([*head, texts["helpers"], *moves, texts[name]])
        script = CudaKernel(text, name, blocks, threads).script()
        pointers = [argument.data for argument in arguments]
        return Evaluate(tirx.call_packed(SOURCE, script, *pointers))

    def _by_rows(
        self, keys: Buffer, places: Buffer, rows: int, length: int
    ) -> tuple[list[Stmt], Buffer]:
        """One launch, and where the sorted places are; the keys lie before them in the scratch."""
        others = self._pair(rows * length)
        arguments = keys, places, *others
        made = self._kernel("radix_rows", length, rows, THREADS, *arguments)
        return [made], others[1] if self._passes % 2 else places

    def _by_tiles(self, keys: Buffer, places: Buffer) -> tuple[list[Stmt], Buffer]:
        """Three launches for each digit, and where the sorted places are."""
        rows, length = self._rows, self.length
        chunks = -(-length // TILE)
        given, other = (keys, places), self._pair(rows * length)
        counts = buffer("counts", (rows * DIGITS * chunks,), "uint32")
        totals = buffer("totals", (rows * DIGITS,), "uint32")
        number = buffer("pass", (1,), "int32")
        self.frame.scratch += [counts, totals, number]
        made: list[Stmt] = [store(number, const(0, "int32"), const(0, "int32"))]
        sizes = length, rows * chunks, THREADS
        for _ in range(self._passes):
            made += [
                self._kernel("radix_count", *sizes, given[0], number, counts),
                self._kernel("radix_sums", length, rows * DIGITS // 4, 128, counts, totals, number),
                self._kernel("radix_move", *sizes, *given, *other, counts, totals, number),
            ]
            given, other = other, given
        return made, given[1]


@cache
def _texts() -> dict[str, str]:
    """What all kernels call, and the other parts by the names that their comments begin with."""
    text = resources.files(__package__).joinpath("radix.cuh").read_text(encoding="utf-8")
    helpers, *parts = text.split("\n// radix_")
    named = {f"radix_{part.partition(':')[0]}": f"// radix_{part}" for part in parts}
    return {"helpers": helpers, **named}
