"""A graph under construction: values to take operands from, and a place for new ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from tests.fuzz.choices import Choices
from tests.samples.base import Domain
from tests.samples.values import BEYOND_XLA, TABLED, special_values, usual_values
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import ALL, NUMERIC
from tracejit.shapes import ElementType, Shape

# Sizes of dimensions: small ones, primes, and such that vectors fit once, several times or not.
SIZES = (2, 3, 1, 5, 4, 7, 8, 0, 13, 16, 17, 32, 33, 67)
COMMON = (
    ElementType.F32,
    ElementType.S32,
    ElementType.F64,
    ElementType.PRED,
    ElementType.BF16,
    ElementType.C64,
    ElementType.U8,
)


class Graph:
    """Values that steps combine.

    ``elements`` bounds the size of every value. With ``closed`` there are no parameters but those
    given: new values are constants, as a computation called by others needs them.
    """

    is_single = False
    """Whether only one op is wanted, all of whose element types and values may be met."""

    def __init__(
        self,
        choices: Choices,
        elements: int = 1500,
        values: Sequence[Instruction] = (),
        closed: bool = False,
        depth: int = 0,
    ) -> None:
        self.choices = choices
        self.elements = elements
        self.closed = closed
        self.depth = depth
        self.parameters: list[Instruction] = []
        self.values = list(values)
        self.made: list[Instruction] = []

    def add(self, *made: Instruction) -> None:
        """Makes results available as operands of later steps; too large ones are left out."""
        for value in made:
            for leaf in ops.elements_of(value):
                if isinstance(leaf.shape, Shape) and leaf.shape.size <= self.elements:
                    self.values.append(leaf)
                    self.made.append(leaf)

    # Shapes

    def element_type(self, accepts: Collection[ElementType] = ALL) -> ElementType:
        common = [t for t in COMMON if t in accepts]
        rest = [t for t in ElementType if t in accepts and t not in (*common, *TABLED)]
        # One of the types that only the table tells apart, as often as one of the rest.
        tabled = [t for t in TABLED if t in accepts and t not in BEYOND_XLA]
        some = [self.choices.pick(tabled)] if tabled else []
        return self.choices.pick([*common, *common, *rest, *some])

    def dimensions(self, rank: int | None = None, limit: int | None = None) -> tuple[int, ...]:
        """Sizes whose product stays below ``limit``, by default that of the graph."""
        rank = self.choices.pick((2, 1, 3, 0, 4)) if rank is None else rank
        left = limit or self.elements
        sizes = []
        for _ in range(rank):
            size = self.choices.pick([s for s in SIZES if s <= left])
            sizes.append(size)
            left //= max(size, 1)
        return tuple(sizes)

    def shape(self, accepts: Collection[ElementType] = ALL, rank: int | None = None) -> Shape:
        return Shape(self.element_type(accepts), self.dimensions(rank))

    # Operands

    def value(
        self,
        accepts: Collection[ElementType] = ALL,
        fits: Callable[[Shape], bool] = lambda shape: True,
    ) -> Instruction:
        """A value of one of these element types: one that is there, or a new one."""

        def suits(value: Instruction) -> bool:
            return value.array_shape.element_type in accepts and fits(value.array_shape)

        known = [v for v in self.values if suits(v)]
        if known and not self.choices.chance(8):
            # What steps made comes first, the latest twice as likely, so that graphs grow deep.
            made = [v for v in self.made if suits(v)]
            return self.choices.pick([*made[:-4:-1], *made[::-1], *known[::-1]])
        for _ in range(8):
            shape = self.shape(accepts)
            if fits(shape):
                return self.new(shape)
        return known[-1] if known else self.new(self.shape(accepts))

    def ranked(self, accepts: Collection[ElementType] = ALL, least: int = 1) -> Instruction:
        """A value with at least so many dimensions."""
        made = self.value(accepts, lambda shape: shape.rank >= least)
        if made.array_shape.rank >= least:
            return made
        return self.new(self.shape(accepts, least))

    def like(self, shape: Shape) -> Instruction:
        """A value of exactly this shape."""
        same = [v for v in self.values if v.array_shape == shape]
        if same and not self.choices.chance(6):
            return self.choices.pick(same[::-1])
        alike = [v for v in self.values if v.array_shape.dimensions == shape.dimensions]
        alike = [v for v in alike if not v.array_shape.element_type.is_complex]
        if alike and self.choices.chance(2):
            return ops.convert_element_type(self.choices.pick(alike[::-1]), shape.element_type)
        return self.new(shape)

    def new(self, shape: Shape) -> Instruction:
        """A new parameter, or a constant, an iota or a repeated scalar."""
        kind = self.choices.integer(1 if self.closed else 0, 7)
        if kind in (1, 2) and shape.size:
            scalar = self.constant(Shape(shape.element_type))
            made = ops.broadcast_in_dim(scalar, shape.dimensions, ())
        elif kind == 3 and shape.rank and shape.element_type in NUMERIC:
            made = ops.iota(shape, self.choices.integer(0, shape.rank - 1))
        elif self.closed or kind == 4:
            made = self.constant(shape)
        else:
            made = self.parameter(shape)
        self.values.append(made)
        return made

    def parameter(self, shape: Shape) -> Instruction:
        """A new parameter."""
        made = ops.parameter(len(self.parameters), shape)
        self.parameters.append(made)
        return made

    def drawn(self, shape: Shape, domain: Domain) -> Instruction:
        """A constant whose values ``domain`` draws."""
        rng = np.random.default_rng(self.choices.integer(0, 1000))
        made = ops.constant(domain(rng, shape.dimensions, shape.dtype))
        self.values.append(made)
        return made

    def constant(self, shape: Shape) -> Instruction:
        """A literal array, sometimes of extremes, sometimes of one value only."""
        rng = np.random.default_rng(self.choices.integer(0, 1000))
        element_type = shape.element_type
        if self.choices.chance(6) and not element_type.is_complex:
            return ops.constant(rng.choice(special_values(element_type), shape.dimensions))
        if self.choices.chance(4):
            number = self.choices.integer(0, 2)
            return ops.constant(np.full(shape.dimensions, number).astype(shape.dtype))
        return ops.constant(usual_values(rng, shape.dimensions, element_type))

    def scalar(self, element_type: ElementType) -> Instruction:
        """A value of rank 0."""
        return self.like(Shape(element_type))

    def padding(self, extent: int) -> tuple[int, int]:
        """Padding before and after a dimension, negative too, that leaves a size of at least 0."""
        low = self.choices.integer(-min(extent, 2), 3)
        high = self.choices.integer(-min(extent + min(low, 0), 2), 3)
        return low, high

    def whole(self, dimensions: Sequence[int]) -> bool:
        """Whether a result of these sizes may be made."""
        return math.prod(dimensions) <= self.elements
