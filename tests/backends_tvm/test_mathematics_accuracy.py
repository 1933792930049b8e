"""Every function's error against mpmath, and against NumPy in a wider type over dense samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.backends_tvm.accuracy_page import STATED
from tests.backends_tvm.mathematics_harness import (
    FLOATS,
    TARGETS,
    any_bits,
    evaluate,
    worst_error,
)
from tracejit.backends.tvm.cpu import mathematics

Interval = tuple[float, float]


@dataclass(frozen=True)
class Function:
    """What a function must reach: ``ulps`` in f32 and f64, sampled in ``intervals``.

    ``wide`` is NumPy's function, computed in a wider type; None where there is none that is good.
    """

    name: str
    reference: Callable[..., Any]
    ulps: tuple[float, float]
    intervals: dict[str, list[Interval]]
    wide: Callable[..., np.ndarray] | None = None


def both(*intervals: Interval) -> dict[str, list[Interval]]:
    return {"float32": [*intervals], "float64": [*intervals]}


def of_each(f32: list[Interval], f64: list[Interval]) -> dict[str, list[Interval]]:
    return {"float32": f32, "float64": f64}


def wide_logistic(x: np.ndarray) -> np.ndarray:
    value: np.ndarray = 1 / (1 + np.exp(-x))
    return value


UNIT = (-1.0, 1.0)
EXPONENTS = of_each([(-105.0, 89.5), UNIT, (-1e-3, 1e-3)], [(-746.0, 710.5), UNIT, (-1e-6, 1e-6)])
POWERS = of_each([(-150.0, 128.5), UNIT, (-1e-3, 1e-3)], [(-1076.0, 1024.5), UNIT, (-1e-6, 1e-6)])
HYPERBOLIC = of_each([(-90.0, 90.0), (-3.0, 3.0)], [(-711.0, 711.0), (-3.0, 3.0)])
ANGLES = of_each(
    [(-10.0, 10.0), (-131000.0, 131000.0), (1e6, 1e9)], [(-10.0, 10.0), (-1e9, 1e9), (1e10, 1e14)]
)
POSITIVE = both((0.0, 2.0), (0.5, 1.5), (0.999, 1.001), (0.0, 1e-37), (1.0, 1e6))

FUNCTIONS = [
    Function("exp", mpmath.exp, (1, 1), EXPONENTS, np.exp),
    Function("exp2", lambda x: mpmath.power(2, x), (1, 1), POWERS, np.exp2),
    Function("expm1", mpmath.expm1, (2, 2), EXPONENTS, np.expm1),
    Function("logistic", lambda x: 1 / (1 + mpmath.exp(-x)), (2, 2), EXPONENTS, wide_logistic),
    Function("tanh", mpmath.tanh, (2, 2), both((-20.0, 20.0), UNIT), np.tanh),
    Function("sinh", mpmath.sinh, (2, 2), HYPERBOLIC, np.sinh),
    Function("cosh", mpmath.cosh, (2, 2), HYPERBOLIC, np.cosh),
    Function("log", mpmath.log, (1, 1), POSITIVE, np.log),
    Function("log10", mpmath.log10, (1, 1), POSITIVE, np.log10),
    Function("log2", lambda x: mpmath.log(x, 2), (1, 1), POSITIVE, np.log2),
    Function("log1p", mpmath.log1p, (1, 1), both((-1.0, 2.0), (-1e-3, 1e-3)), np.log1p),
    Function("asinh", mpmath.asinh, (1, 1), both(UNIT, (-1e2, 1e2), (1e8, 1e12)), np.arcsinh),
    Function("acosh", mpmath.acosh, (1, 1), both((1.0, 1.01), (1.0, 1e3)), np.arccosh),
    Function("atanh", mpmath.atanh, (1, 1), both(UNIT, (-1e-2, 1e-2)), np.arctanh),
    Function("sin", mpmath.sin, (2, 1), ANGLES, np.sin),
    Function("cos", mpmath.cos, (2, 1), ANGLES, np.cos),
    Function("tan", mpmath.tan, (2, 2), ANGLES, np.tan),
    Function("asin", mpmath.asin, (1.5, 1.5), both(UNIT, (0.49, 0.51), (0.99, 1.0)), np.arcsin),
    Function("acos", mpmath.acos, (1.5, 1.5), both(UNIT, (0.49, 0.51), (0.99, 1.0)), np.arccos),
    Function("atan", mpmath.atan, (1, 1), both(UNIT, (-4.0, 4.0)), np.arctan),
    Function("erf", mpmath.erf, (1, 1), both((-6.0, 6.0), UNIT)),
    Function("sqrt", mpmath.sqrt, (0.5, 0.5), POSITIVE, np.sqrt),
    Function("rsqrt", lambda x: 1 / mpmath.sqrt(x), (1.5, 1.5), POSITIVE),
    Function(
        "cbrt",
        lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        (1, 1),
        both((-8.0, 8.0), (0.0, 1e-37)),
        np.cbrt,
    ),
]


@pytest.fixture(autouse=True)
def precision() -> Any:
    with mpmath.workprec(150):
        yield


def samples(function: Function, dtype: str, count: int) -> np.ndarray:
    """Numbers of random bits, and ``count`` in each of the function's intervals."""
    generator = np.random.default_rng(1)
    kind = FLOATS[dtype]
    drawn = [generator.uniform(*interval, count) for interval in function.intervals[dtype]]
    return np.concatenate([any_bits(count, kind), *(x.astype(kind) for x in drawn)])


