"""Python's own numbers in loops that are recorded once: nothing may happen that happens to arrays.

Integers of Python's grow without end, ``1 / 0`` raises, and ``2**-1`` is a float. Of numbers made
from counters the bounds are known, so a step in which this could make a difference is refused here,
and recorded step by step, where the numbers are Python's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.shapes import ElementType
from tracejit.trace.affine_bounds import (
    add_doubt,
    are_counted,
    carried_behind,
    known_bounds,
    remember_bounds,
)

Number = int | float
Bounds = tuple[Number, Number]
"""The least and the greatest value that a number may have."""

LARGEST = 2**53
"""Integers that are carried from step to step stay below."""

_COMPARISONS = (
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
)  # fmt: skip


def require_exact(function: np.ufunc, values: Sequence[Any], made: Any) -> None:
    """Notes the bounds of ``made``, the result of an operator on Python's numbers.

    Raises `ConcretizationError` where the result might not be Python's; where that depends on a
    number that is carried from step to step, it is a doubt.
    """
    if not are_counted() or not any(map(_is_counted, values)):
        return
    bounds = [bounds_of(value) for value in values]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return
    try:
        found = _bounds(function, *known)
    except (ArithmeticError, ValueError):
        _doubt(function.__name__, values)
        return
    if found is None or any(map(math.isnan, found)):
        return
    if all(type(limit) is int for bound in known for limit in bound):
        is_whole = made.element_type is not ElementType.F64
        if is_whole and not all(-(2**63) <= limit < 2**63 for limit in found):
            _doubt(function.__name__, values)
            return
    remember_bounds(made.instruction, found)


def require_domain(function: str, values: Sequence[Any]) -> None:
    """Raises `ConcretizationError` where one of ``math``'s functions might raise for a counter."""
    allowed = _DOMAINS.get(function)
    if allowed is None or not are_counted() or not any(map(_is_counted, values)):
        return
    bounds = [bounds_of(value) for value in values]
    known = [bound for bound in bounds if bound is not None]
    if len(known) == len(bounds) and not allowed(*known):
        _doubt(f"math.{function}", values)


def _doubt(name: str, values: Sequence[Any]) -> None:
    """Raises unless a carried number is behind the values: it may depend on arrays, after all."""
    message = f"{name}: the result for Python's own numbers may be another than that for arrays"
    carried: set[Instruction] = set()
    for value in values:
        if _is_counted(value):
            carried |= carried_behind(value.instruction)
    if not carried:
        raise ConcretizationError(message)
    add_doubt(carried, message)


def require_fits(value: Instruction, element_type: ElementType) -> None:
    """Raises `ConcretizationError` for a counter's number that may not fit into integers.

    NumPy refuses a Python integer that does not.
    """
    if element_type.is_integral and element_type is not ElementType.PRED:
        bounds = None if carried_behind(value) else known_bounds(value, LARGEST)
        limits = np.iinfo(element_type.dtype) if element_type.bits >= 8 else None
        if bounds is None or limits is None:
            return
        if not limits.min <= bounds[0] <= bounds[1] <= limits.max:
            raise ConcretizationError(
                f"a number between {bounds[0]} and {bounds[1]} may not fit into {element_type}"
            )


def bounds_of(value: Any) -> Bounds | None:
    """The bounds of a number, if they are known; a Python bool counts as an integer."""
    if isinstance(value, bool | int):
        return int(value), int(value)
    if isinstance(value, float):
        return value, value
    instruction = getattr(value, "instruction", None)
    if instruction is None:
        return None
    if instruction.op is CONSTANT:
        literal = instruction.attributes["literal"]
        if literal.ndim or literal.dtype.kind not in "biuf":
            return None
        number = literal.item()
        return bounds_of(number)
    return known_bounds(instruction, LARGEST)


def _is_counted(value: Any) -> bool:
    instruction = getattr(value, "instruction", None)
    return instruction is not None and instruction.op is not CONSTANT


def _bounds(function: np.ufunc, x: Bounds, y: Bounds = (0, 0)) -> Bounds | None:
    """The bounds of a result; raises `ArithmeticError` or `ValueError` where Python may."""
    if function in _COMPARISONS:
        return 0, 1
    rule = _RULES.get(function)
    return None if rule is None else rule(x, y)


def _corners(operate: Callable[[Any, Any], Any]) -> Callable[[Bounds, Bounds], Bounds]:
    """The bounds of an operation that is monotonic in each of its operands."""

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        found = [operate(a, b) for a in x for b in y]
        return min(found), max(found)

    return bounds


def _require_nonzero(y: Bounds) -> None:
    if y[0] <= 0 <= y[1]:
        raise ZeroDivisionError


def _divided(operate: Callable[[Any, Any], Any]) -> Callable[[Bounds, Bounds], Bounds]:
    corners = _corners(operate)

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        _require_nonzero(y)
        return corners(x, y)

    return bounds


