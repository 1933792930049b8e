"""What branches and loops change beside their variables: as plain Python has it, or refused."""

from __future__ import annotations

import importlib
import io
import itertools
import logging
import os
import queue
import random
import re
import sys
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError
from tracejit.trace.object_state import MISSING, snapshot
from tracejit.trace.outside_world import FrozenValueWarning

TOTAL: Any = 0
rng = np.random.default_rng(3)
table = np.zeros(3)


class Counter:
    shared: Any = 0

    def __init__(self) -> None:
        self.n: Any = 0
        self.values: list[Any] = [0.0, 0.0]

    def bump(self, by: Any) -> None:
        self.n += by

    def keep(self, value: Any) -> None:
        self.values[1] = value

    @classmethod
    def share(cls, value: Any) -> None:
        cls.shared = cls.shared + value


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n: Any = 0.0

    def bump(self) -> None:
        self.n += 1


def of_a_nonlocal(x: Any) -> Any:
    count = 0

    def inc() -> None:
        nonlocal count
        count += 1

    total = 0.0
    for v in x:
        if v > 0:
            inc()
        total = total + v
    return total + count


def of_a_global(x: Any) -> Any:
    global TOTAL
    TOTAL = 0
    for v in x:
        if v > 0:
            TOTAL = TOTAL + 1
    made, TOTAL = TOTAL, 0
    return x.sum() + made


def of_attributes(x: Any) -> Any:
    counter, slotted, space = Counter(), Slotted(), SimpleNamespace(a=1.0)

    def note(v: Any) -> None:
        space.a = space.a * 2 + v

    for v in x:
        if v > 0:
            counter.bump(v)
            slotted.bump()
        else:
            counter.keep(v)
            note(v)
    return counter.n + 10 * slotted.n + counter.values[1] + space.a


def of_a_class(x: Any) -> Any:
    Counter.shared = 0.0
    if x[0] > 0:
        Counter.share(x[1])
    made, Counter.shared = Counter.shared, 0
    return made


def of_containers(x: Any) -> Any:
    held = {"a": 1.0, "b": [2.0, 3.0]}

    def write(v: Any) -> None:
        held["b"][0] = v  # type: ignore[index]
        held["a"] = v * 2

    for v in x:
        if v > 0:
            write(v)
    return held["a"] + held["b"][0] * 10  # type: ignore[index]


def in_a_while(x: Any) -> Any:
    counter = Counter()
    last = [0.0]

    def note(v: Any) -> None:
        last[0] = v

    s = x.sum()
    while s < 20:
        s = s + 3
        counter.bump(s)
        note(s)
    return counter.n + last[0]


def in_a_traced_range(x: Any) -> Any:
    steps = 0

    def inc() -> None:
        nonlocal steps
        steps += 2

    for _ in range(int(abs(x[0])) + 1):
        inc()
    return steps + x[1]


def in_nested_statements(x: Any) -> Any:
    counter = Counter()
    i = 0
    while i < x[0] + 4:
        if x[1] > i:
            counter.bump(i)
        else:
            counter.bump(-1)
        i += 1
    return counter.n


def first_set_in_both(x: Any) -> Any:
    d: dict[str, Any] = {}
    space = SimpleNamespace()

    def write(key: str, v: Any) -> None:
        d[key] = v
        space.v = v

    if x[0] > 0:
        d["k"] = x[0]
        write("l", x[1])
    else:
        d["k"] = -x[0]
        write("l", x[0])
    return d["k"] + 10 * d["l"] + space.v


def written_array_and_number(x: Any) -> Any:
    counter = Counter()
    y = np.zeros(3)

    def write(v: Any) -> None:
        counter.bump(1)
        y[0] = v
        counter.bump(1)

    if x[0] > 0:
        write(x[1])
    return y[0] + counter.n


def with_a_ternary(x: Any) -> Any:
    counter = Counter()

    def counted(v: Any) -> Any:
        counter.bump(1)
        return v

    y = counted(x[0]) if x[0] > 0 else x[1]
    return y + counter.n


CARRIED = [
    of_a_nonlocal,
    of_a_global,
    of_attributes,
    of_a_class,
    of_containers,
    in_a_while,
    in_a_traced_range,
    in_nested_statements,
    first_set_in_both,
    written_array_and_number,
    with_a_ternary,
]


