"""One op on operands of its own: random well-typed modules of a single op.

single(choices, "Pad", ElementType.BF16)        an instruction over new parameters, or None
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.fuzz.choices import Choices
from tests.fuzz.graph import Graph
from tests.fuzz.table import STEPS
from tests.samples.base import Domain
from tracejit.graph import Instruction
from tracejit.ops.base import ALL
from tracejit.shapes import ElementType, Shape

# How many elements an array may have: mostly few; many for code that is split among threads.
ELEMENTS = (60, 300, 60, 300, 60, 1500, 60, 20_000)
_TRIES = 8


class Single(Graph):
    """Operands for one op: each a parameter, of the wanted element type where the op admits it."""

    is_single = True

    def __init__(self, choices: Choices, wanted: ElementType) -> None:
        super().__init__(choices, choices.pick(ELEMENTS))
        self.wanted = wanted
        self.domains: dict[Instruction, Domain] = {}

    def element_type(self, accepts: Collection[ElementType] = ALL) -> ElementType:
        return self.wanted if self.wanted in accepts else super().element_type(accepts)

    def dimensions(self, rank: int | None = None, limit: int | None = None) -> tuple[int, ...]:
        rank = self.choices.pick((2, 1, 3, 0, 4, 5)) if rank is None else rank
        return super().dimensions(rank, limit)

    def value(
        self,
        accepts: Collection[ElementType] = ALL,
        fits: Callable[[Shape], bool] = lambda shape: True,
    ) -> Instruction:
        shape = self.shape(accepts)
        for _ in range(_TRIES):
            if fits(shape):
                break
            shape = self.shape(accepts)
        return self.new(shape)

    def like(self, shape: Shape) -> Instruction:
        same = [p for p in self.values if p.shape == shape]
        return self.choices.pick(same) if same and self.choices.chance(12) else self.new(shape)

    def drawn(self, shape: Shape, domain: Domain) -> Instruction:
        """A parameter whose values ``domain`` draws."""
        made = self.parameter(shape)
        self.domains[made] = domain
        self.values.append(made)
        return made

    def new(self, shape: Shape) -> Instruction:
        if self.choices.chance(16):
            made = self.constant(shape)
        else:
            made = self.parameter(shape)
        self.values.append(made)
        return made


def single(choices: Choices, name: str, wanted: ElementType) -> tuple[Instruction, Single] | None:
    """An instruction of the op ``name`` that has to do with the element type, and its graph.

    None where a few tries made nothing fitting.
    """
    for _ in range(_TRIES):
        graph = Single(choices, wanted)
        made = choices.pick(STEPS[name])(graph)
        if made is not None and wanted in types_of(made, graph.values):
            return made, graph
    return None


def types_of(made: Instruction, operands: Sequence[Instruction]) -> set[ElementType]:
    """The element types of an instruction's results and of some operands."""
    shapes = [*made.element_shapes, *(o.shape for o in operands)]
    return {shape.element_type for shape in shapes if isinstance(shape, Shape)}
