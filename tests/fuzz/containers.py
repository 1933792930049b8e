"""Random Python programs whose arrays are in containers, under several names each.

program(seed)                    the source of ``program(x, y, n)``
judged(seed)                     what jit makes of it: "right", or the name of the refusal

An array, and views of it, are variables, elements of lists, tuples and dictionaries, of those
inside of others, attributes, and variables of other functions. They are written to and bound anew
through any of these names, in branches, loops and functions that are called there. Programs of even
seeds run under autograph, with a traced ``n``; others under plain ``jit``, where loops are known,
and functions given to ``lax`` write. Whatever jit answers must be what Python answers, or a
refusal that a user can act on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracejit as tj
from tests.fuzz.answers import answered
from tests.fuzz.programs import made_of

HEAD = """
import collections
import types


class Box:
    def __init__(self, buf, pair):
        self.buf, self.pair = buf, pair

    def write(self, i, value):
        self.buf[i] = value

    def keep(self, array):
        self.buf = array

    def __getitem__(self, i):
        return self.pair[i]

    def __setitem__(self, i, array):
        self.pair[i] = array


Point = collections.namedtuple("Point", "a b")


def scale(array, by):
    array *= by


def put(box, i, value):
    box[0][i] = value


def program(x, y, n):
    s, a, c = 0.0, {number}, 0
    z, w = x * 1, y * 1
    v = {view}
    l = [{0}, {1}]
    d = {{"p": {2}, "q": {3}}}
    t = ({4}, {5})
    p = Point({6}, l)
    e = [d, ({7}, [{8}])]
    m = {9}
    box = Box({10}, [{11}, z])
    state = types.SimpleNamespace(buf={12}, inner=box)

    def write(i, value):
        z[i] = value

    def first(i, value):
        l[0][i] = value

    def swap():
        l[0], l[1] = l[1], l[0]

"""
TAIL = """
    held = [z, w, v, *l, *d.values(), *t, p.a, *p.b, *e[0].values(), e[1][0], *e[1][1], *m]
    held += [box.buf, *box.pair, state.buf, state.inner.buf]
    for i, one in enumerate(held):
        one += i
    return s, a, c, held
"""
VIEWS = ("z[::-1]", "z[:]", "w[::-1]", "z.reshape(2, 2).T.reshape(4)", "z", "w[:]")
NAMES = ("z", "w", "v")
PLACES = (
    "l[0]", "l[1]", "d['p']", "d['q']", "t[0]", "t[1]", "p.a", "p.b[0]", "e[0]['p']", "e[1][0]",
    "e[1][1][0]", "m[0]", "box.buf", "box.pair[0]", "box[1]", "state.buf", "state.inner.buf",
)  # fmt: skip
BOUND = (
    "l[0]", "l[1]", "d['p']", "d['q']", "e[0]['p']", "e[1][1][0]", "m[0]", "box.buf", "box[0]",
    "state.buf", "state.inner.buf", "p.b[1]",
)  # fmt: skip
"""The places that can be bound anew."""

LAX = (
    ("s = lax.fori_loop(0, 3, {}, s)", "given[1]", "r"),
    ("s = lax.cond(x[0] > 0, {}, lambda r: r * 0.5, s)", "given[0]", "r"),
    ("s = lax.scan({}, s, None, 3)[0]", "given[0]", "(r, None)"),
    ("s = lax.while_loop(lambda r: r < 0.5, {}, s)", "given[0]", "r + 1.5"),
)
"""Calls, where the function's state is among its arguments, and what it returns."""


