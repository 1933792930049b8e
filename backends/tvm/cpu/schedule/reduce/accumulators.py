"""Building blocks of reductions: accumulators, and vectorised sweeps along a row.

A `Sweep` combines all elements in some ranges of the reduced axes, for one Reduce or for several
over the same index space. The caller chooses the positions on the kept axes, and stores the
results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.analysis.monoids import identities, may_repeat
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import Frame, memory_buffer
from tracejit.backends.tvm.codegen.loop_nest import Axis, Count, Space
from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.mathematics.argminmax import BEST
from tracejit.backends.tvm.cpu.schedule.lanes import as_index, side_by_side
from tracejit.backends.tvm.cpu.schedule.reduce.combining import Combiner, ReduceSpec, held
from tracejit.backends.tvm.ir.affine import Index, LoopVariable
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import (
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    buffer,
    const,
    i32,
    loop,
    reinterpret,
    seq,
    store,
    tirx,
)
from tracejit.backends.tvm.tune.knobs import counts
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape


@dataclass(frozen=True)
class Reducer:
    """The reductions of a kernel: the operands of ``reduced`` at indices over kept and reduced
    variables.

    ``locate(kept, reduced)`` gives the operands' indices. ``results`` are the kernel's outputs:
    (root, buffer) pairs evaluated at the kept index when the values of ``anchors``, one for each
    operand, are known.
    """

    parts: tuple[ReduceSpec, ...]
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    locate: Callable[[Sequence[Index], Sequence[Index]], list[Index]]
    anchors: tuple[Instruction, ...]
    results: tuple[tuple[Instruction, Buffer], ...]

    @property
    def operands(self) -> list[Instruction]:
        return [operand for part in self.parts for operand in part.operands]

    @property
    def initial(self) -> list[Instruction]:
        return [initial for part in self.parts for initial in part.initial]

    @property
    def element_types(self) -> list[ElementType]:
        return [operand.array_shape.element_type for operand in self.operands]

    @property
    def has_identities(self) -> bool:
        """Whether elements may be combined in any order."""
        return all(identities(part.combine) is not None for part in self.parts)


# The number of accumulator vectors along a row, if elements cost at most `CHEAP`.
GROUP = 4
CHEAP = 4
# The least length of a row: shorter ones, such as windows, are left to LLVM's SLP vectoriser.
WINDOW = 64


class Accumulators:
    """Local buffers, one per operand, of ``width`` partial results each."""

    def __init__(self, element_types: Sequence[ElementType], width: int) -> None:
        self.element_types = element_types
        self.buffers = [memory_buffer(Shape(held(t), (width,)), "acc") for t in element_types]
        self.allocations = [AllocBuffer(b) for b in self.buffers]

    def read(self, emitter: Emitter, at: Expr) -> list[Value]:
        pairs = zip(self.buffers, self.element_types, strict=True)
        return [emitter.load(b, at, held(t)) for b, t in pairs]

    def write(self, emitter: Emitter, at: Expr, values: Sequence[Value]) -> list[Stmt]:
        statements: list[Stmt] = []
        for b, t, value in zip(self.buffers, self.element_types, values, strict=True):
            made = emitter.store(b, at, value, held(t))
            statements.extend(made if isinstance(made, list) else [made])
        return statements


@dataclass(frozen=True)
class Range:
    """A range of an axis: ``extent`` steps from ``begin`` on."""

    axis: Axis
    begin: Expr
    extent: Expr


class Sweep(ABC):
    """One reduction inside loops that the caller writes."""

    def __init__(
        self,
        frame: Frame,
        reducer: Reducer,
        kept: Space,
        reduced: Space,
        positions: dict[LoopVariable, Expr],
    ) -> None:
        self.frame = frame
        self.reducer = reducer
        self.dtype = frame.index_dtype
        self.kept = kept
        self.reduced = reduced
        self.positions = positions
        count = math.prod(reducer.reduced)
        self.combiners = [Combiner(part, count, machine_of(frame)) for part in reducer.parts]
        self.may_repeat = all(may_repeat(part.combine) for part in reducer.parts)

    @property
    def cost(self) -> int:
        """The cost of an element."""
        return self.frame.cost

    @abstractmethod
    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        """An emitter for ``lanes`` adjacent elements at the current positions."""

    def elements(self, emitter: Emitter) -> list[Value]:
        where = self.reducer.locate(self.kept.indices, self.reduced.indices)
        return [emitter.value(operand, where) for operand in self.reducer.operands]

    def combined(
        self, emitter: Emitter, left: Sequence[Value], right: Sequence[Value]
    ) -> list[Value]:
        """Two partial results combined, in a form that is stored and not used otherwise."""
        return [
            value
            for combiner, (own, other) in self._apart(left, right)
            for value in combiner.combined(emitter, own, other)
        ]

    def joined(self, emitter: Emitter, values: Sequence[Value], once: bool = True) -> list[Value]:
        """A partial result combined with the element at the current positions, to be used
        ``once``.
        """
        return [
            value
            for combiner, (own, elements) in self._apart(values, self.elements(emitter))
            for value in combiner.joined(emitter, own, elements, once)
        ]

    def _apart(
        self, *values: Sequence[Value]
    ) -> Iterator[tuple[Combiner, tuple[Sequence[Value], ...]]]:
        """Each combiner with its slice of ``values``, which have one for each operand."""
        first = 0
        for combiner in self.combiners:
            end = first + len(combiner.types)
            yield combiner, tuple(each[first:end] for each in values)
            first = end

    def best_of(self, group: int) -> tuple[Callable[..., Expr], ...] | None:
        """The operations for number and index of an argmax over ``group`` vectors, if there are
        any.
        """
        finds = self.combiners[0].finds
        if len(self.combiners) > 1 or finds is None:
            return None
        number, place = self.reducer.element_types
        return None if place.bits > number.bits else BEST.get((finds, group))

    def found_at(
        self,
        emitter: Emitter,
        best: Sequence[Callable[..., Expr]],
        along: Sequence[Accumulators],
        lane: Expr,
    ) -> list[Stmt]:
        """Write the number and index that ``best`` finds in all of ``along`` to the
        first of them.
        """
        number, place = self.reducer.element_types
        dtype, own = register_dtype(number), register_dtype(place)
        bits = f"int{number.bits}"
        pairs = [each.read(emitter, lane) for each in along]
        kept = [where if own == bits else tirx.Cast(bits, where) for _, where in pairs]
        given = [x for x, _ in pairs] + [reinterpret(dtype, where) for where in kept]
        made, found = (each(*given, dtype=dtype) for each in best)
        found = reinterpret(bits, found)
        values = [made, found if own == bits else tirx.Cast(own, found)]
        held_values = [
            emitter.hold(value, kind) for value, kind in zip(values, (number, place), strict=True)
        ]
        return along[0].write(emitter, lane, held_values)

    def initial(self, emitter: Emitter) -> list[Value]:
        return [value for combiner in self.combiners for value in combiner.initial(emitter)]

    def identity(self) -> list[Value]:
        return [value for combiner in self.combiners for value in combiner.identity()]

    def settle(self, emitter: Emitter, values: Sequence[Value]) -> None:
        """Round the results and define them for the epilogue."""
        made_of = [v for combiner, (own,) in self._apart(values) for v in combiner.values_of(own)]
        for anchor, value, element_type in zip(
            self.reducer.anchors, made_of, self.reducer.element_types, strict=True
        ):
            made, own = emitter.settled(value, element_type), anchor.array_shape.element_type
            if own is not element_type:
                made = tirx.Cast(register_dtype(own), made)
            emitter.given[anchor] = emitter.hold(made, own)

    def count(self, axis: Axis) -> Count:
        return axis.count(self.positions)

    def index(self, lane: Expr) -> Expr:
        return as_index(lane, self.dtype)

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def vector(
        self, lanes: int, axis: Axis | None, body: Callable[[Emitter, Expr], list[Stmt]]
    ) -> list[Stmt]:
        """``body`` for every lane, with positions on ``axis`` relative to the current one."""
        start = None if axis is None else self.positions[axis.last]

        def stand(lane: Expr) -> Emitter:
            if axis is not None:
                self.positions[axis.last] = start + self.index(lane)
            return self.emitter(lanes, lane)

        statements = side_by_side(lanes, stand, body)
        if axis is not None:
            self.positions[axis.last] = start
        return statements

    def step(
        self, into: Accumulators, first: Expr | None = None
    ) -> Callable[[Emitter, Expr], list[Stmt]]:
        """A body that combines one more element into accumulator ``lane``, counted
        from ``first``.
        """

        def step(emitter: Emitter, lane: Expr) -> list[Stmt]:
            lane = lane if first is None else first + lane
            values = self.joined(emitter, into.read(emitter, lane))
            return into.write(emitter, lane, values)

        return step

    def scalar(self, body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
        return self.vector(1, None, body)

    def row(self, axis: Axis, ranges: Sequence[Range], total: Accumulators, at: Expr) -> list[Stmt]:
        """Combine everything in ``ranges`` into accumulator ``at`` of ``total``."""
        *outer, inner = ranges
        lanes = self.lanes(axis.extent)
        group = self.group(axis.extent, lanes)
        # LLVM takes a third longer if all accumulators are one buffer.
        along = [Accumulators(self.reducer.element_types, lanes) for _ in range(group)]

        def vectors(begin: Expr, count: int) -> list[Stmt]:
            """``count`` vectors from ``begin`` on, each into its own accumulators."""
            statements = []
            for number in range(count):
                self.positions[axis.last] = begin + self.number(number * lanes)
                statements += self.vector(lanes, axis, self.step(along[number]))
            return statements

        def overlapping(extent: int) -> list[Stmt]:
            """A row in whole groups of vectors; the last group overlaps the one before."""
            size = group * lanes
            last = self.number(extent - size)
            start = buffer("start", (1,), self.dtype, scope="local")

            def block(number: Expr) -> list[Stmt]:
                # LLVM would peel the last iteration, because of its minimum.
                first = mathematics.kept(number, self.dtype) * self.number(size)
                first = inner.begin + (tirx.min(first, last) if extent % size else first)
                return [AllocBuffer(start), store(start, 0, first), *vectors(start[0], group)]

            return [loop(-(-extent // size), block, dtype=self.dtype)]

        def sweep() -> list[Stmt]:
            if self.may_repeat and isinstance(inner.extent, tirx.IntImm):
                if int(inner.extent) >= max(group * lanes, WINDOW):
                    return overlapping(int(inner.extent))
            statements: list[Stmt] = []
            done: Expr = self.number(0)
            for count in sorted({group, 1}, reverse=True):
                size = self.number(lanes * count)
                blocks = tirx.truncdiv(inner.extent - done, size)
                begin = inner.begin + done

                def block(
                    number: Expr, begin: Expr = begin, size: Expr = size, count: int = count
                ) -> list[Stmt]:
                    return vectors(begin + number * size, count)

                statements.append(loop(blocks, block, dtype=self.dtype))
                done = done + blocks * size

            def single(number: Expr) -> list[Stmt]:
                self.positions[axis.last] = inner.begin + done + number
                return self.scalar(lambda e, lane: self.step(total)(e, at))

            return [*statements, loop(inner.extent - done, single, dtype=self.dtype)]

        def pair(into: Accumulators, other: Accumulators, width: int = 0) -> list[Stmt]:
            """Combine ``into`` with ``other``, or its first ``width`` results with the
            next ones.
            """

            def both(emitter: Emitter, lane: Expr) -> list[Stmt]:
                left, right = into.read(emitter, lane), other.read(emitter, lane + width)
                return into.write(emitter, lane, self.combined(emitter, left, right))

            return self.vector(width or lanes, None, both)

        def begin(into: Accumulators) -> list[Stmt]:
            return self.vector(lanes, None, lambda e, lane: into.write(e, lane, self.identity()))

        def conclude(emitter: Emitter, lane: Expr) -> list[Stmt]:
            left, right = total.read(emitter, at), along[0].read(emitter, i32(0))
            return total.write(emitter, at, self.combined(emitter, left, right))

        def together() -> list[Stmt]:
            """Combine all accumulators into the first one of the first vector."""
            best = self.best_of(group)
            if best is not None:
                find = self.found_at
                return self.vector(lanes, None, lambda e, lane: find(e, best, along, lane))
            halves = [group >> n for n in range(1, group.bit_length())]
            widths = [lanes >> n for n in range(1, lanes.bit_length())]
            return [
                *(s for n in halves for i in range(n) for s in pair(along[i], along[i + n])),
                *(s for width in widths for s in pair(along[0], along[0], width)),
            ]

        return [
            *[allocation for each in along for allocation in each.allocations],
            *[statement for each in along for statement in begin(each)],
            self.over(outer, sweep),
            *together(),
            *self.scalar(conclude),
        ]

    def lanes(self, extent: int) -> int:
        return self.frame.lanes(self._widest(), extent)

    def fills_vectors(self, lanes: int) -> bool:
        """Whether ``lanes`` numbers fill one or more vectors of the processor."""
        return lanes * self._widest().dtype.itemsize >= machine_of(self.frame).vector_bytes

    def _widest(self) -> ElementType:
        types = [held(t) for t in self.reducer.element_types]
        return max(types, key=lambda t: t.dtype.itemsize)

    def group(self, extent: int, lanes: int) -> int:
        """The number of accumulator vectors along a row of ``extent`` for each Reduce."""
        waits = self.cost <= CHEAP and any(c.waits(extent) for c in self.combiners)
        most = max(GROUP // len(self.combiners), 1)
        pick = most if waits and extent >= 2 * most * lanes else 1
        others = [n for n in (1, 2, GROUP, 2 * GROUP) if extent >= 2 * n * lanes]
        return self.frame.choices.of("accumulators", counts(pick, others, "vectors"))

    def over(self, ranges: Sequence[Range], body: Callable[[], list[Stmt]]) -> Stmt:
        if not ranges:
            return seq(*body())
        first, *rest = ranges

        def inside(number: Expr) -> Stmt:
            self.positions[first.axis.last] = first.begin + number
            return self.over(rest, body)

        return loop(first.extent, inside, dtype=self.dtype)
