"""How far two right evaluations of a graph may lie apart.

Rounding errors grow through a graph in ways that no fixed tolerance knows: the graph is evaluated
several times, every floating-point result a few units in the last place off, and the results may
differ by a multiple of what that did. Where it turned a comparison, an index or an infinity
round, nothing can be said, and the element is left out; likewise where terms so large were summed
that some ways of doing it overflow, and of convolutions of infinities and NaN, since the zeros of
padding may or may not be multiplied with them. The sign of a NaN says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.tolerances import RELATIVE
from tracejit.backends.numpy.interpreter import evaluate_instruction
from tracejit.graph import Computation
from tracejit.ops.constants import PARAMETER
from tracejit.ops.contraction import CONV_GENERAL_DILATED
from tracejit.shapes import element_type_of
from tracejit.traversal import instructions

# Families whose results are exact copies of operands' elements.
_EXACT = {"constants", "layout", "comparison"}
# Ops that add terms up: also the terms are off, all in the direction of their sign at once.
_SUMMING = {"contraction", "normalisation", "reduction", "windows", "indexing", "control"}
_ULPS = 4
_RUNS = 4
_FACTOR = 8


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
) -> dict[int, str]:
    """For each result that two evaluators disagree on, by its number, how."""
    suspects = {}
    for number, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        wrong = _different(ours, theirs, np.zeros(theirs.shape), np.ones(theirs.shape, bool))
        if wrong:
            suspects[number] = wrong
    if not suspects:
        return {}
    off = [noisy(entry, arguments, run) for run in range(_RUNS)]
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


def noisy(entry: Computation, arguments: Sequence[np.ndarray], run: int) -> list[np.ndarray]:
    """The results, each op's a little off; ``run`` says how."""
    rng = np.random.default_rng(run)
    values: dict[Any, Any] = dict(zip(entry.parameters, arguments, strict=True))
    for instruction in instructions(entry):
        if instruction.op is PARAMETER:
            continue
        operands = [values[o] for o in instruction.operands]
        family = instruction.op.family
        if family in _SUMMING:
            operands = [_moved(o, rng, run) for o in operands]
        made = evaluate_instruction(instruction, operands)
        if family in _SUMMING and any(_is_large(leaf) for o in operands for leaf in leaves(o)):
            made = _replaced(made, run)
        if instruction.op is CONV_GENERAL_DILATED and not all(map(_is_finite, operands)):
            made = _replaced(made, run)
        values[instruction] = made if family in _EXACT else _moved(made, rng, run)
    return leaves(values[entry.root])


def _moved(value: Any, rng: np.random.Generator, run: int) -> Any:
    """Numbers some units in the last place off, in run 0 all away from zero; NaN of any sign."""
    if isinstance(value, tuple):
        return tuple(_moved(element, rng, run) for element in value)
    array = np.asarray(value)
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return array
    epsilon = float(ml_dtypes.finfo(element_type.real.dtype).eps)  # type: ignore[no-untyped-call]
    ulps = _ULPS if element_type.real.bits >= 32 else 1
    steps = np.full(array.shape, ulps) if run == 0 else rng.integers(-ulps, ulps + 1, array.shape)
    wide = np.complex128 if element_type.is_complex else np.float64
    with np.errstate(all="ignore"):
        moved = np.asarray(array.astype(wide) * (1 + steps * epsilon))
        if not element_type.is_complex:
            signs = rng.choice([-1, 1], array.shape) if run > 1 else 1 - 2 * run
            moved = np.where(np.isnan(moved), np.copysign(moved, signs), moved)
        return moved.astype(array.dtype)


def _is_large(array: np.ndarray) -> bool:
    """Whether products of three such elements can overflow."""
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return False
    most = float(ml_dtypes.finfo(element_type.real.dtype).max)  # type: ignore[no-untyped-call]
    sizes = np.abs(_wide(array))
    return bool(np.any(np.isfinite(sizes) & (sizes > most ** (1 / 3))))


def _is_finite(array: np.ndarray) -> bool:
    return not element_type_of(array.dtype).is_inexact or bool(np.all(np.isfinite(_wide(array))))


def _replaced(value: Any, run: int) -> Any:
    """The same number everywhere, another one in each run."""
    if isinstance(value, tuple):
        return tuple(_replaced(element, run) for element in value)
    array = np.asarray(value)
    return np.full(array.shape, run % 3 + 1).astype(array.dtype)


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


def _different(
    actual: np.ndarray, expected: np.ndarray, noise: np.ndarray, stable: np.ndarray
) -> str:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    element_type = element_type_of(expected.dtype)
    if not element_type.is_inexact:
        wrong = (actual != expected) & stable
    else:
        left, right = _wide(actual), _wide(expected)
        tiny = float(ml_dtypes.finfo(element_type.real.dtype).tiny)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            size = np.where(np.isfinite(right), np.abs(right), 0)
            close = np.abs(left - right) <= tiny + 2 * RELATIVE[element_type] * size + noise
        wrong = ~(close | _same(left, right)) & stable
    places = np.argwhere(wrong)
    if not len(places):
        return ""
    first = tuple(int(i) for i in places[0])
    return (
        f"{len(places)} of {expected.size} elements differ, first at {list(first)}: "
        f"{actual[first]} instead of {expected[first]}"
    )
