"""Transformations of transformations, drawn at random, compared with plain NumPy.

A function of a vector is drawn, then a stack of steps over it: differentiations and maps, with
jit, checkpoint and fresh derivatives by hand between them. What each stack computes is known from
the function alone: finite differences of differentiations, Python loops over maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tracejit as tj

Function = Callable[[Any], Any]

SIZE = 3
MATRIX = np.array([[0.5, -0.3, 0.2], [0.1, 0.4, -0.6], [0.3, 0.2, 0.7]])


# --- Functions: vector of SIZE -> vector of SIZE, smooth near the points that are drawn ----------


def chain(x: Any) -> Any:
    return np.sin(x) * x + np.exp(-x * x)


def product(x: Any) -> Any:
    return np.tanh(MATRIX @ x) + x[::-1] * 0.5


def scanned(x: Any) -> Any:
    carry, ys = tj.lax.scan(lambda c, m: (np.tanh(m @ c) + c, c * c), x, np.stack([MATRIX] * 3))
    return carry + ys.sum(0)


def counted(x: Any) -> Any:
    return tj.lax.fori_loop(0, 3, lambda i, c: np.cos(c) + 0.1 * i * x, x)


def looped(x: Any) -> Any:
    """A loop whose length depends on the values, far from where it would change."""
    return tj.lax.while_loop(
        lambda s: s[0] < 2 + (x[0] > -100), lambda s: (s[0] + 1, np.sin(s[1]) + 0.5 * x), (0, x)
    )[1]


def unequal(x: Any) -> Any:
    """A loop for each element, as many steps as its place says, one after the other in a map."""

    def one(x: Any, count: Any) -> Any:
        return tj.lax.while_loop(
            lambda s: s[0] < count, lambda s: (s[0] + 1, np.cos(s[1]) + 0.3 * x), (0, x)
        )[1]

    return tj.vmap(one)(x, np.arange(SIZE))


def nested(x: Any) -> Any:
    """A branch in a loop of unknown length in a scan."""

    def halved(s: Any) -> Any:
        turned = tj.lax.cond(s[1][0] > -100, np.sin, np.cos, s[1])
        return s[0] + 1, turned + 0.2 * x

    def step(carry: Any, count: Any) -> Any:
        carry = tj.lax.while_loop(lambda s: s[0] < count, halved, (0, carry))[1]
        return carry, None

    return tj.lax.scan(step, x, np.array([1, 0, 2]))[0]


def repeated(x: Any) -> Any:
    """Steps that nothing counts but their number."""
    return tj.lax.scan(lambda c, _: (np.tanh(MATRIX @ c) * x, None), x, None, length=3)[0]


def branched(x: Any) -> Any:
    return tj.lax.cond(x.sum() > -100, lambda x: x**3, lambda x: np.sqrt(x), x)


def selected(x: Any) -> Any:
    return np.where(x > -100, x * np.cos(x), np.log(x + 100))


def normalised(x: Any) -> Any:
    return tj.nn.softmax(x) * np.linalg.norm(x - 5)


def indexed(x: Any) -> Any:
    y = x * x
    y[1] = x[0] * x[2]
    return y[np.array([2, 1, 1])] * x


def cumulated(x: Any) -> Any:
    return np.cumprod(x + 2) * np.cumsum(np.sin(x))


def ordered(x: Any) -> Any:
    return np.sort(x + np.array([0.0, 10.0, 20.0])) * np.max(x + np.array([9.0, 0.0, 0.0]))


@tj.custom_vjp
def by_hand(x: Any) -> Any:
    return np.sin(x) * 2


by_hand.defvjp(lambda x: (np.sin(x) * 2, x), lambda x, c: (c * np.cos(x) * 2,))


@tj.custom_jvp
def by_hand_forward(x: Any) -> Any:
    return x * x * x


@by_hand_forward.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return by_hand_forward(x), 3 * x * x * t


FUNCTIONS: list[Function] = [
    chain,
    product,
    scanned,
    counted,
    looped,
    repeated,
    branched,
    selected,
    normalised,
    indexed,
    cumulated,
    ordered,
    by_hand,
    by_hand_forward,
]


# --- Steps: each turns a function of a vector to a vector into another one ---------


@dataclass(frozen=True)
class Step:
    """A transformation, and what it means in plain NumPy."""

    name: str
    apply: Callable[[Function], Function]
    mean: Callable[[Function], Function]
    is_derivative: bool = False


WEIGHTS = np.array([1.0, -0.5, 2.0])
TANGENT = np.array([0.3, 1.0, -0.7])
POINTS = np.array([[0.1, -0.2, 0.3], [0.0, 0.2, -0.1]])


def same(f: Function) -> Function:
    return f


def jacobian(f: Function, x: Any) -> Any:
    """By central differences of the fourth order."""
    step = 1e-3
    columns = []
    for unit in np.eye(len(x)) * step:
        near = f(x + unit) - f(x - unit)
        columns.append((8 * near - f(x + 2 * unit) + f(x - 2 * unit)) / (12 * step))
    return np.stack(columns, -1)


def bounded(x: Any) -> Any:
    """So that no composition is too steep for finite differences."""
    return np.tanh(0.1 * x)


STEPS = [
    Step("jit", lambda f: tj.jit(f), same),
    Step("checkpoint", lambda f: tj.checkpoint(f), same),
    Step(
        "grad",
        lambda f: tj.grad(lambda x: (WEIGHTS * f(x)).sum()),
        lambda f: lambda x: WEIGHTS @ jacobian(f, x),
        True,
    ),
    Step(
        "vjp",
        lambda f: lambda x: tj.vjp(f, x)[1](WEIGHTS)[0],
        lambda f: lambda x: WEIGHTS @ jacobian(f, x),
        True,
    ),
    Step(
        "jvp",
        lambda f: lambda x: tj.jvp(f, (x,), (TANGENT,))[1],
        lambda f: lambda x: jacobian(f, x) @ TANGENT,
        True,
    ),
    Step(
        "linearize",
        lambda f: lambda x: tj.linearize(f, x)[1](TANGENT),
        lambda f: lambda x: jacobian(f, x) @ TANGENT,
        True,
    ),
    Step(
        "jacrev",
        lambda f: lambda x: tj.jacrev(f)(x) @ TANGENT,
        lambda f: lambda x: jacobian(f, x) @ TANGENT,
        True,
    ),
    Step(
        "jacfwd",
        lambda f: lambda x: WEIGHTS @ tj.jacfwd(f)(x),
        lambda f: lambda x: WEIGHTS @ jacobian(f, x),
        True,
    ),
    Step(
        "vmap",
        lambda f: lambda x: tj.vmap(lambda p: f(p + x))(POINTS).sum(0),
        lambda f: lambda x: sum(f(p + x) for p in POINTS),
    ),
    Step(
        "vmap over columns",
        lambda f: lambda x: tj.vmap(lambda p, y: f(p * y), (1, None), 1)(POINTS.T, x) @ [1.0, 2.0],
        lambda f: lambda x: f(POINTS[0] * x) + 2 * f(POINTS[1] * x),
    ),
    Step(
        "scan",
        lambda f: lambda x: tj.lax.scan(lambda c, p: (bounded(f(c + p)), None), x, POINTS)[0],
        lambda f: lambda x: bounded(f(bounded(f(x + POINTS[0])) + POINTS[1])),
    ),
    Step(
        "while",
        lambda f: (
            lambda x: tj.lax.while_loop(
                lambda s: s[0] < 2 + (x[0] > -100), lambda s: (s[0] + 1, bounded(f(s[1]))), (1, x)
            )[1]
        ),
        lambda f: lambda x: bounded(f(bounded(f(x)))),
    ),
    Step(
        "map of cond",
        lambda f: (
            lambda x: tj.vmap(
                lambda p: tj.lax.cond(p[0] > 0.05, lambda p: f(p + x), lambda p: p * x, p)
            )(POINTS).sum(0)
        ),
        lambda f: lambda x: f(POINTS[0] + x) + POINTS[1] * x,
    ),
    Step(
        "cond",
        lambda f: lambda x: tj.lax.cond(x[0] > -100, f, lambda x: x, x),
        same,
    ),
]

BY_NAME = {step.name: step for step in STEPS}


def stacks() -> st.SearchStrategy[list[Step]]:
    """One to four steps, the innermost first, with at most two differentiations."""
    return st.lists(st.sampled_from(STEPS), min_size=1, max_size=4).filter(
        lambda stack: 1 <= sum(step.is_derivative for step in stack) <= 2
    )


def check(function: Function, stack: list[Step], point: Any, compiled: bool) -> None:
    made, meant = function, function
    for step in stack:
        made, meant = step.apply(made), step.mean(meant)
    found = (tj.jit(made) if compiled else made)(point)
    wanted = np.asarray(meant(point))
    order = sum(step.is_derivative for step in stack)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(found, wanted, 0, (1e-8 if order == 1 else 1e-6) * scale)


POINT = np.array([0.3, -0.4, 0.7])


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FUNCTIONS), stacks())
def test_stacks_run_at_once(function: Function, stack: list[Step]) -> None:
    check(function, stack, POINT, compiled=False)


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FUNCTIONS), stacks())
def test_stacks_compiled(function: Function, stack: list[Step]) -> None:
    check(function, stack, POINT, compiled=True)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: getattr(f, "__name__", str(f)))
@pytest.mark.parametrize(
    "names",
    [("vmap", "grad"), ("jacfwd", "vmap"), ("vmap", "jvp", "grad")],
    ids="-".join,
)
def test_each_function(function: Function, names: tuple[str, ...]) -> None:
    check(function, [BY_NAME[name] for name in names], POINT, compiled=False)


@pytest.mark.parametrize("function", [unequal, nested])
@pytest.mark.parametrize("names", [("grad",), ("jvp", "jit"), ("while", "vjp")], ids="-".join)
def test_loops_in_loops(function: Function, names: tuple[str, ...]) -> None:
    check(function, [BY_NAME[name] for name in names], POINT, compiled=False)


def test_jit_of_grad_of_vmap_of_scan() -> None:
    stack = [BY_NAME[name] for name in ("vmap", "scan", "grad", "jit")]
    check(scanned, stack, POINT, compiled=True)
