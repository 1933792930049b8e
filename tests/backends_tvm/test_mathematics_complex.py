"""Functions of complex numbers against mpmath, and their special values against NumPy."""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.backends_tvm.accuracy_page import STATED
from tests.backends_tvm.mathematics_harness import TARGETS, evaluate
from tracejit.backends.tvm.cpu.mathematics import complex as mathematics

COMPLEX: dict[str, np.dtype[Any]] = {
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}
PARTS = {"complex64": "float32", "complex128": "float64"}


def sign(z: Any) -> Any:
    return z / abs(z) if z else z


def logistic(z: Any) -> Any:
    return 1 / (1 + mpmath.exp(-z))


# By the magnitude of the result, in units in its last place.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "abs": (abs, 1.0),
    "exp": (mpmath.exp, 2.0),
    "expm1": (mpmath.expm1, 3.0),
    "log": (mpmath.log, 1.0),
    "log1p": (lambda z: mpmath.log(1 + z), 2.0),
    "logistic": (logistic, 4.0),
    "sqrt": (mpmath.sqrt, 1.5),
    "rsqrt": (lambda z: 1 / mpmath.sqrt(z), 3.0),
    "sign": (sign, 2.0),
    "sin": (mpmath.sin, 2.5),
    "cos": (mpmath.cos, 2.5),
    "tan": (mpmath.tan, 4.0),
    "sinh": (mpmath.sinh, 2.5),
    "cosh": (mpmath.cosh, 2.5),
    "tanh": (mpmath.tanh, 4.0),
    "asin": (mpmath.asin, 2.5),
    "acos": (mpmath.acos, 2.0),
    "asinh": (mpmath.asinh, 2.5),
    "acosh": (mpmath.acosh, 2.0),
    "atanh": (mpmath.atanh, 2.0),
}


def numbers(dtype: str, count: int) -> np.ndarray:
    """Usual numbers, very large and very small ones, parts of unlike size, the unit circle."""
    generator = np.random.default_rng(1)
    far = 28 if dtype == "complex64" else 240

    def parts(scale: Callable[[], Any]) -> np.ndarray:
        real, imaginary = (generator.standard_normal(count) * scale() for _ in range(2))
        return np.asarray(real + 1j * imaginary)

    circle = np.exp(1j * generator.uniform(-3.2, 3.2, count))
    drawn = [
        parts(lambda: 1.0),
        parts(lambda: 10.0 ** generator.uniform(-6, 6, count)),
        parts(lambda: 10.0 ** generator.uniform(-far, far, count)),
        parts(lambda: 30.0),
        circle + parts(lambda: 1e-4),
    ]
    return np.concatenate(drawn).astype(COMPLEX[dtype])


def worst(actual: np.ndarray, expected: list[Any], dtype: str) -> tuple[float, int]:
    """The largest error in units of the last place of |expected|, and where it is."""
    info = np.finfo(COMPLEX[dtype])
    largest, place = 0.0, 0
    for at, (y, wanted) in enumerate(zip(actual.tolist(), expected, strict=True)):
        size = abs(wanted)
        if not info.tiny * 16 < size < info.max / 4:
            continue
        _, exponent = mpmath.frexp(size)
        error = abs(mpmath.mpc(y) - wanted) / mpmath.ldexp(info.eps, int(exponent) - 1)
        if not error <= largest:
            largest, place = float(error), at
    return largest, place


def test_the_page_states_what_is_tested() -> None:
    stated = {name: bounds[2] for name, bounds in STATED.items() if not math.isnan(bounds[2])}
    assert stated == {name: bound for name, (_, bound) in FUNCTIONS.items() if name != "sign"}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_against_mpmath(name: str, dtype: str) -> None:
    reference, bound = FUNCTIONS[name]
    z = numbers(dtype, 200 if dtype == "complex64" else 60)
    part = PARTS[dtype]
    function = getattr(mathematics, name)
    returns = part if name == "abs" else None
    actual = evaluate(lambda v: function(v, part), z, returns=returns)
    with mpmath.workdps(120 if dtype == "complex64" else 800):
        expected = [reference(mpmath.mpc(value)) for value in z.tolist()]
        error, place = worst(actual, expected, dtype)
        assert error <= bound, (z[place], actual[place], mpmath.nstr(expected[place], 20))


