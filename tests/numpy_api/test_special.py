"""tracejit.scipy.special against SciPy, and its derivatives against mpmath.

ACCURACY says how far, relative to the greater of the value and 1e-3, a function may be from SciPy
on the domain beside it; in float32 it may be FACTOR times as far.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit.scipy import special

RNG = np.random.default_rng(5)
N = 400
FACTOR = 5e8


def uniform(low: float, high: float, *more: float) -> np.ndarray:
    """Numbers between two bounds, and some by hand."""
    return np.concatenate([RNG.uniform(low, high, N), np.array(more, float)])


WIDE = uniform(-20, 40, -3, -1, 0, 1, 2, 0.5, 1e-8, -1e-8, np.inf)
NORMAL = uniform(-6, 6, -25, 20, 0, 1e-10, np.inf, -np.inf)
SHARE = uniform(0, 1, 0, 1, 0.5, 1e-15)
SMALL = uniform(-5, 12, 0)
POSITIVE = uniform(0.01, 50)
OTHER = uniform(0.01, 50)
WHOLE = np.floor(uniform(0, 8))
ORDERS = np.floor(uniform(-6, 12))
ALONG = uniform(-3, 60)

ACCURACY: dict[str, tuple[float, tuple[np.ndarray, ...]]] = {
    "gammaln": (1e-13, (WIDE,)),
    "gamma": (3e-14, (uniform(-20, 40, -3, 0, 1, 170),)),
    "gammasgn": (0, (WIDE,)),
    "rgamma": (3e-14, (uniform(-20, 40, 1e5),)),
    "digamma": (2e-12, (WIDE,)),
    "psi": (2e-12, (WIDE,)),
    "beta": (1e-13, (POSITIVE, OTHER)),
    "betaln": (2e-13, (POSITIVE, OTHER)),
    "poch": (2e-13, (POSITIVE, OTHER / 10)),
    "binom": (2e-13, (np.floor(POSITIVE), np.floor(OTHER / 4))),
    "comb": (2e-13, (np.floor(POSITIVE), np.floor(OTHER / 4))),
    "perm": (2e-13, (np.floor(POSITIVE), np.floor(OTHER / 8))),
    "factorial": (3e-14, (uniform(0, 20, 0, -1),)),
    "zeta": (5e-14, (uniform(-8, 20),)),
    "erf": (2e-15, (NORMAL,)),
    "erfc": (5e-15, (NORMAL,)),
    "erfcx": (2e-13, (uniform(-6, 27),)),
    "erfinv": (2e-15, (uniform(-1, 1, 1, -1, 0, 1 - 1e-15, 2),)),
    "erfcinv": (5e-15, (uniform(0, 2, 0, 2, 1, 1e-300, 3),)),
    "ndtr": (1e-14, (NORMAL,)),
    "log_ndtr": (1e-14, (uniform(-30, 8),)),
    "ndtri": (5e-15, (SHARE,)),
    "gammainc": (2e-12, (POSITIVE, uniform(0.01, 90))),
    "gammaincc": (5e-12, (POSITIVE, uniform(0.01, 90))),
    "betainc": (2e-12, (POSITIVE, OTHER, uniform(0, 1))),
    "betaincc": (2e-12, (POSITIVE, OTHER, uniform(0, 1))),
    "chdtr": (2e-12, (POSITIVE, uniform(0.01, 90))),
    "chdtrc": (5e-12, (POSITIVE, uniform(0.01, 90))),
    "gdtr": (2e-12, (POSITIVE / 10, OTHER, uniform(0.01, 30))),
    "gdtrc": (5e-12, (POSITIVE / 10, OTHER, uniform(0.01, 30))),
    "pdtr": (5e-12, (WHOLE, OTHER / 4)),
    "pdtrc": (5e-12, (WHOLE, OTHER / 4)),
    "fdtr": (5e-12, (POSITIVE, OTHER, uniform(0, 8))),
    "fdtrc": (5e-12, (POSITIVE, OTHER, uniform(0, 8))),
    "stdtr": (5e-12, (POSITIVE, uniform(-8, 8, 0))),
    "expn": (2e-14, (WHOLE, uniform(0.001, 20))),
    "exp1": (2e-14, (uniform(0.001, 40),)),
    "expi": (5e-14, (uniform(-10, 80),)),
    "expit": (2e-15, (SMALL,)),
    "logit": (2e-15, (SHARE,)),
    "log_expit": (2e-15, (SMALL,)),
    "softplus": (2e-15, (SMALL,)),
    "entr": (2e-15, (SMALL,)),
    "rel_entr": (5e-12, (POSITIVE, OTHER)),
    "kl_div": (5e-11, (POSITIVE, OTHER)),
    "xlogy": (2e-15, (WHOLE, OTHER)),
    "xlog1py": (2e-15, (WHOLE, OTHER)),
    "exprel": (2e-15, (SMALL,)),
    "huber": (2e-15, (POSITIVE, OTHER)),
    "pseudo_huber": (2e-15, (POSITIVE, OTHER)),
    "boxcox": (5e-14, (POSITIVE, np.append(WHOLE[1:], 0) / 4)),
    "boxcox1p": (5e-14, (POSITIVE, np.append(WHOLE[1:], 0) / 4)),
    "inv_boxcox": (5e-14, (POSITIVE, np.append(WHOLE[1:], 0) / 4)),
    "cosm1": (2e-13, (SMALL,)),
    "exp2": (2e-15, (SMALL,)),
    "exp10": (2e-15, (SMALL,)),
    "expm1": (2e-15, (SMALL,)),
    "log1p": (2e-15, (POSITIVE,)),
    "cbrt": (2e-15, (SMALL,)),
    "i0": (3e-15, (uniform(-30, 60, 0, 8),)),
    "i0e": (3e-15, (uniform(-30, 60, 0, 8),)),
    "i1": (5e-15, (uniform(-30, 60, 0, 8),)),
    "i1e": (5e-15, (uniform(-30, 60, 0, 8),)),
    "spence": (2e-14, (uniform(0, 9, 0, 1, 2, 0.5),)),
    "j0": (5e-13, (uniform(-30, 60, 0, 8),)),
    "j1": (5e-13, (uniform(-30, 60, 0, 8),)),
    "y0": (5e-13, (uniform(-1, 60, 0, 8),)),
    "y1": (5e-13, (uniform(-1, 60, 0, 8),)),
    "jn": (2e-12, (ORDERS, uniform(-30, 60))),
    "jv": (2e-12, (ORDERS, uniform(-30, 60))),
    "yn": (2e-12, (ORDERS, uniform(0, 60))),
    "yv": (5e-12, (ALONG[:90], uniform(0.1, 60)[:90])),
    "yve": (5e-12, (ALONG[:90], uniform(0.1, 60)[:90])),
    "jve": (5e-12, (abs(ALONG[:90]), uniform(0, 60)[:90])),
    "kv": (3e-13, (ALONG, uniform(0.01, 80, 0, -1, np.inf))),
    "kve": (3e-13, (ALONG, uniform(0.01, 80, 0, -1, np.inf))),
    "kn": (3e-13, (WHOLE, uniform(0.01, 80, 0, -1))),
    "k0": (1e-14, (uniform(0.01, 80, 0, -1, np.inf),)),
    "k0e": (1e-14, (uniform(0.01, 80, 0, -1, np.inf),)),
    "k1": (1e-14, (uniform(0.01, 80, 0, -1, np.inf),)),
    "k1e": (1e-14, (uniform(0.01, 80, 0, -1, np.inf),)),
    "spherical_jn": (5e-12, (WHOLE[:60], uniform(-8, 40)[:60])),
    "spherical_yn": (5e-12, (WHOLE[:60], uniform(-8, 40)[:60])),
    "spherical_in": (3e-13, (WHOLE[:60], uniform(-8, 40)[:60])),
    "spherical_kn": (3e-12, (WHOLE[:60], uniform(0.1, 40)[:60])),
    "agm": (3e-15, (uniform(0, 99, 0, 1), uniform(0, 99, 1, 1))),
    "ellipk": (3e-15, (uniform(-9, 1, 0, 1, 2, -1e30),)),
    "ellipkm1": (3e-15, (uniform(0, 3, 0, 1, 1e-300, -1),)),
    "ellipe": (5e-15, (uniform(-9, 1, 0, 1, 2),)),
    "ellipkinc": (5e-14, (uniform(-9, 9, 0), uniform(-3, 1, 0.5))),
    "ellipeinc": (5e-14, (uniform(-9, 9, 0), uniform(-3, 1, 0.5))),
    "elliprc": (5e-15, (uniform(0, 9), uniform(-9, 9))),
    "elliprd": (5e-15, (uniform(0, 9), uniform(0, 90), uniform(0.01, 9))),
    "elliprf": (5e-15, (uniform(0, 9), uniform(0, 90), uniform(0.01, 9))),
    "elliprg": (5e-15, (uniform(0, 9), uniform(0, 90), uniform(0.01, 9))),
    "dawsn": (5e-15, (uniform(-12, 30, 0, 1e-300, np.inf),)),
    "erfi": (1e-13, (uniform(-12, 20, 0, 1e-300, np.inf),)),
    "voigt_profile": (3e-12, (NORMAL, uniform(0, 3), uniform(0, 3))),
    "ndtri_exp": (5e-14, (uniform(-60, 0, 0, -1e-20, -1e30, 1, -np.inf),)),
    "gammaincinv": (1e-12, (POSITIVE[:60], SHARE[:60])),
    "gammainccinv": (1e-12, (POSITIVE[:60], SHARE[:60])),
    "betaincinv": (1e-12, (POSITIVE[:15], OTHER[:15], SHARE[:15])),
    "betainccinv": (1e-12, (POSITIVE[:15], OTHER[:15], SHARE[:15])),
    "stdtrit": (1e-12, (POSITIVE[:15], SHARE[:15])),
    "chdtri": (1e-12, (POSITIVE[:30], SHARE[:30])),
    "fdtri": (5e-12, (POSITIVE[:15], OTHER[:15], SHARE[:15])),
    "pdtri": (1e-12, (WHOLE[:30], SHARE[:30])),
    "gdtrix": (1e-12, (POSITIVE[:30], OTHER[:30], SHARE[:30])),
    "bdtr": (5e-12, (WHOLE[:90], WHOLE[:90] + ORDERS[:90], SHARE[:90])),
    "bdtrc": (5e-12, (WHOLE[:90], WHOLE[:90] + ORDERS[:90], SHARE[:90])),
    "nbdtr": (5e-12, (WHOLE[:90], WHOLE[90:180] + 1, SHARE[:90])),
    "nbdtrc": (5e-12, (WHOLE[:90], WHOLE[90:180] + 1, SHARE[:90])),
    "nrdtrimn": (2e-12, (SHARE[:90], OTHER[:90], NORMAL[:90])),
    "nrdtrisd": (5e-13, (NORMAL[:90], SHARE[:90], OTHER[:90])),
    "iv": (2e-13, (ALONG, uniform(0, 80))),
    "ive": (2e-13, (ALONG, uniform(0, 80))),
}
SEVERAL: dict[str, tuple[float, tuple[np.ndarray, ...]]] = {
    "sici": (3e-14, (uniform(-30, 60, 0, 4, np.inf),)),
    "shichi": (5e-14, (uniform(-30, 60, 0, 4, np.inf),)),
    "fresnel": (3e-14, (uniform(-9, 30, 0, 1.5, np.inf),)),
    "airy": (5e-12, (uniform(-20, 20, 0, 1, -1)[::5],)),
    "ellipj": (5e-14, (uniform(-9, 9, 0, 3), uniform(0, 1, 1, 1 - 1e-12))),
}
"""Functions with more than one result, how far they may be, relative to 0.1 and more."""
# Their checks stand by themselves below.
OTHERS = {
    "bernoulli", "log_softmax", "logsumexp", "multigammaln", "polygamma", "sinc", "softmax", "wofz",
}  # fmt: skip


def by_scipy(name: str, *arrays: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.asarray(getattr(scipy.special, name)(*arrays))


def distance(got: np.ndarray, wanted: np.ndarray, ceiling: float) -> float:
    """The greatest relative distance where values are finite and below a ceiling."""
    counts = np.isfinite(wanted) & (np.abs(wanted) < ceiling)
    found = np.abs(got[counts] - wanted[counts]) / np.maximum(np.abs(wanted[counts]), 1e-3)
    return float(found.max())


def test_every_function_is_checked() -> None:
    assert set(special.__all__) == set(ACCURACY) | set(SEVERAL) | OTHERS


@pytest.mark.parametrize("name", ACCURACY)
def test_accuracy(name: str) -> None:
    limit, arrays = ACCURACY[name]
    size = min(map(len, arrays))
    given = [array[:size] for array in arrays] if len(arrays) > 1 else list(arrays)
    function = getattr(special, name)
    wanted = by_scipy(name, *given)
    got = tj.jit(lambda *xs: function(*xs))(*given)
    assert got.dtype == wanted.dtype == np.float64
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted))
    assert distance(got, wanted, np.inf) <= limit
    single = [array.astype(np.float32) for array in given]
    got = tj.jit(lambda *xs: function(*xs))(*single)
    assert got.dtype == np.float32
    wanted = by_scipy(name, *(array.astype(np.float64) for array in single))
    assert distance(got, wanted, 1e30) <= max(limit * FACTOR, 2e-6)


@pytest.mark.parametrize("name", SEVERAL)
def test_accuracy_of_several_results(name: str) -> None:
    limit, arrays = SEVERAL[name]
    function, like = getattr(special, name), getattr(scipy.special, name)
    got = tj.jit(lambda *xs: function(*xs))(*arrays)
    single = [array.astype(np.float32) for array in arrays]
    rough = tj.jit(lambda *xs: function(*xs))(*single)
    wide = like(*(array.astype(np.float64) for array in single))
    for mine, theirs, less, more in zip(got, like(*arrays), rough, wide, strict=True):
        assert (mine.dtype, less.dtype) == (np.float64, np.float32)
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(theirs))
        np.testing.assert_array_equal(np.isinf(mine), np.isinf(theirs))
        for found, wanted, allowed in ((mine, theirs, limit), (less, more, 2e-4)):
            counts = np.isfinite(wanted) & (np.abs(wanted) < 1e30)
            scale = np.maximum(np.abs(wanted[counts]), 0.1)
            assert (np.abs(found[counts] - wanted[counts]) / scale).max() <= allowed


@pytest.mark.parametrize("name", ["gammaln", "erfcinv", "gammainc", "expn", "i1", "betainc"])
def test_compiled(name: str, machine_code: None) -> None:
    limit, arrays = ACCURACY[name]
    given = [array[:40] for array in arrays]
    function = getattr(special, name)
    assert distance(tj.jit(lambda *xs: function(*xs))(*given), by_scipy(name, *given), np.inf) <= (
        2 * limit
    )


DERIVATIVES: dict[str, tuple[Callable[[Any], Any], float]] = {
    "gammaln": (mpmath.loggamma, 0.37),
    "gamma": (mpmath.gamma, 2.6),
    "digamma": (mpmath.digamma, 0.37),
    "erfc": (mpmath.erfc, 0.8),
    "erfinv": (mpmath.erfinv, 0.6),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), 0.4),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), -1.7),
    "i0": (lambda x: mpmath.besseli(0, x), 2.5),
    "i1": (lambda x: mpmath.besseli(1, x), 0.37),
    "j0": (lambda x: mpmath.besselj(0, x), 2.5),
    "j1": (lambda x: mpmath.besselj(1, x), 11.0),
    "y0": (lambda x: mpmath.bessely(0, x), 2.5),
    "y1": (lambda x: mpmath.bessely(1, x), 0.7),
    "exp1": (mpmath.e1, 0.7),
    "spence": (lambda x: mpmath.polylog(2, 1 - x), 0.37),
    "entr": (lambda x: -x * mpmath.log(x), 0.4),
    "exprel": (lambda x: mpmath.expm1(x) / x, 0.1),
    "zeta": (mpmath.zeta, 2.5),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_up_to_the_third(name: str) -> None:
    of, at = DERIVATIVES[name]
    function: Any = getattr(special, name)
    for order in (1, 2, 3):
        function = tj.grad(function)
        wanted = float(mpmath.diff(of, at, order))
        np.testing.assert_allclose(tj.jit(function)(at), wanted, 1e-11)


def test_derivatives_of_two_arguments() -> None:
    def gammainc(a: Any, x: Any) -> Any:
        return mpmath.gammainc(a, 0, x, regularized=True)

    found = tj.jit(tj.grad(special.gammainc, argnums=(0, 1)))(2.5, 1.7)
    wanted = [mpmath.diff(gammainc, (2.5, 1.7), n) for n in ((1, 0), (0, 1))]
    np.testing.assert_allclose(found, np.array(wanted, float), 1e-11)
    found = tj.jit(tj.grad(special.betainc, argnums=2))(2.5, 1.7, 0.3)
    density = 0.3**1.5 * 0.7**0.7 / scipy.special.beta(2.5, 1.7)
    np.testing.assert_allclose(found, density, 1e-11)
    slope = tj.jit(tj.grad(special.expn, argnums=1))(2.0, 0.7)
    np.testing.assert_allclose(slope, -scipy.special.expn(1, 0.7), 1e-12)
    np.testing.assert_allclose(tj.jit(tj.grad(special.xlogy))(0.0, 2.0), np.log(2), 1e-12)
    assert tj.jit(tj.grad(special.xlogy))(0.0, 0.0) == 0


@pytest.mark.parametrize("at", [(1.3, 0.7, 0.4), (2.5, 3.1, 0.8), (20.0, 0.5, 0.97)])
def test_derivatives_of_the_incomplete_beta_function(at: tuple[float, float, float]) -> None:
    def betainc(a: Any, b: Any, x: Any) -> Any:
        return mpmath.betainc(a, b, 0, x, regularized=True)

    def wanted(*orders: int) -> float:
        return float(mpmath.diff(betainc, at, orders))

    found = tj.grad(special.betainc, argnums=(0, 1, 2))(*at)
    np.testing.assert_allclose(found, [wanted(1, 0, 0), wanted(0, 1, 0), wanted(0, 0, 1)], 1e-10)
    second = tj.grad(tj.grad(special.betainc), argnums=(0, 1, 2))(*at)
    np.testing.assert_allclose(second, [wanted(2, 0, 0), wanted(1, 1, 0), wanted(1, 0, 1)], 1e-8)


def test_bessel_functions() -> None:
    """Zero, infinity, large orders and arguments, and derivatives in the argument."""
    assert special.jn(0, 0.0) == 1
    np.testing.assert_array_equal(special.jn(np.array([3, 0]), np.array([0.0, np.inf])), [0, 0])
    np.testing.assert_array_equal(
        special.yn(np.array([0, 3]), np.array([0.0, -1.0])), [-np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        special.iv(np.array([0, 3, 1]), np.array([0.0, 0.0, -np.inf])), [1, 0, -np.inf]
    )
    for order, x in ((3, 2.3), (40, 7.0), (60, 900.0), (2, 1e5), (-5, 12.0)):
        wanted = [float(f(order, x)) for f in (mpmath.besselj, mpmath.bessely)]
        found = [special.jn(order, x), special.yn(order, x)]
        np.testing.assert_allclose(found, wanted, 2e-11)
    for real, at in ((2.5, 0.7), (0.3, 700.0), (35.0, 800.0), (500.0, 3e3), (-2.5, 4.0)):

        def scaled(x: Any, order: float = real) -> Any:
            return mpmath.besseli(order, x) * mpmath.exp(-x)

        np.testing.assert_allclose(special.ive(real, at), float(scaled(at)), 2e-12)
        slope = float(mpmath.diff(scaled, at))
        np.testing.assert_allclose(tj.grad(special.ive, argnums=1)(real, at), slope, 1e-10)
    for order in (0, 1, 4):
        slope = tj.grad(special.jn, argnums=1)(order, 3.7)
        np.testing.assert_allclose(slope, scipy.special.jvp(order, 3.7), 1e-12)
        slope = tj.grad(special.yn, argnums=1)(order, 3.7)
        np.testing.assert_allclose(slope, scipy.special.yvp(order, 3.7), 1e-12)
    assert [tj.grad(special.iv, argnums=1)(v, 0.0) for v in (0.0, 1.0, 2.0, 0.5)] == [
        0,
        0.5,
        0,
        np.inf,
    ]
    assert np.isnan(tj.grad(special.iv)(2.5, 0.7))


@pytest.mark.parametrize("name", ["erf", "erfc", "erfcx", "wofz", "erfi", "dawsn"])
def test_error_functions_of_complex_numbers(name: str) -> None:
    function = getattr(special, name)
    great = 9 if name == "erfi" else 30
    z = np.append(uniform(-4, 4) + 1j * uniform(-4, 4), [0, 1e-9j, great, 4 + 1e-5j])
    found = tj.jit(lambda z: function(z))(z)
    wanted = by_scipy(name, z)
    np.testing.assert_allclose(found, wanted, 2e-13)
    found = function(z.astype(np.complex64))
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found[:400], by_scipy(name, z[:400].astype(np.complex64)), 3e-5)
    at = 0.7 - 1.3j
    slope = complex(mpmath.diff(lambda z: complex(by_scipy(name, np.complex128(z))), at, h=1e-5))
    np.testing.assert_allclose(tj.grad(function, holomorphic=True)(at), slope, 1e-8)


def test_whole_orders_only() -> None:
    """SciPy cuts off what an order has beyond a whole number."""
    np.testing.assert_allclose(special.expn(1.7, 0.7), scipy.special.expn(1, 0.7), 1e-14)
    assert tj.grad(special.expn)(1.7, 0.7) == 0


def test_sums_of_exponentials() -> None:
    x = RNG.normal(size=(3, 4)) * 300
    weights = RNG.normal(size=4)

    def function(of: Any, x: Any) -> Any:
        return (
            of.logsumexp(x),
            of.logsumexp(x, axis=1, keepdims=True),
            of.logsumexp(x, axis=0, b=abs(weights[:3, None])),
            of.logsumexp(x, axis=1, b=weights, return_sign=True),
            of.softmax(x, axis=1),
            of.log_softmax(x, axis=0),
            of.softmax(x),
        )

    same(tj.jit(lambda x: function(special, x))(x), function(scipy.special, x))
    same(tj.jit(lambda x: function(scipy.special, x))(x), function(scipy.special, x))
    empty = np.full((2, 2), -np.inf)
    np.testing.assert_array_equal(special.logsumexp(empty, axis=1), [-np.inf, -np.inf])


def test_the_rest() -> None:
    x = uniform(0.1, 9)
    for order in (0, 1, 4):
        same(special.polygamma(order, x), scipy.special.polygamma(order, x))
    same(special.zeta(x + 1.01, 2.5), scipy.special.zeta(x + 1.01, 2.5))
    same(special.multigammaln(x + 3, 4), scipy.special.multigammaln(x + 3, 4))
    same(special.bernoulli(8), scipy.special.bernoulli(8))
    same(special.sinc(x), scipy.special.sinc(x))
    found = tj.jit(tj.grad(lambda x: special.polygamma(1, x)))(1.3)
    np.testing.assert_allclose(found, scipy.special.polygamma(2, 1.3), 1e-12)
    with pytest.raises(ValueError, match="exact=True counts in Python's integers"):
        special.comb(5, 2, exact=True)
    with pytest.raises(TypeError, match="gamma: not defined for complex numbers"):
        special.gamma(1j)


def test_scipys_own_functions_record() -> None:
    """Called by the names that a user's program has for them."""
    x = POSITIVE[:6]

    def function(x: Any) -> Any:
        return scipy.special.expit(x) + scipy.special.gammaln(x), scipy.special.polygamma(1, x)

    same(tj.jit(function)(x), function(x))
    same(tj.jit(lambda x: scipy.special.i0e(x), record_numpy=False)(x), scipy.special.i0e(x))
    same(special.expit(x.astype(np.float16)), scipy.special.expit(x.astype(np.float16)))


