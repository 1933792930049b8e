"""Where XLA's CPU backend and ours are known to differ, each with the reason.

differing(instruction, operands, by_xla)     for each result, where nothing can be said
further(name, result)                        how much further off than usual a number may be

An element of `KNOWN` is not compared; everything else is. A few differences hold between the
interpreter and compiled code as well. All is said of single ops: the judge of these
(`tests.fuzz.verdict`) and that of graphs (`tests.fuzz.noise`) both go by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.fuzz.differences.complex_numbers import COMPLEX_FUNCTIONS, COMPLEX_NUMBERS
from tests.fuzz.differences.difference import Difference
from tests.fuzz.differences.many_elements import MANY_ELEMENTS
from tests.fuzz.differences.numbers import NUMBERS
from tests.tolerances import RELATIVE
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, element_type_of

KNOWN: list[Difference] = [*NUMBERS, *COMPLEX_NUMBERS, *MANY_ELEMENTS]

# Functions of complex numbers that are composed of real ones.
_COMPOSED = COMPLEX_FUNCTIONS - {"Abs", "Div", "Mul", "Sign"}

# Relative errors beyond the element type's usual tolerance.
_FURTHER: dict[tuple[str, ElementType], float] = {
    # XLA's log1p is 40 units off, with which the judge composes asinh and atanh, too.
    **{
        (name, t): 4e-14
        for name in ("Log1p", "Asinh", "Atanh")
        for t in (ElementType.F64, ElementType.C128)
    },
    # XLA computes this one in f16 itself.
    ("Logistic", ElementType.F16): 4e-3,
}


def differing(
    instruction: Instruction, operands: Sequence[np.ndarray], by_xla: bool
) -> np.ndarray | bool:
    """Where results of the instruction are known to differ from XLA's, or in compiled code."""
    found: np.ndarray | bool = False
    if not all(isinstance(o, np.ndarray | np.generic) for o in operands):
        return found  # tuples, tokens, arrays with a dynamic size
    for difference in KNOWN:
        if instruction.op.name in difference.ops and (by_xla or difference.compiled):
            found = found | difference.where(instruction, *operands)
    return found


def further(name: str, result: np.ndarray) -> np.ndarray | float:
    """How much further off than usual each element of an inexact result of the op may be.

    Small parts of complex numbers that are composed of real ones are as exact as 1.
    """
    element_type = element_type_of(result.dtype)
    relative = _FURTHER.get((name, element_type), 0.0)
    is_composed = element_type.is_complex and name in _COMPOSED
    if not relative and not is_composed:
        return 0.0
    with np.errstate(all="ignore"):
        size = np.abs(result.astype(np.complex128))
        size = np.where(np.isfinite(size), size, 0)
        if not is_composed:
            return np.asarray(relative * size)
        steep = np.zeros_like(size)
        if name in ("Logistic", "Tan", "Tanh"):  # near a pole, errors grow with the square
            steep = np.square(size)
        if name == "Pow":  # the exponential of a logarithm, whose error grows with its size
            steep = size * np.abs(np.log(size))
        steep = np.where(np.isfinite(steep), steep, 0)
        return np.asarray(relative * size + (relative + RELATIVE[element_type]) * (1 + steep))
