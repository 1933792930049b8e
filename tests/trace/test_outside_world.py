"""Clocks, random bits, files and objects written in C, whose values a trace would keep for ever."""

from __future__ import annotations

import array
import csv
import ctypes
import datetime
import hashlib
import io
import itertools
import os
import random
import re
import secrets
import sqlite3
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime as moment
from os import urandom
from pathlib import Path
from random import Random
from secrets import randbelow
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError
from tracejit.trace.outside_world import FrozenValueWarning


def _first_line() -> int:
    with open(__file__) as file:
        return len(file.readline())


CLOCKS: dict[str, Callable[[], Any]] = {
    "time.time": lambda: time.time(),
    "time.perf_counter": lambda: perf_counter(),
    "datetime.now": lambda: datetime.datetime.now().microsecond,
    "datetime.today": lambda: moment.today().microsecond,
    "date.today": lambda: datetime.date.today().day,
    "os.urandom": lambda: os.urandom(1)[0],
    "urandom": lambda: urandom(1)[0],
    "uuid.uuid4": lambda: uuid.uuid4().int % 7,
    "secrets.token_bytes": lambda: secrets.token_bytes(1)[0],
    "secrets.randbelow": lambda: randbelow(7),
    "random.random": lambda: random.random(),
    "random.Random": lambda: random.Random().random(),
    "RandomState": lambda: np.random.RandomState(None).rand(),
    "PCG64": lambda: np.random.Generator(np.random.PCG64()).random(),
    "SeedSequence": lambda: np.random.SeedSequence().generate_state(1)[0],
    "Random": lambda: Random().random(),
    "random.SystemRandom": lambda: random.SystemRandom().random(),
    "np.random.rand": lambda: np.random.rand(),
    "open": lambda: _first_line(),
    "np.loadtxt": lambda: np.loadtxt(io.StringIO("3")).sum(),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_warns(name: str) -> None:
    ask = CLOCKS[name]
    with pytest.warns(FrozenValueWarning, match=rf"{re.escape(name)} is called while tracing"):
        tj.jit(lambda x: x + ask()).lower(1.0)


def test_seeded_generators_are_quiet() -> None:
    def f(x: Any) -> Any:
        drawing = random.Random(1), np.random.RandomState(seed=1), Random(1)
        assert isinstance(drawing[0], random.Random)
        assert not isinstance(x, np.random.RandomState)
        numbers = [one.random() for one in drawing]
        return x + sum(numbers) + np.random.Generator(np.random.PCG64(1)).random()

    assert tj.jit(f)(1.0) == f(1.0)


@pytest.mark.filterwarnings("ignore::tracejit.trace.outside_world.FrozenValueWarning")
@pytest.mark.parametrize("name", CLOCKS)
def test_raises_inside_of_recorded_bodies(name: str) -> None:
    ask = CLOCKS[name]

    def loop(x: Any) -> Any:
        total = 0.0
        while total < x:
            total = total + 1.0 + ask()
        return total

    def branch(x: Any) -> Any:
        return x + ask() if x > 0 else x

    message = rf"{re.escape(name)} is called, which would happen once while tracing"
    for function in (loop, branch):
        with pytest.raises(ConcretizationError, match=message):
            tj.jit(function, autograph=True).lower(3.0)
    with pytest.raises(ConcretizationError, match=message):
        tj.jit(lambda x: tj.lax.fori_loop(0, 3, lambda i, y: y + ask(), x)).lower(3.0)


def test_dates_are_dates() -> None:
    def days(x: Any) -> Any:
        first = datetime.date(2020, 1, 1)
        assert isinstance(first, datetime.date)
        assert issubclass(moment, datetime.date)
        assert type(first) is type(FIRST)
        return x * (datetime.date.fromisoformat("2020-03-01") - first).days

    assert tj.jit(days)(2.0) == days(2.0)


FIRST = datetime.date(2020, 1, 1)


def test_writing_a_file_does_not_warn(tmp_path: Path) -> None:
    def save(x: Any) -> Any:
        with open(tmp_path / "seen", "w") as file:
            file.write("traced")
        return x

    tj.jit(save)(1.0)
    assert (tmp_path / "seen").read_text() == "traced"


class Steps:
    """An iterator of the user's own."""

    def __init__(self) -> None:
        self.at = 0

    def __next__(self) -> int:
        self.at += 1
        return self.at


def _advanced(value: Any, name: str, *args: Any) -> float:
    getattr(value, name)(*args)
    return 1.0


def _raised(holder: Any) -> float:
    holder[0] = holder[0] + 1
    return float(holder[0])


MOVING: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "csv reader": (lambda: csv.reader(io.StringIO("1\n2\n3\n")), lambda o: float(next(o)[0])),
    "finditer": (lambda: re.finditer(r"\d", "123456"), lambda o: float(next(o)[0])),
    "call iterator": (lambda: iter([1, 2, 3].pop, 0), lambda o: next(o)),
    "cursor": (
        lambda: sqlite3.connect(":memory:").execute("select 1 union select 2 union select 3"),
        lambda o: next(o)[0],
    ),
    "flat": (lambda: np.arange(6.0).flat, lambda o: float(next(o))),
    "ndenumerate": (lambda: np.ndenumerate(np.arange(6.0)), lambda o: float(next(o)[1])),
    "zip": (lambda: zip([1, 2, 3], [4, 5, 6], strict=True), lambda o: next(o)[1]),
    "product": (lambda: itertools.product([1, 2], [3, 4]), lambda o: next(o)[1]),
    "array": (lambda: array.array("d", [1, 2]), _raised),
    "bytearray": (lambda: bytearray(b"ab"), _raised),
    "memoryview": (lambda: memoryview(bytearray(b"ab")), _raised),
    "ctypes": (lambda: (ctypes.c_double * 2)(1, 2), _raised),
    "bits": (lambda: np.random.PCG64(3), lambda o: float(o.random_raw() % 7)),
    "seeds": (lambda: np.random.SeedSequence(3), lambda o: len(o.spawn(1))),
    "digest": (hashlib.md5, lambda o: _advanced(o, "update", b"a")),
    "bound": (lambda: iter([1, 2, 3]).__next__, lambda o: o()),
    "steps": (Steps, lambda o: next(o)),
}


