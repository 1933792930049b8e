"""Running a module with its mistakes reported: `jit(f, check=True)`.

Every instruction is looked at, also in loops, branches and calls: indices out of range, integers
divided by zero, single integers that leave 64 bits (Python's would go on, NumPy warns), shifts and
powers by negative integers, and the first NaN or infinity, each with the user's line.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate_instruction, stepping
from tracejit.cuda import device_of_arguments, to_device
from tracejit.errors import (
    DynamicIndexError,
    EmptySelectionError,
    IntegerDivisionError,
    IntegerOverflowError,
    NegativeIntegerError,
    NotFiniteError,
    SingularMatrixError,
)
from tracejit.graph import Instruction, Op
from tracejit.native_calls import watching_memory
from tracejit.ops.comparison import COMPARE
from tracejit.ops.constants import CONSTANT
from tracejit.ops.control import CALL, COMPOSITE_NAME
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.ops.element_types import BITCAST_CONVERT_TYPE, CONVERT_ELEMENT_TYPE
from tracejit.ops.elementwise import (
    ADD,
    DIV,
    MUL,
    POW,
    REM,
    SELECT,
    SHIFT_LEFT,
    SHIFT_RIGHT_ARITHMETIC,
    SUB,
)
from tracejit.ops.elementwise_unary import ABS, NEG
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import BROADCAST_IN_DIM, DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.shapes import ElementType
from tracejit.trace.boolean_indexing import SOME
from tracejit.trace.indexing import DROPPED
from tracejit.transforms.interpreted import Interpreted


class Checked(Interpreted):
    """An executable that raises where an operation is most likely a mistake.

    `DynamicIndexError` for an index that XLA would clamp or drop, `IntegerDivisionError`,
    `IntegerOverflowError`, `NegativeIntegerError`, and `NotFiniteError` for NaN from numbers, and
    infinity from finite ones; where a matrix was factorized, `SingularMatrixError`.
    """

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Any:
        with stepping(_Steps()):
            return super()._evaluate(arrays)


class CheckedOnDevice(Checked):
    """The same for a CUDA device, on which the results lie, as those of compiled code do."""

    def __call__(self, arguments: Sequence[object]) -> list[Any]:
        device = device_of_arguments(arguments)
        return [to_device(array, device) for array in super().__call__(arguments)]


class _Steps:
    """One run: evaluates one instruction after the other and checks its result.

    ``guarded`` has the divisors in which 1 replaces a zero, as NumPy's quotients need it.
    """

    def __init__(self) -> None:
        self.guarded: set[Instruction] = set()

    def __call__(self, instruction: Instruction, operands: Sequence[Any]) -> Any:
        look = _LOOKS.get(instruction.op)
        if look is not None:
            look(instruction, operands, self)
        with watching_memory():
            value = evaluate_instruction(instruction, operands)
        if instruction.op not in _DELIBERATE:
            _look_at_value(instruction, operands, value)
        return value


def _look_at_value(instruction: Instruction, operands: Sequence[Any], value: Any) -> None:
    has_nan, has_infinity = _special(value)
    if not has_nan and not has_infinity:
        return
    given = [_special(operand) for operand in operands]
    name = instruction.op.function
    kind: type[NotFiniteError] = NotFiniteError
    cause = ""
    if is_linear_algebra(instruction):
        name = instruction.attributes.get("custom_call_target", name).removeprefix(LINEAR_ALGEBRA)
        kind, cause = SingularMatrixError, "; the matrix is singular or not positive definite"
    if has_nan and not any(nan for nan, _ in given):
        of_infinity = any(infinity for _, infinity in given)
        operands_are = "operands with infinity" if of_infinity else "finite operands"
        raise kind(f"{name}: makes NaN from {operands_are}{cause}", instruction.source)
    if has_infinity and not any(nan or infinity for nan, infinity in given):
        raise kind(f"{name}: makes infinity from finite operands{cause}", instruction.source)


def is_linear_algebra(instruction: Instruction) -> bool:
    """Whether an instruction factorizes matrices, or solves systems of equations."""
    if instruction.op is CUSTOM_CALL:
        target: str = instruction.attributes["custom_call_target"]
        return target.startswith(LINEAR_ALGEBRA)
    return instruction.op in (CHOLESKY, TRIANGULAR_SOLVE)


def _special(value: Any) -> tuple[bool, bool]:
    """Whether there is a NaN, and an infinity, anywhere in a value."""
    if isinstance(value, tuple):
        parts = [_special(part) for part in value]
        return any(nan for nan, _ in parts), any(infinity for _, infinity in parts)
    if not isinstance(value, np.ndarray | np.generic):  # a token
        return False, False
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return False, False
    if array.dtype.kind not in "fc":  # a narrow float
        array = array.astype(np.float64)
    if np.isfinite(array).all():
        return False, False
    return bool(np.isnan(array).any()), bool(np.isinf(array).any())


def _look_at_divisor(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    if not instruction.array_shape.element_type.is_integral:
        return
    if instruction.operands[1] in steps.guarded or not np.all(operands[1]):
        raise IntegerDivisionError(
            f"{instruction.op.function}: divides an integer by zero", instruction.source
        )


def _look_at_overflow(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    shape = instruction.array_shape
    if shape.rank or shape.element_type is not ElementType.S64:
        return
    exact = _EXACT[instruction.op](*(int(operand) for operand in operands))
    _require_64_bits(instruction, exact)


def _require_64_bits(instruction: Instruction, exact: int) -> None:
    if not -(2**63) <= exact < 2**63:
        raise IntegerOverflowError(
            f"{instruction.op.function}: the integer that it makes leaves 64 bits, and would wrap "
            f"around; compute with floats, or outside the traced function",
            instruction.source,
        )


def _look_at_exponent(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    """Checks powers of integers: Python's result would be a float, NumPy raises."""
    is_integral = instruction.array_shape.element_type.is_integral
    if is_integral and np.any(operands[1] < 0):
        raise NegativeIntegerError(
            f"{instruction.op.function}: an integer to the power of a negative one is no integer; "
            f"make the base a float",
            instruction.source,
        )
    _look_at_overflow(instruction, operands, steps)