EXTREMES: list[tuple[str, tuple[float, ...], float]] = [
    # Each with its value by mpmath, 50 digits.
    ("gammainc", (130000000.0, 130000000.0), 0.50001166318420939),
    ("gammainc", (1000000000.0, 1000060000.0), 0.9711084071676511),
    ("gammainc", (300.0, 240.0), 0.00010493868382420006),
    ("gammainc", (45.0, 20.0), 1.0602631299402716e-6),
    ("gammaincc", (130000000.0, 130020000.0), 0.03971051368097105),
    ("gammaincc", (1e-10, 0.5), 5.5977359480549881e-11),
    ("gammaincc", (0.0625, 1.25), 0.0098299651977959344),
    ("betainc", (18.75, 39000000.0, 4.76837158203125e-07), 0.51659869806205826),
    ("betainc", (1000000.0, 2000000.0, 0.3330078125), 0.11582904359889781),
    ("betainc", (100000000.0, 0.75, 0.9999998807907104), 2.8646275954470661e-6),
    ("betainc", (5000.0, 4000.0, 0.55), 0.14444343162632712),
    ("betaln", (3000000000000000.0, 0.0625), 0.51229482922252874),
    ("betaln", (1e18, 20000000000000.0), -236395765686886.74),
    ("betaln", (1000.0, 20.0), -99.003998286911697),
    ("poch", (870000.0, 5.5), 4.6490269831624869e32),
    ("binom", (93000000.0, 4.0), 3.116883173910754e30),
    ("polygamma", (40.0, 16.0), -0.038111224339630561),
    ("zeta", (-60.5,), -7.4886394763041847e33),
    ("iv", (240.0, 150.0), 1.2775146935770131e-9),
    ("exprel", (90.0,), 1.3560036603531564e37),
    ("expi", (89.0,), 5.1025073444539283e36),
]


