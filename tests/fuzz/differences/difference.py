"""A place where XLA's CPU backend and ours are known to differ, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tracejit.graph import Instruction
from tracejit.shapes import element_type_of

Where = Callable[..., "np.ndarray | bool"]


@dataclass(frozen=True)
class Difference:
    """``where`` takes an instruction and its operands, and says which elements of results differ.

    It returns an array that broadcasts to each result, or True for all elements. With
    ``compiled``, compiled code may differ from the interpreter there, too.
    """

    ops: Collection[str]
    reason: str
    where: Where
    compiled: bool = False


def finite(array: np.ndarray) -> np.ndarray:
    """Where there is neither an infinity nor a NaN."""
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return np.ones(array.shape, bool)
    wide = np.complex128 if element_type.is_complex else np.float64
    return np.asarray(np.isfinite(array.astype(wide)))


def any_not_finite(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Whether an operand holds an infinity or a NaN."""
    return not all(finite(o).all() for o in operands)
