"""The pieces of which reductions are made: accumulators, and vectors that run along a row.

A `Sweep` combines everything in some ranges of the reduced axes. What surrounds it decides where
the kept axes stand, and what becomes of the results.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.ir import TensorLoad

from tracejit.backends.tvm import mathematics
from tracejit.backends.tvm.affine import Index, LoopVariable
from tracejit.backends.tvm.choices import counts
from tracejit.backends.tvm.emitter import Emitter, literal
from tracejit.backends.tvm.extremes import extreme
from tracejit.backends.tvm.reducers import identities, monoid
from tracejit.backends.tvm.schedule.frame import Frame, memory_buffer
from tracejit.backends.tvm.schedule.loops import Axis, Count, Space
from tracejit.backends.tvm.scope import Value
from tracejit.backends.tvm.tir import (
    VECTORIZED,
    AllocBuffer,
    Buffer,
    Expr,
    Stmt,
    const,
    i32,
    loop,
    seq,
    tirx,
)
from tracejit.backends.tvm.types import register_dtype
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import ADD, MAX, MIN
from tracejit.shapes import ElementType, Shape


@dataclass(frozen=True)
class Reducer:
    """What is combined: operands at an index over kept and reduced variables, and how.

    ``step`` combines what was combined so far with the next element; by default it is ``combine``.
    It may be simpler, where elements come in the order in which they lie.

    ``locate(kept, reduced)`` gives the operands' indices. ``results`` are the kernel's outputs:
    (root, buffer) pairs evaluated at the kept index with each of ``hearts`` already known.
    """

    operands: tuple[Instruction, ...]
    initial: tuple[Instruction, ...]
    combine: Computation
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    locate: Callable[[Sequence[Index], Sequence[Index]], list[Index]]
    hearts: tuple[Instruction, ...]
    results: tuple[tuple[Instruction, Buffer], ...]
    step: Computation | None = None

    @property
    def element_types(self) -> list[ElementType]:
        return [operand.array_shape.element_type for operand in self.operands]


# Vectors of accumulators along a row whose elements cost at most `CHEAP`, where they help.
GROUP = 4
CHEAP = 4
# Rows of sums up to which a second-level cache keeps pace.
SHORT = 1 << 14
# Maxima of fewer elements are found without ranks.
RANKED = 8


# Types whose registers compare as they do.
_AS_HELD = frozenset({ElementType.F32, ElementType.F64, ElementType.S32, ElementType.S64})


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


def held(element_type: ElementType) -> ElementType:
    """Narrow floats accumulate in f32."""
    if element_type.is_floating and element_type.bits < 32:
        return ElementType.F32
    return element_type


@dataclass(frozen=True)
class Range:
    """A stretch of an axis: from ``begin``, ``extent`` steps."""

    axis: Axis
    begin: Expr
    extent: Expr


class Sweep(ABC):
    """One reduction inside loops that somebody else writes."""

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
        self.extreme = self._extreme_by_rank()
        self._finds = self._found()

    @abstractmethod
    def emitter(self, lanes: int = 1, lane: Expr | None = None) -> Emitter:
        """A scope for ``lanes`` elements side by side, at the positions as they stand."""

    def elements(self, emitter: Emitter) -> list[Value]:
        where = self.reducer.locate(self.kept.indices, self.reduced.indices)
        return [emitter.value(operand, where) for operand in self.reducer.operands]

    def combined(
        self, emitter: Emitter, left: Sequence[Value], right: Sequence[Value]
    ) -> list[Value]:
        """Two partial results made one, to be written and not used otherwise."""
        if self.extreme is not None:
            return [mathematics.higher_rank(left[0], right[0], self.register())]
        return self._applied(self.reducer.combine, emitter, [*left, *right], once=True)

    def joined(self, emitter: Emitter, values: Sequence[Value], once: bool = True) -> list[Value]:
        """A partial result with the element at the positions as they stand, to be used ``once``."""
        if self.extreme is not None:
            return self.combined(emitter, values, self._ranked(self.elements(emitter)))
        step = self.reducer.step or self.reducer.combine
        return self._applied(step, emitter, [*values, *self.elements(emitter)], once)

    def _applied(
        self, computation: Computation, emitter: Emitter, values: Sequence[Value], once: bool
    ) -> list[Value]:
        if self._finds is not None:
            return self._better(emitter, values, computation is not self.reducer.combine)
        if len(self.reducer.operands) > 1:
            return list(emitter.accumulate(computation, values))
        return [emitter.accumulate(computation, values, once)]

    # Where an extreme is: one mask for two choices, and nothing held in between

    def _found(self) -> str | None:
        """What `extreme` says, of types whose registers compare as they do."""
        types = self.reducer.element_types
        return extreme(self.reducer.combine) if _AS_HELD.issuperset(types) else None

    def _better(self, emitter: Emitter, values: Sequence[Value], is_later: bool) -> list[Value]:
        """As `ops.reduction.arg_computation`, or as `extremes.in_order` if ``is_later``."""
        types = self.reducer.element_types
        best, best_index, value, index = (
            each if isinstance(each, TensorLoad) else emitter.hold(each, t)
            for each, t in zip(values, (*types, *types), strict=True)
        )
        better = value > best if self._finds == "argmax" else value < best
        if is_later:
            worse = value <= best if self._finds == "argmax" else value >= best
            take = tirx.And(tirx.Not(worse), best == best) if types[0].is_floating else better
        else:
            equal = value == best
            if types[0].is_floating:
                is_nan, was_nan = tirx.Not(value == value), tirx.Not(best == best)
                better = tirx.Or(better, tirx.And(is_nan, tirx.Not(was_nan)))
                equal = tirx.Or(equal, tirx.And(is_nan, was_nan))
            take = tirx.Or(better, tirx.And(equal, index < best_index))
        chosen = [tirx.Select(take, value, best), tirx.Select(take, index, best_index)]
        return [emitter.hold(each, t) for each, t in zip(chosen, types, strict=True)]

    def initial(self, emitter: Emitter) -> list[Value]:
        return self._ranked([emitter.value(initial, ()) for initial in self.reducer.initial])

    def settle(self, emitter: Emitter, values: Sequence[Value]) -> None:
        """Rounds the results and makes them known to the epilogue."""
        for heart, value, element_type in zip(
            self.reducer.hearts, self._unranked(values), self.reducer.element_types, strict=True
        ):
            made, own = emitter.settled(value, element_type), heart.array_shape.element_type
            if own is not element_type:
                made = tirx.Cast(register_dtype(own), made)
            emitter.given[heart] = emitter.hold(made, own)

    def count(self, axis: Axis) -> Count:
        def place(number: Expr) -> None:
            self.positions[axis.last] = number

        return Count(axis.extent, place)

    def index(self, lane: Expr) -> Expr:
        return lane if self.dtype == "int32" else tirx.Cast(self.dtype, lane)

    def number(self, value: int) -> Expr:
        return const(value, self.dtype)

    def vector(
        self, lanes: int, axis: Axis | None, body: Callable[[Emitter, Expr], list[Stmt]]
    ) -> list[Stmt]:
        """``body`` for every lane, the position on ``axis`` counted from where it stands now."""
        allocations: list[Stmt] = []
        start = None if axis is None else self.positions[axis.last]

        def each(lane: Expr) -> Stmt:
            if axis is not None:
                self.positions[axis.last] = start + self.index(lane)
            emitter = self.emitter(lanes, lane)
            statements = body(emitter, lane)
            allocations.extend(emitter.allocations)
            return seq(*emitter.statements, *statements)

        statement = each(i32(0)) if lanes == 1 else loop(lanes, each, VECTORIZED)
        if axis is not None:
            self.positions[axis.last] = start
        return [*allocations, statement]

    def step(
        self, into: Accumulators, first: Expr | None = None
    ) -> Callable[[Emitter, Expr], list[Stmt]]:
        """One more element combined into accumulator ``lane``, counted from ``first``."""

        def step(emitter: Emitter, lane: Expr) -> list[Stmt]:
            lane = lane if first is None else first + lane
            values = self.joined(emitter, into.read(emitter, lane))
            return into.write(emitter, lane, values)

        return step

    def scalar(self, body: Callable[[Emitter, Expr], list[Stmt]]) -> list[Stmt]:
        return self.vector(1, None, body)

    def row(self, axis: Axis, ranges: Sequence[Range], total: Accumulators, at: Expr) -> list[Stmt]:
        """Combines everything in ``ranges`` into accumulator ``at`` of ``total``."""
        *outer, inner = ranges
        lanes = self.lanes(axis.extent)
        group = self.group(axis.extent, lanes)
        # LLVM takes a third longer over one buffer of all.
        along = [Accumulators(self.reducer.element_types, lanes) for _ in range(group)]

        def vectors(begin: Expr, count: int) -> list[Stmt]:
            """``count`` vectors from ``begin`` on, each into accumulators of its own."""
            statements = []
            for number in range(count):
                self.positions[axis.last] = begin + self.number(number * lanes)
                statements += self.vector(lanes, axis, self.step(along[number]))
            return statements

        def sweep() -> list[Stmt]:
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

        def pair(into: Accumulators, other: Accumulators, width: int, offset: int) -> list[Stmt]:
            """The first results of ``into`` with as many of ``other``, from ``offset`` on."""

            def both(emitter: Emitter, lane: Expr) -> list[Stmt]:
                left, right = into.read(emitter, lane), other.read(emitter, lane + offset)
                return into.write(emitter, lane, self.combined(emitter, left, right))

            return self.vector(width, None, both)

        def begin(into: Accumulators) -> list[Stmt]:
            return self.vector(lanes, None, lambda e, lane: into.write(e, lane, self.identity()))

        def conclude(emitter: Emitter, lane: Expr) -> list[Stmt]:
            left, right = total.read(emitter, at), along[0].read(emitter, i32(0))
            return total.write(emitter, at, self.combined(emitter, left, right))

        halves = [group >> n for n in range(1, group.bit_length())]
        widths = [lanes >> n for n in range(1, lanes.bit_length())]
        return [
            *[allocation for each in along for allocation in each.allocations],
            *[statement for each in along for statement in begin(each)],
            self.over(outer, sweep),
            *[s for n in halves for i in range(n) for s in pair(along[i], along[i + n], lanes, 0)],
            *[s for width in widths for s in pair(along[0], along[0], width, width)],
            *self.scalar(conclude),
        ]

    def lanes(self, extent: int) -> int:
        types = [held(t) for t in self.reducer.element_types]
        return self.frame.lanes(max(types, key=lambda t: t.dtype.itemsize), extent)

    def group(self, extent: int, lanes: int) -> int:
        """How many vectors of accumulators run along a row of ``extent``.

        Each step waits for the one before: of sums three cycles, of the greater of two floats and
        of the place of the greatest several instructions. Long sums wait for memory anyway.
        """
        op = monoid(self.reducer.combine)
        waits = op in (MAX, MIN) or extreme(self.reducer.combine) is not None
        waits = waits or (op is ADD and extent <= SHORT)
        element_type = self.reducer.element_types[0]
        waits = waits and element_type.is_floating
        # Truth goes through masks and back.
        waits = (waits or element_type is ElementType.PRED) and self.frame.cost <= CHEAP
        pick = GROUP if waits and extent >= 2 * GROUP * lanes else 1
        others = [n for n in (1, 2, GROUP, 2 * GROUP) if extent >= 2 * n * lanes]
        return self.frame.choices.of("accumulators", counts(pick, others, "vectors"))

    def identity(self) -> list[Value]:
        values = identities(self.reducer.combine)
        assert values is not None
        types = self.reducer.element_types
        literals = [literal(constant(v, held(t))) for v, t in zip(values, types, strict=True)]
        return self._ranked(literals)

    # Maxima and minima of many floats: accumulators hold ranks

    def _extreme_by_rank(self) -> Op | None:
        """MAX or MIN where ranks take fewer instructions: on x86, from `RANKED` elements on."""
        op = monoid(self.reducer.combine)
        held_type = held(self.reducer.element_types[0])
        least = {ElementType.F32: 32, ElementType.F64: 64}.get(held_type)
        if op not in (MAX, MIN) or least is None:
            return None
        many = math.prod(self.reducer.reduced) >= RANKED
        return op if many and self.frame.machine.vector_bytes >= least else None

    def register(self) -> str:
        return register_dtype(held(self.reducer.element_types[0]))

    def _ranked(self, values: Sequence[Value]) -> list[Value]:
        if self.extreme is None:
            return list(values)
        rank = mathematics.rank_for_maximum
        if self.extreme is MIN:
            rank = mathematics.rank_for_minimum
        return [rank(value, self.register()) for value in values]

    def _unranked(self, values: Sequence[Value]) -> list[Value]:
        if self.extreme is None:
            return list(values)
        value_of = mathematics.maximum_of_rank
        if self.extreme is MIN:
            value_of = mathematics.minimum_of_rank
        return [value_of(rank, self.register()) for rank in values]

    def over(self, ranges: Sequence[Range], body: Callable[[], list[Stmt]]) -> Stmt:
        if not ranges:
            return seq(*body())
        first, *rest = ranges

        def inside(number: Expr) -> Stmt:
            self.positions[first.axis.last] = first.begin + number
            return self.over(rest, body)

        return loop(first.extent, inside, dtype=self.dtype)