def in_domain(function: Function, x: np.ndarray) -> np.ndarray:
    """The numbers that have a finite value."""
    low, high = {
        "log": (0, np.inf),
        "log10": (0, np.inf),
        "log2": (0, np.inf),
        "log1p": (-1, np.inf),
        "acosh": (1, np.inf),
        "atanh": (-1, 1),
        "asin": (-1, 1),
        "acos": (-1, 1),
        "sqrt": (0, np.inf),
        "rsqrt": (0, np.inf),
    }.get(function.name, (-np.inf, np.inf))
    open_end = function.name in ("log", "log10", "log1p", "log2", "atanh", "rsqrt")
    inside = (x > low) & (x < high) if open_end else (x >= low) & (x <= high)
    return x[inside]


def test_the_page_states_what_is_tested() -> None:
    tested = {function.name: function.ulps for function in FUNCTIONS}
    tested |= {"abs": (0, 0), "pow": (1, 1.5), "atan2": (1.5, 1.5)}
    assert {name: stated[:2] for name, stated in STATED.items()} == tested


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_errors_against_mpmath(function: Function, dtype: str, target: str) -> None:
    bound = function.ulps[list(FLOATS).index(dtype)]
    x = in_domain(function, samples(function, dtype, 400))
    worst = worst_error(
        getattr(mathematics, function.name), function.reference, x, target=TARGETS[target]
    )
    assert worst.ulps <= bound, worst


WIDER: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float64),
    "float64": np.dtype(np.longdouble),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.wide], ids=lambda f: f.name)
