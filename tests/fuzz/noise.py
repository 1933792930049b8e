"""How far two right evaluations of a graph may lie apart.

Rounding errors grow through a graph in ways that no fixed tolerance knows: the graph is evaluated
several times (`RUNS`), every floating-point number a few units in the last place off, in loops and
calls too, and the results may differ by a multiple of what that did. Where it turned a comparison,
an index or an infinity round, nothing can be said, and the element is left out. In some runs
nothing is rounded, but XLA's CPU backend has taken denormal numbers for zeros, also inside of an
op that it composes of others. Any run may give zeros and NaN other signs, and NaN other bits. What
still differs is looked at in more runs (`MORE`): chance may have turned the same things every time.

Numbers of which nothing is known are others in each run, and in `MORE` of either sign, infinite or
NaN, so that what chooses one of them chooses another: those that `tests.fuzz.known` and
`tests.fuzz.unknown` say so of.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz import known
from tests.fuzz.batch_norms import as_xla, is_batch_norm
from tests.fuzz.comparing import apart, changed, described, leaves, same, wide
from tests.fuzz.flushing import flushed
from tests.fuzz.unknown import MOVING, may_overflow, unknown
from tests.tolerances import RELATIVE
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.backends.numpy.interpreter import stepping
from tracejit.graph import Computation, Instruction
from tracejit.shapes import Shape, element_type_of
from tracejit.traversal import instructions

# Families whose results are exact copies of operands' elements.
_EXACT = MOVING | {"comparison"}
# Ops that add terms up: also the terms are off, all in the direction of their sign at once.
_SUMMING = {"contraction", "convolution", "normalisation", "reduction", "windows", "indexing"} | {
    *("linalg", "scanning", "spectra", "grouped"),
}
# Ops that return one of their operands' elements, or nothing that is rounded.
_CHOOSING = {"Max", "Min", "And", "Or", "Xor", "Select", "Clamp"}
_ULPS = 4
_FACTOR = 8


@dataclass(frozen=True)
class Run:
    """One way to be off.

    ``rounds`` is "up", away from zero, "any" or "none". ``sign`` is that of all zeros and NaN, 0
    for any; all bits of a negative NaN are set. ``unknown`` stands for numbers of which nothing is
    known; ``whole`` for integers, each ``step`` from the one before it.
    """

    rounds: str
    sign: int
    unknown: float
    whole: int
    step: int = 0

    @property
    def flushes(self) -> bool:
        """Whether XLA takes denormal numbers for zeros in it."""
        return self.rounds == "none"


# The unknown numbers are such that functions defined up to 1 only, or from 1 on, tell them apart.
RUNS = (
    Run("up", 1, 0.5, 1),
    Run("any", -1, np.nan, 2),
    Run("any", 0, 3, 3),
    Run("any", 0, -2, 0),
    Run("none", -1, -0.25, -1),
    Run("none", 0, 0, -2),
)
MORE = (
    Run("any", 0, -7, -8),
    Run("any", 0, -1, 7),
    Run("any", 0, 0, 100),
    Run("any", 0, 1, -100),
    Run("any", 0, 7, 5),
    Run("any", 0, 60, 4),
    Run("any", 0, -3, 9, step=-1),
    Run("any", 0, 5, -9, step=1),
    *(Run("any", 0, 2 + number, 10 + number) for number in range(24)),
)


def disagreements(
    entry: Computation,
    arguments: Sequence[np.ndarray],
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    by_xla: bool = True,
) -> dict[int, str]:
    """For each result that two evaluators disagree on, by its number, how.

    ``by_xla`` says whether one of them is XLA, not compiled code.
    """
    pairs = [*zip(actual, expected, strict=True)]
    suspects = [n for n, (ours, theirs) in enumerate(pairs) if _different(ours, theirs)]
    if not suspects:
        return {}
    made: list[list[np.ndarray]] = []
    found: dict[int, str] = {}
    for runs in (RUNS, MORE):
        made += [noisy(entry, arguments, run, by_xla) for run in runs]
        found = {n: _different(*pairs[n], [results[n] for results in made]) for n in suspects}
        suspects = [n for n in suspects if found[n]]
        if not suspects:
            break
    return {n: found[n] for n in suspects}


def is_summing(instruction: Instruction) -> bool:
    """Whether the op adds up terms that may be rounded in any order."""
    if instruction.op.family not in _SUMMING:
        return False
    inside = [i for called in instruction.computations for i in instructions(called)]
    return not inside or any(
        i.op.family not in _EXACT
        and i.op.name not in _CHOOSING
        and any(s.element_type.is_inexact for s in i.element_shapes if isinstance(s, Shape))
        for i in inside
    )


def is_calling(instruction: Instruction) -> bool:
    """Whether the op hands its operands on to a computation whose ops round by themselves."""
    return instruction.op.family == "control" or instruction.op.name in ("Fusion", "AsyncStart")


def noisy(
    entry: Computation, arguments: Sequence[np.ndarray], run: Run, by_xla: bool = True
) -> list[np.ndarray]:
    """The results, each op's a little off."""
    rng = np.random.default_rng((*RUNS, *MORE).index(run))

    def step(instruction: Instruction, operands: Sequence[Any]) -> Any:
        if is_calling(instruction):
            return evaluate_instruction(instruction, operands)
        with stepping(evaluate_instruction):
            return _noisy(instruction, operands, run, rng, by_xla, entry.parameters)

    with stepping(step):
        return leaves(evaluate(entry, arguments))


