"""The derivative of a While whose state is a few numbers: its Jacobian, carried along.

A loop like the first one keeps, beside the state, the derivatives of each of its numbers with
respect to the initial state and to the values that every step reads. A step multiplies them by its
own Jacobian, whose rows are pullbacks of the body, and nothing has to be stored or computed again.

    D(m, n) <- sum over k of M(m, k) D(k, n), and M(m, n) for the parts n that stay as they are

With s numbers in the state a step costs s pullbacks, where going back costs one pullback and two
more steps forward: worth it for few numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tracejit.autodiff.reverse import Cotangent, pullback
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.ops.elementwise import add, mul
from tracejit.ops.layout import broadcast_in_dim, full_like, reshape, slice_
from tracejit.ops.loops import loop
from tracejit.shapes import Shape
from tracejit.traversal import in_order, substitute

MOST_NUMBERS = 4
"""In the part of the state that has derivatives."""

MOST_DERIVATIVES = 64

LARGEST = 256
"""Elements of the largest array that a step computes with."""

Values = Sequence[Instruction]
# By part and element of the state, then by what is derived with respect to: an array like that.
JacobianRows = dict[tuple[int, int, int], Instruction]


def is_small(step: Values, state: Values, moving: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether the Jacobian of the parts ``moving`` by the parts ``columns`` is worth carrying."""
    numbers = sum(state[n].array_shape.size for n in moving)
    derivatives = numbers * sum(state[n].array_shape.size for n in columns)
    if not 0 < numbers <= MOST_NUMBERS or derivatives > MOST_DERIVATIVES:
        return False
    if not all(state[n].array_shape.element_type.is_floating for n in columns):
        return False
    return all(_is_plain(instruction) for instruction in in_order(step))


def _is_plain(instruction: Instruction) -> bool:
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.size > LARGEST or shape.is_dynamic:
        return False
    # Reducers are small; loops and branches are not.
    return all(len(c.parameters) == 2 for c in instruction.computations)


class Carried:
    """A loop with its Jacobian.

    ``state`` are parameters for the parts of the state, ``following`` what a step makes of them,
    ``moving`` those of the changing parts that have derivatives, ``columns`` the parts, changing or
    constant, whose derivatives are wanted.
    """

    def __init__(
        self,
        state: Values,
        following: Values,
        test: Instruction,
        init: Values,
        moving: Sequence[int],
        columns: Sequence[int],
    ) -> None:
        self._state, self._following, self._test, self._init = state, following, test, init
        self._moving, self._columns = moving, columns
        self._fixed = [n for n in columns if n not in moving]
        self._step = self._jacobian()
        self._kept = self._nonzero()

    def _elements(self, parts: Iterable[int]) -> list[tuple[int, int]]:
        return [(m, e) for m in parts for e in range(self._state[m].array_shape.size)]

    def _jacobian(self) -> JacobianRows:
        """Of one step, without the rows that are zero whatever the state is."""
        rows: JacobianRows = {}
        outputs = [self._following[m] for m in self._moving]
        for m, e in self._elements(self._moving):
            seeds: list[Cotangent] = [
                _unit(self._state[k].array_shape, e) if k == m else None for k in self._moving
            ]
            pulled = pullback(outputs, self._state, seeds)
            for n in (*self._moving, *self._fixed):
                row = pulled[n]
                if row is not None:
                    rows[m, e, n] = row
        return rows

    def _nonzero(self) -> list[tuple[int, int, int]]:
        """The rows that are not zero after every number of steps, and that matter."""
        blocks = {(m, n) for m, _, n in self._step}
        found = {(n, n) for n in self._columns if n in self._moving}
        found |= {(m, n) for m, n in blocks if n in self._fixed}
        while True:
            more = {(m, n) for m, k in blocks for j, n in found if j == k}
            if more <= found:
                break
            found |= more
        return [
            (m, e, n)
            for m, e in self._elements(self._moving)
            for n in self._columns
            if (m, n) in found
        ]

    def cotangents(self, seeds: Sequence[Cotangent]) -> list[Cotangent]:
        """Those of all parts of the state at first, given those at last."""
        count = len(self._state)

        def known(values: Values) -> dict[Instruction, Instruction]:
            return dict(zip(self._state, values[:count], strict=True))

        def go_on(*values: Instruction) -> Instruction:
            return substitute([self._test], known(values))[0]

        def step(*values: Instruction) -> list[Instruction]:
            now = dict(zip(self._kept, values[count:], strict=True))
            after = [self._after(now, row) for row in self._kept]
            return substitute([*self._following, *after], known(values))

        begun = [self._first(row) for row in self._kept]
        made = loop("carried", [*self._init, *begun], go_on, step)
        last = dict(zip(self._kept, made[count:], strict=True))
        return [self._cotangent(n, seeds, last) for n in range(count)]

    def _first(self, row: tuple[int, int, int]) -> Instruction:
        m, e, n = row
        return _unit(self._state[n].array_shape, e) if m == n else full_like(self._state[n], 0)

    def _after(self, now: JacobianRows, row: tuple[int, int, int]) -> Instruction:
        m, e, n = row
        terms = [
            mul(_spread(_element(self._step[m, e, k], j), now[k, j, n]), now[k, j, n])
            for k, j in self._elements(self._moving)
            if (m, e, k) in self._step and (k, j, n) in now
        ]
        if n in self._fixed and (m, e, n) in self._step:
            terms.append(self._step[m, e, n])
        return _sum(terms) if terms else full_like(self._state[n], 0)

    def _cotangent(self, n: int, seeds: Sequence[Cotangent], last: JacobianRows) -> Cotangent:
        terms = []
        for m, e in self._elements(self._moving):
            seed = seeds[m]
            if seed is not None and (m, e, n) in last:
                terms.append(mul(_spread(_element(seed, e), last[m, e, n]), last[m, e, n]))
        own = seeds[n]
        if own is not None and n not in self._moving:
            terms.append(own)
        return _sum(terms) if terms else None


def _sum(terms: Sequence[Instruction]) -> Instruction:
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _unit(shape: Shape, element: int) -> Instruction:
    value = np.zeros(shape.size, shape.dtype)
    value[element] = 1
    return constant(value.reshape(shape.dimensions), shape.element_type)


def _element(array: Instruction, number: int) -> Instruction:
    """One element, counted as it lies in memory, as a scalar."""
    dimensions = array.array_shape.dimensions
    if not dimensions:
        return array
    place = [int(p) for p in np.unravel_index(number, dimensions)]
    return reshape(slice_(array, place, [p + 1 for p in place]), ())


def _spread(scalar: Instruction, like: Instruction) -> Instruction:
    dimensions = like.array_shape.dimensions
    return broadcast_in_dim(scalar, dimensions, ()) if dimensions else scalar
