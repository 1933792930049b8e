"""Which functions may run loops, and that others are recorded once however long the trace is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.transforms.autograph import reachable
from tracejit.transforms.jit import jitted, trace_limit
from tracejit.transforms.jit.staging import stage


def straight(x: Any) -> Any:
    return {k: np.sin(x) for k in "ab"}, [one + 1 for one in (x, x)], sum(v for v in (1, 2))


def looping(x: Any) -> Any:
    for i in range(3):
        x = x + i
    return x


def waiting(x: Any) -> Any:
    while x < 3:
        x = x + 1
    return x


@pytest.mark.parametrize("function", [looping, waiting])
def test_rewritten_loops_are_loops(function: Callable[..., Any]) -> None:
    rewritten = tj.autograph(function)
    assert reachable.may_loop(rewritten)
    assert reachable.has_loop(rewritten.__code__)


def test_rewritten_loops_are_recorded_once() -> None:
    def counted(x: Any) -> Any:
        found = np.zeros(4)
        for i in range(x.shape[0]):
            found[x[i]] += 1
        return found

    x = np.arange(2000) % 4
    text = tj.jit(counted, autograph=True).lower(x).as_text("hlo")
    assert text.count("while(") == 1


class Model:
    def __init__(self, steps: int = 3) -> None:
        self.steps = steps

    def straight(self, x: Any) -> Any:
        return x + 1

    def loops(self, x: Any) -> Any:
        for i in range(self.steps):
            x = x * 0.5 + np.float64(i)
        return x


class Straight:
    def __call__(self, x: Any) -> Any:
        return straight(x)


MODEL = Model()
LAYERS = {"a": [straight, looping]}
JITTED = tj.jit(looping)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (straight, False),
        (lambda x: straight(x), False),
        (np.linalg.norm, False),
        (Straight(), False),
        (tj.grad(straight), False),
        (functools.partial(straight), False),
        (looping, True),
        (waiting, True),
        (lambda x: (lambda y: looping(y))(x), True),
        (functools.partial(straight, looping), True),
        (functools.lru_cache(looping), True),
        (MODEL.straight, True),  # it has the object, and that another method
        (Model.loops, True),
        (lambda x: MODEL.straight(x), True),
        (lambda x: LAYERS["a"][1](x), True),
        (lambda x, f=looping: f(x), True),
        (lambda x: JITTED(x), True),
        (tj.grad(looping), True),
        (tj.vmap(tj.jit(tj.grad(looping))), True),
    ],
)
def test_loops_that_names_lead_to(function: Callable[..., Any], wanted: bool) -> None:
    assert reachable.may_loop(function) is wanted


def test_too_much_to_look_at() -> None:
    many = [object() for _ in range(reachable.MOST + 1)]
    assert reachable.may_loop(lambda x: x + len(many))


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often functions are recorded, and what they make."""
    monkeypatch.setattr(trace_limit, "LONGEST", 60)
    made: list[int] = []

    def staged(*arguments: Any) -> Any:
        made.append(0)
        result = stage(*arguments)
        made[-1] = len(result.module.entry.parameters)
        return result

    monkeypatch.setattr(jitted, "stage", staged)
    return made


def long(x: Any) -> Any:
    return functools.reduce(lambda y, n: y * 0.9 + np.sin(n * y), [0.1 * n for n in range(80)], x)


def test_without_loops_it_is_recorded_once(stages: list[int]) -> None:
    x = np.linspace(0, 1, 5)
    np.testing.assert_allclose(tj.jit(long)(x), long(x), rtol=1e-12)
    assert stages == [1]


def by_argument(model: Model, x: Any) -> Any:
    return model.loops(np.sin(x))


def test_loops_that_arguments_lead_to(stages: list[int]) -> None:
    """They are seen when they run."""
    x = np.linspace(0, 1, 5)
    model = Model(200)
    function = tj.jit(by_argument, static_argnums=0)
    assert not reachable.may_loop(by_argument)
    np.testing.assert_allclose(function(model, x), by_argument(model, x), rtol=1e-12)
    assert len(stages) == 2
    lowered = function.lower(model, x)
    assert "while" in lowered.as_text()


def test_the_loop_around_the_call_does_not_count(stages: list[int]) -> None:
    for _ in range(1):
        tj.jit(long)(np.ones(2))
    assert stages == [1]
