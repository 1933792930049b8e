"""Polynomials of least maximal error: where the coefficients of vector mathematics come from.

fit(Target(exp_tail, weight, -0.35, 0.35), count=6, bits=24)     # coefficients, lowest power first

Remez's exchange algorithm finds the best polynomial with exact coefficients; then they are rounded
to floats one after the other from the lowest power on, and the rest fitted again to what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath

Real = Any


@dataclass(frozen=True)
class Target:
    """A function to approximate on [low, high], and by what each error is multiplied."""

    function: Callable[[Real], Real]
    weight: Callable[[Real], Real]
    low: Real
    high: Real

    def error(self, coefficients: Sequence[Real], points: int = 500) -> float:
        """The largest weighted error on evenly spread points."""
        low, high = mpmath.mpf(self.low), mpmath.mpf(self.high)
        places = [low + (high - low) * i / points for i in range(points + 1)]
        return float(max(abs(self.error_at(coefficients, x)) for x in places))

    def error_at(self, coefficients: Sequence[Real], x: Real) -> Real:
        return (self.function(x) - value(coefficients, x)) * self.weight(x)


def value(coefficients: Sequence[Real], x: Real) -> Real:
    """``c[0] + c[1] x + …``, exactly."""
    total = mpmath.mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def fit(target: Target, count: int, bits: int) -> list[float]:
    """``count`` coefficients, each a float of ``bits`` significant bits."""
    with mpmath.workdps(60):
        exact = _remez(target, count)
        fitted: list[Real] = []
        rest = list(exact)
        while rest:
            fitted.append(_rounded(rest[0], bits))
            rest = _least_squares(target, fitted, count - len(fitted))
        simple = [_rounded(c, bits) for c in exact]
        return [float(c) for c in min(fitted, simple, key=target.error)]


def _rounded(x: Real, bits: int) -> Real:
    mantissa, exponent = mpmath.frexp(x)
    return mpmath.ldexp(mpmath.nint(mpmath.ldexp(mantissa, bits)), int(exponent) - bits)


def _chebyshev(low: Real, high: Real, count: int) -> list[Real]:
    """Points that crowd at the ends, from low to high."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [middle - half * mpmath.cos(mpmath.pi * i / (count - 1)) for i in range(count)]


def _remez(target: Target, count: int) -> list[Real]:
    low, high = mpmath.mpf(target.low), mpmath.mpf(target.high)
    grid = _chebyshev(low, high, 24 * (count + 2))
    # At a zero of the weight nothing can be told apart.
    nodes = _chebyshev(low + (high - low) / 1000, high, count + 1)
    for _ in range(20):
        coefficients, level = _levelled(target, nodes, count)
        errors = [target.error_at(coefficients, x) for x in grid]
        nodes = _extremes(grid, errors, count + 1)
        if max(abs(e) for e in errors) < abs(level) * mpmath.mpf("1.002"):
            break
    return coefficients


def _levelled(target: Target, nodes: Sequence[Real], count: int) -> tuple[list[Real], Real]:
    """The polynomial whose errors at ``nodes`` have one size and alternating signs."""
    matrix, right = mpmath.matrix(count + 1, count + 1), mpmath.matrix(count + 1, 1)
    for row, x in enumerate(nodes):
        weight = target.weight(x)
        for power in range(count):
            matrix[row, power] = x**power * weight
        matrix[row, count] = (-1) ** row
        right[row] = target.function(x) * weight
    solution = mpmath.lu_solve(matrix, right)
    return [solution[i] for i in range(count)], solution[count]


def _extremes(grid: Sequence[Real], errors: Sequence[Real], count: int) -> list[Real]:
    """The place of the largest error in each run of one sign, the outermost small ones left out."""
    runs: list[list[int]] = [[0]]
    for i in range(1, len(grid)):
        if (errors[i] > 0) == (errors[runs[-1][-1]] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    places = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    while len(places) > count:
        places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
    assert len(places) == count, "the error must change its sign often enough"
    return [grid[i] for i in places]


def _least_squares(target: Target, fixed: Sequence[Real], count: int) -> list[Real]:
    """The ``count`` coefficients after ``fixed`` of least squared error at Chebyshev points."""
    if count == 0:
        return []
    nodes = _chebyshev(mpmath.mpf(target.low), mpmath.mpf(target.high), 6 * count + 8)
    rows = []
    for x in nodes:
        weight = target.weight(x)
        powers = [x ** (len(fixed) + i) * weight for i in range(count)]
        rows.append((powers, (target.function(x) - value(fixed, x)) * weight))
    matrix, right = mpmath.matrix(count, count), mpmath.matrix(count, 1)
    for i in range(count):
        for j in range(count):
            matrix[i, j] = mpmath.fsum(powers[i] * powers[j] for powers, _ in rows)
        right[i] = mpmath.fsum(powers[i] * y for powers, y in rows)
    solution = mpmath.lu_solve(matrix, right)
    return [solution[i] for i in range(count)]