def _noisy(
    instruction: Instruction,
    operands: Sequence[Any],
    run: Run,
    rng: np.random.Generator,
    by_xla: bool,
    given: Collection[Instruction],
) -> Any:
    """The value of an instruction, a little off."""
    moves = instruction.op.family in MOVING or instruction.op.name == "BitcastConvertType"
    flushes = by_xla and run.flushes and not moves
    if flushes:
        operands = flushed(tuple(operands))
    lost = known.differing(instruction, operands, by_xla) | unknown(instruction, operands, given)
    if is_summing(instruction):
        operands = changed(lambda array: _off(array, rng, run), tuple(operands))
        lost = lost | (not run.flushes and may_overflow(instruction, operands))
    if flushes and is_batch_norm(instruction):
        made = as_xla(instruction, operands)
    else:
        made = evaluate_instruction(instruction, operands)
    if flushes:
        made = flushed(made)
    if np.any(lost):
        made = changed(lambda array: _replaced(array, run, lost), made)
    if instruction.op.family in _EXACT:
        return made
    name = instruction.op.name if by_xla else ""
    return changed(lambda array: _off(array, rng, run, name), made)


def _off(array: np.ndarray, rng: np.random.Generator, run: Run, name: str = "") -> np.ndarray:
    """Inexact numbers as far off as the run says, those that XLA's op of that name made further."""
    element_type = element_type_of(array.dtype)
    if not element_type.is_inexact:
        return array
    moved = wide(array)
    with np.errstate(all="ignore"):
        if run.rounds != "none":
            epsilon = ml_dtypes.finfo(element_type.real.dtype).eps  # type: ignore[no-untyped-call]
            ulps = _ULPS if element_type.real.bits >= 32 else 1
            steps = np.asarray(ulps)
            if run.rounds == "any":
                steps = rng.integers(-ulps, ulps + 1, array.shape)
            moved = np.asarray(moved * (1 + steps * float(epsilon)))
            further = np.asarray(known.further(name, array))
            if further.any():
                real, imag = rng.uniform(-1 / _FACTOR, 1 / _FACTOR, (2, *array.shape))
                moved += further * (real + 1j * imag if element_type.is_complex else real)
        if not element_type.is_complex:
            signs = run.sign or rng.choice([-1, 1], array.shape)
            unsigned = np.isnan(moved) | (moved == 0)
            moved = np.where(unsigned, np.copysign(moved, signs), moved)
        return _with_full_nan(np.asarray(moved.astype(array.dtype)))


def _with_full_nan(array: np.ndarray) -> np.ndarray:
    """All bits of each negative NaN set."""
    if array.dtype.kind == "c":
        made = np.empty_like(array)
        made.real, made.imag = _with_full_nan(array.real), _with_full_nan(array.imag)
        return made
    if not element_type_of(array.dtype).float_format.has_negative_zero:
        return array
    bits = array.view(f"i{array.dtype.itemsize}")
    is_full = (array != array) & (bits < 0)
    return np.where(is_full, np.array(-1, bits.dtype), bits).view(array.dtype)


def _replaced(array: np.ndarray, run: Run, where: np.ndarray | bool) -> np.ndarray:
    """The run's unknown number in all those places."""
    if element_type_of(array.dtype).is_inexact:
        numbers = np.array(run.unknown)
        if run in MORE:
            rng = np.random.default_rng(MORE.index(run))
            extremes = rng.choice([-np.inf, np.inf, np.nan], array.shape)
            sizes = rng.choice([-2, -1, 1, 2], array.shape) * run.unknown
            numbers = np.where(rng.random(array.shape) < 0.5, extremes, sizes)
    else:
        numbers = run.whole + run.step * np.arange(array.size).reshape(array.shape)
    if array.dtype == bool:
        numbers = numbers % 2
    return np.where(where, numbers.astype(array.dtype), array)


def _different(actual: np.ndarray, expected: np.ndarray, made: Sequence[np.ndarray] = ()) -> str:
    """How two results differ by more than those of noisy runs do, which ``made`` are."""
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return described(np.ones(()), actual, expected)
    element_type = element_type_of(expected.dtype)
    if not element_type.is_inexact:
        wrong = np.logical_and.reduce([actual != expected, *(off == expected for off in made)])
        return described(wrong, actual, expected)
    right = wide(expected)
    noise, stable = np.zeros(right.shape), np.ones(right.shape, bool)
    with np.errstate(all="ignore"):
        for off in map(wide, made):
            finite = np.isfinite(off) & np.isfinite(right)
            noise = np.maximum(noise, np.where(finite, np.abs(off - right), 0))
            stable = stable & (finite | same(off, right))
        wrong = apart(actual, expected, 2 * RELATIVE[element_type], _FACTOR * noise)
    return described(wrong & stable, actual, expected)
