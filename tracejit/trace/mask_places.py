"""The places where an unknown mask holds: vectors of unknown size; as an index, the mask itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.concrete import dependence
from tracejit.trace.masks import is_same_mask
from tracejit.trace.table import call


class MaskIndices(Masked):
    """One of the vectors that ``np.nonzero(mask)`` gives while the mask is unknown.

    As an index, together with those of the mask's other dimensions, it is the mask.
    """

    __slots__ = ("dimension",)

    def __init__(self, whole: Any, mask: Instruction, dimension: int) -> None:
        super().__init__(whole, mask, 0)
        self.dimension = dimension

    def __getitem__(self, index: Any) -> Any:
        # The first and the last place are known to be where the mask holds, if it holds at all.
        if self._covered != 1 or type(index) is not int or index not in (0, -1):
            self._refuse("index")
        holds = self._wide()
        if index == 0:
            return call(np.argmax, holds)
        return self.whole.size - 1 - call(np.argmax, call(np.flip, holds))

    def _refuse(self, wish: str) -> NoReturn:
        raise ConcretizationError(
            f"{wish} of np.nonzero: the result's size depends on {dependence(self.mask)}, unknown "
            f"while tracing; x[np.nonzero(mask)], reductions, the first place [0] and the last "
            f"[-1] work; else write np.where(condition, x, other), or pass size= to fix it "
            f"(tracejit.numpy.nonzero(x, size=n, fill_value=v))"
        )


def mask_of_places(items: Sequence[Any]) -> list[Any]:
    """The items of an index with masks where their places stand.

    Raises `ConcretizationError` where only some of a mask's vectors stand together.
    """
    made: list[Any] = []
    rest = list(items)
    while rest:
        first = rest.pop(0)
        if not isinstance(first, MaskIndices):
            made.append(first)
            continue
        group = [first, *rest[: first._covered - 1]]
        if [getattr(place, "dimension", None) for place in group] != list(range(first._covered)):
            first._refuse("index by some of the vectors")
        if not all(is_same_mask(place.mask, first.mask) for place in group):
            first._refuse("index by vectors of several masks")
        del rest[: first._covered - 1]
        made.append(first.whole._new(first.mask, False))
    return made