BINARY: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "add": (lambda z, w: z + w, 1.0),
    "sub": (lambda z, w: z - w, 1.0),
    "mul": (lambda z, w: z * w, 2.0),
    "div": (lambda z, w: z / w, 3.0),
}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", BINARY)
def test_errors_of_arithmetic(name: str, dtype: str) -> None:
    reference, bound = BINARY[name]
    z, part = numbers(dtype, 400), PARTS[dtype]
    w = np.random.default_rng(2).permutation(z)
    if name == "mul":
        # Squares that overflow or vanish are the product's own business.
        usual = np.abs(np.log10(np.abs(z)) + np.log10(np.abs(w))) < (
            25 if part == "float32" else 200
        )
        z, w = z[usual], w[usual]
    function = getattr(mathematics, name)
    actual = evaluate(lambda a, b: function(a, b, part), z, w)
    with mpmath.workdps(120 if dtype == "complex64" else 800):
        expected = [
            reference(mpmath.mpc(a), mpmath.mpc(b))
            for a, b in zip(z.tolist(), w.tolist(), strict=True)
        ]
        error, place = worst(actual, expected, dtype)
        assert error <= bound, (z[place], w[place], actual[place], expected[place])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_errors_of_pow(dtype: str) -> None:
    generator = np.random.default_rng(3)
    part = PARTS[dtype]
    z, w = (
        (
            generator.standard_normal(800) * scale + 1j * generator.standard_normal(800) * scale
        ).astype(dtype)
        for scale in (3, 4)
    )
    actual = evaluate(lambda a, b: mathematics.pow(a, b, part), z, w)
    expected = [
        mpmath.power(mpmath.mpc(a), mpmath.mpc(b))
        for a, b in zip(z.tolist(), w.tolist(), strict=True)
    ]
    error, place = worst(actual, expected, dtype)
    assert error <= (1.0 if dtype == "complex64" else 40.0), (z[place], w[place], actual[place])


def test_atan2_of_reals_is_the_angle() -> None:
    generator = np.random.default_rng(4)
    y, x = (generator.standard_normal(400).astype(np.complex128) for _ in range(2))
    actual = evaluate(lambda a, b: mathematics.atan2(a, b, "float64"), y, x)
    np.testing.assert_allclose(actual, np.arctan2(y.real, x.real), rtol=0, atol=1e-15)


VALUES = [0.0, -0.0, 1.0, -1.0, 0.5, 80.0, -80.0, 1e-40, 1e38, math.inf, -math.inf, math.nan]
SPECIAL = np.array([complex(x, y) for x, y in itertools.product(VALUES, repeat=2)], np.complex64)


def not_settled(name: str, z: complex) -> bool:
    """Where NumPy is not C's annex G, or rounds to 0 what is not."""
    match name:
        case "expm1":
            return not cmath.isfinite(z) or z.real > 1e30
        case "log1p":
            return 0 < abs(z.real) < 1e-30 or abs(z.imag) < 1e-30
        case "asin" | "acos" | "acosh":
            return z.real == 0 and math.isnan(z.imag)
        case "asinh":
            return math.isnan(z.real) and z.imag == 0
        case "atanh":
            return math.isnan(z.imag) or (math.isnan(z.real) and math.isinf(z.imag))
    return False


