"""Combiners: combine partial results of one Reduce, in the cheapest equivalent form.

combiner = Combiner(ReduceSpec(operands, initial, combine), count, machine)
combiner.joined(emitter, combiner.identity(), elements)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm.ir import TensorLoad

from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.analysis.monoids import identities
from tracejit.backends.tvm.codegen.emitter import Emitter, literal
from tracejit.backends.tvm.cpu import mathematics
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.dtypes import register_dtype
from tracejit.backends.tvm.ir.tir import Expr, tirx
from tracejit.graph import Computation, Instruction, Op
from tracejit.ops.computations import monoid
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import ADD, MAX, MIN
from tracejit.ops.reduction import extreme
from tracejit.shapes import ElementType

# The least elements for maxima by ranks.
RANKED = 8
# The most rows of sums for which the second-level cache keeps up.
SHORT = 1 << 14

# Types whose registers compare in the order of their values.
_AS_HELD = frozenset({ElementType.F32, ElementType.F64, ElementType.S32, ElementType.S64})

# Reductions that LLVM vectorises: those that are single instructions.
_EXTREMES: dict[Op | None, Callable[..., Expr]] = {
    MAX: mathematics.combined_max,
    MIN: mathematics.combined_min,
}


# Float to rank for maxima and minima, and back.
_RANKS: dict[Op, tuple[Callable[..., Expr], Callable[..., Expr]]] = {
    MAX: (mathematics.rank_for_maximum, mathematics.maximum_of_rank),
    MIN: (mathematics.rank_for_minimum, mathematics.minimum_of_rank),
}


def held(element_type: ElementType) -> ElementType:
    """Narrow floats accumulate in f32."""
    if element_type.is_floating and element_type.bits < 32:
        return ElementType.F32
    return element_type


@dataclass(frozen=True)
class ReduceSpec:
    """The operands and the combiner of a Reduce.

    ``step`` combines a partial result with the next element; it defaults to ``combine``. It may be
    simpler, because elements come in memory order.
    """

    operands: tuple[Instruction, ...]
    initial: tuple[Instruction, ...]
    combine: Computation
    step: Computation | None = None

    @property
    def element_types(self) -> list[ElementType]:
        return [operand.array_shape.element_type for operand in self.operands]


class Combiner:
    """Combines partial results in registers, for reductions of ``count`` elements.

    Accumulators of maxima and minima of many floats hold ranks, which `values_of` converts back.
    ``finds`` is "argmax" or "argmin" for reductions that find indices.
    """

    def __init__(self, work: ReduceSpec, count: int, machine: Machine) -> None:
        self.work = work
        self.types = work.element_types
        self.extreme = self._extreme_by_rank(count, machine)
        self.finds = extreme(work.combine) if _AS_HELD.issuperset(self.types) else None

    def combined(
        self, emitter: Emitter, left: Sequence[Value], right: Sequence[Value]
    ) -> list[Value]:
        """Two partial results combined, in a form that is stored and not used otherwise."""
        if self.extreme is not None:
            return [mathematics.higher_rank(left[0], right[0], self.register())]
        return self._applied(self.work.combine, emitter, [*left, *right], once=True)

    def joined(
        self, emitter: Emitter, values: Sequence[Value], elements: Sequence[Value], once: bool
    ) -> list[Value]:
        """A partial result combined with the next element, to be used ``once``."""
        if self.extreme is not None:
            return self.combined(emitter, values, self._ranked(elements))
        step = self.work.step or self.work.combine
        return self._applied(step, emitter, [*values, *elements], once)

    def initial(self, emitter: Emitter) -> list[Value]:
        return self._ranked([emitter.value(initial, ()) for initial in self.work.initial])

    def identity(self) -> list[Value]:
        values = identities(self.work.combine)
        assert values is not None
        literals = [literal(constant(v, held(t))) for v, t in zip(values, self.types, strict=True)]
        return self._ranked(literals)

    def values_of(self, partial: Sequence[Value]) -> list[Value]:
        """The values of partial results, which may be ranks."""
        if self.extreme is None:
            return list(partial)
        _, value_of = _RANKS[self.extreme]
        return [value_of(rank, self.register()) for rank in partial]

    def waits(self, extent: int) -> bool:
        """Whether the latency of a step exceeds the memory time of a row of ``extent``.

        A sum takes three cycles, a float maximum or an argmax several instructions. Long sums wait
        for memory anyway.
        """
        if self.types[0] is ElementType.PRED:  # booleans are converted to masks and back
            return True
        op = monoid(self.work.combine)
        slow = op in (MAX, MIN) or extreme(self.work.combine) is not None
        return self.types[0].is_floating and (slow or (op is ADD and extent <= SHORT))

    def _applied(
        self, computation: Computation, emitter: Emitter, values: Sequence[Value], once: bool
    ) -> list[Value]:
        if self.finds is not None:
            return self._better(emitter, values, computation is not self.work.combine)
        if len(self.types) > 1:
            return list(emitter.accumulate(computation, values))
        combine = _EXTREMES.get(monoid(computation))
        if combine is not None and self.types[0].is_floating:
            return [combine(*values, self.register())]
        return [emitter.accumulate(computation, values, once)]

    # Argmax and argmin: one mask for two selects, without intermediate values

    def _better(self, emitter: Emitter, values: Sequence[Value], is_later: bool) -> list[Value]:
        """`ops.reduction.arg_computation`, or `analysis.argminmax.in_order` if ``is_later``."""
        best, best_index, value, index = (
            each if isinstance(each, TensorLoad) else emitter.hold(each, t)
            for each, t in zip(values, (*self.types, *self.types), strict=True)
        )
        is_floating = self.types[0].is_floating
        better = value > best if self.finds == "argmax" else value < best
        if is_later:
            worse = value <= best if self.finds == "argmax" else value >= best
            take = tirx.And(tirx.Not(worse), best == best) if is_floating else better
        else:
            equal = value == best
            if is_floating:
                is_nan, was_nan = tirx.Not(value == value), tirx.Not(best == best)
                better = tirx.Or(better, tirx.And(is_nan, tirx.Not(was_nan)))
                equal = tirx.Or(equal, tirx.And(is_nan, was_nan))
            take = tirx.Or(better, tirx.And(equal, index < best_index))
        chosen = [tirx.Select(take, value, best), tirx.Select(take, index, best_index)]
        return [emitter.hold(each, t) for each, t in zip(chosen, self.types, strict=True)]

    # Maxima and minima of many floats: accumulators hold ranks

    def _extreme_by_rank(self, count: int, machine: Machine) -> Op | None:
        """MAX or MIN if ranks take fewer instructions: on x86, from `RANKED` elements on."""
        op = monoid(self.work.combine)
        least = {ElementType.F32: 32, ElementType.F64: 64}.get(held(self.types[0]))
        if op not in (MAX, MIN) or least is None:
            return None
        return op if count >= RANKED and machine.vector_bytes >= least else None

    def register(self) -> str:
        return register_dtype(held(self.types[0]))

    def _ranked(self, values: Sequence[Value]) -> list[Value]:
        if self.extreme is None:
            return list(values)
        rank, _ = _RANKS[self.extreme]
        return [rank(value, self.register()) for value in values]