def test_errors_over_dense_samples(function: Function, dtype: str, exhaustive: bool) -> None:
    wider = WIDER[dtype]
    if np.finfo(wider).nmant < np.finfo(dtype).nmant + 8:
        pytest.skip(f"{wider} is no wider than {dtype} on this machine")
    assert function.wide is not None
    x = in_domain(function, samples(function, dtype, 1 << (22 if exhaustive else 15)))
    actual = evaluate(lambda v: getattr(mathematics, function.name)(v, dtype), x)
    with np.errstate(all="ignore"):
        expected = function.wide(x.astype(wider))
        rounded = expected.astype(dtype)
        unit = np.spacing(np.abs(rounded)).astype(wider)
        error = np.abs(actual.astype(wider) - expected) / unit
    error = np.where(np.isinf(rounded), np.where(actual == rounded, 0, np.inf), error)
    bound = function.ulps[list(FLOATS).index(dtype)]
    place = int(np.argmax(error))
    assert error[place] <= bound, (x[place], actual[place], expected[place])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_two_and_ten_are_exact(dtype: str, target: str) -> None:
    info = np.finfo(dtype)
    lowest = int(np.log2(info.smallest_subnormal.astype(np.float64)))
    exponents = np.arange(lowest, info.maxexp).astype(dtype)
    powers = np.ldexp(np.ones_like(exponents), exponents.astype(int))
    of_ten = np.arange(-37 if dtype == "float32" else -307, 39 if dtype == "float32" else 309)
    tens = np.array([f"1e{n}" for n in of_ten], dtype)
    for function, given, expected in (
        (mathematics.log2, powers, exponents),
        (mathematics.exp2, exponents, powers),
        (mathematics.log10, tens, of_ten.astype(dtype)),
    ):
        made = evaluate(lambda x, f=function: f(x, dtype), given, target=TARGETS[target])
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_next_to_multiples_of_a_quarter_turn(name: str, dtype: str) -> None:
    """There the reduced angle is tiny, and all of its bits come from far down in pi."""
    kind = FLOATS[dtype]
    generator = np.random.default_rng(2)
    mpmath.mp.prec = 1300
    top = 83000 if dtype == "float32" else 2.0**29
    turns = {int(k) for k in np.exp(generator.uniform(0, np.log(top), 400))} | set(range(1, 60))
    near = [float(k * mpmath.pi / 2) for k in sorted(turns)]
    far = 2.0 ** generator.uniform(17, 127 if dtype == "float32" else 1023, 400)
    x = np.concatenate([near, far, -far]).astype(kind)
    # The f64 that comes closest to a multiple of pi/2.
    if dtype == "float64":
        x = np.append(x, [6381956970095103.0 * 2.0**797])
    bound = 2.0 if name == "tan" or dtype == "float32" else 1.0
    worst = worst_error(getattr(mathematics, name), getattr(mpmath, name), x)
    assert worst.ulps <= bound, worst


def pairs(dtype: str, count: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Arguments of functions of two numbers, by what is hard about them."""
    kind = FLOATS[dtype]
    generator = np.random.default_rng(3)

    def between(low: float, high: float) -> np.ndarray:
        return generator.uniform(low, high, count).astype(kind)

    bits = [any_bits(count, kind, seed=seed) for seed in (4, 5)]
    long = 6000 if dtype == "float32" else 60000
    return {
        "bits": (bits[0], bits[1]),
        "usual": (between(-3, 3), between(-3, 3)),
        "positive": (between(0, 10), between(-30, 30)),
        "near one": (between(0.99, 1.01), between(-long, long)),
        "subnormal": (between(0.1, 1) * kind.type(np.finfo(kind).tiny), between(-0.99, 0.99)),
        "integers": (between(-10, 10), generator.integers(-20, 20, count).astype(kind)),
    }


def power(x: Any, y: Any) -> Any:
    if x == 0 and y < 0:
        odd = y == int(y) and int(y) % 2
        return -mpmath.inf if odd and mpmath.sign(x) < 0 else mpmath.inf
    if abs(y) > 2**70 and x != 0:
        # An integer, and even.
        return mpmath.exp(y * mpmath.log(abs(x))) if abs(x) != 1 else mpmath.mpf(1)
    return mpmath.power(x, int(y) if y == int(y) else y)


@pytest.mark.parametrize("case", pairs("float32", 1))
@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_of_pow(dtype: str, case: str) -> None:
    x, y = pairs(dtype, 800)[case]
    with np.errstate(all="ignore"):
        sensible = np.abs(y * np.log(np.abs(x))) < 800
    x, y = x[sensible], y[sensible]
    worst = worst_error(mathematics.pow, power, x, y)
    assert worst.ulps <= (1.0 if dtype == "float32" else 1.5), worst


@pytest.mark.parametrize("case", pairs("float32", 1))
@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_of_atan2(dtype: str, case: str) -> None:
    worst = worst_error(mathematics.atan2, mpmath.atan2, *pairs(dtype, 800)[case])
    assert worst.ulps <= 1.5, worst


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_are_exact(dtype: str) -> None:
    kind = FLOATS[dtype]
    generator = np.random.default_rng(6)
    y = np.concatenate([any_bits(20000, kind, 7), generator.standard_normal(40000).astype(kind)])
    x = np.concatenate([any_bits(20000, kind, 8), generator.standard_normal(40000).astype(kind)])
    x[-20000:] = y[-20000:] * generator.integers(-999, 999, 20000)
    actual = evaluate(lambda a, b: mathematics.rem(a, b, dtype), x, y)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(x))
