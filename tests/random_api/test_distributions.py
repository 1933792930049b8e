"""Numbers have the distributions that they are named after: Kolmogorov and Smirnov's test.

Keys are fixed, so that a test that passes once passes always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import tracejit as tj
from tracejit import random
from tracejit.errors import ArgumentError, ElementTypeError, ShapeError

KEY = random.key(3)
SIZE = (4000,)

CONTINUOUS: dict[str, tuple[Callable[[], Any], Any]] = {
    "uniform": (lambda: random.uniform(KEY, SIZE, minval=-1, maxval=3), scipy.stats.uniform(-1, 4)),
    "normal": (lambda: random.normal(KEY, SIZE), scipy.stats.norm()),
    "normal f32": (lambda: random.normal(KEY, SIZE, np.float32), scipy.stats.norm()),
    "exponential": (lambda: random.exponential(KEY, SIZE), scipy.stats.expon()),
    "gumbel": (lambda: random.gumbel(KEY, SIZE), scipy.stats.gumbel_r()),
    "laplace": (lambda: random.laplace(KEY, SIZE), scipy.stats.laplace()),
    "logistic": (lambda: random.logistic(KEY, SIZE), scipy.stats.logistic()),
    "cauchy": (lambda: random.cauchy(KEY, SIZE), scipy.stats.cauchy()),
    "truncated_normal": (
        lambda: random.truncated_normal(KEY, -1, 2, SIZE),
        scipy.stats.truncnorm(-1, 2),
    ),
    "lognormal": (lambda: random.lognormal(KEY, 0.5, SIZE), scipy.stats.lognorm(0.5)),
    "rayleigh": (lambda: random.rayleigh(KEY, 2.0, SIZE), scipy.stats.rayleigh(scale=2)),
    "weibull_min": (
        lambda: random.weibull_min(KEY, 2.0, 3.0, SIZE),
        scipy.stats.weibull_min(3, scale=2),
    ),
    "pareto": (lambda: random.pareto(KEY, 3.0, SIZE), scipy.stats.pareto(3)),
    "maxwell": (lambda: random.maxwell(KEY, SIZE), scipy.stats.maxwell()),
    "triangular": (
        lambda: random.triangular(KEY, 0.0, 0.6, 2.0, SIZE),
        scipy.stats.triang(0.3, scale=2),
    ),
    "wald": (lambda: random.wald(KEY, 1.5, SIZE), scipy.stats.invgauss(1.5)),
    "gamma small": (lambda: random.gamma(KEY, 0.05, SIZE), scipy.stats.gamma(0.05)),
    "gamma": (lambda: random.gamma(KEY, 3.5, SIZE), scipy.stats.gamma(3.5)),
    "gamma large": (lambda: random.gamma(KEY, 1e5, SIZE), scipy.stats.gamma(1e5)),
    "loggamma": (lambda: random.loggamma(KEY, 0.3, SIZE), scipy.stats.loggamma(0.3)),
    "beta": (lambda: random.beta(KEY, 2.0, 3.0, SIZE), scipy.stats.beta(2, 3)),
    "chisquare": (lambda: random.chisquare(KEY, 3.0, SIZE), scipy.stats.chi2(3)),
    "f": (lambda: random.f(KEY, 4.0, 7.0, SIZE), scipy.stats.f(4, 7)),
    "t": (lambda: random.t(KEY, 4.0, SIZE), scipy.stats.t(4)),
    "generalized_normal": (
        lambda: random.generalized_normal(KEY, 3.0, SIZE),
        scipy.stats.gennorm(3),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name: str) -> None:
    draw, law = CONTINUOUS[name]
    assert scipy.stats.kstest(draw(), law.cdf).pvalue > 0.01


COUNTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "poisson 0.3": (lambda: random.poisson(KEY, 0.3, SIZE), scipy.stats.poisson(0.3)),
    "poisson 9": (lambda: random.poisson(KEY, 9.0, SIZE), scipy.stats.poisson(9)),
    "poisson 300": (lambda: random.poisson(KEY, 300.0, SIZE), scipy.stats.poisson(300)),
    "binomial": (lambda: random.binomial(KEY, 10, 0.3, SIZE), scipy.stats.binom(10, 0.3)),
    "binomial often": (lambda: random.binomial(KEY, 12, 0.9, SIZE), scipy.stats.binom(12, 0.9)),
    "binomial many": (lambda: random.binomial(KEY, 1000, 0.7, SIZE), scipy.stats.binom(1000, 0.7)),
    "geometric": (lambda: random.geometric(KEY, 0.2, SIZE), scipy.stats.geom(0.2)),
    "randint": (lambda: random.randint(KEY, SIZE, -3, 9), scipy.stats.randint(-3, 9)),
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, SIZE), scipy.stats.bernoulli(0.3)),
    "categorical": (
        lambda: random.categorical(KEY, np.log([0.2, 0.5, 0.3]), shape=SIZE),
        scipy.stats.rv_discrete(values=([0, 1, 2], [0.2, 0.5, 0.3])),
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    draw, law = COUNTS[name]
    made = draw()
    edges = law.ppf([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    shares = np.array([np.mean(made <= edge) for edge in edges])
    # Four deviations of a share of 4000 trials.
    assert np.abs(shares - law.cdf(edges)).max() < 4 * 0.5 / np.sqrt(len(made))


def test_what_has_no_distribution() -> None:
    assert random.poisson(KEY, np.array([-1.0, np.nan, 0.0])).tolist() == [-1, -1, 0]
    assert np.isnan(random.binomial(KEY, np.array([-1, 3]), np.array([0.5, 1.5]))).all()
    assert random.binomial(KEY, np.array([5, 5, 0]), np.array([0.0, 1.0, 0.5])).tolist() == [
        0,
        5,
        0,
    ]
    made = random.gamma(KEY, np.array([0.0, -1.0, np.nan]))
    assert made[0] == 0
    assert np.isnan(made[1:]).all()


def test_vectors() -> None:
    alpha = np.array([1.0, 2.0, 3.0])
    made = random.dirichlet(KEY, alpha, (2000,))
    np.testing.assert_allclose(made.sum(-1), 1, rtol=1e-14)
    np.testing.assert_allclose(made.mean(0), alpha / 6, atol=0.02)
    inside = np.linalg.norm(random.ball(KEY, 3, shape=(2000,)), axis=-1)
    assert scipy.stats.kstest(inside**3, "uniform").pvalue > 0.01
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    made = random.multivariate_normal(KEY, np.array([1.0, -1.0]), cov, (20000,))
    np.testing.assert_allclose(np.cov(made.T), cov, atol=0.06)
    for shape in ((5, None), (4, 2), (2, 4)):
        q = random.orthogonal(KEY, shape[0], (2,), m=shape[1])
        product = q @ q.swapaxes(1, 2) if q.shape[1] <= q.shape[2] else q.swapaxes(1, 2) @ q
        np.testing.assert_allclose(
            product, np.broadcast_to(np.eye(min(q.shape[1:])), product.shape), atol=1e-14
        )


def test_permutations() -> None:
    table = np.arange(12).reshape(3, 4)
    rows = random.permutation(KEY, table)
    assert sorted(rows[:, 0].tolist()) == [0, 4, 8]
    assert (rows - rows[:, :1] == np.arange(4)).all()
    columns = random.permutation(KEY, table, axis=1)
    assert (np.sort(columns, 1) == table).all()
    alone = random.permutation(random.key(1), np.tile(np.arange(50), (3, 1)), 1, independent=True)
    assert (np.sort(alone, 1) == np.arange(50)).all()
    assert (alone[0] != alone[1]).any()
    picked = random.choice(KEY, table, (2,), replace=False, axis=1)
    assert picked.shape == (3, 2)
    assert len({*picked[0]}) == 2
    assert random.permutation(KEY, 0).shape == (0,)


NARROW: dict[str, Callable[[], Any]] = {
    "uniform": lambda: random.uniform(KEY, (3,), np.float32, 1.0, np.float64(2)),
    "exponential": lambda: random.exponential(KEY, (3,), np.float32),
    "gumbel": lambda: random.gumbel(KEY, (3,), np.float32),
    "laplace": lambda: random.laplace(KEY, (3,), np.float32),
    "logistic": lambda: random.logistic(KEY, (3,), np.float32),
    "cauchy": lambda: random.cauchy(KEY, (3,), np.float32),
    "truncated_normal": lambda: random.truncated_normal(KEY, -1, 1, (3,), np.float32),
    "lognormal": lambda: random.lognormal(KEY, 0.5, (3,), np.float32),
    "rayleigh": lambda: random.rayleigh(KEY, 2.0, (3,), np.float32),
    "weibull_min": lambda: random.weibull_min(KEY, 2.0, 3.0, (3,), np.float32),
    "pareto": lambda: random.pareto(KEY, 3.0, (3,), np.float32),
    "maxwell": lambda: random.maxwell(KEY, (3,), np.float32),
    "double_sided": lambda: random.double_sided_maxwell(KEY, 1.0, 2.0, (3,), np.float32),
    "triangular": lambda: random.triangular(KEY, 0.0, 0.3, 1.0, (3,), np.float32),
    "wald": lambda: random.wald(KEY, 1.5, (3,), np.float32),
    "gamma": lambda: random.gamma(KEY, 1.5, (3,), np.float32),
    "loggamma": lambda: random.loggamma(KEY, 0.5, (3,), np.float32),
    "beta": lambda: random.beta(KEY, 1.5, 2.0, (3,), np.float32),
    "chisquare": lambda: random.chisquare(KEY, 3.0, (3,), np.float32),
    "f": lambda: random.f(KEY, 3.0, 4.0, (3,), np.float32),
    "t": lambda: random.t(KEY, 3.0, (3,), np.float32),
    "dirichlet": lambda: random.dirichlet(KEY, np.ones(3), (), np.float32),
    "generalized_normal": lambda: random.generalized_normal(KEY, 3.0, (3,), np.float32),
    "ball": lambda: random.ball(KEY, 3, dtype=np.float32),
    "binomial": lambda: random.binomial(KEY, 9, 0.3, (3,), np.float32),
    "multivariate_normal": lambda: random.multivariate_normal(
        KEY, np.zeros(3), np.eye(3), dtype=np.float32
    ),
    "orthogonal": lambda: random.orthogonal(KEY, 3, dtype=np.float32)[0],
}


@pytest.mark.parametrize("name", NARROW)
def test_float32_is_what_it_is_asked_to_be(name: str) -> None:
    made = NARROW[name]()
    assert made.dtype == np.float32
    assert made.shape == (3,)
    assert np.isfinite(made).all()


def test_narrow_types_and_sizes() -> None:
    for dtype in ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"):
        made = random.uniform(KEY, (300,), dtype)
        assert str(made.dtype) == dtype
        assert (made.astype(float) >= 0).all()
        assert (made.astype(float) < 1).all()
    assert random.gamma(KEY, 2.0, (3,), np.float16).dtype == np.float16
    assert random.normal(KEY, (2, 0)).shape == (2, 0)
    assert isinstance(random.normal(KEY), np.float64)
    assert random.randint(KEY, (500,), 250, 300, np.uint8).max() <= 255


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="choice: 5 picks without repetition from 4"):
        random.choice(KEY, 4, (5,), replace=False)
    with pytest.raises(ShapeError, match="choice: p must have shape"):
        random.choice(KEY, 4, (5,), p=P3)
    with pytest.raises(ShapeError, match="gamma: shape"):
        random.gamma(KEY, np.ones(3), ())
    with pytest.raises(ArgumentError, match="permutation: x must be an array or an integer"):
        random.permutation(KEY, 2.5)
    with pytest.raises(ElementTypeError, match="poisson: dtype must be an integer's"):
        random.poisson(KEY, 2.0, dtype=np.float32)
    with pytest.raises(ShapeError, match="multivariate_normal: mean must have shape"):
        random.multivariate_normal(KEY, np.zeros(3), np.eye(2))


P3 = np.ones(3) / 3


@pytest.mark.parametrize("a", [0.05, 1.0, 3.5, 100.0])
def test_gradient_of_gamma_follows_the_quantiles(a: float) -> None:
    made = random.gamma(KEY, a, (3,))
    gradient = tj.grad(lambda a: random.gamma(KEY, a, (3,)).sum())(a)
    share, step = scipy.special.gammainc(a, made), a * 1e-5
    moved = [scipy.special.gammaincinv(a + s, share) for s in (step, -step)]
    np.testing.assert_allclose(gradient, ((moved[0] - moved[1]) / (2 * step)).sum(), rtol=1e-6)
    second = tj.grad(tj.grad(lambda a: random.gamma(KEY, a, (3,)).sum()))(a)
    step = a * 1e-3
    near = [scipy.special.gammaincinv(a + s, share).sum() for s in (step, 0.0, -step)]
    np.testing.assert_allclose(second, (near[0] - 2 * near[1] + near[2]) / step**2, rtol=1e-4)


def test_gradients_of_parameters() -> None:
    def draw(low: Any, high: Any) -> Any:
        return random.truncated_normal(KEY, low, high, (5,)).sum()

    gradients = tj.grad(draw, argnums=(0, 1))(-1.0, 2.0)
    step = 1e-6
    moved = (
        (draw(-1 + step, 2.0) - draw(-1 - step, 2.0)) / (2 * step),
        (draw(-1.0, 2 + step) - draw(-1.0, 2 - step)) / (2 * step),
    )
    np.testing.assert_allclose(gradients, moved, rtol=1e-7)
    slope = tj.grad(lambda s: random.weibull_min(KEY, s, 2.0, (4,)).sum())(3.0)
    np.testing.assert_allclose(slope, random.weibull_min(KEY, 1.0, 2.0, (4,)).sum(), rtol=1e-12)