def _look_at_shift(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    is_number = not instruction.array_shape.rank
    if is_number and instruction.array_shape.element_type.is_signed and operands[1] < 0:
        raise NegativeIntegerError(
            f"{instruction.op.function}: shifts by a negative number of bits", instruction.source
        )
    if instruction.op in _EXACT:
        _look_at_overflow(instruction, operands, steps)


def _look_at_conversion(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    """Checks a float that becomes an s64: ``int(x)``, ``round(x)``, ``math.floor(x)``."""
    shape = instruction.array_shape
    given = instruction.operands[0].array_shape.element_type
    if shape.rank or shape.element_type is not ElementType.S64 or not given.is_floating:
        return
    number = float(operands[0])
    if not np.isfinite(number):
        raise IntegerOverflowError(
            f"{instruction.op.function}: {number} is no integer", instruction.source
        )
    _require_64_bits(instruction, int(number))


def _power(base: int, exponent: int) -> int:
    """An integer power; of one that is far beyond 64 bits, some number beyond them."""
    if exponent < 0 or abs(base) < 2:
        return 0
    return int(base ** min(exponent, 64))


def _shifted(number: int, bits: int) -> int:
    """A number shifted to the left; of one that is far beyond 64 bits, some number beyond them."""
    return number << min(bits, 64)


_EXACT: dict[Op, Callable[..., int]] = {
    ADD: operator.add,
    SUB: operator.sub,
    MUL: operator.mul,
    NEG: operator.neg,
    ABS: operator.abs,
    POW: _power,
    SHIFT_LEFT: _shifted,
}


def _look_at_composite(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    name = dict(instruction.attributes["frontend_attributes"]).get(COMPOSITE_NAME)
    if name == SOME and not np.any(operands[0]):
        raise EmptySelectionError(
            "reduce: a mask selects no element, and the greatest or the least of none is asked for",
            instruction.source,
        )


def _look_at_guard(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    steps.guarded.discard(instruction)
    condition, one, divisor = instruction.operands
    is_guard = (
        one.array_shape.element_type.is_integral
        and condition.op is COMPARE
        and condition.attributes["direction"] == "EQ"
        and condition.operands[0] is divisor
        and _is_filled(condition.operands[1], 0)
        and _is_filled(one, 1)
    )
    if is_guard and np.any(operands[0]):
        steps.guarded.add(instruction)


def _is_filled(instruction: Instruction, number: int) -> bool:
    while instruction.op is BROADCAST_IN_DIM:
        (instruction,) = instruction.operands
    return instruction.op is CONSTANT and bool(np.all(instruction.attributes["literal"] == number))


def _look_at_starts(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    is_update = instruction.op is DYNAMIC_UPDATE_SLICE
    sizes = np.shape(operands[1]) if is_update else instruction.array_shape.dimensions
    starts = operands[2:] if is_update else operands[1:]
    for dimension, start in enumerate(starts):
        _require_inside(instruction, np.shape(operands[0]), dimension, sizes[dimension], start)


def _look_at_gathered(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    attributes = instruction.attributes
    vectors = _vectors(operands[1], attributes["index_vector_dim"])
    for number, dimension in enumerate(attributes["start_index_map"]):
        size = attributes["slice_sizes"][dimension]
        _require_inside(instruction, operands[0].shape, dimension, size, vectors[number])


def _look_at_scattered(instruction: Instruction, operands: Sequence[Any], steps: _Steps) -> None:
    attributes = instruction.attributes
    count = len(operands) // 2
    given, updates = operands[0], operands[count + 1]
    removed = {*attributes["inserted_window_dims"], *attributes["input_batching_dims"]}
    kept = [d for d in range(given.ndim) if d not in removed]
    windows = [updates.shape[d] for d in attributes["update_window_dims"]]
    sizes = dict(zip(kept, windows, strict=True))
    vectors = _vectors(operands[count], attributes["index_vector_dim"])
    for number, dimension in enumerate(attributes["scatter_dims_to_operand_dims"]):
        size = sizes.get(dimension, 1)
        indices = np.asarray(vectors[number])
        _require_inside(instruction, given.shape, dimension, size, indices[indices != DROPPED])


def _vectors(indices: np.ndarray, dimension: int) -> np.ndarray:
    """The index vectors with their numbers in front."""
    if dimension == indices.ndim:
        return indices[np.newaxis]
    return np.moveaxis(indices, dimension, 0)


def _require_inside(
    instruction: Instruction,
    shape: tuple[int, ...],
    dimension: int,
    size: int,
    starts: np.ndarray,
) -> None:
    """Raises `DynamicIndexError` unless slices of ``size`` from ``starts`` lie in the array."""
    given = np.asarray(starts)
    outside = (given < 0) | (given > shape[dimension] - size)
    if outside.any():
        first = given[outside].flat[0]
        raise DynamicIndexError(
            f"{instruction.op.function}: index {first} is out of bounds for dimension {dimension} "
            f"of size {shape[dimension]}" + (f", for a slice of {size}" if size > 1 else ""),
            instruction.source,
        )


_DELIBERATE = (CONSTANT, BITCAST_CONVERT_TYPE)
"""Ops that may make NaN and infinity: what they make was written down so."""

_LOOKS: dict[Op, Callable[[Instruction, Sequence[Any], _Steps], None]] = {
    DIV: _look_at_divisor,
    REM: _look_at_divisor,
    **dict.fromkeys(_EXACT, _look_at_overflow),
    POW: _look_at_exponent,
    SHIFT_LEFT: _look_at_shift,
    SHIFT_RIGHT_ARITHMETIC: _look_at_shift,
    CONVERT_ELEMENT_TYPE: _look_at_conversion,
    CALL: _look_at_composite,
    SELECT: _look_at_guard,
    DYNAMIC_SLICE: _look_at_starts,
    DYNAMIC_UPDATE_SLICE: _look_at_starts,
    GATHER: _look_at_gathered,
    SCATTER: _look_at_scattered,
}
