"""What recording branches inside of branches costs: how often each is recorded, and how much."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError, dismiss, notice
from tracejit.graph import mark
from tracejit.trace import evaluation
from tracejit.transforms.autograph import branches


def nest(depth: int, turns: int) -> Callable[..., Any]:
    """``turns`` of branches, ``depth`` of them inside each other, that call functions which write
    to other variables, and that exchange arrays."""
    names = [f"c{n}" for n in range(2 * depth)]
    lines = ["def program(x, y):", "    a, b, u, v, w = y, 0.5, x * 0.0, x + 1.0, x"]
    for name in names:
        lines += [f"    {name} = 0.0", f"    def set_{name}(value):", f"        nonlocal {name}"]
        lines += [f"        {name} = {name} * 0.5 + value"]
    lines += [f"    for turn in range({turns}):"]
    for n in range(depth):
        indent = "    " * (n + 2)
        lines += [f"{indent}if a > {n} * 0.1:", f"{indent}    set_c{2 * n}(a)"]
        lines += [f"{indent}    u, v = v, u", f"{indent}    u[1] = a"]
    for n in reversed(range(depth)):
        indent = "    " * (n + 2)
        lines += [f"{indent}else:", f"{indent}    set_c{2 * n + 1}(b)", f"{indent}    w = u * 0.5"]
        lines += [f"{indent}    v[0] = b", f"{indent}a = np.sin(a + b)"]
    lines += [f"    return a + b + {' + '.join(names)}, u, v, w, x"]
    file = f"<nest {depth} {turns}>.py"
    linecache.cache[file] = (0, None, [f"{line}\n" for line in lines], file)
    made: dict[str, Any] = {"np": np, "__name__": "program"}
    exec(compile("\n".join(lines), file, "exec"), made)
    program: Callable[..., Any] = made["program"]
    return program


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    """A list that grows by one for each call of a function of a module."""
    calls: list[None] = []
    plain = getattr(module, name)

    def counting(*args: Any) -> Any:
        calls.append(None)
        return plain(*args)

    monkeypatch.setattr(module, name, counting)
    return calls


def traced(depth: int, turns: int) -> None:
    tj.jit(nest(depth, turns), autograph=True).lower(np.arange(4.0), 0.7)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6, 7, 8])
def test_recordings_of_nested_branches(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each branch finds out once what its sides change; they would be 2 * 3**depth else."""
    recordings = counted(monkeypatch, branches, "record_body")
    traced(depth, 1)
    assert len(recordings) <= depth * (2 * depth + 3)


def test_recordings_of_more_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a branch changes is known in the turns after the first: both sides are recorded once."""
    recordings = counted(monkeypatch, branches, "record_body")
    traced(3, 1)
    first = len(recordings)
    traced(3, 21)
    assert len(recordings) - first == first + 20 * 2 * 3


def test_cost_of_more_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn makes as many instructions, and looks at as many, as the one before it."""
    looks = counted(monkeypatch, evaluation, "behind")
    made = []
    for turns in (10, 20, 30):
        begun, looks[:] = mark(), []
        traced(2, turns)
        made.append((mark() - begun, len(looks)))
    for few, some, many in zip(*made, strict=True):
        assert many - some <= 1.1 * (some - few)


@pytest.mark.parametrize("turns", [1, 3])
def test_values(turns: int) -> None:
    program = nest(3, turns)
    for y in (-2.0, 0.05, 0.15, 2.0):
        right = program(np.arange(4.0), y)
        made = tj.jit(program, autograph=True, check=True)(np.arange(4.0), y)
        for one, other in zip(made, right, strict=True):
            np.testing.assert_allclose(one, other, 1e-12)


class Box:
    def __init__(self) -> None:
        self.n: Any = 0.0

    def bump(self, x: Any) -> None:
        if x > self.n:
            self.n = self.n + x


def test_one_function_of_several_objects() -> None:
    """What it changes in one object is not what it changes in another."""

    def program(x: Any) -> Any:
        boxes = [Box() for _ in range(3)]
        if x > 0:
            for number, box in enumerate(boxes):
                box.bump(x - number)
                boxes[0].bump(x * 2)
        return [box.n for box in boxes]

    for x in (-1.0, 0.5, 1.5, 5.0):
        made = tj.jit(program, autograph=True, check=True)(x)
        np.testing.assert_allclose(made, program(x))


def test_an_error_that_is_dismissed_is_forgotten() -> None:
    errors: list[Any] = []
    before = notice(errors)
    try:
        with pytest.raises(ConcretizationError) as raised:
            raise ConcretizationError("if: a test")
        assert errors == [raised.value]
        dismiss(raised.value)
        assert raised.value.__traceback__ is None
        assert errors == []
    finally:
        notice(before)