@pytest.mark.parametrize(("name", "at", "wanted"), EXTREMES)
def test_extremes(name: str, at: tuple[float, ...], wanted: float) -> None:
    """Large parameters and small shares, where logarithms of gamma would cancel."""
    function = getattr(special, name)
    np.testing.assert_allclose(function(*map(np.float64, at)), wanted, 2e-12)
    if 1e-37 < abs(wanted) < 1e38:
        np.testing.assert_allclose(function(*map(np.float32, at)), wanted, 2e-4)


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 4e-15), (np.float32, 1e-6)])
def test_exponential_integral(dtype: type, limit: float) -> None:
    """Near zero, where the formulas meet, and to where values vanish; no loop takes part."""
    x = np.concatenate([10 ** np.linspace(-30, 1.9, 200), [1, np.nextafter(dtype(1), 2), 2, 4]])
    x = x.astype(dtype)
    with mpmath.workdps(30):
        wanted = [float(mpmath.e1(mpmath.mpf(float(each)))) for each in x]
    np.testing.assert_allclose(special.exp1(x), wanted, limit)
    np.testing.assert_allclose(special.expi(-x), [-each for each in wanted], limit)
    odd: np.ndarray = np.array([0.0, -0.0, -1.0, np.nan, np.inf, -np.inf, 1e4], dtype)
    np.testing.assert_array_equal(special.exp1(odd), scipy.special.exp1(odd))
    assert "while" not in tj.jit(special.exp1).lower(x).as_text("hlo")


