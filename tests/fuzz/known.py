"""Where XLA's CPU backend and ours are known to differ, each with the reason.

differing(instruction, operands, by_xla)     for each result, where nothing can be said
further(name, result)                        how much further off than usual a number may be
without_denormals(array)                     what XLA may take an array for

An element of `KNOWN` is not compared; everything else is. A few differences hold between the
interpreter and compiled code as well. All is said of single ops: the judge of these
(`tests.fuzz.verdict`) and that of graphs (`tests.fuzz.noise`) both go by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.tolerances import RELATIVE
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, element_type_of

COMPLEX_FUNCTIONS = {
    *("Acos", "Acosh", "Asin", "Asinh", "Atanh", "Cos", "Cosh", "Exp", "Expm1", "Log", "Log1p"),
    *("Logistic", "Rsqrt", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Sign", "Abs"),
    *("Atan2", "Div", "Mul", "Pow"),
}

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

_WITH_CUTS = {
    *("Acos", "Acosh", "Asin", "Asinh", "Atanh", "Atan2", "Log", "Log1p", "Pow", "Rsqrt", "Sqrt"),
}

# Arrays of so many elements are reduced by other code of XLA's.
_MANY = 4096

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


def _any_not_finite(instruction: Instruction, *operands: np.ndarray) -> bool:
    return not all(finite(o).all() for o in operands)


def finite(array: np.ndarray) -> np.ndarray:
    """Where there is neither an infinity nor a NaN."""
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return np.ones(array.shape, bool)
    wide = np.complex128 if element_type.is_complex else np.float64
    return np.asarray(np.isfinite(array.astype(wide)))


def without_denormals(array: np.ndarray) -> np.ndarray:
    """Denormal numbers as zeros of their sign, in the types whose arithmetic XLA does so in."""
    element_type = element_type_of(array.dtype)
    if element_type.is_complex:
        made = np.empty_like(array)
        made.real, made.imag = without_denormals(array.real), without_denormals(array.imag)
        return made
    if element_type not in (ElementType.BF16, ElementType.F32, ElementType.F64):
        return array
    tiny = float(ml_dtypes.finfo(array.dtype).tiny)  # type: ignore[no-untyped-call]
    wide = array.astype(np.float64)
    small = (np.abs(wide) < tiny) & (wide != 0)
    return np.where(small, np.copysign(0.0, wide).astype(array.dtype), array)


def _any_denormal(instruction: Instruction, *operands: np.ndarray) -> bool:
    return any((without_denormals(o) != o).any() for o in operands if o.dtype.kind not in "biu")


def _denormal(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    found: np.ndarray | bool = False
    for operand in operands:
        found = found | (without_denormals(operand) != operand)
    return found


def _not_finite(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """Complex elements with an infinite or undefined part, of operands or of the result."""
    if not any(o.dtype.kind == "c" for o in operands):
        return False
    result = evaluate_instruction(instruction, operands)
    found = ~finite(result)
    for operand in operands:
        found = found | ~finite(operand)
    return found


def _extreme(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """Complex operands with a part whose square is no normal number, zeros excepted."""
    found: np.ndarray | bool = False
    for operand in operands:
        if operand.dtype.kind == "c":
            limits = np.finfo(operand.dtype)
            for part in (np.abs(operand.real), np.abs(operand.imag)):
                outside = (part > 0.1 * limits.max**0.5) | (part < 10 * limits.tiny**0.5)
                found = found | (outside & (part != 0))
    return found


def _far_angle(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    found = _on_a_cut(instruction, *operands)
    for operand in operands:
        if operand.dtype.kind == "c":
            limits = np.finfo(operand.dtype)
            for part in (np.abs(operand.real), np.abs(operand.imag)):
                found = found | (part > limits.max**0.125) | (part < limits.tiny**0.125)
    return found


def _with_ties(instruction: Instruction, base: np.ndarray, *others: np.ndarray) -> bool:
    wide = base.astype(np.float64) if element_type_of(base.dtype).bits < 32 else base
    return len(np.unique(wide)) < base.size


def _long_mantissa(instruction: Instruction, operand: np.ndarray) -> bool:
    narrow = element_type_of(operand.dtype).bits == 8
    return bool(narrow and instruction.attributes["mantissa_bits"] > 10)


def _on_a_cut(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """Complex operands with a part that is zero, or taken for zero."""
    found: np.ndarray | bool = False
    for operand in operands:
        if operand.dtype.kind == "c":
            flat = without_denormals(operand)
            found = found | (flat.real == 0) | (flat.imag == 0)
    return found


def _complex_nan(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    found: np.ndarray | bool = False
    for operand in operands:
        found = found | (~finite(operand) if operand.dtype.kind == "c" else False)
    return found


def _complex_order(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    found = _complex_nan(instruction, *operands)
    for operand in operands:
        found = found | (operand.real == 0 if operand.dtype.kind == "c" else False)
    return found


def _equal_real_parts(
    instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray
) -> np.ndarray | bool:
    if not element_type_of(lhs.dtype).is_complex:
        return False
    return np.asarray(without_denormals(lhs.real) == without_denormals(rhs.real))


def _complex_not_finite(instruction: Instruction, *operands: np.ndarray) -> bool:
    return any(not finite(o).all() for o in operands if o.dtype.kind == "c")


def _large_exponent(
    instruction: Instruction, base: np.ndarray, exponent: np.ndarray
) -> np.ndarray | bool:
    element_type = element_type_of(exponent.dtype)
    if not element_type.is_integral:
        return False
    holder = np.int8 if element_type.bits == 4 else exponent.dtype
    return np.asarray(exponent.astype(holder) >= element_type.bits)


def _large_turn(
    instruction: Instruction, base: np.ndarray, exponent: np.ndarray
) -> np.ndarray | bool:
    if not element_type_of(base.dtype).is_complex:
        return False
    with np.errstate(all="ignore"):
        power = exponent.astype(np.complex128) * np.log(base.astype(np.complex128))
        return np.asarray(~(np.abs(power) < 64))


def _negative_s4(instruction: Instruction, operand: np.ndarray) -> np.ndarray | bool:
    is_s4 = element_type_of(operand.dtype) is ElementType.S4
    return np.asarray(is_s4 & (operand.astype(np.int8) < 0))


def _cancelling(instruction: Instruction, operand: np.ndarray, *others: np.ndarray) -> bool:
    axes = tuple(d for d in range(operand.ndim) if d != instruction.attributes["feature_index"])
    wide = operand.astype(np.float64)
    if not operand.size:
        return False
    with np.errstate(all="ignore"):
        small = np.var(wide, axes) < np.mean(wide, axes) ** 2
    return bool(np.any(small))


def _infinite_scale(
    instruction: Instruction, operand: np.ndarray, scale: np.ndarray, *others: np.ndarray
) -> np.ndarray:
    sizes = [1] * operand.ndim
    sizes[instruction.attributes["feature_index"]] = -1
    return np.asarray(~finite(scale)).reshape(sizes)


def _tiny_scale(
    instruction: Instruction, operand: np.ndarray, scale: np.ndarray, *others: np.ndarray
) -> bool:
    """Where a scale, divided by the number of elements, is no normal number."""
    tiny = float(ml_dtypes.finfo(scale.dtype).tiny)  # type: ignore[no-untyped-call]
    size = np.abs(scale.astype(np.float64))
    return bool(np.any((size < 16 * tiny * max(operand.size, 1)) & (size > 0)))


def _over_one(instruction: Instruction, *operands: np.ndarray) -> bool:
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    return bool(math.prod(operands[0].shape[d] for d in dimensions) == 1)


def _in_stages(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Long ones from an initial value that changes what it meets twice."""
    half = len(operands) // 2
    dimensions: tuple[int, ...] = instruction.attributes["dimensions"]
    if math.prod(operands[0].shape[d] for d in dimensions) <= 32:
        return False
    initial = list(operands[half:])
    twice = evaluate(instruction.attributes["to_apply"], [*initial, *initial])
    made = twice if isinstance(twice, tuple) else (twice,)
    return any(a.tobytes() != np.asarray(b).tobytes() for a, b in zip(made, initial, strict=True))


