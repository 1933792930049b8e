"""A convolution over a dilated base as convolutions over the base itself.

Between the inputs of a dilated axis there is nothing to multiply. Results whose places are equal
modulo a period meet their inputs with the same taps of the window; each such phase is a
convolution of its own, with those taps alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracejit.backends.tvm.kernels.correlation import Axis, Correlation
from tracejit.backends.tvm.kernels.tiling import ceil_div
from tracejit.backends.tvm.tir import Expr, Stmt

_MOST_PHASES = 8
"""More phases would take long to compile; then zeros are multiplied instead."""


@dataclass(frozen=True)
class _Phase:
    """One phase of an axis: result q is result ``first + q * period`` of the whole, tap t is tap
    ``first_tap + t * tap_step``."""

    axis: Axis
    first: int
    period: int
    first_tap: int
    tap_step: int


def phases(problem: Correlation) -> list[Correlation]:
    """Convolutions that together store all of the problem's results."""
    periods = [
        axis.base_dilation // math.gcd(axis.base_dilation, axis.stride) for axis in problem.axes
    ]
    if math.prod(periods) > _MOST_PHASES:
        return [problem]
    options = [list(_phases_of(axis)) for axis in problem.axes]
    return [_phase(problem, chosen) for chosen in itertools.product(*options)]


def _phases_of(axis: Axis) -> Iterator[_Phase]:
    spread = axis.base_dilation
    period = spread // math.gcd(spread, axis.stride)
    tap_step = spread // math.gcd(spread, axis.dilation)
    for first in range(min(period, axis.result)):
        # Result first + q * period and tap t look at position
        # (first + q * period) * stride + t * dilation - low, an input if spread divides it.
        place = first * axis.stride - axis.low
        first_tap = next(
            (
                t
                for t in range(min(tap_step, axis.window))
                if (place + t * axis.dilation) % spread == 0
            ),
            axis.window,
        )
        yield _Phase(
            Axis(
                input=axis.input,
                result=ceil_div(axis.result - first, period),
                window=ceil_div(axis.window - first_tap, tap_step),
                stride=axis.stride * period // spread,
                low=-((place + first_tap * axis.dilation) // spread),
                dilation=axis.dilation * tap_step // spread,
            ),
            first,
            period,
            first_tap,
            tap_step,
        )


def _phase(problem: Correlation, chosen: tuple[_Phase, ...]) -> Correlation:
    def right(o: Expr, c: Expr, *taps: Expr) -> Any:
        there = [p.first_tap + t * p.tap_step for p, t in zip(chosen, taps, strict=True)]
        return problem.right(o, c, *there)

    def store(n: Expr, o: Expr, *position_and_value: Any) -> Stmt:
        *position, value = position_and_value
        there = [p.first + x * p.period for p, x in zip(chosen, position, strict=True)]
        return problem.store(n, o, *there, value)

    if all(p.period == 1 and p.tap_step == 1 for p in chosen):
        return problem
    return problem.with_(
        axes=tuple(p.axis for p in chosen),
        right=right,
        store=store,
        result_access=problem.result_access.scaled(1, 1, *(p.period for p in chosen)),
    )