@pytest.mark.parametrize("function", CARRIED)
def test_numbers_are_carried(function: Callable[..., Any]) -> None:
    jitted = tj.jit(function, autograph=True)
    for seed in range(6):
        x = np.random.default_rng(seed).normal(size=3) * 3
        np.testing.assert_allclose(jitted(x), function(x), 1e-13, err_msg=str(x))


def appending(x: Any) -> Any:
    found: list[Any] = []

    def add(v: Any) -> None:
        found.append(v)

    if x[0] > 0:
        add(x[0])
    return x[0] + len(found)


def drawing_items(x: Any) -> Any:
    it = iter([1.0, 2.0, 3.0])
    y = x[0]
    if y > 0:
        y = y + next(it)
    return y + next(it)


def drawing_of_a_generator(x: Any) -> Any:
    it = (float(n) for n in range(5))
    y = x[0]
    while y < 3:
        y = y + next(it)
    return y


def counting_on(x: Any) -> Any:
    it = zip(itertools.count(1), [1.0, 2.0], strict=False)
    y = x[0]
    if y > 0:
        y = y + next(it)[0]
    return y


def drawing_numbers(x: Any) -> Any:
    draw = random.Random(0)
    y = x[0]
    while y < 3:
        y = y + draw.random()
    return y


def reading(x: Any) -> Any:
    file = io.StringIO("1 2 3")
    y = x[0]
    if y > 0:
        y = y + float(file.read(1))
    return y


def into_a_set(x: Any) -> Any:
    seen: set[int] = set()

    def add(n: int) -> None:
        seen.add(n)

    if x[0] > 0:
        add(3)
    return x[0] + len(seen)


def into_a_deque(x: Any) -> Any:
    seen: deque[Any] = deque()

    def add(n: int) -> None:
        seen.append(n)

    if x[0] > 0:
        add(3)
    return x[0] + len(seen)


def of_one_branch(x: Any) -> Any:
    d: dict[str, Any] = {}

    def write(v: Any) -> None:
        d["k"] = v

    if x[0] > 0:
        write(x[0])
    return x[0]


def into_an_array(x: Any) -> Any:
    def write(n: int) -> None:
        table[n] = 1.0

    if x[0] > 0:
        write(0)
    return x[0]


def behind_and(x: Any) -> Any:
    counter = Counter()

    def is_counted() -> bool:
        counter.bump(1)
        return True

    if x[0] > 0 and is_counted():
        return x[0] + counter.n
    return x[0] - counter.n


def of_text(x: Any) -> Any:
    space = SimpleNamespace(name="a")

    def name(text: str) -> None:
        space.name = text

    if x[0] > 0:
        name("b")
    return x[0] + len(space.name)


