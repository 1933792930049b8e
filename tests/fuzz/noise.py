"""How far two right evaluations of a graph may lie apart.

Rounding errors grow through a graph in ways that no fixed tolerance knows: the graph is evaluated
several times, every floating-point result a few units in the last place off, and the results may
differ by a multiple of what that did. Where it turned a comparison, an index or an infinity
round, nothing can be said, and the element is left out; likewise where terms so large were summed
that some ways of doing it overflow, and where `tests.fuzz.known` says so. The sign of a NaN or of
a zero says nothing: some runs round nothing off but give zeros other signs. XLA's CPU backend may
also have taken denormal numbers for zeros, at every step or at some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz import known
from tests.tolerances import RELATIVE
from tracejit.backends.numpy.interpreter import evaluate_instruction
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import PARAMETER
from tracejit.shapes import Shape, element_type_of
from tracejit.traversal import instructions

# Families whose results are exact copies of operands' elements.
_EXACT = {"constants", "layout", "comparison", "tokens", "random"}
# Those that compute nothing with elements, so that denormal numbers stay what they are.
_MOVING = _EXACT - {"comparison"}
# Ops that add terms up: also the terms are off, all in the direction of their sign at once.
_SUMMING = {"contraction", "normalisation", "reduction", "windows", "indexing", "control"} | {
    *("linalg", "scanning", "spectra", "grouped", "dynamic_sizes"),
}
# Ops that return one of their operands' elements, or nothing that is rounded.
_CHOOSING = {"Max", "Min", "And", "Or", "Xor", "Select", "Clamp"}
_ULPS = 4
# Runs with errors of rounding; after them, some in which only zeros change.
_ROUNDED = 4
_RUNS = 6
# The sign of all zeros and NaN in some runs; any in the others.
_SIGNS = {0: 1, 1: -1, _ROUNDED: -1}
_FACTOR = 8
# What stands for a number of which nothing is known, so that functions of it differ: also such
# functions as are defined below 1 only, or from 1 on, or for negative numbers.
_NUMBERS = (0.5, np.nan, 3, -2, -0.25, 0)


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays of a value, tuples taken apart."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in leaves(element)]
    return [np.asarray(value)]


def disagreements(
    entry: Computation,
    arguments: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    by_xla: bool = True,
) -> dict[int, str]:
    """For each result that two evaluators disagree on, by its number, how.

    ``by_xla`` says whether one of them is XLA, which may take denormal numbers for zeros.
    """
    suspects = {}
    for number, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        wrong = _different(ours, theirs, np.zeros(theirs.shape), np.ones(theirs.shape, bool))
        if wrong:
            suspects[number] = wrong
    if not suspects:
        return {}
    off = [noisy(entry, arguments, run, by_xla) for run in range(_RUNS)]
    found = {}
    for number in suspects:
        ours, theirs = actual[number], expected[number]
        noise, stable = np.zeros(theirs.shape), np.ones(theirs.shape, bool)
        for run in off:
            distance, same = _distance(run[number], theirs)
            noise, stable = np.maximum(noise, distance), stable & same
        with np.errstate(over="ignore"):
            wrong = _different(ours, theirs, _FACTOR * noise, stable)
        if wrong:
            found[number] = wrong
    return found


def noisy(
    entry: Computation, arguments: Sequence[np.ndarray], run: int, by_xla: bool = True
) -> list[np.ndarray]:
    """The results, each op's a little off; ``run`` says how."""
    flushed = by_xla and run >= _ROUNDED
    rng = np.random.default_rng(run)
    values: dict[Any, Any] = dict(zip(entry.parameters, arguments, strict=True))
    for instruction in instructions(entry):
        if instruction.op is PARAMETER:
            continue
        operands = [values[o] for o in instruction.operands]
        moves = instruction.op.family in _MOVING or instruction.op.name == "BitcastConvertType"
        if flushed and not moves:
            operands = [_without_denormals(o) for o in operands]
        differing = known.differing(instruction, operands, by_xla)
        summing = is_summing(instruction)
        if summing:
            operands = [_moved(o, rng, run) for o in operands]
        made = evaluate_instruction(instruction, operands)
        if flushed and not moves:
            made = _without_denormals(made)
        factors = 6 if instruction.op.family == "normalisation" else 3
        large = any(_is_large(leaf, factors) for o in operands for leaf in leaves(o))
        if summing and large and run < _ROUNDED:
            made = _replaced(made, run)
        differing = differing | np.asarray(_is_bits_of_rounded(instruction))
        if np.any(differing):
            made = _replaced(made, run, differing)
        exact = instruction.op.family in _EXACT
        values[instruction] = made if exact else _moved(made, rng, run)
        if by_xla and not exact and isinstance(made, np.ndarray):
            values[instruction] = _further(instruction.op.name, values[instruction], rng, run)
    return leaves(values[entry.root])


