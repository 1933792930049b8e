"""A stable merge sort of places: each pass is a shared loop over all elements.

Runs of ``width`` sorted places merge in pairs: an element's place in the merged run is its place in
its own run plus the number of elements of the other run that come before it, which a binary search
finds. So log2(n) passes sort n elements of every row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.scalar.elements import shared_loop
from tracejit.backends.tvm.ir.affine import Index, Opaque
from tracejit.backends.tvm.ir.dtypes import INDEX_TYPES
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    IfThenElse,
    Stmt,
    While,
    buffer,
    const,
    seq,
    store,
    tirx,
)
from tracejit.graph import Computation, Instruction
from tracejit.shapes import ElementType

Targets = Sequence[tuple[Instruction | None, Buffer]]
"""What is stored in the order of the sort: an operand, or the places in their rows."""


def merge_sort(
    frame: Frame,
    operands: Sequence[Instruction],
    comparator: Computation,
    dimension: int,
    kept: int,
    targets: Targets,
) -> Stmt:
    """The first ``kept`` of each row of all operands, in the order of ``comparator``."""
    frame.schedule = "merge sort"
    return IndexSort(frame, operands, comparator, dimension).statement(kept, targets)


class IndexSort:
    """A sort under construction, of the elements' places in their rows, in ``dtype``."""

    def __init__(
        self,
        frame: Frame,
        operands: Sequence[Instruction],
        comparator: Computation,
        dimension: int,
    ) -> None:
        self.frame, self.operands, self.comparator = frame, operands, comparator
        self.dtype = frame.index_dtype
        self._index_type = INDEX_TYPES[self.dtype]
        sizes = operands[0].array_shape.dimensions
        self.length = sizes[dimension]
        self.before = math.prod(sizes[:dimension])
        self.after = math.prod(sizes[dimension + 1 :])
        self.sizes, self.dimension = sizes, dimension

    def c(self, number: int) -> Expr:
        return const(number, self.dtype)

    def statement(self, kept: int, targets: Targets) -> Stmt:
        size = self.before * self.after * self.length
        if not size or not kept:
            return seq()
        given, other = (buffer("places", (size,), self.dtype) for _ in range(2))
        self.frame.scratch += [given, other]
        steps = [self._first(given)]
        width = 1
        while width < self.length:
            steps.append(self._merged(given, other, width))
            given, other = other, given
            width *= 2
        return seq(*steps, self.stored(given, kept, targets))

    def _first(self, places: Buffer) -> Stmt:
        size = self.before * self.after * self.length

        def step_of(number: Expr) -> list[Stmt]:
            return [store(places, number, tirx.truncmod(number, self.c(self.length)))]

        return shared_loop(size, step_of, self.dtype)

    def _merged(self, given: Buffer, other: Buffer, width: int) -> Stmt:
        size = self.before * self.after * self.length

        def step_of(number: Expr) -> list[Stmt]:
            local = {
                name: buffer(name, (1,), self.dtype, scope="local")
                for name in ("low", "high", "middle", "own", "first")
            }
            zero = const(0, "int32")
            low, high, middle = (local[n] for n in ("low", "high", "middle"))
            row = tirx.truncdiv(number, self.c(self.length))
            at = tirx.truncmod(number, self.c(self.length))
            base = row * self.c(self.length)
            pair = tirx.truncdiv(at, self.c(2 * width)) * self.c(2 * width)
            is_left = at - pair < self.c(width)
            # The other run, which may be short or empty.
            offset = tirx.Select(is_left, self.c(width), self.c(0))
            begin = tirx.min(pair + offset, self.c(self.length))
            end = tirx.min(begin + self.c(width), self.c(self.length))
            begins = [
                *(AllocBuffer(each) for each in local.values()),
                store(local["own"], zero, given[number]),
                store(local["first"], zero, begin),
                store(low, zero, begin),
                store(high, zero, end),
            ]
            # An element of the left run comes after those of the right that precede it; one of the
            # right run also after those of the left that it does not precede.
            theirs = given[base + middle[zero]]
            before = self._before(row, local["own"][zero], theirs, is_left)
            search = While(
                low[zero] < high[zero],
                seq(
                    store(middle, zero, tirx.truncdiv(low[zero] + high[zero], self.c(2))),
                    *before[0],
                    IfThenElse(
                        before[1],
                        store(low, zero, middle[zero] + self.c(1)),
                        store(high, zero, middle[zero]),
                    ),
                ),
            )
            inside = at - pair - tirx.Select(is_left, self.c(0), self.c(width))
            count = low[zero] - local["first"][zero]
            return [
                *begins,
                search,
                store(other, base + pair + inside + count, local["own"][zero]),
            ]

        return shared_loop(size, step_of, self.dtype)

    def _before(self, row: Expr, own: Expr, theirs: Expr, is_left: Expr) -> tuple[list[Stmt], Expr]:
        """Whether the other run's element comes first: for the left run only if it precedes."""
        emitter = self.emitter()
        mine = emitter.hold(own, self._index_type)
        other = emitter.hold(theirs, self._index_type)
        # One comparison: of theirs with ours for the left run, of ours with theirs for the right.
        a = emitter.hold(tirx.Select(is_left, other, mine), self._index_type)
        b = emitter.hold(tirx.Select(is_left, mine, other), self._index_type)
        values: list[Value] = []
        for operand in self.operands:
            for place in (a, b):
                value = emitter.value(operand, self.indices(row, place))
                values.append(emitter.bind(value, operand))
        precedes = emitter.hold(emitter.apply(self.comparator, values), ElementType.PRED)
        made = tirx.Select(is_left, precedes, tirx.Not(precedes))
        return [*emitter.allocations, *emitter.statements], made

    def emitter(self) -> Emitter:
        """A scope of its own."""
        return Emitter(self.frame.inputs, {}, uses=self.frame.uses, index_dtype=self.dtype)

    def indices(self, row: Expr, place: Expr) -> list[Index]:
        """The indices of an operand's element."""
        number = row
        made: dict[int, Expr] = {self.dimension: place}
        for d in reversed([d for d in range(len(self.sizes)) if d != self.dimension]):
            made[d] = tirx.truncmod(number, self.c(self.sizes[d]))
            number = tirx.truncdiv(number, self.c(self.sizes[d]))
        return [Opaque(made[d], frozenset()) for d in range(len(self.sizes))]

    def stored(
        self, places: Buffer, kept: int, targets: Targets, stride: int | None = None
    ) -> Stmt:
        """The first ``kept`` of each row, by their places; rows are ``stride`` apart."""
        stride = stride or self.length
        count = self.before * self.after * kept

        def step_of(number: Expr) -> list[Stmt]:
            row = tirx.truncdiv(number, self.c(kept))
            at = tirx.truncmod(number, self.c(kept))
            emitter = self.emitter()
            place = emitter.hold(places[row * self.c(stride) + at], self._index_type)
            outer = tirx.truncdiv(row, self.c(self.after))
            inner = tirx.truncmod(row, self.c(self.after))
            address = (outer * self.c(kept) + at) * self.c(self.after) + inner
            written: list[Stmt] = []
            for operand, target in targets:
                if operand is None:
                    written.append(store(target, address, tirx.Cast(str(target.dtype), place)))
                    continue
                element_type = operand.array_shape.element_type
                value = emitter.value(operand, self.indices(row, place))
                stored = emitter.store(target, address, value, element_type)
                written += stored if isinstance(stored, list) else [stored]
            return [*emitter.allocations, *emitter.statements, *written]

        return shared_loop(count, step_of, self.dtype)
