"""Hoists products from the iterations of a Scan into one product before or after it.

    hoist_scan_contractions(roots)

    z_t = x_t @ w             z = x @ w           before the loop, which reads its slices
    y_t = f(t) @ w            y = f @ w           after the loop, which stacks f
    s = s + a_t^T @ b_t       s = s + a^T @ b     after the loop: contracted over iterations too

where x is an array that the Scan slices, w is loop-invariant, and only the final sum is used. So
the iterations of a recurrent network multiply only their state, and the gradient of its weights is
one product. This reorders a sum over iterations, as a product's own sum is unordered too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.passes.loops.stacked_contractions import (
    seen_through,
    stacked_dots,
    summed_dots,
    view_of_all,
)
from tracejit.graph import Computation, Instruction
from tracejit.ops.computations import binary_op, scalar_computation
from tracejit.ops.constants import CONSTANT, constant, elements_of, parameter, tuple_
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.elementwise import ADD, add
from tracejit.ops.reduction import REDUCE, reduce
from tracejit.ops.scanning import SCAN, scan, scan_length
from tracejit.shapes import AnyShape, ElementType, Shape
from tracejit.traversal import in_order, substitute, transform, user_counts


def hoist_scan_contractions(roots: Sequence[Instruction], limits: Limits) -> list[Instruction]:
    """Roots that are equal up to the order of sums. Nested loops are processed later."""

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op is not SCAN or instruction.has_effect:
            return None
        if instruction.attributes["dimensions"] != (0,) or scan_length(instruction) < 2:
            return None
        loop = _Loop(instruction, operands, limits.scanned_bytes)
        loop.take_before()
        loop.take_after()
        return loop.results() if loop.is_changed else None

    return transform(roots, visit)


@dataclass
class _Carry:
    """A carry: its parameter, its initial value, and its next value."""

    parameter: Instruction
    init: Instruction
    following: Instruction

    @property
    def is_fixed(self) -> bool:
        return self.following is self.parameter


@dataclass(frozen=True)
class _After:
    """A dot of two values of an iteration, or the sum of one over some dimensions, and
    its views.
    """

    made: Instruction
    of: tuple[Instruction, ...]
    views: Sequence[Instruction] = ()

    @property
    def is_product(self) -> bool:
        return len(self.of) == 2


class _Loop:
    def __init__(
        self, instruction: Instruction, operands: Sequence[Instruction], most_bytes: int
    ) -> None:
        attributes = instruction.attributes
        step: Computation = attributes["to_apply"]
        count = len(operands) - attributes["num_carries"]
        made = elements_of(step.root)
        stacked = len(made) - attributes["num_carries"]
        self.instruction = instruction
        self.step = step
        self.length = scan_length(instruction)
        self.slices = dict(zip(step.parameters[:count], operands[:count], strict=True))
        self.carries = [
            _Carry(*each)
            for each in zip(step.parameters[count:], operands[count:], made[stacked:], strict=True)
        ]
        self.outputs = list(made[:stacked])
        """The value of each output in an iteration; unused for outputs in ``after``."""
        self.after: dict[int, _After] = {}
        self.sums: dict[int, _After] = {}
        own = [*(o.shape for o in operands[:count]), *instruction.element_shapes[:stacked]]
        self.room = max(most_bytes, sum(map(_nbytes, own)))
        self.is_changed = False

    def _fixed(self) -> dict[Instruction, Instruction]:
        """Maps loop-invariant parameters of the body to their values outside."""
        return {c.parameter: c.init for c in self.carries if c.is_fixed}

    def _varying(self) -> set[Instruction]:
        """All instructions of the body that vary between iterations."""
        varying = {*self.slices, *(c.parameter for c in self.carries if not c.is_fixed)}
        for instruction in in_order(self._roots()):
            if not varying.isdisjoint(instruction.operands):
                varying.add(instruction)
        return varying

    def _roots(self) -> list[Instruction]:
        return [*self.outputs, *(c.following for c in self.carries)]

    def _fits(self, shapes: Iterable[Shape]) -> bool:
        """Reserves memory for stacking these shapes, if there is enough."""
        wanted = self.length * sum(map(_nbytes, shapes))
        if wanted > self.room:
            return False
        self.room -= wanted
        return True

    def take_before(self) -> None:
        """Replace products of slices with loop-invariant operands by slices of products."""
        varying, fixed = self._varying(), self._fixed()
        made: dict[Instruction, Instruction] = {}
        for dot in in_order(self._roots()):
            if dot.op is not DOT_GENERAL or sum(o in varying for o in dot.operands) != 1:
                continue
            of_slices = [seen_through(o)[0] in self.slices for o in dot.operands]
            if not any(of_slices) or not self._fits([dot.array_shape]):
                continue
            operands = [self._outside(o, self.slices, fixed) for o in dot.operands]
            taken = parameter(0, dot.shape)
            made[dot] = taken
            self.slices[taken] = stacked_dots(dot, operands, of_slices)
        if made:
            self._replace(made)

    def _replace(self, made: dict[Instruction, Instruction]) -> None:
        roots = iter(substitute(self._roots(), made))
        self.outputs = [next(roots) for _ in self.outputs]
        for carry in self.carries:
            carry.following = next(roots)
        self.is_changed = True

    def take_after(self) -> None:
        """Move products that no iteration needs after the loop."""
        varying, uses = self._varying(), user_counts(self._roots())
        for number, output in enumerate(self.outputs):
            found = _as_product(output, uses, sum(o is output for o in self.outputs))
            if found is None:
                continue
            of = [o for o in found.of if o in varying]
            if len(of) == 1 and self._fits(self._not_yet_stacked(of)):
                self.after[number] = found
        late: list[tuple[int, Instruction]] = []
        for number, carry in enumerate(self.carries):
            what = _added(carry, uses)
            if what is None:
                continue
            found = _as_product(what, uses)
            if found is None:
                late.append((number, what))
            elif varying.issuperset(found.of) and self._fits(self._not_yet_stacked(found.of)):
                self.sums[number] = found
        for number, what in late:
            # Values that are stacked anyway can also be summed afterwards.
            summed = _as_sum(what, uses)
            if summed.of[0] in varying and not self._not_yet_stacked(summed.of):
                self.sums[number] = summed
        self.is_changed |= bool(self.after or self.sums)

    def _not_yet_stacked(self, values: Iterable[Instruction]) -> list[Shape]:
        there = {*self.slices, *self._kept()}
        bases = dict.fromkeys(seen_through(v)[0] for v in values)
        return [base.array_shape for base in bases if base not in there]

    def _kept(self) -> list[Instruction]:
        """The values of an iteration that are stacked, each once."""
        varying = self._varying()
        kept = [o for n, o in enumerate(self.outputs) if n not in self.after]
        wanted = [v for each in (*self.after.values(), *self.sums.values()) for v in each.of]
        bases = [seen_through(v)[0] for v in wanted if v in varying]
        return list(dict.fromkeys([*kept, *(b for b in bases if b not in self.slices)]))

    def _outside(
        self,
        value: Instruction,
        stacked: Mapping[Instruction, Instruction],
        fixed: Mapping[Instruction, Instruction],
    ) -> Instruction:
        """A value of the body for all iterations, stacked if it varies."""
        base, views = seen_through(value)
        if base not in stacked:
            return substitute([value], fixed)[0]
        made = stacked[base]
        for view in views:
            made = view_of_all(view, made)
        return made

    def results(self) -> Instruction:
        """The results of the Scan: from a smaller Scan, and from products."""
        kept, fixed = self._kept(), self._fixed()
        carries = [c for n, c in enumerate(self.carries) if n not in self.sums]
        read = {*in_order([*kept, *(c.following for c in carries)])}
        slices = [s for s in self.slices if s in read]
        parameters = [*slices, *(c.parameter for c in carries)]
        fresh = [parameter(i, p.shape) for i, p in enumerate(parameters)]
        root = tuple_([*kept, *(c.following for c in carries)])
        (root,) = substitute([root], dict(zip(parameters, fresh, strict=True)))
        attributes = self.instruction.attributes
        made = elements_of(
            scan(
                [self.slices[s] for s in slices],
                [c.init for c in carries],
                Computation(self.step.name, tuple(fresh), root),
                is_reverse=attributes["is_reverse"],
                is_associative=attributes["is_associative"],
                length=self.length,
            )
        )
        stacked = {**self.slices, **dict(zip(kept, made, strict=False))}
        finals = iter(made[len(kept) :])

        def completed(after: _After) -> Instruction:
            operands = [self._outside(value, stacked, fixed) for value in after.of]
            differ = [seen_through(value)[0] in stacked for value in after.of]
            whole = stacked_dots(after.made, operands, differ)
            for view in after.views:
                whole = view_of_all(view, whole)
            return whole

        def total(number: int, carry: _Carry) -> Instruction:
            after = self.sums[number]
            operands = [self._outside(value, stacked, fixed) for value in after.of]
            return add(carry.init, _total(after, operands))

        outputs = [
            completed(self.after[n]) if n in self.after else stacked[o]
            for n, o in enumerate(self.outputs)
        ]
        sums = [total(n, c) if n in self.sums else next(finals) for n, c in enumerate(self.carries)]
        return tuple_([*outputs, *sums])


def _added(carry: _Carry, uses: Mapping[Instruction, int]) -> Instruction | None:
    """The term that each iteration adds to a carry, if nothing else reads the carry."""
    total = carry.following
    if total.op is not ADD or uses[total] != 1 or uses.get(carry.parameter) != 1:
        return None
    if total.array_shape.element_type is ElementType.PRED:
        return None
    left, right = total.operands
    if left is carry.parameter:
        return right
    return left if right is carry.parameter else None


def _as_product(
    what: Instruction, uses: Mapping[Instruction, int], own_uses: int = 1
) -> _After | None:
    """A dot, or a view of one, without other users."""
    dot, views = seen_through(what)
    if dot.op is not DOT_GENERAL or uses[what] > own_uses:
        return None
    if any(uses[below] != 1 for below in (dot, *views) if below is not what):
        return None
    return _After(dot, dot.operands, views)


def _as_sum(what: Instruction, uses: Mapping[Instruction, int]) -> _After:
    """A value of the iterations, or its sum over some dimensions."""
    if what.op is REDUCE and len(what.operands) == 2 and uses[what] == 1:
        value, init = what.operands
        is_zero = init.op is CONSTANT and not np.any(init.attributes["literal"])
        if is_zero and binary_op(what.attributes["to_apply"]) is ADD:
            return _After(what, (value,))
    return _After(what, (what,))


def _nbytes(shape: AnyShape) -> int:
    if not isinstance(shape, Shape):
        return 0
    return shape.size * shape.element_type.bits // 8


def _total(after: _After, operands: Sequence[Instruction]) -> Instruction:
    """The sum over all iterations that an `_After` describes, from stacked operands."""
    if after.is_product:
        return summed_dots(after.made, operands, after.views)
    (value,) = operands
    is_sum = after.made is not after.of[0]
    inner = after.made.attributes["dimensions"] if is_sum else ()
    element_type = value.array_shape.element_type
    return reduce(
        value,
        constant(0, element_type),
        scalar_computation("add", element_type),
        [0, *(d + 1 for d in inner)],
    )