def is_summing(instruction: Instruction) -> bool:
    """Whether the op adds up terms that may be rounded in any order."""
    if instruction.op.family not in _SUMMING:
        return False
    inside = [i for called in instruction.computations for i in instructions(called)]
    if not inside or instruction.op.family == "control":
        return True
    return any(
        i.op.family not in _EXACT
        and i.op.name not in _CHOOSING
        and any(s.element_type.is_inexact for s in i.element_shapes if isinstance(s, Shape))
        for i in inside
    )


def _moved(value: Any, rng: np.random.Generator, run: int) -> Any:
    """Numbers some units in the last place off, in run 0 all away from zero, in the last ones none.

    NaN and zeros get any sign.
    """
    if isinstance(value, tuple):
        return tuple(_moved(element, rng, run) for element in value)
    array = np.asarray(value)
    if array.dtype == object:  # a token, or an array with a dynamic size
        return value
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return array
    epsilon = float(ml_dtypes.finfo(element_type.real.dtype).eps)  # type: ignore[no-untyped-call]
    ulps = _ULPS if element_type.real.bits >= 32 else 1
    if run == 0 or run >= _ROUNDED:
        steps = np.full(array.shape, 0 if run else ulps)
    else:
        steps = rng.integers(-ulps, ulps + 1, array.shape)
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(all="ignore"):
        moved = np.asarray(array.astype(wide) * (1 + steps * epsilon))
        if not element_type.is_complex:
            signs = _SIGNS.get(run) or rng.choice([-1, 1], array.shape)
            unsigned = np.isnan(moved) | (moved == 0)
            moved = np.where(unsigned, np.copysign(moved, signs), moved)
        return moved.astype(array.dtype)


def _further(name: str, array: np.ndarray, rng: np.random.Generator, run: int) -> np.ndarray:
    """The array off by as much more as XLA's functions are, in the runs with errors."""
    if array.dtype == object or not element_type_of(array.dtype).is_inexact or run >= _ROUNDED:
        return array
    off = np.asarray(known.further(name, array)) / _FACTOR
    if not off.any():
        return array
    wide = _wide(array)
    steps = rng.uniform(-1, 1, (2, *array.shape)) if run else np.ones((2, *array.shape))
    moved = wide + off * (steps[0] + 1j * steps[1] if wide.dtype.kind == "c" else steps[0])
    return np.asarray(moved.astype(array.dtype))


def _is_bits_of_rounded(instruction: Instruction) -> bool:
    """Whether bits of computed numbers are read as other numbers, which are any then."""
    if instruction.op.name != "BitcastConvertType":
        return False
    (operand,) = instruction.operands
    types = operand.array_shape.element_type, instruction.array_shape.element_type
    return operand.op.family not in _EXACT and all(t.is_inexact for t in types)


def _without_denormals(value: Any) -> Any:
    """Denormal numbers as zeros, also within tuples."""
    if isinstance(value, tuple):
        return tuple(_without_denormals(element) for element in value)
    array = np.asarray(value)
    return value if array.dtype == object else known.without_denormals(array)


