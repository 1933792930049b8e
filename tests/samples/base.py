"""One record per op, which the shape, text, value, compile and gradient tests all read.

Each family has a module here with a list ``SAMPLES``; an op of the table without a record fails
the completeness test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from tracejit.graph import Instruction
from tracejit.shapes import ElementType

Domain = Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray]


@dataclass(frozen=True)
class Operand:
    """One operand of a sample: its sizes, its element type (None: the sample's) and its values.

    ``domain`` draws values; None draws the usual ones for the element type.
    """

    dimensions: tuple[int, ...] = (2, 3)
    element_type: ElementType | None = None
    domain: Domain | None = None
    differentiate: bool = True


@dataclass(frozen=True)
class Sample:
    """A way to call one op, with the element types it is to be tried with.

    ``build`` takes one instruction per operand and returns the root. ``tolerance`` is relative,
    per element type where it is a dict; None means the element type's usual one. ``exact``
    demands equal bits. ``differentiable`` False says that its gradient is not tested, and
    ``why`` says why.
    """

    op: str
    build: Callable[..., Instruction]
    operands: tuple[Operand, ...]
    element_types: Collection[ElementType]
    label: str = ""
    tolerance: float | dict[ElementType, float] | None = None
    exact: bool = False
    differentiable: bool = True
    why: str = ""
    notes: dict[str, str] = field(default_factory=dict)