def _lost_nan(instruction: Instruction, *operands: np.ndarray) -> np.ndarray | bool:
    """NaN among the minima or maxima of arrays of many elements."""
    if len(operands) != 2 or operands[0].size < _MANY:
        return False
    if instruction.attributes["to_apply"].root.op.name not in ("Max", "Min"):
        return False
    result = evaluate_instruction(instruction, operands)
    return np.asarray(result != result)


def _narrow_places(instruction: Instruction, *operands: np.ndarray) -> bool:
    """Where an operand of a scatter has more places than its signed indices can number."""
    indices = element_type_of(operands[len(operands) // 2].dtype)
    numbered = instruction.attributes["scatter_dims_to_operand_dims"]
    most = max((operands[0].shape[d] for d in numbered), default=0)
    return indices.is_signed and most > 1 << (indices.bits - 1)


def _many_narrow(instruction: Instruction, *operands: np.ndarray) -> bool:
    return len(operands) > 2 and any(
        element_type_of(o.dtype).is_floating and o.dtype.itemsize < 4 and o.size > 8
        for o in operands
    )


KNOWN: list[Difference] = [
    Difference(
        ["ConvGeneralDilated"],
        "zeros of padding and holes may be multiplied with infinities and NaN, which makes NaN, or "
        "left out",
        _any_not_finite,
        compiled=True,
    ),
    Difference(
        ["TriangularSolve", "Cholesky", "Fft"],
        "XLA works in blocks and by other formulas, which spread NaN and infinities elsewhere",
        _any_not_finite,
        compiled=True,
    ),
    Difference(
        ["Sort", "TopK"],
        "XLA compares denormal numbers as zeros, so their order is the one they came in",
        _any_denormal,
    ),
    Difference(
        ["Atan2", "Cbrt", "Pow"],
        "XLA loses the sign of a denormal operand, or makes a wrong root or power of it",
        _denormal,
    ),
    Difference(
        COMPLEX_FUNCTIONS,
        "squares of the parts overflow, or vanish, in XLA's formulas",
        _extreme,
    ),
    Difference(
        ["Atan2"],
        "the logarithm of a quotient, by which complex numbers have an angle, is inexact near the "
        "cut and where squares of the parts overflow or vanish",
        _far_angle,
        compiled=True,
    ),
    Difference(
        ["SelectAndScatter"],
        "XLA compares elements in an order of its own, which decides among equal ones",
        _with_ties,
    ),
    Difference(
        ["ReducePrecision"],
        "XLA lets more than 10 bits of mantissa pass 8-bit floats unchanged, whatever the exponent",
        _long_mantissa,
    ),
    Difference(
        COMPLEX_FUNCTIONS,
        "XLA leaves open which part of a complex result is infinite or NaN where an operand or "
        "the result is, and its formulas overflow in places of their own",
        _not_finite,
        compiled=True,
    ),
    Difference(
        _WITH_CUTS,
        "XLA does not let the sign of a complex number's zero part decide on which side of a "
        "branch cut it lies; here it does, as in C99 and NumPy",
        _on_a_cut,
    ),
    Difference(
        ["Max", "Min", "Compare"],
        "XLA orders complex numbers that have NaN in a part, or zeros of two signs for their real "
        "parts, in ways of its own",
        _complex_order,
    ),
    Difference(
        ["Max", "Min"],
        "of complex numbers with equal real parts XLA takes the first, for both",
        _equal_real_parts,
    ),
    Difference(
        ["DotGeneral", "Reduce", "ReduceWindow", "Scatter"],
        "which part of a product of complex infinities is NaN depends on the order of the sums",
        _complex_not_finite,
        compiled=True,
    ),
    Difference(
        ["RaggedDot"],
        "the expansion that XLA is given multiplies infinities of one group with others' zeros",
        _any_not_finite,
    ),
    Difference(
        ["BatchNormTraining"],
        "XLA takes the square of the mean from the mean of the squares, which leaves little of a "
        "small variance",
        _cancelling,
    ),
    Difference(
        ["BatchNormInference"],
        "XLA scales the operand and the mean before it subtracts them, infinities then cancel",
        _infinite_scale,
    ),
    Difference(
        ["BatchNormGrad", "BatchNormInference", "BatchNormTraining"],
        "XLA multiplies the scale with small factors first, and makes zeros of denormal products",
        _tiny_scale,
    ),
    Difference(
        ["Pow"],
        "XLA looks at the lowest bits of an integer's exponent only, those that count its width",
        _large_exponent,
    ),
    Difference(
        ["Pow"],
        "XLA turns complex numbers by an exponent times a logarithm, with the error of that",
        _large_turn,
    ),
    Difference(
        ["PopulationCount"],
        "XLA counts the bits of a negative s4 after widening it",
        _negative_s4,
    ),
    Difference(
        ["Reduce"],
        "XLA drops a reduction over one element, and the initial value with it",
        _over_one,
    ),
    Difference(
        ["Reduce"],
        "XLA reduces long dimensions in stages, each of which takes the initial value again",
        _in_stages,
    ),
    Difference(
        ["Reduce"],
        "XLA keeps NaN in minima and maxima, but not in those of 4,096 elements and more",
        _lost_nan,
    ),
    Difference(
        ["Scatter"],
        "XLA compares signed indices with the last place in their own type, in which that may wrap",
        _narrow_places,
    ),
    Difference(
        ["Reduce", "ReduceWindow"],
        "of several operands, XLA sums those of a narrow type in that type, one after the other",
        _many_narrow,
    ),
]


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
