"""Random Python programs with control flow on traced values, run by jit and by plain NumPy.

program(seed)                          the source of ``program(x, y, n)``
judged(seed)                           what jit makes of it: "right", or what kind of refusal

They write to arrays under several names and through views, change variables of other functions,
attributes and containers through calls, draw from iterators, catch errors, leave loops early, and
are given one array twice. In a fifth of them variables are None or unbound on some ways. Whatever
jit answers must be what Python answers, and where Python finds a variable unbound or None, jit must
raise, too.
"""

from __future__ import annotations

import linecache
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.errors import TracejitError
from tracejit.trace.tracer import ForeignWriteError

HEAD = """
class Box:
    shared = 0.0

    def __init__(self):
        self.n, self.last = 0, 0.5

    def bump(self):
        self.n += 1

    def keep(self, value):
        self.last = value

    @classmethod
    def share(cls, value):
        cls.shared = cls.shared * 0.5 + value


TOTAL = 0.0


def program(x, y, n):
    global TOTAL
    TOTAL = Box.shared = 0.0
    a, b, c, k = n, 0.25, 0, 0
    u, v = np.zeros(4), np.arange(4.0)
    w = {alias}
    box, d, l = Box(), {{"p": 1.0, "q": 0.5}}, [0.5, 1.5]
    it = iter([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    found = []

    def inc():
        nonlocal c
        c += 1

    def add(value):
        global TOTAL
        TOTAL = TOTAL + value

    def put(value):
        d["p"] = value
        l[1] = value * 2

    def write(i, value):
        u[i] = value

    def note(value):
        found.append(value)

"""
TAIL = """
    rest = float(k) + c + TOTAL + Box.shared + box.n + box.last + d["p"] + d["q"] + sum(l)
    return a, b + rest, u.sum() + (u * v).sum(), v, w.sum(), x, y, len(found)
"""
TAIL_OF_OPTIONAL = """
    b = b + (0.25 if m is None else m) + (0.0 if e is None else e[0] - e[1])
"""
ALIASES = (
    ("u", "u[::-1]", "u.copy()", "x", "v", "y[:]", "x[::-1].reshape(4)"),
    ("u[1:]", "v[:3]", "x[1:]", "y[:3]", "v[::-1][1:]"),
    ("v.reshape(2, 2)", "x.reshape(2, 2).T", "u[::-1].reshape(2, 2)"),
)
"""What one array may be at first and is given as later, in one program of one shape."""
ARRAYS = ("u", "v", "w", "x", "y")
NUMBERS = ("a", "b", "n")