class _Writer:
    """Writes statements; ``depth`` of them stand around."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.is_traced = seed % 2 == 0
        self.is_inside = False
        # Names that are bound anew are refused more often.
        self.may_bind = self.random.randrange(3) == 0
        # A program has a few of all the names.
        self.names = [*self.random.sample(PLACES, 4), *NAMES]

    def pick(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def number(self) -> str:
        return str(
            self.pick(
                (
                    f"{self.pick(self.names)}[{self.pick((0, 1, -1))}]",
                    f"np.tanh({self.pick(self.names)}.sum())",
                    f"np.sin({self.pick(self.names)}[1] + s)",
                    "a * 0.5",
                    "s",
                    str(self.pick((0.5, 1.0, -2.0))),
                )
            )
        )

    def array(self) -> str:
        return str(self.pick((f"{self.pick(self.names)} * 0.5", self.pick(self.names))))

    def test(self) -> str:
        if not self.is_traced:
            return f"c % {self.pick((2, 3))} == 0"
        left = self.pick(("s", "a", "n", f"{self.pick(self.names)}[0]"))
        return f"{left} > {self.pick(('0.2', 'a', 'c'))}"

    def statements(self, depth: int, count: int) -> None:
        for _ in range(count):
            kinds: list[Callable[[int], None]] = []
            kinds += [self.write] * 5 + [self.read] * 2 + [self.call]
            if depth < 3:
                kinds += [self.block] * 3
            if self.may_bind:
                kinds += [self.binding] * 3
            if not self.is_traced and depth < 3 and not self.is_inside:
                kinds += [self.lax]
            self.pick(kinds)(depth)

    def write(self, depth: int) -> None:
        name = self.pick(self.names)
        kinds = (
            f"{name}[{self.pick((0, 1, 2, -1))}] = {self.number()}",
            f"{name}[{self.pick((0, 1, 2, -1))}] += {self.number()}",
            f"{name}[1:] *= 0.5",
            f"{name}[:] = {self.pick(self.names)} * 0.5",
            f"np.multiply({name}, 0.5, out={name})",
            f"{name}[2:] = 0.25",
        )
        self.line(depth, self.pick(kinds))

    def read(self, depth: int) -> None:
        self.line(depth, f"s = np.tanh(s + {self.pick(self.names)}.sum() * 0.25)")

    def call(self, depth: int) -> None:
        i, value = self.pick((0, 1, 3)), self.number()
        kinds = (
            f"write({i}, {value})",
            f"first({i}, {value})",
            f"put({self.pick(('box', 'l', 't', 'm'))}, {i}, {value})",
            f"box.write({i}, {value})",
            f"scale({self.pick(self.names)}, 0.5)",
            f"state.inner.write({i}, {value})",
        )
        self.line(depth, self.pick(kinds))

    def binding(self, depth: int) -> None:
        kinds = (
            f"{self.pick(BOUND)} = {self.array()}",
            f"{self.pick(NAMES)} = {self.array()}",
            f"l = [{self.array()}, {self.array()}]",
            f"t = ({self.array()}, {self.array()})",
            f"d = {{'p': {self.array()}, 'q': {self.array()}}}",
            "l[0], l[1] = l[1], l[0]",
            "z, w = w, z",
            "swap()",
            f"box.keep({self.array()})",
            "m = l",
            "m = box.pair",
            "t = (t[1], t[0])",
            f"{self.pick(BOUND)} += 0.5",
        )
        self.line(depth, self.pick(kinds))

    def block(self, depth: int) -> None:
        self.loops += 1
        kind = self.random.randrange(5)
        number = f"i{self.loops}"
        if kind == 0:
            self.line(depth, f"{number} = 0")
            bound = self.pick(("n", "2")) if self.is_traced else self.pick(("3", "20"))
            self.line(depth, f"while {number} < {bound}:")
            self.line(depth + 1, f"{number} += 1")
        elif kind in (1, 2):
            counts = ("n", "n", "n + 1", "3") if self.is_traced else ("2", "20", "24")
            self.line(depth, f"for {number} in range({self.pick(counts)}):")
        else:
            self.line(depth, f"if {self.test()}:")
        self.statements(depth + 1, self.pick((1, 2, 3)))
        if kind < 3 and not self.is_inside and self.pick((True, False)):
            self.line(depth + 1, "c += 1")
        if kind == 3:
            self.line(depth, "else:")
            self.statements(depth + 1, self.pick((1, 2)))

    def lax(self, depth: int) -> None:
        """A function that is given to ``lax``, which writes or reads."""
        self.loops += 1
        name = f"part{self.loops}"
        use, carried, result = self.pick(LAX)
        self.line(depth, f"def {name}(*given):")
        self.line(depth + 1, f"s = {carried}")
        may_bind, self.may_bind, self.is_inside = self.may_bind, False, True
        self.statements(depth + 1, self.pick((0, 0, 0, 1)))
        self.may_bind, self.is_inside = may_bind, False
        self.line(depth + 1, f"r = np.tanh(s * 0.5 + {self.number()})")
        self.line(depth + 1, f"return {result}")
        self.line(depth, use.format(name))


class PlainLax:
    """What the functions of ``lax`` that programs call are in Python."""

    @staticmethod
    def fori_loop(lower: int, upper: int, body: Callable[..., Any], value: Any) -> Any:
        for i in range(lower, upper):
            value = body(i, value)
        return value

    @staticmethod
    def cond(holds: Any, one: Callable[..., Any], other: Callable[..., Any], value: Any) -> Any:
        return one(value) if holds else other(value)

    @staticmethod
    def scan(body: Callable[..., Any], value: Any, rows: None, length: int) -> Any:
        for _ in range(length):
            value, _ = body(value, None)
        return value, None

    @staticmethod
    def while_loop(test: Callable[..., Any], body: Callable[..., Any], value: Any) -> Any:
        while test(value):
            value = body(value)
        return value


def program(seed: int) -> str:
    """The source of the program of a seed."""
    writer = _Writer(seed)
    arrays = [writer.pick(("z", "z", "w", "v", "x * 2", "z[:]")) for _ in range(13)]
    arrays[9] = writer.pick(("l", "[z, w]", "list(l)", "e[1][1]", "[v, w]"))
    number = "n * 0.25" if writer.is_traced else "x[0] * 0.5"
    writer.statements(0, writer.pick((2, 3, 4)))
    head = HEAD.format(*arrays, number=number, view=writer.pick(VIEWS))
    return head + "\n".join(writer.lines) + TAIL


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays of four numbers."""
    x, y = np.random.default_rng(seed).normal(size=(2, 4))
    return x, y


def judged(seed: int, **options: Any) -> str:
    """ "right", or the name of the error that refuses it. Raises `AssertionError` for a wrong one.

    A program that Python does not run either is "no program".
    """
    text = program(seed)
    is_traced = seed % 2 == 0
    plain, ours = made_of(text, seed), made_of(text, seed)
    plain.__globals__["lax"], ours.__globals__["lax"] = PlainLax, tj.lax
    jitted = tj.jit(ours, autograph=is_traced, **options)
    counts = (3, 0, 2) if is_traced else (0,)
    calls = [lambda n=n: (*arguments(seed), n) for n in counts]
    return answered(seed, text, plain, jitted, calls, not is_traced and "lax" in text)
