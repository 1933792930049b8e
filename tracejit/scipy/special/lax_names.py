"""Special functions, and `nextafter`, under their names in `jax.lax`."""

from __future__ import annotations

from tracejit.numpy.rounding import nextafter
from tracejit.scipy.special import (
    betainc,
    digamma,
    erfc,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    i1e,
    polygamma,
    zeta,
)
from tracejit.scipy.special import erfinv as erf_inv

bessel_i0e, bessel_i1e = i0e, i1e
igamma, igammac, lgamma = gammainc, gammaincc, gammaln

__all__ = [
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf_inv",
    "erfc",
    "igamma",
    "igammac",
    "lgamma",
    "nextafter",
    "polygamma",
    "zeta",
]
