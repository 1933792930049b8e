"""Whether two evaluations of a single op agree.

Moves and roundings must agree in every bit, a NaN's sign and payload counting only where elements
are moved; integers and pred exactly; other numbers within a few units in the last place, and sums
by what rounding does to them (`tests.fuzz.noise`). XLA's CPU backend takes denormal operands for
zeros, and makes zeros of denormal results: either is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz import known
from tests.fuzz.comparing import apart, described, leaves
from tests.fuzz.flushing import without_denormals
from tests.fuzz.noise import disagreements, is_calling, is_summing
from tests.tolerances import RELATIVE
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.traversal import instructions

# Elements are copied, NaN and all.
MOVES = {
    *("Parameter", "Tuple", "GetTupleElement", "BroadcastInDim", "Reshape", "Transpose", "Rev"),
    *("Pad", "Concatenate", "Slice", "DynamicSlice", "DynamicUpdateSlice", "Gather", "Select"),
    "BitcastConvertType",
}
# Every number has one right result, down to the sign of zero.
EXACT = {
    *("Abs", "Ceil", "Complex", "ConvertElementType", "Constant", "Floor", "Imag", "Iota", "Neg"),
    "Real",
    *("ReducePrecision", "RoundNearestAfz", "RoundNearestEven", "Sign", "Sort", "TopK"),
}
# The bit of a NaN that is set when it passes through a conversion to f32 and back.
_QUIET = {ElementType.F16: 1 << 9, ElementType.F8E5M2: 1 << 1, ElementType.BF16: 1 << 6}


def verdict(
    entry: Computation,
    name: str,
    arguments: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    by_xla: bool,
) -> str:
    """How results differ from the interpreter's; nothing where they agree.

    The module's one op is ``name``. ``by_xla`` says whose the results are: XLA's, or
    compiled code's.
    """
    inside = [i for i in instructions(entry) if i.op is not PARAMETER]
    if any(map(is_calling, inside)):
        return _by_noise(entry, arguments, results, expected, by_xla)
    if name in ("Abs", "Sign") and any(_is_complex(o) for i in inside for o in i.operands):
        name = f"complex {name}"  # not exact
    exact = name in EXACT or (
        name in MOVES and any(_nan_in_text(i) or (by_xla and _is_narrow(i)) for i in inside)
    )
    wrong = [_wrong(name, a, b, exact) for a, b in zip(results, expected, strict=True)]
    if by_xla and any(w.any() for w in wrong):
        made = leaves(evaluate(entry, [without_denormals(a) for a in arguments]))
        for flushed in (made, [without_denormals(m) for m in made]):
            wrong = [
                w & _wrong(name, a, b, exact)
                for w, a, b in zip(wrong, results, flushed, strict=True)
            ]
    if any(w.any() for w in wrong):
        unknown = ~np.asarray(_known(entry, arguments, by_xla))
        wrong = [w & unknown for w in wrong]
    if not any(w.any() for w in wrong):
        return ""
    if any(is_summing(i) for i in inside):
        return _by_noise(entry, arguments, results, expected, by_xla)
    return "; ".join(
        f"result {n}: {described(w, results[n], expected[n])}"
        for n, w in enumerate(wrong)
        if w.any()
    )


def _by_noise(
    entry: Computation,
    arguments: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    by_xla: bool,
) -> str:
    found = disagreements(entry, arguments, results, expected, by_xla)
    return "; ".join(f"result {n}: {text}" for n, text in found.items())


def _wrong(name: str, ours: np.ndarray, theirs: np.ndarray, exact: bool) -> np.ndarray:
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return np.ones(theirs.shape or (1,), bool)
    element_type = element_type_of(theirs.dtype)
    if exact or name in MOVES:
        if element_type.is_complex:
            real, imag = (
                _wrong(name, a, b, exact)
                for a, b in ((ours.real, theirs.real), (ours.imag, theirs.imag))
            )
            return np.asarray(real | imag)
        both_nan = _nan(ours) & _nan(theirs)
        quiet = _QUIET.get(element_type, 0)
        wrong = (_bits(ours) ^ _bits(theirs)) & ~np.where(both_nan, quiet, 0).astype(
            _bits(ours).dtype
        )
        return np.asarray((wrong != 0) & ~(both_nan & exact))
    if not element_type.is_inexact:
        return np.asarray(ours != theirs)
    return apart(ours, theirs, RELATIVE[element_type], known.further(name, theirs))


def _bits(array: np.ndarray) -> np.ndarray:
    """The bits of each element."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8)
    element_type = element_type_of(array.dtype)
    if element_type.is_integral and element_type.bits < 8:
        return np.asarray(array.astype(np.int8))
    whole = np.array(array, order="C")
    return np.asarray(whole.view(f"u{array.dtype.itemsize}").reshape(array.shape))


def _nan_in_text(instruction: Instruction) -> bool:
    """Whether it is a constant with a NaN, whose payload HLO text does not hold."""
    return instruction.op is CONSTANT and bool(_nan(instruction.attributes["literal"]).any())


def _is_narrow(instruction: Instruction) -> bool:
    """Whether it is of a type that XLA may move by way of f32, where a NaN may become another."""
    shapes = [s for s in instruction.element_shapes if isinstance(s, Shape)]
    return any(s.element_type.is_floating and s.element_type.bits < 32 for s in shapes)


def _is_complex(value: Instruction) -> bool:
    return isinstance(value.shape, Shape) and value.shape.element_type.is_complex


def _nan(array: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.asarray(array != array)


def _known(entry: Computation, arguments: Sequence[np.ndarray], by_xla: bool) -> np.ndarray | bool:
    """Where results are known to differ; anywhere, when an operand of the root's does."""
    values: dict[Instruction, Any] = dict(zip(entry.parameters, arguments, strict=True))
    found: np.ndarray | bool = False
    for instruction in instructions(entry):
        if instruction.op is PARAMETER:
            continue
        operands = [values[o] for o in instruction.operands]
        values[instruction] = evaluate_instruction(instruction, operands)
        differing = known.differing(instruction, operands, by_xla)
        found = found | (differing if instruction is entry.root else bool(np.any(differing)))
    return found
