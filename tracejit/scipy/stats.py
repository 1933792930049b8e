"""Probability distributions: ``norm``, ``t``, ``gamma``, ``beta``, ``poisson`` and more.

stats.norm.logpdf(x, loc=mean, scale=deviation)      stats.poisson.cdf(k, mu)

Each has the methods pdf (or pmf), logpdf (logpmf), cdf, logcdf, sf and logsf of ``scipy.stats``,
with ``loc`` and ``scale``, which broadcast with the shape parameters. Results have the floating
type that the arguments are promoted to, float64 for integers, and derivatives in all of them that
the special functions have. Parameters outside of their range give NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.stats as scipy_stats

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.selecting import where
from tracejit.scipy import special
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import public
from tracejit.trace.table import FUNCTIONS, find_traced
from tracejit.trace.tracer import Tracer

__all__ = [
    "beta",
    "cauchy",
    "chi2",
    "expon",
    "gamma",
    "laplace",
    "logistic",
    "norm",
    "poisson",
    "t",
    "uniform",
]

Formula = Callable[..., Any]
Support = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Distribution:
    """SciPy's distribution ``like``, by the formulas of its standard form, for loc 0 and scale 1.

    The formulas take x inside of the support and the shape parameters, of one floating type;
    ``support`` says which x lie there, ``valid`` which parameters there are. Where x lies outside,
    formulas get ``inside``. ``log_lower`` and ``log_upper`` are the logarithms of ``lower`` and
    ``upper``, where those vanish too early; ``quantile`` is the inverse of ``lower``.
    """

    like: Any
    name: str
    shapes: tuple[str, ...]
    log_density: Formula
    lower: Formula
    upper: Formula
    support: Support
    valid: Support = lambda *shapes: True
    inside: float = 0.5
    is_discrete: bool = False
    log_lower: Formula | None = None
    log_upper: Formula | None = None
    quantile: Formula | None = None
    pdf: ClassVar[Callable[..., Any]]
    logpdf: ClassVar[Callable[..., Any]]
    pmf: ClassVar[Callable[..., Any]]
    logpmf: ClassVar[Callable[..., Any]]
    cdf: ClassVar[Callable[..., Any]]
    logcdf: ClassVar[Callable[..., Any]]
    sf: ClassVar[Callable[..., Any]]
    logsf: ClassVar[Callable[..., Any]]

    def __post_init__(self) -> None:
        density = "pmf" if self.is_discrete else "pdf"
        made = {
            density: lambda s: np.exp(self._log_density(s)),
            f"log{density}": self._log_density,
            "cdf": lambda s: self._integral(s, self.lower, 0.0),
            "logcdf": lambda s: self._log_integral(s, self.lower, self.log_lower, 0.0),
            "sf": lambda s: self._integral(s, self.upper, 1.0),
            "logsf": lambda s: self._log_integral(s, self.upper, self.log_upper, 1.0),
        }
        if self.quantile is not None:
            made |= {"ppf": self._at_probability, "isf": self._at_probability}
        for method, formula in made.items():
            object.__setattr__(self, method, self._method(method, formula))

    def __call__(self, *args: Any, **kwargs: Any) -> Frozen:
        """The distribution with these shape parameters, loc and scale, as in SciPy."""
        return Frozen(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """SciPy's own method, for numbers that are known; others cannot be traced."""
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(self.like, name)
        if not callable(method):
            return method

        def known(*args: Any, **kwargs: Any) -> Any:
            if find_traced((args, kwargs)) is not None:
                raise UnsupportedError(
                    f"scipy.stats.{self.name}.{name}: cannot be traced; call it on NumPy arrays "
                    f"outside of the traced function, or through tj.pure_callback"
                )
            return method(*args, **kwargs)

        return known

    def _method(self, method: str, formula: Callable[[_Standard], Any]) -> Callable[..., Any]:
        names = ["k" if self.is_discrete else "x", *self.shapes, "loc"]
        names += [] if self.is_discrete else ["scale"]
        needed = {*names} - {"loc", "scale"}

        def record(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | kwargs
            is_twice = len(given) < len(args) + len(kwargs)
            if is_twice or {*given} - {*names} or needed - {*given}:
                raise ArgumentError(
                    f"{self.name}.{method}: takes {', '.join(names)}; given are {len(args)} by "
                    f"position and {', '.join(kwargs) or 'none'} by name"
                )
            values = [given[names[0]], given.get("loc", 0), given.get("scale", 1)]
            values += [given[name] for name in self.shapes]
            x, loc, scale, *shapes = _floats(f"{self.name}.{method}", values)
            if method in ("ppf", "isf"):
                chance = 1 - x if method == "isf" else x
                return formula(self._standard(chance, shapes, scale)) * scale + loc
            return formula(self._standard((x - loc) / scale, shapes, scale))

        record.__name__ = record.__qualname__ = f"{self.name}.{method}"
        return public(record)

    def _standard(self, x: Any, shapes: Sequence[Any], scale: Any) -> _Standard:
        valid = (scale > 0) & (x == x) & self.valid(*shapes)
        safe = [where(valid, shape, 1.0).astype(shape.dtype) for shape in shapes]
        return _Standard(x, safe, where(valid, scale, 1.0).astype(scale.dtype), valid)

    def _log_density(self, s: _Standard) -> Any:
        inside = self.support(s.x, *s.shapes) & s.valid
        if self.is_discrete:
            inside = inside & (np.floor(s.x) == s.x)
        at = where(inside, s.x, self.inside).astype(s.x.dtype)
        made = self.log_density(at, *s.shapes) - np.log(s.scale)
        return where(s.valid, where(inside, made, -math.inf), math.nan).astype(s.x.dtype)

    def _log_integral(
        self, s: _Standard, formula: Formula, logarithm: Formula | None, before: float
    ) -> Any:
        if logarithm is None:
            return np.log(self._integral(s, formula, before))
        inside = self.support(s.x, *s.shapes) & s.valid
        at = where(inside, s.x, self.inside).astype(s.x.dtype)
        is_one = (s.x > self.inside) == (before == 0)
        made = where(inside, logarithm(at, *s.shapes), where(is_one, 0.0, -math.inf))
        return where(s.valid, made, math.nan).astype(s.x.dtype)

    def _at_probability(self, s: _Standard) -> Any:
        assert self.quantile is not None, "ppf is a method where there is a formula"
        inside = (s.x >= 0) & (s.x <= 1) & s.valid
        at = where(inside, s.x, 0.5).astype(s.x.dtype)
        return where(inside, self.quantile(at, *s.shapes), math.nan).astype(s.x.dtype)

    def _integral(self, s: _Standard, formula: Formula, before: float) -> Any:
        x = np.floor(s.x) if self.is_discrete else s.x
        inside = self.support(x, *s.shapes) & s.valid
        at = where(inside, x, self.inside).astype(s.x.dtype)
        outside = where(x > self.inside, 1 - before, before)
        made = where(inside, formula(at, *s.shapes), outside)
        return where(s.valid, made, math.nan).astype(s.x.dtype)


class Frozen:
    """A distribution with known or traced parameters: ``norm(loc=m, scale=s).logpdf(x)``."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    @classmethod
    def of_scipy(cls, made: Any) -> Any:
        """The same as an object that SciPy made; that itself for distributions not here."""
        known = globals().get(made.dist.name) if made.dist.name in __all__ else None
        return made if known is None else cls(known, made.args, made.kwds)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.dist, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return method(*args, *self.args, **self.kwds, **kwargs)

        return call if callable(method) else method


class _Standard(NamedTuple):
    """A point in the standard form, the shape parameters, the scale, and where all are valid."""

    x: Any
    shapes: list[Any]
    scale: Any
    valid: Any


def _floats(function: str, values: Sequence[Any]) -> list[Tracer]:
    """Arrays of one floating type. Raises `ArgumentError` for other than real numbers."""
    arrays = [as_array(value) for value in values]
    odd = [a for a in arrays if a.element_type.is_complex]
    if odd:
        raise ArgumentError(f"{function}: takes real numbers, not {odd[0].dtype}")
    given = [operand(value) for value in values]
    strong = [o.type for o in given if not o.is_weak and o.element_type.is_floating]
    dtype = result_dtype(strong or [np.dtype(np.float64)])
    return [a.astype(dtype) for a in arrays]


def _define(
    like: Any,
    shapes: str,
    log_density: Formula,
    lower: Formula,
    upper: Formula,
    support: Support,
    **options: Any,
) -> Distribution:
    """The distribution that records SciPy's ``like``."""
    names = tuple(shapes.split())
    made = Distribution(like, like.name, names, log_density, lower, upper, support, **options)
    FUNCTIONS[like] = made
    return made


def _everywhere(x: Any, *shapes: Any) -> Any:
    return abs(x) < math.inf


def _from_zero(x: Any, *shapes: Any) -> Any:
    return (x >= 0) & (x < math.inf)


def _positive(*shapes: Any) -> Any:
    holds: Any = True
    for shape in shapes:
        holds = holds & (shape > 0)
    return holds


def _laplace_tail(x: Any) -> Any:
    """The logarithm of the probability beyond x."""
    below = np.log1p(-0.5 * np.exp(-abs(x)))
    return where(x > 0, -abs(x) - math.log(2), below)


_LOG_ROOT_2_PI = 0.5 * math.log(2 * math.pi)

norm = _define(
    scipy_stats.norm,
    "",
    lambda x: -x * x * 0.5 - _LOG_ROOT_2_PI,
    special.ndtr,
    lambda x: special.ndtr(-x),
    _everywhere,
    log_lower=special.log_ndtr,
    log_upper=lambda x: special.log_ndtr(-x),
    quantile=special.ndtri,
)
logistic = _define(
    scipy_stats.logistic,
    "",
    lambda x: -abs(x) - 2 * np.log1p(np.exp(-abs(x))),
    special.expit,
    lambda x: special.expit(-x),
    _everywhere,
    log_lower=special.log_expit,
    log_upper=lambda x: special.log_expit(-x),
    quantile=special.logit,
)
laplace = _define(
    scipy_stats.laplace,
    "",
    lambda x: -abs(x) - math.log(2),
    lambda x: where(x > 0, 1 - 0.5 * np.exp(-abs(x)), 0.5 * np.exp(-abs(x))),
    lambda x: where(x > 0, 0.5 * np.exp(-abs(x)), 1 - 0.5 * np.exp(-abs(x))),
    _everywhere,
    log_lower=lambda x: _laplace_tail(-x),
    log_upper=lambda x: _laplace_tail(x),
)
cauchy = _define(
    scipy_stats.cauchy,
    "",
    lambda x: -math.log(math.pi) - np.log1p(x * x),
    lambda x: np.arctan2(np.ones((), x.dtype), -x) / math.pi,
    lambda x: np.arctan2(np.ones((), x.dtype), x) / math.pi,
    _everywhere,
)
expon = _define(
    scipy_stats.expon,
    "",
    lambda x: -x,
    lambda x: -np.expm1(-x),
    lambda x: np.exp(-x),
    _from_zero,
    log_lower=lambda x: where(x > math.log(2), np.log1p(-np.exp(-x)), np.log(-np.expm1(-x))),
    log_upper=lambda x: -x,
    quantile=lambda p: -np.log1p(-p),
)
uniform = _define(
    scipy_stats.uniform,
    "",
    lambda x: x * 0,
    lambda x: x,
    lambda x: 1 - x,
    lambda x: (x >= 0) & (x <= 1),
    quantile=lambda p: p,
)
gamma = _define(
    scipy_stats.gamma,
    "a",
    lambda x, a: special.xlogy(a - 1, x) - x - special.gammaln(a),
    lambda x, a: special.gammainc(a, x),
    lambda x, a: special.gammaincc(a, x),
    _from_zero,
    valid=_positive,
)
chi2 = _define(
    scipy_stats.chi2,
    "df",
    lambda x, df: (
        special.xlogy(df * 0.5 - 1, x)
        - x * 0.5
        - special.gammaln(df * 0.5)
        - df * (0.5 * math.log(2))
    ),
    lambda x, df: special.gammainc(df * 0.5, x * 0.5),
    lambda x, df: special.gammaincc(df * 0.5, x * 0.5),
    _from_zero,
    valid=_positive,
)
beta = _define(
    scipy_stats.beta,
    "a b",
    lambda x, a, b: special.xlog1py(b - 1, -x) + special.xlogy(a - 1, x) - special.betaln(a, b),
    lambda x, a, b: special.betainc(a, b, x),
    lambda x, a, b: special.betainc(b, a, 1 - x),
    lambda x, a, b: (x >= 0) & (x <= 1),
    valid=_positive,
)


def _t_tail(x: Any, df: Any) -> Any:
    """The probability beyond |x|, on both sides; the normal distribution's for an infinite df."""
    finite = where(df < math.inf, df, 1.0).astype(df.dtype)
    tail = special.betainc(finite * 0.5, 0.5, finite / (finite + x * x))
    return where(df < math.inf, tail, 2 * special.ndtr(-abs(x)))


def _t_log_density(x: Any, df: Any) -> Any:
    finite = where(df < math.inf, df, 1.0).astype(df.dtype)
    made = (
        special.gammaln((finite + 1) * 0.5)
        - special.gammaln(finite * 0.5)
        - 0.5 * np.log(finite * math.pi)
        - (finite + 1) * 0.5 * np.log1p(x * x / finite)
    )
    return where(df < math.inf, made, -x * x * 0.5 - _LOG_ROOT_2_PI)


t = _define(
    scipy_stats.t,
    "df",
    _t_log_density,
    lambda x, df: where(x > 0, 1 - 0.5 * _t_tail(x, df), 0.5 * _t_tail(x, df)),
    lambda x, df: where(x > 0, 0.5 * _t_tail(x, df), 1 - 0.5 * _t_tail(x, df)),
    _everywhere,
    valid=_positive,
)
for _made in (scipy_stats.norm(), scipy_stats.poisson(1)):
    FUNCTIONS[type(_made)] = Frozen
poisson = _define(
    scipy_stats.poisson,
    "mu",
    lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1) - mu,
    lambda k, mu: special.gammaincc(k + 1, mu),
    lambda k, mu: special.gammainc(k + 1, mu),
    _from_zero,
    valid=lambda mu: mu >= 0,
    inside=0.0,
    is_discrete=True,
)


def __dir__() -> list[str]:
    return __all__
