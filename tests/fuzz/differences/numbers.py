"""Where single numbers are known to differ: infinities, denormal ones, narrow types."""

from __future__ import annotations

import numpy as np

from tests.fuzz.differences.difference import Difference, any_not_finite
from tests.fuzz.flushing import without_denormals
from tests.samples.values import SIGNLESS_NAN, UNLIKE_XLA
from tracejit.backends.numpy import evaluate_instruction
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape, element_type_of


def _any_denormal(instruction: Instruction, *operands: np.ndarray) -> bool:
    return any((without_denormals(o) != o).any() for o in operands if o.dtype.kind not in "biu")


def _denormal(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    found: np.ndarray | bool = False
    for operand in operands:
        found = found | (without_denormals(operand) != operand)
    return found


def _long_mantissa(instruction: Instruction, operand: np.ndarray) -> bool:
    narrow = element_type_of(operand.dtype).is_small_float
    return bool(narrow and instruction.attributes["mantissa_bits"] > 10)


def _large_exponent(
    instruction: Instruction, base: np.ndarray, exponent: np.ndarray
) -> np.ndarray | bool:
    element_type = element_type_of(exponent.dtype)
    if not element_type.is_integral:
        return False
    holder = np.int8 if element_type.bits < 8 else exponent.dtype
    return np.asarray(exponent.astype(holder) >= element_type.bits)


def _negative_s4(instruction: Instruction, operand: np.ndarray) -> np.ndarray | bool:
    is_s4 = element_type_of(operand.dtype) is ElementType.S4
    return np.asarray(is_s4 & (operand.astype(np.int8) < 0))


def _wrongly_converted(instruction: Instruction, operand: np.ndarray) -> bool:
    return (element_type_of(operand.dtype), instruction.array_shape.element_type) in UNLIKE_XLA


def _signless_nan(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    is_elementwise = instruction.op.name == "Compare"
    if is_elementwise and instruction.attributes["type"] != "TOTALORDER":
        return False
    found: np.ndarray | bool = False
    for operand in operands:
        if element_type_of(operand.dtype) in SIGNLESS_NAN:
            is_nan = operand != operand
            found = found | (is_nan if is_elementwise else bool(is_nan.any()))
    return found


def _of_no_zero(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Whether a dimension of one element counts or begins with a zero that its type lacks."""
    shape = instruction.shape
    if not isinstance(shape, Shape) or shape.element_type is not ElementType.F8E8M0FNU:
        return False
    if not operands:
        return bool(shape.dimensions[instruction.attributes["iota_dimension"]] == 1)
    return all(operands[0].shape[d] == 1 for d in instruction.attributes["dimensions"])


def _both_zeros(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """Where a sort that is not stable leaves zeros, of which some are negative."""
    if instruction.attributes["is_stable"] or len(operands) != 1:
        return False
    (array,) = operands
    is_zero = np.asarray(array == 0)
    if not element_type_of(array.dtype).is_floating or len({*np.signbit(array[is_zero])}) < 2:
        return False
    return np.asarray(evaluate_instruction(instruction, operands) == 0)


NUMBERS: list[Difference] = [
    Difference(
        ["ConvGeneralDilated"],
        "zeros of padding and holes may be multiplied with infinities and NaN, which makes NaN, or "
        "left out",
        any_not_finite,
        compiled=True,
    ),
    Difference(
        ["TriangularSolve", "Cholesky", "Fft"],
        "XLA works in blocks and by other formulas, which spread NaN and infinities elsewhere",
        any_not_finite,
        compiled=True,
    ),
    Difference(
        ["Sort", "TopK"],
        "XLA compares denormal numbers as zeros, so their order is the one they came in",
        _any_denormal,
    ),
    Difference(
        ["Sort"],
        "XLA puts zeros of either sign in any order where the sort need not be stable",
        _both_zeros,
    ),
    Difference(
        ["Atan2", "Cbrt", "Pow"],
        "XLA loses the sign of a denormal operand, or makes a wrong root or power of it",
        _denormal,
    ),
    Difference(
        ["ReducePrecision"],
        "XLA lets more than 10 bits of mantissa pass 8-bit floats unchanged, whatever the exponent",
        _long_mantissa,
    ),
    Difference(
        ["RaggedDot"],
        "the expansion that XLA is given multiplies infinities of one group with others' zeros",
        any_not_finite,
    ),
    Difference(
        ["Pow"],
        "XLA looks at the lowest bits of an integer's exponent only, those that count its width",
        _large_exponent,
    ),
    Difference(
        ["ConvertElementType"],
        "XLA saturates and flushes some narrow floats wrongly: tests.samples.values says which",
        _wrongly_converted,
    ),
    Difference(
        ["Compare", "Sort", "TopK"],
        "a NaN without a sign is the last in the total order, and the first for XLA",
        _signless_nan,
    ),
    Difference(
        ["PopulationCount"],
        "XLA counts the bits of a negative s4 after widening it",
        _negative_s4,
    ),
    Difference(
        ["Iota", "Reduce"],
        "of one element XLA makes a zero, or leaves out the initial value: f8e8m0fnu has no zero, "
        "and longer ones begin with NaN",
        _of_no_zero,
    ),
]