def test_shares_stay_between_zero_and_one() -> None:
    """And near SciPy's, over many orders of magnitude, in both precisions."""
    rng = np.random.default_rng(3)
    a, b = 10 ** rng.uniform(-3, 6, 300), 10 ** rng.uniform(-3, 6, 300)
    mean = a / (a + b)
    x = np.clip(mean + rng.normal(size=300) * 2 * np.sqrt(mean * (1 - mean) / (a + b)), 0, 1)
    y = np.abs(a + rng.normal(size=300) * 2 * np.sqrt(a))
    for dtype, limit in ((np.float64, 1e-10), (np.float32, 5e-4)):
        for function, like, given in (
            (special.betainc, scipy.special.betainc, (a, b, x)),
            (special.gammainc, scipy.special.gammainc, (a, y)),
            (special.gammaincc, scipy.special.gammaincc, (a, y)),
        ):
            numbers = [one.astype(dtype) for one in given]
            found = function(*numbers)
            assert ((found >= 0) & (found <= 1)).all()
            wanted = like(*(one.astype(np.float64) for one in numbers))
            np.testing.assert_allclose(found, wanted, atol=limit)


def test_derivatives_of_shares_with_large_parameters() -> None:
    """By numeric differences of the exact values, which are those of SciPy at one step's width."""
    a, x = 5e4, 50100.0
    found = tj.grad(special.gammainc, argnums=(0, 1))(a, x)
    with mpmath.workdps(40):
        density = float(mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a)))
    np.testing.assert_allclose(found[1], density, 1e-12)
    step = 1e-2
    wanted = (scipy.special.gammainc(a + step, x) - scipy.special.gammainc(a - step, x)) / 2 / step
    np.testing.assert_allclose(found[0], wanted, 1e-5)
    b, at = 3e4, 0.624
    slopes = tj.grad(special.betainc, argnums=(0, 1))(a, b, at)
    for n, slope in enumerate(slopes):
        up, down = ([a, b] for _ in range(2))
        up[n] += 1
        down[n] -= 1
        wanted = (scipy.special.betainc(*up, at) - scipy.special.betainc(*down, at)) / 2
        np.testing.assert_allclose(slope, wanted, 1e-4)
    assert tj.grad(special.gammainc, argnums=1)(1.0, 0.0) == 1
    assert tj.grad(special.betainc, argnums=2)(1.0, 3.0, 0.0) == 3
