"""Random expressions of arrays and numbers of all types, run by jit and by plain NumPy.

program(seed)      the source of ``program(a, b, ..., np)``
judged(seed)       "right", or "refused" where jit raises an error of ours, or NumPy raises, too

Values and element types must be NumPy's: promotion of two types, of arrays with Python's numbers,
writes into arrays of narrower types, products, sums, comparisons, choices, and casts.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

import tracejit as tj
from tests.fuzz.answers import bounded
from tests.fuzz.programs import made_of
from tracejit.errors import TracejitError

TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
NUMBERS = ("2", "3", "1", "0.5", "1.5", "True", "False", "np.float32(2)", "np.int8(3)", "1j")
NAMES = "abcd"
INPLACE = ("+=", "-=", "*=", "|=", "&=")


def _operand(draw: random.Random, names: list[str]) -> str:
    return draw.choice([*names, *names, draw.choice(NUMBERS)])


def _expression(draw: random.Random, names: list[str], depth: int = 0) -> str:
    if depth == 2 or (depth and draw.randrange(3) == 0):
        return _operand(draw, names)
    one, two = (_expression(draw, names, depth + 1) for _ in range(2))
    name = draw.choice(names)
    kinds = (
        f"({one} {draw.choice(('+', '-', '*'))} {two})",
        f"({one} {draw.choice(('+', '-', '*'))} {two})",
        f"({one} {draw.choice(('&', '|', '^'))} {two})",
        f"({one} {draw.choice(('<', '<=', '==', '!=', '>'))} {two})",
        f"({one} / ({two} * {two} + 1))",
        f"np.where({name} > 1, {one}, {two})",
        f"np.maximum({one}, {two})",
        f"np.minimum({one}, {name})",
        f"({name} @ {draw.choice(names)})",
        f"np.dot({name}, {draw.choice(names)})",
        f"{name}.sum(0)",
        f"np.prod({name}[:2])",
        f"np.mean({name}, 0)",
        f"np.cumsum({name})",
        f"{name}.astype({draw.choice(TYPES)!r})",
        f"np.concatenate([{name}, {draw.choice(names)}])[1:4]",
        f"np.sqrt(np.abs({one}))",
        f"np.clip({name}, 0, {draw.choice(('1', '2', '3'))})",
        f"({name} ** {draw.choice(('2', '1', '0.5', draw.choice(names)))})",
        f"({name} // {draw.choice(('2', '3', '2.0'))})",
        f"({name} % {draw.choice(('2', '3', '2.0'))})",
        f"({name} << 1)",
        f"np.abs({one})",
        f"(-{one})",
        f"np.hypot({one}, {two})",
        f"np.outer({name}, {draw.choice(names)})[1, :3]",
        f"np.stack([{name}, {draw.choice(names)}])[1]",
        f"np.linspace({name}[0], 2, 3)",
        f"np.full(3, {one}[0], {draw.choice(TYPES)!r})" if one in names else f"np.sign({name})",
    )
    return draw.choice(kinds)


def program(seed: int) -> str:
    """The source of the program of a seed."""
    draw = random.Random(seed)
    names = list(NAMES)
    lines = ["def program(a, b, c, d):", "    made = []"]
    lines += [f"    {name} = {name} * 1" for name in names if draw.randrange(2)]
    for number in range(draw.randint(1, 4)):
        kind = draw.randrange(8)
        name = draw.choice(names)
        if kind < 5:
            lines.append(f"    v{number} = {_expression(draw, names)}")
            lines.append(f"    made.append(v{number})")
        elif kind == 5:
            lines.append(f"    {name} = {name} * 1")
            lines.append(f"    {name} {draw.choice(INPLACE)} {_expression(draw, names, 1)}")
        elif kind == 6:
            lines.append(f"    {name} = {name} * 1")
            lines.append(f"    {name}[{draw.choice((':', '0', '1:'))}] = {_operand(draw, names)}")
        else:
            lines.append(f"    np.add({name}, {_operand(draw, names)}, out=({name} := {name} * 1))")
    return "\n".join([*lines, "    return [*made, a, b, c, d]", ""])


def arguments(seed: int) -> list[np.ndarray]:
    """Three small numbers of a type each, all of which every type holds."""
    draw, numbers = random.Random(-1 - seed), np.random.default_rng(seed)
    return [numbers.integers(0, 4, 3).astype(draw.choice(TYPES)) for _ in NAMES]


def judged(seed: int, **options: Any) -> str:
    """What becomes of a seed. Raises `AssertionError` for other values or element types."""
    text = program(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        error: Exception | None = None
        right: list[Any] = []
        try:
            right = made_of(text, seed)(*arguments(seed))
        except Exception as raised:
            error = raised
        try:
            with bounded(seed):
                ours = tj.jit(made_of(text, seed), **options)(*arguments(seed))
        except TracejitError:
            return "refused"
        except Exception:
            if error is None:
                raise
            return "refused"
    if error is not None:
        raise AssertionError(f"seed {seed}: NumPy raises {error!r}\n{_shown(seed)}")
    for number, (one, other) in enumerate(zip(right, ours, strict=True)):
        kinds = np.asarray(one).dtype, np.asarray(other).dtype
        if kinds[0] != kinds[1] or np.shape(one) != np.shape(other):
            raise AssertionError(f"seed {seed}: result {number} is {kinds}\n{_shown(seed)}")
        if not _are_close(np.asarray(one), np.asarray(other), "float16" in _shown(seed)):
            raise AssertionError(
                f"seed {seed}: result {number} is {one!r}, not {other!r}\n{_shown(seed)}"
            )
    return "right"


def _are_close(one: np.ndarray, other: np.ndarray, has_halves: bool) -> bool:
    if one.dtype.kind in "biu":
        return np.array_equal(one, other)
    has_halves = has_halves or one.dtype == np.float16  # of int8 and int8, say
    tolerance = 40 * float(np.finfo(np.float16 if has_halves else np.float32).eps)
    return np.allclose(one, other, tolerance, tolerance, equal_nan=True)


def _shown(seed: int) -> str:
    return f"{[str(one.dtype) for one in arguments(seed)]}\n{program(seed)}"
