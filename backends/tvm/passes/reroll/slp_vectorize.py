"""Superword-level parallelism: writes of adjacent single elements become one write of a vector.

``for j in range(n): y[j] = a * x[j] + y[j]`` unrolls into as many updates of one element, each made
by the same ops as the one beside it. These ops are done once instead, for all of the elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

import numpy as np

from tracejit.attributes import attribute_key
from tracejit.backends.tvm.analysis.reaching_writes import (
    Box,
    WrittenParts,
    box_of_slice,
    box_of_update,
)
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER, constant
from tracejit.ops.element_types import CONVERT_ELEMENT_TYPE
from tracejit.ops.layout import (
    BROADCAST_IN_DIM,
    DYNAMIC_UPDATE_SLICE,
    RESHAPE,
    broadcast_in_dim,
    dynamic_update_slice,
    reshape,
    rev,
    slice_,
)
from tracejit.shapes import Shape
from tracejit.traversal import in_order, rebuild, users_of

# Fewer elements are left as they are.
LEAST_ELEMENTS = 8

_SAME = frozenset({RESHAPE, BROADCAST_IN_DIM})


def vectorize_updates(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``, with all that is changed made anew, in the old order."""
    order = in_order(roots)
    found = _Updates(roots, order)
    return found.rebuilt(roots, order) if found.runs else list(roots)


