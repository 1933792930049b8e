"""Where nothing is known of what an op makes of numbers that were rounded before.

unknown(instruction, operands, given)     of which elements of results nothing is known
may_overflow(instruction, operands)       in which of them terms or factors may overflow on the way

``given`` are the parameters whose values every evaluator is given. An array that is moved from
those, or from constants, is the same for all, NaN and all; the bits of a number that an op made are
not: it is rounded, and a NaN's sign and payload are each evaluator's own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.comparing import changed, leaves, wide
from tracejit.backends.numpy import evaluate_instruction
from tracejit.backends.numpy.extents import Dynamic
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.shapes import element_type_of
from tracejit.traversal import instructions

# Families that compute nothing with elements, so that their bits stay what they are.
MOVING = {"constants", "layout", "tokens", "random", "dynamic_sizes"}
# Families whose results are sums of terms.
_SUMS = {"contraction", "convolution", "reduction", "windows"}


def unknown(
    instruction: Instruction, operands: Sequence[Any], given: Collection[Instruction]
) -> np.ndarray | bool:
    """Where an element of results depends on what no evaluator is bound to."""
    computed = [_is_computed(operand, given) for operand in instruction.operands]
    values = [v for v, is_computed in zip(operands, computed, strict=True) if is_computed]
    return (
        (any(computed) and _reads_bits(instruction))
        | _is_sorted_by_signs(instruction, values)
        | _compared_by_signs(instruction, values)
        | _may_be_fused(instruction, operands)
    )


def _is_computed(value: Instruction, given: Collection[Instruction]) -> bool:
    """Whether an op may have made elements of the value, or what calls the computation."""
    waiting, seen = [value], set()
    while waiting:
        instruction = waiting.pop()
        if instruction in seen or instruction in given or instruction.op is CONSTANT:
            continue
        if instruction.op is PARAMETER or instruction.op.family not in MOVING:
            return True
        seen.add(instruction)
        waiting += instruction.operands
    return False


def _reads_bits(instruction: Instruction) -> bool:
    """Whether it reads the bits of numbers as other numbers."""
    if instruction.op.name != "BitcastConvertType":
        return False
    shapes = instruction.operands[0].array_shape, instruction.array_shape
    return all(shape.element_type.is_inexact for shape in shapes)


def _is_sorted_by_signs(instruction: Instruction, values: Sequence[Any]) -> bool:
    """Whether computed NaN are put in an order, which their signs decide."""
    if instruction.op.name not in ("Sort", "TopK"):
        return False
    return any((v != v).any() for v in values if isinstance(v, np.ndarray))


def _compared_by_signs(instruction: Instruction, values: Sequence[Any]) -> np.ndarray | bool:
    """Where computed NaN are compared in the total order, in which their bits have places."""
    if instruction.op.name != "Compare" or instruction.attributes["type"] != "TOTALORDER":
        return False
    found: np.ndarray | bool = False
    for value in values:
        found = found | np.asarray(value != value)
    return found


def _may_be_fused(instruction: Instruction, operands: Sequence[Any]) -> np.ndarray | bool:
    """Where a product overflows that is added to something: a fused operation does not round it."""
    if instruction.op.name not in ("Add", "Sub"):
        return False
    pairs = zip(instruction.operands, operands, strict=True)
    products = [
        v for o, v in pairs if o.op.name == "Mul" and o.array_shape.element_type.is_floating
    ]
    return np.asarray(sum((np.isinf(wide(v)) for v in products), np.zeros((), bool)))


def may_overflow(instruction: Instruction, operands: Sequence[Any]) -> np.ndarray | bool:
    """Where products of a few elements, means of many, or products of many can overflow."""
    factors = 6 if instruction.op.family == "normalisation" else 3
    arrays = [o.padded if isinstance(o, Dynamic) else np.asarray(o) for o in operands]
    if any(_is_large(array, factors) for array in arrays):
        return ~_is_always_nan(instruction, operands)
    return _order_matters(instruction, operands)


def _is_always_nan(instruction: Instruction, operands: Sequence[Any]) -> np.ndarray:
    """Where a sum is NaN because of infinities and NaN among the operands, not of large numbers."""
    if instruction.op.family not in _SUMS or len(instruction.element_shapes) > 1:
        return np.zeros((), bool)
    (made,) = leaves(evaluate_instruction(instruction, changed(_finite_as_one, tuple(operands))))
    return np.asarray(made != made)


def _finite_as_one(array: np.ndarray) -> np.ndarray:
    if not element_type_of(array.dtype).is_inexact:
        return array
    return np.where(np.isfinite(wide(array)), np.ones_like(array), array)


def _is_large(array: np.ndarray, factors: int) -> bool:
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return False
    most = float(ml_dtypes.finfo(element_type.real.dtype).max)  # type: ignore[no-untyped-call]
    most /= max(array.size, 1) if factors > 3 else 1
    sizes = np.abs(wide(array))
    return bool(np.any(np.isfinite(sizes) & (sizes > most ** (1 / factors))))


def _order_matters(instruction: Instruction, operands: Sequence[Any]) -> np.ndarray | bool:
    """Where the factors above 1 alone overflow, or those below 1 vanish, but not all together.

    Zero times what overflowed is NaN, and zero if zero came first. Of complex numbers that
    overflow, the order decides which parts are infinite, and which NaN.
    """
    inside = [i for called in instruction.computations for i in instructions(called)]
    if not any(i.op.name == "Mul" for i in inside):
        return False
    above, below, whole, zero = (
        leaves(evaluate_instruction(instruction, changed(sizes, tuple(operands))))
        for sizes in (_above_one, _below_one, _sizes, _zero_or_one)
    )
    wrong = [
        (_overflows(a) & (~_overflows(w) | (z == 0) | (w.dtype.kind == "c")))
        | (_vanishes(b) & ~_vanishes(w))
        for a, b, w, z in zip(above, below, whole, zero, strict=True)
    ]
    return wrong[0] if len(wrong) == 1 else any(w.any() for w in wrong)


def _sizes(array: np.ndarray) -> np.ndarray:
    """The sizes of numbers; 1 where they are zero, infinite or NaN."""
    if not element_type_of(array.dtype).is_inexact:
        return array
    sizes = np.abs(wide(array))
    return np.where(np.isfinite(sizes) & (sizes != 0), sizes, 1).astype(array.dtype)


def _zero_or_one(array: np.ndarray) -> np.ndarray:
    if not element_type_of(array.dtype).is_inexact:
        return array
    return np.where(array == 0, array, np.ones_like(array))


def _above_one(array: np.ndarray) -> np.ndarray:
    return _kept(array, np.greater)


def _below_one(array: np.ndarray) -> np.ndarray:
    return _kept(array, np.less)


def _kept(array: np.ndarray, beyond: np.ufunc) -> np.ndarray:
    """The sizes beyond 1 on that side; others are 1."""
    sizes = _sizes(array)
    if sizes is array:
        return array
    return np.where(beyond(wide(sizes).real, 1), sizes, np.ones_like(sizes))


def _overflows(array: np.ndarray) -> np.ndarray:
    if not element_type_of(array.dtype).is_inexact:
        return np.zeros(array.shape, bool)
    return np.asarray(~np.isfinite(wide(array)))


def _vanishes(array: np.ndarray) -> np.ndarray:
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return np.zeros(array.shape, bool)
    tiny = float(ml_dtypes.finfo(element_type.real.dtype).tiny)  # type: ignore[no-untyped-call]
    return np.asarray(np.abs(wide(array)) < tiny)