def same_part(actual: float, expected: float, with_sign: bool) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    if with_sign and math.copysign(1, actual) != math.copysign(1, expected):
        return False
    return math.isclose(abs(actual), abs(expected), rel_tol=1e-6, abs_tol=2e-45)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "name",
    [
        *("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("asin", "acos", "asinh", "acosh", "atanh"),
    ],
)
def test_special_values(name: str, target: str) -> None:
    """NumPy's; the signs of what infinities and NaN lead to are not always settled."""
    function = getattr(mathematics, name)
    actual = evaluate(lambda v: function(v, "float32"), SPECIAL, target=TARGETS[target])
    by_numpy = getattr(np, {"a": "arc"}.get(name[0], name[0]) + name[1:])
    with np.errstate(all="ignore"):
        expected = by_numpy(SPECIAL)
    wrong = []
    for z, y, wanted in zip(SPECIAL.tolist(), actual.tolist(), expected.tolist(), strict=True):
        if not_settled(name, z):
            continue
        with_sign = cmath.isfinite(z)
        parts = (y.real, wanted.real), (y.imag, wanted.imag)
        if not all(same_part(*part, with_sign) for part in parts):
            wrong.append((z, y, wanted))
    assert not wrong, wrong[:8]


def test_magnitudes_at_infinity() -> None:
    actual = evaluate(lambda v: mathematics.abs(v, "float32"), SPECIAL, returns=np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(actual, np.abs(SPECIAL), rtol=1e-6)


def test_reciprocal_roots_at_the_ends() -> None:
    z = np.array(
        [0, complex(math.inf, 3), complex(-math.inf, 3), complex(2, -math.inf)], np.complex64
    )
    actual = evaluate(lambda v: mathematics.rsqrt(v, "float32"), z)
    assert actual[0].real == math.inf
    assert math.isnan(actual[0].imag)
    assert actual[1:].tolist() == [0, 0, 0]


def test_sign_of_zero_is_zero() -> None:
    z = np.array([0, complex(-0.0, 0.0), 3e38 + 3e38j, 1e-45 + 1e-45j, 4 - 3j], np.complex64)
    actual = evaluate(lambda v: mathematics.sign(v, "float32"), z)
    root = math.sqrt(0.5)
    wanted = np.array([0, 0, root + root * 1j, root + root * 1j, 0.8 - 0.6j], np.complex64)
    np.testing.assert_allclose(actual, wanted, rtol=1e-6)


def test_quotients_with_zeros_and_infinities() -> None:
    """As in C's annex G."""
    inf, nan = math.inf, math.nan
    cases = {
        (1 + 1j, 0j): complex(inf, inf),
        (complex(-1, 0), 0j): complex(-inf, nan),
        (0j, 0j): complex(nan, nan),
        (complex(inf, 1), 1 + 1j): complex(inf, -inf),
        (1 + 1j, complex(inf, 1)): complex(0, 0),
        (1 + 1j, complex(inf, inf)): complex(0, 0),
        (complex(inf, inf), complex(inf, inf)): complex(nan, nan),
        (complex(nan, nan), 0j): complex(nan, nan),
        (complex(3e38, 3e38), complex(3e38, 3e38)): complex(1, 0),
        (complex(1e-40, 1e-40), complex(1e-40, 1e-40)): complex(1, 0),
    }
    z, w = (np.array(part, np.complex64) for part in zip(*cases, strict=True))
    actual = evaluate(lambda a, b: mathematics.div(a, b, "float32"), z, w)
    wanted = np.array(list(cases.values()), np.complex64)
    np.testing.assert_allclose(actual.real, wanted.real, rtol=1e-6)
    np.testing.assert_allclose(actual.imag, wanted.imag, rtol=1e-6, atol=1e-6)


def test_powers_of_zero() -> None:
    w = np.array([0, 1, 2 + 1j, -1, 1j], np.complex64)
    actual = evaluate(lambda a, b: mathematics.pow(a, b, "float32"), np.zeros_like(w), w)
    assert actual[:3].tolist() == [1, 0, 0]
    assert np.isnan(actual[3:]).all()
