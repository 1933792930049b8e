"""Rewrites a convolution over a dilated base as several convolutions over the base itself.

Between the inputs of a dilated axis there is nothing to multiply. Results whose positions are
equal modulo a period meet their inputs with the same taps of the window; each such phase is a
convolution of its own, with those taps alone. Phases of equal sizes are one kernel, in a loop.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracejit.backends.tvm.cpu.kernels.conv.correlation import Correlation, SpatialAxis
from tracejit.backends.tvm.cpu.kernels.tiling import ceil_div
from tracejit.backends.tvm.ir.tir import Expr, Stmt, i32, tirx

_MOST_PHASES = 8
"""The most phases: more take long to compile; then zeros are multiplied instead."""


@dataclass(frozen=True)
class _Phase:
    """One phase of an axis: result q is result ``first + q * period`` of the whole, tap t is tap
    ``first_tap + t * tap_step``."""

    axis: SpatialAxis
    first: int | Expr
    period: int
    first_tap: int | Expr
    tap_step: int


@dataclass(frozen=True)
class Phases:
    """``count`` convolutions of equal sizes: ``at(number)`` is one of them."""

    count: int
    at: Callable[[Expr], Correlation]


def phases(problem: Correlation) -> list[Phases]:
    """Convolutions that together store all of the problem's results."""
    periods = [
        axis.base_dilation // math.gcd(axis.base_dilation, axis.stride) for axis in problem.axes
    ]
    if math.prod(periods) > _MOST_PHASES:
        return [Phases(1, lambda number: problem)]
    options = [_alike(_phases_of(axis)) for axis in problem.axes]
    return [_together(problem, chosen) for chosen in itertools.product(*options)]


def _alike(found: Iterable[_Phase]) -> list[list[_Phase]]:
    """Groups the phases of an axis that are equal up to their offsets."""
    groups: dict[SpatialAxis, list[_Phase]] = {}
    for phase in found:
        groups.setdefault(replace(phase.axis, low=0), []).append(phase)
    return list(groups.values())


def _together(problem: Correlation, groups: Sequence[Sequence[_Phase]]) -> Phases:
    def at(number: Expr) -> Correlation:
        chosen: list[_Phase] = []
        for group in reversed(groups):
            chosen.insert(0, _one_of(group, number % len(group)))
            number = number // len(group)
        return _phase(problem, chosen)

    return Phases(math.prod(map(len, groups)), at)


def _one_of(group: Sequence[_Phase], number: Expr) -> _Phase:
    first = group[0]
    if len(group) == 1:
        return first
    return replace(
        first,
        axis=replace(first.axis, low=_chosen([phase.axis.low for phase in group], number)),
        first=_chosen([phase.first for phase in group], number),
        first_tap=_chosen([phase.first_tap for phase in group], number),
    )


def _chosen(values: Sequence[int], number: Expr) -> int | Expr:
    """``values[number]``."""
    first, *others = values
    step = others[0] - first
    if all(value == first + i * step for i, value in enumerate(values)):
        return first + number * step if step else first
    found: Expr = i32(values[-1])
    for index, value in reversed(list(enumerate(values[:-1]))):
        found = tirx.Select(number == index, i32(value), found)
    return found


def _phases_of(axis: SpatialAxis) -> Iterator[_Phase]:
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
            SpatialAxis(
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


def _phase(problem: Correlation, chosen: Sequence[_Phase]) -> Correlation:
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