@pytest.mark.parametrize("name", MOVING)
def test_moving_objects(name: str) -> None:
    make, move = MOVING[name]
    plain = make()
    with pytest.warns(FrozenValueWarning, match="gives a value while tracing"):
        tj.jit(lambda x: x + move(plain)).lower(1.0)
    looped = make()
    with pytest.raises(ConcretizationError, match="its state moves"):
        tj.jit(lambda x: tj.lax.fori_loop(0, 3, lambda i, y: y + move(looped), x)).lower(1.0)


@pytest.mark.parametrize("name", [name for name in MOVING if name != "steps"])
def test_moving_objects_in_branches(name: str) -> None:
    make, move = MOVING[name]
    held = make()

    def f(x: Any) -> Any:
        return x + move(held) if x > 0 else x

    with pytest.raises(ConcretizationError, match="held is changed, which would happen once"):
        tj.jit(f, autograph=True).lower(1.0)


def test_an_iterator_of_the_users_is_state_of_a_branch() -> None:
    def f(x: Any) -> Any:
        steps = Steps()
        for _ in range(4):
            if x > 0:
                x = x - next(steps)
        return x, steps.at

    for x in (3.5, -1.0):
        np.testing.assert_allclose(tj.jit(f, autograph=True)(x), f(x))


def test_order_of_keys() -> None:
    recent = OrderedDict(a=1, b=2)

    def f(x: Any) -> Any:
        if x > 0:
            recent.move_to_end("a")
        return x

    with pytest.raises(ConcretizationError, match="the OrderedDict recent is changed"):
        tj.jit(f, autograph=True).lower(1.0)


def test_what_a_first_recording_has_read_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_text("1\n2\n3\n")

    def f(v: Any) -> Any:
        total = 0.0
        for i in range(2000):
            total = total + v[i] * len(file.readline())
        return total

    with open(path) as file, pytest.warns(FrozenValueWarning, match="file gives a value"):
        tj.jit(f).lower(np.arange(2000.0))


def test_keys_of_one_branch_are_named() -> None:
    def f(x: Any) -> Any:
        found: dict[str, Any] = {}
        if x > 0:
            found["k"] = x * 2
        return found.get("k", -1.0)

    with pytest.raises(ConcretizationError, match=r"found\['k'\]"):
        tj.jit(f, autograph=True).lower(1.0)