REFUSED = {
    appending: "if: the list found is changed",
    drawing_items: "if: the list_iterator it is changed",
    drawing_of_a_generator: "while: the generator it is changed",
    counting_on: "if: the zip it is changed",
    drawing_numbers: "while: the Random draw is changed",
    reading: "if: the StringIO file is changed",
    into_a_set: "if: the set seen is changed",
    into_a_deque: "if: the deque seen is changed",
    of_one_branch: "d['k'] may have no value after a statement whose condition is traced",
    into_an_array: "if: the ndarray table is changed",
    behind_and: "and: the variable counter.n is changed",
    of_text: "the variable space.name is 'b' after one branch and 'a' after the other",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_other_changes_are_refused(function: Callable[..., Any]) -> None:
    message = re.escape(REFUSED[function]) + ".*test_hidden_state.py:"
    with pytest.raises((ConcretizationError, tj.errors.ArgumentError), match=message):
        tj.jit(function, autograph=True)(np.array([1.0, -2.0, 3.0]))
    table[:] = 0


def test_a_refused_statement_leaves_containers_as_they_were() -> None:
    kept: list[Any] = []
    counter = Counter()

    def add(v: Any) -> None:
        counter.bump(1)
        kept.append(v)

    def f(x: Any) -> Any:
        if x > 0:
            add(1)
        return x

    with pytest.raises(ConcretizationError, match="the list kept is changed"):
        tj.jit(f, autograph=True)(1.0)
    assert (kept, counter.n) == ([], 0)


class Model:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def noisy(self, x: Any) -> Any:
        return x + self.rng.normal(size=x.shape)


drawn, state = random.Random(0), np.random.RandomState(0)
endless, model = itertools.cycle([1.0, 2.0]), Model()
file = io.StringIO("1234567890" * 9)
jobs: queue.Queue[float] = queue.Queue()
simple: queue.SimpleQueue[float] = queue.SimpleQueue()
for number in range(99):
    jobs.put(number)
    simple.put(number)

SOURCES: dict[str, Callable[[Any], Any]] = {
    "Generator rng": lambda x: x + rng.normal(),
    "Random drawn": lambda x: x + drawn.random(),
    "cycle endless": lambda x: x + next(endless),
    "RandomState state": lambda x: x + state.uniform(),
    "Generator model.rng": lambda x: model.noisy(x),
    "StringIO file": lambda x: x + float(file.read(1)),
    "Queue jobs": lambda x: x + jobs.get(),
    "SimpleQueue simple": lambda x: x + simple.get(),
}


@pytest.mark.parametrize("named", SOURCES)
def test_values_that_move_are_warned_of(named: str) -> None:
    function = SOURCES[named]
    x = np.arange(3.0)
    jitted = tj.jit(function)
    with pytest.warns(FrozenValueWarning, match=f"the {named} gives a value while tracing"):
        first = jitted(x)
    np.testing.assert_array_equal(jitted(x), first)


@pytest.mark.parametrize("named", SOURCES)
def test_recorded_loops_with_such_values_are_refused(named: str) -> None:
    function = SOURCES[named]
    x = np.arange(3.0)
    message = f"body_fun: the {named} gives a value, and its state moves"
    with pytest.raises(ConcretizationError, match=message):
        tj.jit(lambda x: tj.lax.fori_loop(0, 3, lambda i, y: function(y), x))(x)
    with pytest.raises(ConcretizationError, match=message.replace("_fun", "")):
        tj.lax.scan(lambda y, _: (function(y), None), x, None, length=3)


def test_generators_made_while_tracing_are_known() -> None:
    def f(x: Any) -> Any:
        return x + np.random.default_rng(0).normal()

    assert tj.jit(f)(1.0) == f(1.0)


def test_snapshots() -> None:
    state = {"a": 1, "b": [1, 2]}
    it = iter("abc")
    space = SimpleNamespace(v=None)

    def f() -> Any:
        return state, it, space

    before = snapshot(f)
    assert not list(before.changes())
    state["a"] = 2
    state["b"].append(3)  # type: ignore[attr-defined]
    space.w = 4
    next(it)
    found = {change.name: change for change in before.changes()}
    assert set(found) == {"state['a']", "state['b'][2]", "space.w", "it"}
    assert found["space.w"].before is MISSING
    for change in found.values():
        if change.holder is not None:
            change.put(change.before)
    assert state == {"a": 1, "b": [1, 2]}
    assert vars(space) == {"v": None}
    assert [change.name for change in before.changes()] == ["it"]


class Held:
    z: Any


def test_an_attribute_that_is_written_to_and_bound_anew() -> None:
    def function(z: Any, n: int) -> Any:
        held = Held()
        held.z = z + 0
        for i in range(n):
            held.z[1] = i
            held.z = held.z * 2
        if n > 1:
            held.z[2] = n
            held.z = held.z + 1
        return held.z

    jitted = tj.jit(function, autograph=True)
    for n in (0, 3):
        np.testing.assert_array_equal(jitted(np.arange(6.0), n), function(np.arange(6.0), n))


def test_globals_of_another_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting_module.py").write_text("n = 0\ndef bump():\n    global n\n    n += 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = importlib.import_module("counting_module")

    def f(x: Any) -> Any:
        before = module.n
        if x > 0:
            module.bump()
        return x + module.n - before

    def importing(x: Any) -> Any:
        import counting_module  # type: ignore[import-not-found]

        before = counting_module.n
        if x > 0:
            counting_module.bump()
        return x + counting_module.n - before

    for function in (f, importing):
        module.n = 0
        jitted = tj.jit(function, autograph=True)
        assert jitted(-1.0) == -1
        assert jitted(2.0) == 3


def test_files_are_not_written_in_recorded_branches(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        if x > 0:
            with open(tmp_path / "log", "w") as file:
                file.write("above")
        return x

    with pytest.raises(ConcretizationError, match="open is called"):
        tj.jit(f, autograph=True)(-1.0)

    def quiet(x: Any) -> Any:
        with open(tmp_path / "log", "w") as file:
            file.write("traced")
        return x

    assert tj.jit(quiet)(1.0) == 1


log = logging.getLogger("tests.hidden_state")


def telling(x: Any) -> Any:
    if x > 1:
        print("large:", x, [1, "b"])
        log.warning("it is %.1f", x)
        warnings.warn("too large", stacklevel=1)
        x = x * 2
    return x


def counting_aloud(x: Any) -> Any:
    i = 0
    while i < x:
        print(i, end=" ")
        i = i + 1
    return i


def in_a_known_loop(x: Any) -> Any:
    for i in range(40):
        if x > 37:
            log.error("%d", i)
        x = x + 1
    return x


def test_what_is_told_in_statements_is_told_when_they_run(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    compiled = tj.jit(telling, autograph=True)
    assert compiled(0.5) == 0.5
    assert capsys.readouterr().out == ""
    for x in (2.0, 3.0):
        caplog.clear()
        with pytest.warns(UserWarning, match="too large") as caught:
            assert compiled(x) == 2 * x
        assert capsys.readouterr().out == f"large: {x} [1, 'b']\n"
        assert caplog.messages == [f"it is {x:.1f}"]
        assert caught[0].filename == __file__
    assert tj.jit(counting_aloud, autograph=True)(3.0) == 3
    assert capsys.readouterr().out == "0 1 2 "
    caplog.clear()
    assert tj.jit(in_a_known_loop, autograph=True)(0.0) == 40
    assert caplog.messages == ["38", "39"]


def mark() -> None:
    """A function with an attribute."""


def flagged(x: Any) -> Any:
    if x > 0:
        sys.tracejit_flag = sys.tracejit_flag + 1  # type: ignore[attr-defined]
        x = x * 2
    return x


def marked(x: Any) -> Any:
    if x > 0:
        mark.count = mark.count + 1  # type: ignore[attr-defined]
        x = x * 2
    return x


def marked_often(x: Any) -> Any:
    for _ in range(60):
        mark.count = mark.count + 1  # type: ignore[attr-defined]
        x = x + 1
    return x


def test_attributes_of_modules_and_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "tracejit_flag", 0, raising=False)
    monkeypatch.setattr(mark, "count", 0, raising=False)

    def with_counts(x: Any) -> Any:
        sys.tracejit_flag = mark.count = 0  # type: ignore[attr-defined]
        y = marked(flagged(x))
        found = sys.tracejit_flag, mark.count  # type: ignore[attr-defined]
        sys.tracejit_flag = mark.count = 0  # type: ignore[attr-defined]
        return y, found

    compiled = tj.jit(with_counts, autograph=True)
    assert compiled(-1.0) == (-1, (0, 0))
    assert compiled(2.0) == (8, (1, 1))
    assert (sys.tracejit_flag, mark.count) == (0, 0)  # type: ignore[attr-defined]
    for autograph in (False, True):
        mark.count = 0  # type: ignore[attr-defined]
        tj.jit(marked_often, autograph=autograph)(1.0)
        assert mark.count == 60  # type: ignore[attr-defined]


def setting_environment(x: Any) -> Any:
    if x > 0:
        os.environ["TRACEJIT_TEST_SETTING"] = "a"
    return x


def extending_path(x: Any) -> Any:
    if x > 0:
        sys.path.append("/nowhere")
    return x


def changing_folder(x: Any) -> Any:
    if x > 0:
        os.chdir("/")
    return x


def changing_errors(x: Any) -> Any:
    while x < 3:
        np.seterr(over="warn")
        x = x + 1
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (setting_environment, r"os.environ\['TRACEJIT_TEST_SETTING'\] may have no value"),
        (extending_path, "the list sys.path is changed"),
        (changing_folder, "a branch of if: os.chdir is called"),
        (changing_errors, "the body of while: numpy.seterr is called"),
    ],
)
def test_the_outside_world_is_changed_by_no_statement(
    function: Callable[[Any], Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    with pytest.raises(ConcretizationError, match=message) as caught:
        tj.jit(function, autograph=True)(-1.0)
    assert Path(__file__).name in str(caught.value)
    assert "TRACEJIT_TEST_SETTING" not in os.environ
    assert sys.path == path