def _remainder(x: Bounds, y: Bounds) -> Bounds:
    _require_nonzero(y)
    # The remainder is nearer to zero than the divisor, of integers by one.
    by = int(all(type(limit) is int for limit in (*x, *y)))
    return (0, y[1] - by) if y[0] > 0 else (y[0] + by, 0)


def _power(x: Bounds, y: Bounds) -> Bounds | None:
    are_whole = all(type(limit) is int for limit in (*x, *y))
    if are_whole:
        if y[0] < 0:
            raise ValueError("a float")
        size = max(map(abs, x))
        if size > 1 and y[1] * math.log2(size) >= 63:
            raise OverflowError
        largest = int(size) ** int(y[1])
        return (-largest if x[0] < 0 else 0), largest
    is_one = y[0] == y[1] and float(y[0]).is_integer()
    if x[0] < 0 and not is_one:
        raise ValueError("complex")
    if y[0] < 0:
        _require_nonzero(x)
    if x[0] < 0:
        float(max(map(abs, x))) ** y[0]  # which raises if it overflows
        return None
    return _corners(lambda a, b: float(a) ** b if a or b >= 0 else math.nan)(x, y)


def _shifted(operate: Callable[[int, int], int]) -> Callable[[Bounds, Bounds], Bounds]:
    corners = _corners(operate)

    def bounds(x: Bounds, y: Bounds) -> Bounds:
        if y[0] < 0 or y[1] > 63:
            raise OverflowError
        return corners(x, y)

    return bounds


def _bitwise(x: Bounds, y: Bounds) -> Bounds:
    bits = max(int(limit).bit_length() for limit in (*x, *y))
    least = 0 if x[0] >= 0 and y[0] >= 0 else -(1 << bits)
    return least, (1 << bits) - 1


def _both(x: Bounds, y: Bounds) -> Bounds:
    most = [bound[1] for bound in (x, y) if bound[0] >= 0]
    return (0, min(most)) if most else _bitwise(x, y)


def _absolute(x: Bounds, _: Bounds) -> Bounds:
    largest = max(map(abs, x))
    return (0 if x[0] <= 0 <= x[1] else min(map(abs, x))), largest


_RULES: dict[np.ufunc, Callable[[Bounds, Bounds], Bounds | None]] = {
    np.add: _corners(lambda a, b: a + b),
    np.subtract: _corners(lambda a, b: a - b),
    np.multiply: _corners(lambda a, b: a * b),
    np.true_divide: _divided(lambda a, b: a / b),
    np.floor_divide: _divided(lambda a, b: a // b),
    np.remainder: _remainder,
    np.power: _power,
    np.left_shift: _shifted(lambda a, b: a << b),
    np.right_shift: _shifted(lambda a, b: a >> b),
    np.bitwise_and: _both,
    np.bitwise_or: _bitwise,
    np.bitwise_xor: _bitwise,
    np.minimum: _corners(min),
    np.maximum: _corners(max),
    np.negative: lambda x, _: (-x[1], -x[0]),
    np.positive: lambda x, _: x,
    np.invert: lambda x, _: (-x[1] - 1, -x[0] - 1),
    np.absolute: _absolute,
}

_LARGEST_EXPONENT = math.log(np.finfo(np.float64).max)


def _is_moderate(x: Bounds) -> bool:
    return -_LARGEST_EXPONENT < x[0] and x[1] < _LARGEST_EXPONENT


def _is_no_pole(x: Bounds, *base: Bounds) -> bool:
    return x[0] > 0 and all(one[0] > 0 and not one[0] <= 1 <= one[1] for one in base)


def _is_no_zero(_: Bounds, y: Bounds) -> bool:
    return not y[0] <= 0 <= y[1]


def _has_power(x: Bounds, y: Bounds) -> bool:
    try:
        _power((float(x[0]), float(x[1])), y)
    except (ArithmeticError, ValueError):
        return False
    return True


_DOMAINS: dict[str, Callable[..., bool]] = {
    "acos": lambda x: -1 <= x[0] and x[1] <= 1,
    "acosh": lambda x: x[0] >= 1,
    "asin": lambda x: -1 <= x[0] and x[1] <= 1,
    "atanh": lambda x: -1 < x[0] and x[1] < 1,
    "cosh": _is_moderate,
    "exp": lambda x: x[1] < _LARGEST_EXPONENT,
    "exp2": lambda x: x[1] < 1024,
    "expm1": lambda x: x[1] < _LARGEST_EXPONENT,
    "fmod": _is_no_zero,
    "gamma": lambda x: x[0] > 0 and x[1] < 171,
    "lgamma": lambda x: x[0] > 0,
    "log": _is_no_pole,
    "log10": _is_no_pole,
    "log1p": lambda x: x[0] > -1,
    "log2": _is_no_pole,
    "pow": _has_power,
    "remainder": _is_no_zero,
    "sinh": _is_moderate,
    "sqrt": lambda x: x[0] >= 0,
}
"""Where Python's functions do not raise, by the bounds of their arguments."""
