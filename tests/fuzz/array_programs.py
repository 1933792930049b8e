"""Random programs of array functions, judged by NumPy: ``python -m tests.fuzz --only arrays``.

Odd small shapes meet repeats, tiles, pads, rolls, broadcasts, reshapes, writes to chosen places,
sums that keep dimensions, cumulative ops, products and sorts. Every program runs twice, its memory
beside a forbidden page and filled with one pattern, then another; its results must be the same,
and NumPy's. A program that takes 20 times as long to compile as half of them is a failure, and one
that does not end is, too.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import tracejit as tj
from tests.fuzz.compile_times import MOST_SECONDS, Clock, bounded
from tests.fuzz.guarded_programs import twice
from tracejit.backends.artifact import InProcess
from tracejit.errors import TracejitError
from tracejit.graph import Module
from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.compile import compile_for

SIZES = (1, 2, 3, 4, 5, 7, 8, 8, 9, 13, 16, 16, 17)

# Each takes `v`, an array of the given rank or any, and draws numbers from `n(low, high)`.
ANY = (
    "np.repeat({v}, {small}, axis={axis})",
    "np.tile({v}, {small})",
    "np.roll({v}, {any}, axis={axis})",
    "np.pad({v}, {small})",
    "np.concatenate([{v}, {v} * 0.5], axis={axis})",
    "{v}.sum({axis}, keepdims=True)",
    "{v}.max({axis}, keepdims=True)",
    "{v} - {v}.sum({axis}, keepdims=True) / 7",
    "np.exp({v} - {v}.max({axis}, keepdims=True))",
    "{v} + np.var({v}, {axis}, keepdims=True)",
    "{v}.std({axis}) + {v}.mean({axis})",
    "np.cumsum({v}, axis={axis}) / 3",
    "np.maximum.accumulate({v}, axis={axis})",
    "np.sort({v}, axis={axis})",
    "{v}.T",
    "{v}[::-1] * 0.5 + {v}",
    "np.broadcast_to({v}[..., None], {v}.shape + ({small},)).reshape({v}.shape[:-1] + (-1,))",
    "{v}.reshape(-1, {v}.shape[-1])",
    "np.where({v} > 0.3, {v}, -{v})",
    "np.take({v}, np.arange({small}) % {v}.shape[{axis}], axis={axis})",
    "np.logaddexp.reduce({v} / 3, axis={axis}, keepdims=True)",
    "({v}.reshape(-1) @ {v}.reshape(-1)) * 0.01 + {v}",
    "{v}.T @ {v} / {v}.size",
    "np.logaddexp.reduce({v}.reshape(-1)[:{any} + 3]) * ({v}.reshape(-1) @ {v}.reshape(-1)) * 0.01",
    "np.diff({v}, axis={axis}, prepend=0)",
)
WRITES = (
    "{v} = {v} + 0; {v}[np.array([{row}, {row}])] += 1",
    "{v} = {v} * 1; {v}[{row}] = {v}[{other}] + 2",
    "{v} = {v} + 0; {v}[{row}:] *= 0.5",
    "{v}[np.array([{row}, {other}])] += 1",
)
LARGEST = 3000


def program(seed: int) -> tuple[str, list[np.ndarray]]:
    """The text of a function ``f(a, b)``, and its arguments; every line of it is NumPy's."""
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    kind = draw.choice((np.float32, np.float64))
    arrays = []
    for _ in range(2):
        shape = tuple(draw.choice(SIZES) for _ in range(draw.randint(1, 3)))
        arrays.append(rng.uniform(-1, 1, shape).astype(kind))
    names: dict[str, Any] = {"np": np, "a": arrays[0], "b": arrays[1]}
    owned: list[str] = []
    lines: list[str] = []
    for number in range(draw.randint(4, 24)):
        name = draw.choice([k for k in names if k != "np"][-4:])
        value = names[name]
        rank = value.ndim
        if not rank:
            continue
        words = {
            "v": name,
            "axis": draw.randrange(rank),
            "small": draw.randint(1, 3),
            "any": draw.randint(-9, 9),
            "row": draw.randrange(value.shape[0]),
            "other": draw.randrange(value.shape[0]),
        }
        if draw.random() < 0.25 and name in owned:
            line = draw.choice(WRITES).format(**words)
        else:
            line = f"v{number} = " + draw.choice(ANY).format(**words)
        trial = {k: x if k == "np" else x.copy() for k, x in names.items()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                exec(line, trial)
        except (ValueError, TypeError, IndexError, Warning):
            continue
        trial.pop("__builtins__", None)
        made = trial.get(f"v{number}", trial[name])
        if not isinstance(made, (np.ndarray, np.floating)) or not 0 < np.size(made) <= LARGEST:
            continue
        if not np.all(np.isfinite(made)) or np.max(np.abs(made)) > 1e4 or np.ndim(made) > 4:
            continue
        lines.append(line)
        names = {k: np.asarray(x) if k != "np" else x for k, x in trial.items()}
        if f"v{number}" in names and not line.endswith(".T"):
            owned.append(f"v{number}")
    kept = [k for k in names if k not in ("np", "a", "b")][-3:] or ["a"]
    body = "\n    ".join([*lines, f"return {', '.join(kept)},"])
    return f"def f(a, b):\n    {body}\n", arrays


class ArrayJudge:
    """Judges programs one after the other, and how long each takes to compile."""

    def __init__(self, most_seconds: float = MOST_SECONDS) -> None:
        self._most_seconds = most_seconds
        self._clock = Clock(most_seconds)

    def judge(self, seed: int) -> tuple[str, Module | None]:
        """What is wrong with a program, or nothing, and its graph if it was traced.

        The process ends by SIGPROF if compiling does not.
        """
        text, arrays = program(seed)
        names: dict[str, Any] = {"np": np}
        exec(compile(text, f"<program {seed}>", "exec"), names)
        try:
            expected = names["f"](*[x.copy() for x in arrays])
        except ValueError:
            # Written lines met arrays of their own, here views that may not be written.
            return "", None
        try:
            with bounded(self._most_seconds):
                module = tj.jit(names["f"]).lower(*arrays).module
        except (TracejitError, NotImplementedError):
            return "", None
        try:
            with self._clock.timed() as timing:
                artifact = compile_for(module)
        except TracejitError as error:  # what the verifier has found, too
            return f"{type(error).__name__}: {error}\n{text}", module
        wrong = _difference(artifact, arrays, expected) or timing.complaint
        return f"{wrong}\n{text}" if wrong else "", module


def _difference(
    artifact: bytes | InProcess, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> str:
    """What is wrong with the results of two runs in guarded memory, or nothing."""
    results, wrong = twice(artifact, arrays)
    if wrong:
        return wrong
    tolerance = 2e-3 if arrays[0].dtype == np.float32 else 1e-9
    for number, (one, truth) in enumerate(zip(results, expected, strict=True)):
        if not np.allclose(one, truth, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"result {number} is not NumPy's"
    return ""