class _Updates:
    def __init__(self, roots: Sequence[Instruction], order: Sequence[Instruction]) -> None:
        self._origins: dict[Instruction, Instruction] = {}
        self._users = users_of(order)
        self._forms: dict[Instruction, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._kept = set(roots)
        parts = WrittenParts()
        for instruction in order:
            parts.add(instruction)
            box = box_of_slice(instruction)
            if box is not None:
                self._origins[instruction] = parts.origin(instruction.operands[0], box)
        self.runs: dict[Instruction, list[Instruction]] = {}
        """By its last one: updates that become one."""
        for instruction in order:
            if _is_single(instruction) and not self._is_hidden(instruction):
                self._add_runs(instruction)

    def _is_hidden(self, update: Instruction) -> bool:
        """Whether nothing but the next update needs what an update has made."""
        if update in self._kept:
            return False
        after = [u for u in self._users[update] if self._origins.get(u, update) is update]
        return len(after) == 1 and _is_single(after[0]) and after[0].operands[0] is update

    def _add_runs(self, last: Instruction) -> None:
        """Cuts a chain of single updates that ends with ``last`` into runs of like ones."""
        chain = [last]
        while _is_single(chain[-1].operands[0]) and self._is_hidden(chain[-1].operands[0]):
            chain.append(chain[-1].operands[0])
        run: list[Instruction] = []
        for update in reversed(chain):
            if run and not self._continues(run, update):
                self._take(run)
                run = []
            run.append(update)
        self._take(run)

    def _continues(self, run: Sequence[Instruction], update: Instruction) -> bool:
        places = [_place(one) for one in (run[0], run[-1], update)]
        steps = [b - a for a, b in zip(places[1], places[2], strict=True)]
        if sorted(map(abs, steps)) != [0] * (len(steps) - 1) + [1]:
            return False
        if len(run) > 1:
            before = zip(places[1], _place(run[-2]), strict=True)
            if steps != [a - b for a, b in before]:
                return False
        return self._form(update.operands[1]) == self._form(run[-1].operands[1])

    def _take(self, run: Sequence[Instruction]) -> None:
        if len(run) >= LEAST_ELEMENTS and self._is_regular([u.operands[1] for u in run]):
            self.runs[run[-1]] = list(run)

    # What single elements are made of

    def _form(self, value: Instruction) -> int:
        """Equal for elements that are made by the same ops of elements of the same arrays."""
        stack = [value]
        while stack:
            one = stack[-1]
            if one in self._forms:
                stack.pop()
                continue
            inside = _inside(one)
            waiting = [o for o in inside if o not in self._forms]
            stack.extend(waiting)
            if waiting:
                continue
            stack.pop()
            key: Hashable
            if one.op in _SAME and inside:
                self._forms[one] = self._forms[inside[0]]
                continue
            if one.op is CONSTANT:
                key = "constant", one.array_shape.element_type
            elif one in self._origins:
                key = "slice", self._origins[one]
            elif inside:
                given = [attribute_key(a) for a in one.attributes.values() if _is_kept(a)]
                key = one.op, one.array_shape.element_type, *given, *map(self._forms.get, inside)
            else:
                key = one
            self._forms[one] = self._numbers.setdefault(key, len(self._numbers))
        return self._forms[value]

    def _is_regular(self, values: Sequence[Instruction]) -> bool:
        """Whether elements of equal forms can be had as one vector."""
        seen = set()
        stack = [tuple(map(_bare, values))]
        while stack:
            row = stack.pop()
            if row in seen:
                continue
            seen.add(row)
            first = row[0]
            if all(one is first for one in row) or first.op is CONSTANT:
                continue
            if first in self._origins:
                if _steps([_box(one) for one in row]) is None:
                    return False
                continue
            stack.extend(_operands(row))
        return True

    # Writing

    def rebuilt(
        self, roots: Sequence[Instruction], order: Sequence[Instruction]
    ) -> list[Instruction]:
        hidden = {update for run in self.runs.values() for update in run[:-1]}
        new: dict[Instruction, Instruction] = {}
        for instruction in order:
            if instruction.op in (CONSTANT, PARAMETER):
                new[instruction] = instruction
            elif instruction in self.runs:
                new[instruction] = self._vector_update(self.runs[instruction], new)
            elif instruction in self._origins and instruction.operands[0] in hidden:
                new[instruction] = rebuild(instruction, [new[self._origins[instruction]]])
            elif instruction not in hidden:
                new[instruction] = rebuild(instruction, [new[o] for o in instruction.operands])
        return [new[root] for root in roots]

    def _vector_update(
        self, run: Sequence[Instruction], new: dict[Instruction, Instruction]
    ) -> Instruction:
        first, last = _place(run[0]), _place(run[-1])
        vector = self._vector([update.operands[1] for update in run], new)
        sizes = [abs(b - a) + 1 for a, b in zip(first, last, strict=True)]
        if last < first:
            vector = rev(vector, (0,))
        starts = run[0].operands[2:] if first < last else run[-1].operands[2:]
        return dynamic_update_slice(new[run[0].operands[0]], reshape(vector, sizes), starts)

    def _vector(
        self, values: Sequence[Instruction], new: dict[Instruction, Instruction]
    ) -> Instruction:
        """All of the elements, one after the other."""
        made: dict[tuple[Instruction, ...], Instruction] = {}
        whole = tuple(map(_bare, values))
        stack = [whole]
        while stack:
            row = stack[-1]
            if row in made:
                stack.pop()
                continue
            first, size = row[0], (len(row),)
            if all(one is first for one in row):
                made[row] = broadcast_in_dim(reshape(new[first], ()), size, ())
            elif first.op is CONSTANT:
                numbers = np.stack([one.attributes["literal"].reshape(()) for one in row])
                made[row] = constant(numbers, first.array_shape.element_type)
            elif first in self._origins:
                made[row] = self._strip(row, new)
            else:
                inside = _operands(row)
                waiting = [each for each in inside if each not in made]
                stack.extend(waiting)
                if waiting:
                    continue
                made[row] = _widened(first, [made[each] for each in inside], size)
            stack.pop()
        return made[whole]

    def _strip(
        self, row: Sequence[Instruction], new: dict[Instruction, Instruction]
    ) -> Instruction:
        """Elements of one array that lie in a row, equally far from each other."""
        first, last = _box(row[0]), _box(row[-1])
        steps = _steps([_box(one) for one in row])
        assert steps is not None
        low, high = min(first, last), max(first, last)
        array = new[self._origins[row[0]]]
        if low == high:
            one = slice_(array, *zip(*low, strict=True))
            return broadcast_in_dim(reshape(one, ()), (len(row),), ())
        starts, ends = [start for start, _ in low], [end for _, end in high]
        part = slice_(array, starts, ends, [max(abs(step), 1) for step in steps])
        vector = reshape(part, (len(row),))
        return rev(vector, (0,)) if last < first else vector


def _is_single(instruction: Instruction) -> bool:
    """Whether an instruction writes one element of an array, at a known place."""
    return (
        instruction.op is DYNAMIC_UPDATE_SLICE
        and instruction.operands[1].array_shape.size == 1
        and box_of_update(instruction) is not None
    )


def _place(update: Instruction) -> tuple[int, ...]:
    box = box_of_update(update)
    assert box is not None
    return tuple(start for start, _ in box)


def _box(element: Instruction) -> Box:
    box = box_of_slice(element)
    assert box is not None
    return box


def _steps(boxes: Sequence[Box]) -> tuple[int, ...] | None:
    """How far apart neighbours are, along one dimension at most; None where that differs."""
    steps = {
        tuple(b[0] - a[0] for a, b in zip(one, other, strict=True))
        for one, other in itertools.pairwise(boxes)
    }
    if len(steps) != 1:
        return None
    (step,) = steps
    return step if sum(map(bool, step)) <= 1 else None


def _inside(value: Instruction) -> Sequence[Instruction]:
    """The single elements that a single element is made of by a simple op; nothing of others."""
    if not isinstance(value.shape, Shape) or value.shape.size != 1:
        return ()
    is_simple = value.op.is_arithmetic or value.op in (CONVERT_ELEMENT_TYPE, *_SAME)
    if not is_simple or any(o.array_shape.size != 1 for o in value.operands):
        return ()
    return value.operands


def _bare(value: Instruction) -> Instruction:
    """A single element without what only gives it another shape."""
    while value.op in _SAME and _inside(value):
        (value,) = value.operands
    return value


def _operands(row: Sequence[Instruction]) -> list[tuple[Instruction, ...]]:
    """The operands of elements made by the same op, side by side."""
    return [tuple(map(_bare, each)) for each in zip(*map(_inside, row), strict=True)]


def _is_kept(attribute: object) -> bool:
    return not isinstance(attribute, Shape)


def _widened(one: Instruction, operands: Sequence[Instruction], size: tuple[int]) -> Instruction:
    """A simple op on vectors."""
    shape = Shape(one.array_shape.element_type, size)
    attributes = {
        name: shape if isinstance(value, Shape) else value for name, value in one.attributes.items()
    }
    return Instruction(one.op, tuple(operands), shape, attributes, one.source)