def _is_large(array: np.ndarray, factors: int) -> bool:
    """Whether products of so many such elements, or means of many of them, can overflow."""
    if array.dtype == object:  # of a dynamic size, its elements unseen
        return True
    if not element_type_of(array.dtype).is_inexact:
        return False
    element_type = element_type_of(array.dtype)
    most = float(ml_dtypes.finfo(element_type.real.dtype).max)  # type: ignore[no-untyped-call]
    most /= max(array.size, 1) if factors > 3 else 1
    sizes = np.abs(_wide(array))
    return bool(np.any(np.isfinite(sizes) & (sizes > most ** (1 / factors))))


def _replaced(value: Any, run: int, where: np.ndarray | bool = True) -> Any:
    """The same number in all those places, another one in each run (`_NUMBERS`)."""
    if isinstance(value, tuple):
        return tuple(_replaced(element, run, where) for element in value)
    array = np.asarray(value)
    if array.dtype == object:
        return value
    if array.dtype == bool:
        return np.where(where, run % 2 == 1, array)
    inexact = element_type_of(array.dtype).is_inexact
    number = _NUMBERS[run] if inexact else run % 3 + 1
    return np.where(where, np.array(number).astype(array.dtype), array)


def _wide(array: np.ndarray) -> np.ndarray:
    """The array in a type of NumPy's own that can be subtracted."""
    element_type = element_type_of(array.dtype)
    if element_type.is_complex:
        return array.astype(np.complex128)
    return array.astype(np.float64) if element_type.is_inexact else array


def _distance(off: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far apart, and where that means anything: both finite, or both the same."""
    if not element_type_of(base.dtype).is_inexact:
        return np.zeros(base.shape), np.asarray(off == base)
    left, right = _wide(off), _wide(base)
    finite = np.isfinite(left) & np.isfinite(right)
    with np.errstate(all="ignore"):
        apart = np.where(finite, np.abs(left - right), 0)
    return apart, finite | _same(left, right)


def _same(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where two floating-point arrays are equal, NaN equal to NaN, by parts for complex ones."""
    if left.dtype.kind == "c":
        return np.asarray(_same(left.real, right.real) & _same(left.imag, right.imag))
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


def apart(
    actual: np.ndarray, expected: np.ndarray, relative: float, noise: np.ndarray | float = 0
) -> np.ndarray:
    """Where numbers of one type are further apart than that; the smallest ones equal zero.

    Complex numbers are compared by parts, relative to the size of the whole.
    """
    left, right = _wide(actual), _wide(expected)
    real = element_type_of(expected.dtype).real.dtype
    tiny = float(ml_dtypes.finfo(real).tiny)  # type: ignore[no-untyped-call]
    if tiny < 1e-30:  # terms of a sum may have been flushed to zero
        tiny *= 16
    with np.errstate(all="ignore"):
        size = np.abs(right)
        allowed = tiny + relative * np.where(np.isfinite(size), size, 0) + noise
        parts = [(left, right)]
        if left.dtype.kind == "c":
            parts = [(left.real, right.real), (left.imag, right.imag)]
        close = [_same(a, b) | (np.abs(a - b) <= allowed) for a, b in parts]
    return np.asarray(~np.logical_and.reduce(close))


def _different(
    actual: np.ndarray, expected: np.ndarray, noise: np.ndarray, stable: np.ndarray
) -> str:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    element_type = element_type_of(expected.dtype)
    if not element_type.is_inexact:
        wrong = (actual != expected) & stable
    else:
        wrong = apart(actual, expected, 2 * RELATIVE[element_type], noise) & stable
    places = np.argwhere(wrong)
    if not len(places):
        return ""
    first = tuple(int(i) for i in places[0])
    return (
        f"{len(places)} of {expected.size} elements differ, first at {list(first)}: "
        f"{actual[first]} instead of {expected[first]}"
    )
