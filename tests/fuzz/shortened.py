"""Random programs whose arrays masks shorten, under several names, run by jit and by plain NumPy.

program(seed)      the source of ``program(x, y, n)``
judged(seed)       what jit makes of it: "right", or what kind of refusal

``x``, ``y`` and ``z`` are shortened, bound to one another, written to as wholes and by masks, in
loops and under conditions that may not hold. Where a loop does not run, or a branch is not taken,
an array keeps its size and its other names.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import tracejit as tj
from tests.fuzz.answers import answered
from tests.fuzz.programs import made_of

HEAD = """
def program(x, y, n):
    x = x * 1
    y = y + 1
    z = x + y
    t = x.copy()
    j = np.arange(9)
    s = 0.0
    i = 0
"""
TAIL = """
    return s, x.sum(), y.sum(), z.sum(), t
"""
TRIPS = (0, 2, 3)
"""How often a program's loops run, one after the other."""


def _statement(draw: random.Random, depth: int) -> list[str]:
    """The lines of one statement; ``depth`` of them stand around."""
    pad = "    " * (depth + 1)
    one, other = draw.choice("xyz"), draw.choice("xyz")
    bound = draw.choice(("1", "2", "n", "x.mean()", "0.5", "i"))
    kind = draw.randrange(13 if depth < 2 else 11)
    if kind == 11:
        heads = ("for i in range(n):", "for i in range(2):", "if n > 1:", "if s > 3:")
        return [pad + draw.choice(heads), *_block(draw, depth + 1)]
    if kind == 12:
        count = f"w{depth}"  # nothing inside sets it: the loop ends
        head = f"while {count} < n and len({one}) > 1:"
        lines = [pad + f"{count} = 0", pad + head, pad + f"    {count} += 1"]
        return [*lines, *_block(draw, depth + 1)]
    operator, number = draw.choice(("+=", "*=", "-=")), draw.choice(("1", "0.5", one, other))
    kinds = (
        (f"k = {one} > {bound}", f"{one} = {one}[k]"),
        (f"k = {one} > {bound}", f"{one} = {one}[k]"),
        (f"k = x > {bound}", "x, y, z = x[k], y[k], z[k]"),
        (f"{one} {operator} {number}",),
        (f"{one}[{one} > {bound}] = {draw.choice(('0', '7', 's'))}",),
        (f"s = s + {one}.sum() * 0.125",),
        (f"s = s + len({one})",),
        (f"t[j[:len(t)][t > {bound}]] += 1",),
        (f"{other} = {one}",),
        (f"np.add({one}, 1, {one})",),
        (f"s = s + ({one} * 2).max(initial=0)",),
    )
    return [pad + line for line in kinds[kind]]


def _block(draw: random.Random, depth: int) -> list[str]:
    return [line for _ in range(draw.randint(1, 3)) for line in _statement(draw, depth)]


def program(seed: int) -> str:
    """The source of the program of a seed."""
    draw = random.Random(seed)
    lines = [line for _ in range(draw.randint(2, 6)) for line in _statement(draw, 0)]
    return HEAD + "\n".join(lines) + TAIL


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of nine numbers, all of which are exact."""
    first, second = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    return first.permutation(9) * 0.5, second.permutation(9) * 1.0


def judged(seed: int, **options: Any) -> str:
    """ "right", or the name of the error that refuses it. Raises `AssertionError` for a wrong one.

    A program that Python does not run either is "no program", one that is not traced and compiled
    in a minute is wrong.
    """
    text = program(seed)
    plain = made_of(text, seed)
    jitted = tj.jit(made_of(text, seed), autograph=True, **options)
    calls = [lambda n=n: (*arguments(seed), n) for n in TRIPS]
    return answered(seed, text, plain, jitted, calls)