class _Writer:
    """Writes statements; ``depth`` of them stand around."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        # What is not refused in most places, so that other things are seen.
        self.is_wild = self.chance(6)
        self.aliases = self.pick((ALIASES[0], *ALIASES))
        self.is_optional = seed % 5 == 0
        self.of_four = "uvw" if self.aliases is ALIASES[0] else "uv"

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    def pick(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def number(self) -> str:
        """An expression of a small number."""
        kinds: list[Callable[[], str]] = [
            lambda: self.pick(NUMBERS),
            lambda: f"{self.pick(ARRAYS)}.flat[{self.pick((0, 1))}]",
            lambda: str(self.pick((0.5, 1.0, -2.0, 0.125))),
            lambda: f"np.sin({self.pick(NUMBERS)} * {self.pick((2, 3))} + c)",
            lambda: f"({self.pick(NUMBERS)} * 0.5 - {self.pick(NUMBERS)} * 0.25)",
            lambda: "box.last * 0.5",
            lambda: "d['p'] * 0.25 + l[1] * 0.125",
            lambda: "(c + k) * 0.125",
            lambda: f"({self.pick(NUMBERS)} if {self.test()} else {self.pick(NUMBERS)})",
            lambda: f"np.tanh({self.pick(ARRAYS)}.sum())",
        ]
        made: str = self.pick(kinds)()
        return made

    def test(self) -> str:
        left, right = self.pick(NUMBERS), self.pick((*NUMBERS, "0.3", "box.last"))
        kinds = (
            f"{left} > {right}",
            f"{left} > {right}",
            f"{left} > 0 and {right} < 1",
            f"0 < {left} < 1.5",
        )
        made: str = self.pick((*kinds, "c > 1", f"not {left} > {right}"))
        return made

    def statements(self, depth: int, count: int) -> None:
        for _ in range(count):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        kinds: list[Callable[[int], None]] = []
        kinds += [self.assignment, self.write, self.call] * 3
        if depth < 3:
            kinds += [self.branch] * 4 + [self.loop_while, self.loop_range, self.loop_known]
        if self.is_wild:
            kinds += [self.wild]
        if self.is_optional:
            kinds += [self.optional] * 4
        self.pick(kinds)(depth)

    def assignment(self, depth: int) -> None:
        self.line(
            depth,
            self.pick(
                (
                    f"{self.pick('ab')} = {self.number()}",
                    f"{self.pick('ab')} = np.tanh({self.number()} + {self.number()})",
                    "a, b = b, a",
                    f"k = k + {self.pick((1, 2))}",
                    f"{self.pick('uv')} = {self.pick(self.of_four)} * 0.5",
                    f"{self.pick('uv')} = {self.of_four[-1]}",
                    "u, v = v, u",
                    f"w = {self.pick(self.aliases)}",
                )
                if self.chance(2)
                else (f"{self.pick('ab')} = {self.number()}",)
            ),
        )

    def write(self, depth: int) -> None:
        name = self.pick(("u", "v", "w", "x"))
        self.line(
            depth,
            self.pick(
                (
                    f"{name}[{self.pick((0, 1, -1))}] = {self.number()}",
                    f"{name}[1:] *= 0.5",
                    f"{name} += {self.pick(('0.125', 'b * 0.25'))}",
                    f"{name}.ravel()[0] = {self.number()}",
                    f"d['q'] = {self.number()}",
                    f"l[0] = {self.number()}",
                )
            ),
        )

    def call(self, depth: int) -> None:
        value = self.number()
        self.line(
            depth,
            self.pick(
                (
                    "inc()",
                    "box.bump()",
                    f"box.keep({value})",
                    f"Box.share({value})",
                    f"add({value})",
                    f"put({value})",
                    f"write({self.pick((0, 1, 3))}, {value})",
                )
            ),
        )

    def branch(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.statements(depth + 1, self.pick((1, 2, 3)))
        if self.chance(2):
            self.line(depth, "else:")
            self.statements(depth + 1, self.pick((1, 2)))
        elif self.chance(12) and depth:
            self.line(depth + 1, "return a, b, u.sum(), v, 0.0, x, y, 0")

    def loop_while(self, depth: int) -> None:
        self.loops += 1
        number = f"i{self.loops}"
        self.line(depth, f"{number} = {self.pick(('0', '0.0'))}")
        self.line(depth, f"while {number} < n * n + 2:")
        self.line(depth + 1, f"{number} = {number} + 1")
        self.statements(depth + 1, self.pick((1, 2, 3)))
        self.leaving(depth + 1)

    def loop_range(self, depth: int) -> None:
        self.loops += 1
        self.line(depth, f"for i{self.loops} in range(int(n * n) + {self.pick((0, 1, 2))}):")
        self.statements(depth + 1, self.pick((1, 2)))
        self.leaving(depth + 1)

    def loop_known(self, depth: int) -> None:
        self.loops += 1
        self.line(depth, f"for i{self.loops} in range({self.pick((2, 3, 20))}):")
        self.statements(depth + 1, self.pick((1, 2)))
        self.leaving(depth + 1)

    def leaving(self, depth: int) -> None:
        if self.chance(4):
            self.line(depth, f"if {self.test()}:")
            self.line(
                depth + 1, self.pick(("break", "continue", "return a, b, u.sum(), v, 0.0, x, y, 0"))
            )

    def optional(self, depth: int) -> None:
        """What binds and reads ``m`` and ``e``, at first None, and ``t``, at first unbound."""
        value = self.number()
        kind = self.random.randrange(9)
        if kind < 3:
            self.line(depth, self.pick((f"m = {value}", f"m = t = {value}", f"e = ({value}, b)")))
        elif kind == 3:
            self.line(depth, self.pick(("m = None", "e = None", "m = None if a > b else b")))
        elif kind == 4:
            self.line(depth, f"if m is None{self.pick(('', ' or m < a', ' and b < 1'))}:")
            self.line(depth + 1, f"m = {value}")
        elif kind == 5:
            self.line(depth, "if m is not None and m < 1:")
            self.line(depth + 1, "a = m * 0.5")
        elif kind == 6:
            self.line(depth, "a = a if e is None else e[0] * 0.5")
        elif kind == 7:
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, f"t = {value}")
            self.line(depth, self.pick(("else:", "if c >= 0:")))
            self.line(depth + 1, "t = 0.5")
        else:
            self.line(depth, self.pick(("b = np.tanh(t)", "a = np.tanh(m)", "b = e[1] * 0.5")))

    def wild(self, depth: int) -> None:
        """What is refused where it stands under a traced condition."""
        kind = self.random.randrange(5)
        if kind == 0:
            self.line(depth, f"note({self.number()})")
        elif kind == 1:
            self.line(depth, "b = next(it, 0.25)")
        elif kind == 2:
            self.line(depth, "try:")
            self.line(depth + 1, f"a = a if float({self.number()}) > 0.25 else b")
            self.line(depth, "except Exception:")
            self.line(depth + 1, "a = b")
        elif kind == 3:
            self.line(depth, f"if {self.test()} and (box.bump() or True):")
            self.line(depth + 1, "inc()")
        else:
            self.line(depth, "if a > 1e6:")
            self.line(depth + 1, "raise ValueError('a')")


def program(seed: int) -> str:
    """The source of the program of a seed."""
    writer = _Writer(seed)
    alias = writer.pick(writer.aliases)
    if writer.is_optional:
        writer.line(0, "m = e = None")
        writer.line(0, "if n != n:")
        writer.line(1, "t = 0.0")
    writer.statements(0, writer.pick((3, 4, 5, 6)))
    tail = TAIL_OF_OPTIONAL + TAIL if writer.is_optional else TAIL
    return HEAD.format(alias=alias) + "\n".join(writer.lines) + tail


def built(seed: int) -> Callable[..., Any]:
    """The function of a seed."""
    return made_of(program(seed), seed)


def made_of(text: str, seed: int) -> Callable[..., Any]:
    """The function ``program`` of a source, which is to be had."""
    file = f"<program {seed}>.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"np": np, "__name__": "program"}
    exec(compile(text, file, "exec"), names)
    function: Callable[..., Any] = names["program"]
    return function


def arguments(seed: int) -> tuple[Any, ...]:
    """Two arrays, now and then one of them twice or views of one, and a number."""
    numbers = np.random.default_rng(seed)
    x, y = numbers.normal(size=(2, 4))
    if seed % 7 == 0:
        y = x
    elif seed % 7 == 1:
        whole = numbers.normal(size=5)
        x, y = whole[:4], whole[1:]
    return x, y, float(numbers.normal())


def judged(seed: int, **options: Any) -> str:
    """ "right", or the name of the error that refuses it. Raises `AssertionError` for a wrong one.

    A program that Python does not run either is "no program".
    """
    plain, jitted = built(seed), tj.jit(built(seed), autograph=True, **options)
    for again in (seed, seed + 7):
        right: Sequence[Any] = ()
        missing: Exception | None = None
        try:
            right = plain(*arguments(again))
        except (TypeError, UnboundLocalError) as error:
            missing = error
        except Exception:
            return "no program"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                ours = jitted(*arguments(again))
            except ForeignWriteError as error:
                raise AssertionError(f"seed {seed}: {error!r} says nothing to a user") from error
            except TracejitError as error:
                return type(error).__name__
            except (TypeError, UnboundLocalError):
                if missing is None:
                    raise
                return "raises"
        if missing is not None:
            raise AssertionError(f"seed {seed}: Python raises {missing!r}\n{program(seed)}")
        for one, other in zip(right, ours, strict=True):
            if not np.allclose(one, other, 1e-9, 1e-9, equal_nan=True):
                raise AssertionError(f"seed {seed}: {one} is right, not {other}\n{program(seed)}")
    return "right"
