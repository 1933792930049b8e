"""Programs whose loops `jit` may record once, against NumPy."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ElementTypeError, TracejitError
from tracejit.transforms.autograph import capture_policy, counted_loops, loop_capture
from tracejit.transforms.jit import trace_limit

SIZE = 6
_count = 0


def soon() -> Iterator[None]:
    """Short traces count as long, short loops as worth it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_limit, "LONGEST", 8)
        patch.setattr(loop_capture, "LEAST_STEPS", 3)
        patch.setattr(capture_policy, "LEAST_OF_NESTS", 3)
        patch.setattr(trace_limit, "LEAST_OF_NESTS", (3, 3))
        yield


def function_of(lines: list[str], **others: Any) -> Callable[..., Any]:
    """A function of x, y and A with these statements, whose source can be read."""
    global _count
    _count += 1
    name = f"<counted {_count}>"
    text = "\n".join(["def program(x, y, A):", *(f"    {line}" for line in lines), ""])
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np, "math": math, **others}
    exec(compile(text, name, "exec"), namespace)
    made: Callable[..., Any] = namespace["program"]
    return made


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.uniform(0.5, 1.5, s) for s in (SIZE, SIZE, (SIZE, SIZE))]


def check(function: Callable[..., Any], interpreted: bool = False) -> None:
    """The result and the arguments written to are NumPy's, or both raise.

    What is ``interpreted`` looks at every index as well.
    """
    expected, given = arrays(), arrays()
    mutating = tj.jit(function, mutates=("x", "y", "A"), check=interpreted, autograph=True)
    try:
        result = function(*expected)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        with pytest.raises((type(error), TracejitError)):
            mutating(*given)
        return
    try:
        found = mutating(*given)
    except TracejitError as error:
        # Nor can it be recorded step by step.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trace_limit, "LONGEST", math.inf)
            with pytest.raises(type(error)):
                mutating(*given)
        return
    assert type(found) is type(result) or not isinstance(result, int)
    for right, ours in zip([result, *expected], [found, *given], strict=True):
        if right is not None:
            np.testing.assert_allclose(ours, right, 1e-9, 1e-12)


def recorded(function: Callable[..., Any]) -> tuple[int, str]:
    """How many loops were recorded once, and why others were not."""
    with counted_loops() as found, pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_limit, "LONGEST", math.inf)
        with suppress(ArithmeticError, ElementTypeError, ValueError):  # step by step neither
            tj.jit(tj.autograph(lambda *args: (function(*args), *args))).lower(*arrays())
    return found.count, "; ".join(found.refused.values())
