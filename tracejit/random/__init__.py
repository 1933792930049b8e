"""Random numbers from keys, with the functions, and by the defaults the numbers, of jax.random.

    key = random.key(0)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3, 4))             # the same numbers for the same key, always

Nothing is remembered between calls: a key gives the same numbers wherever it is used, under jit,
grad and vmap too, so that a key is used once and split for more. Floating results are float64
unless ``dtype`` says otherwise.
"""

from __future__ import annotations

from tracejit.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from tracejit.random.counting import bits, fold_in, split
from tracejit.random.counts import binomial, poisson
from tracejit.random.discrete import bernoulli, categorical, geometric, rademacher, randint
from tracejit.random.gamma_family import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    t,
)
from tracejit.random.intervals import normal, uniform
from tracejit.random.keys import (
    Key,
    PRNGKey,
    clone,
    key,
    key_data,
    key_impl,
    wrap_key_data,
)
from tracejit.random.picking import choice, permutation
from tracejit.random.vectors import multivariate_normal, orthogonal

__all__ = [
    "Key",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]


def __dir__() -> list[str]:
    return __all__
