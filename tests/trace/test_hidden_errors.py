"""An error of tracing that a traced function catches comes to light when the trace ends."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError, TracejitError


def chosen(x: Any) -> Any:
    try:
        return x if x > 0 else -x * 100
    except Exception:
        return x * 0 - 1


def bare(x: Any) -> Any:
    try:
        y = float(x)
    except:  # noqa: E722
        y = 0.0
    return x + y


def suppressed(x: Any) -> Any:
    y = 0.0
    with contextlib.suppress(TypeError, ValueError):
        y = float(x)
    return x + y


def as_a_list(x: Any) -> Any:
    try:
        return np.array([x, x + 1]).tolist()[0]
    except TypeError:
        return x * 0


def another_error(x: Any) -> Any:
    try:
        return x if x > 0 else -x
    except TypeError as error:
        raise ValueError("x is no number") from error


def in_a_callee(x: Any) -> Any:
    return chosen(x) + 1


def in_a_loop(x: Any) -> Any:
    return tj.lax.fori_loop(0, 3, lambda i, y: chosen(y), x)


@pytest.mark.parametrize(
    "function", [chosen, bare, suppressed, as_a_list, another_error, in_a_callee, in_a_loop]
)
def test_a_caught_error_is_raised_at_the_end(function: Callable[..., Any]) -> None:
    with pytest.raises(ConcretizationError, match="has caught this error"):
        tj.jit(function)(2.0)


def test_the_except_is_named() -> None:
    first = chosen.__code__.co_firstlineno
    with pytest.raises(ConcretizationError, match=re.escape(f"py:{first + 3} has caught")):
        tj.jit(chosen)(2.0)


def test_the_cause_of_another_error_is_named_first() -> None:
    with pytest.raises(ConcretizationError, match="bool: the value") as found:
        tj.jit(another_error)(2.0)
    assert isinstance(found.value.__cause__, ConcretizationError)


def test_under_transformations() -> None:
    with pytest.raises(ConcretizationError, match="has caught this error"):
        tj.jit(tj.grad(chosen))(2.0)
    with pytest.raises(ConcretizationError, match="has caught this error"):
        tj.vmap(chosen)(np.arange(3.0))
    assert tj.grad(chosen)(2.0) == 1.0
    assert tj.jit(chosen, autograph=True)(-2.0) == 200.0


def knowing(x: Any) -> Any:
    try:
        return float(x)
    except tj.errors.ConcretizationError:
        return x


def of_several(x: Any) -> Any:
    """NumPy makes no number of an array of several either."""
    try:
        return float(x)
    except TypeError:
        return x.sum()


def ending(x: Any) -> Any:
    with contextlib.suppress(TypeError):
        return 3.0 if x else 2.0
    return x


def asking(x: Any) -> Any:
    has_memory = hasattr(x, "ctypes")
    return np.asarray(x) + (0.0 if has_memory else 1.0)


def reraised(x: Any) -> Any:
    try:
        return x if x > 0 else -x
    except Exception:
        x = None
        raise


def test_handlers_that_are_right_are_left_alone() -> None:
    assert tj.jit(knowing)(2.0) == 2.0
    assert tj.jit(of_several)(np.arange(3.0)) == 3.0
    assert tj.jit(asking)(2.0) == 3.0
    with pytest.raises(ConcretizationError, match="has caught this error"):
        tj.jit(ending)(2.0)
    with pytest.raises(TracejitError, match="bool: the value") as found:
        tj.jit(reraised)(2.0)
    assert "has caught" not in str(found.value)


def test_errors_of_earlier_traces_are_forgotten() -> None:
    with pytest.raises(ConcretizationError):
        tj.jit(chosen)(2.0)
    assert tj.jit(lambda x: x + 1)(2.0) == 3.0


def test_numpys_own_handlers() -> None:
    @functools.singledispatch
    def kind(value: Any) -> float:
        return 1.0

    def f(x: Any) -> Any:
        return np.add(x, kind(x)) + np.sum([x, 1.0])

    assert tj.jit(f)(2.0) == 6.0
