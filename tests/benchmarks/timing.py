"""Repeated calls, timed; and what is made of the times."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np

# One sample times as many calls as fill this, so that the clock's own cost does not count.
SAMPLE_SECONDS = 5e-4
# Samples taken even when a single one is longer than the time allowed.
LEAST_SAMPLES = 3


@dataclass(frozen=True)
class Times:
    """Seconds of one call: the median, and the 20th and 80th percentiles as its spread."""

    median: float
    low: float
    high: float
    samples: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def summarise(samples: Sequence[float]) -> Times:
    """The percentiles of at least one sample."""
    low, median, high = np.percentile(samples, [20, 50, 80])
    return Times(float(median), float(low), float(high), len(samples))


def once(call: Callable[..., Any], arguments: tuple[Any, ...], wait: Any = None) -> float:
    """Seconds of one call."""
    return many(call, arguments, wait, 1)


def many(call: Callable[..., Any], arguments: tuple[Any, ...], wait: Any, calls: int) -> float:
    """Seconds of one call, as the mean of ``calls`` in a row, each waited for."""
    if wait is None:
        start = perf_counter()
        for _ in range(calls):
            call(*arguments)
        return (perf_counter() - start) / calls
    start = perf_counter()
    for _ in range(calls):
        wait(call(*arguments))
    return (perf_counter() - start) / calls


def sample(
    call: Callable[..., Any], arguments: tuple[Any, ...], wait: Any, seconds: float
) -> list[float]:
    """Seconds of one call, over and over for about ``seconds``, the garbage collector off."""
    calls = max(1, round(SAMPLE_SECONDS / max(once(call, arguments, wait), 1e-9)))
    calls = max(1, round(calls * SAMPLE_SECONDS / (calls * many(call, arguments, wait, calls))))
    samples: list[float] = []
    end = perf_counter() + seconds
    gc.disable()
    try:
        while len(samples) < LEAST_SAMPLES or perf_counter() < end:
            samples.append(many(call, arguments, wait, calls))
    finally:
        gc.enable()
    return samples
