"""Where complex numbers are known to differ: infinities, branch cuts, orders, formulas."""

from __future__ import annotations

import numpy as np

from tests.fuzz.differences.difference import Difference, finite
from tests.fuzz.flushing import without_denormals
from tracejit.backends.numpy import evaluate_instruction
from tracejit.graph import Instruction
from tracejit.shapes import element_type_of

COMPLEX_FUNCTIONS = {
    *("Acos", "Acosh", "Asin", "Asinh", "Atanh", "Cos", "Cosh", "Exp", "Expm1", "Log", "Log1p"),
    *("Logistic", "Rsqrt", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Sign", "Abs"),
    *("Atan2", "Div", "Mul", "Pow"),
}

_WITH_CUTS = {
    *("Acos", "Acosh", "Asin", "Asinh", "Atanh", "Atan2", "Log", "Log1p", "Pow", "Rsqrt", "Sqrt"),
}

SIGNS_OF_ZEROS_LOST = {"Exp", "Expm1", "Logistic", "Tanh", "Sin", "Cos", "Tan"}
"""XLA's formulas of these make +0 of a part that is -0 here, as in C99's annex G and NumPy."""


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


def _far_angle(instruction: Instruction, y: np.ndarray, x: np.ndarray) -> np.ndarray | bool:
    if y.dtype.kind != "c":
        return False
    found = _on_a_cut(instruction, y, x)
    limits = np.finfo(y.dtype)
    for part in (y.real, y.imag, x.real, x.imag):
        size = np.abs(part)
        found = found | (size > limits.max**0.125) | (size < limits.tiny**0.125)
    return found | _near_a_cut(y.astype(np.clongdouble), x.astype(np.clongdouble), limits.eps)


def _near_a_cut(y: np.ndarray, x: np.ndarray, epsilon: float) -> np.ndarray:
    """Where rounding may send what has a root, or a logarithm, to the other side of the cut.

    The angle is -i log((x + iy) / sqrt(x² + y²)); it is also near the cut where y is too small
    beside x to be seen.
    """
    with np.errstate(all="ignore"):
        squares = x * x + y * y
        quotient = (x + 1j * y) / np.sqrt(squares)
        near = [
            (z.real < 0) & (np.abs(z.imag) <= 64 * epsilon * np.abs(z)) for z in (squares, quotient)
        ]
    return np.asarray(near[0] | near[1])


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


def _reciprocal_of_a_denormal(instruction: Instruction, operand: np.ndarray) -> np.ndarray | bool:
    """Below the axis, where the exponential of the imaginary part is denormal."""
    if operand.dtype.kind != "c":
        return False
    limits = np.finfo(operand.dtype)
    return np.asarray(operand.imag < 0.9999 * np.log(limits.tiny))


def _equal_real_parts(
    instruction: Instruction, lhs: np.ndarray, rhs: np.ndarray
) -> np.ndarray | bool:
    if not element_type_of(lhs.dtype).is_complex:
        return False
    return np.asarray(without_denormals(lhs.real) == without_denormals(rhs.real))


def _complex_not_finite(instruction: Instruction, *operands: np.ndarray) -> bool:
    return any(not finite(o).all() for o in operands if o.dtype.kind == "c")


def _large_turn(
    instruction: Instruction, base: np.ndarray, exponent: np.ndarray
) -> np.ndarray | bool:
    if not element_type_of(base.dtype).is_complex:
        return False
    with np.errstate(all="ignore"):
        power = exponent.astype(np.complex128) * np.log(base.astype(np.complex128))
        return np.asarray(~(np.abs(power) < 64))


COMPLEX_NUMBERS: list[Difference] = [
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
        COMPLEX_FUNCTIONS,
        "XLA leaves open which part of a complex result is infinite or NaN where an operand or "
        "the result is, and its formulas overflow in places of their own",
        _not_finite,
        compiled=True,
    ),
    Difference(
        ["Sin", "Cos"],
        "XLA takes exp(-y) for 1 / exp(y), and the quotient for infinite where exp(y) is denormal",
        _reciprocal_of_a_denormal,
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
        ["Pow"],
        "XLA turns complex numbers by an exponent times a logarithm, with the error of that",
        _large_turn,
    ),
]
