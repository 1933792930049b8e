"""Learning rates as functions of the step: step -> rate, by NumPy, so that they are traced too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError
from tracejit.tracebacks import names_misuse

Schedule = Callable[[Any], Any]


def constant_schedule(value: float) -> Schedule:
    """Always ``value``.

    Raises `ArgumentError` for what is no number.

    >>> tj.optim.constant_schedule(0.1)(100)
    np.float64(0.1)
    """
    return lambda step: np.multiply(step, 0.0) + value


def linear_schedule(init_value: float, end_value: float, transition_steps: int) -> Schedule:
    """Along a line from ``init_value`` to ``end_value``, which it keeps.

    Raises `AttributeValueError` for an option or a size out of range and `ConcretizationError`
    for an option that is unknown while tracing.

    >>> tj.optim.linear_schedule(1.0, 0.0, 10)(4)
    np.float64(0.6)
    """
    _require_positive("linear_schedule", "transition_steps", transition_steps)

    def schedule(step: Any) -> Any:
        progress = np.clip(step / transition_steps, 0.0, 1.0)
        return init_value + (end_value - init_value) * progress

    return schedule


def cosine_decay_schedule(init_value: float, decay_steps: int, alpha: float = 0.0) -> Schedule:
    """Along half a cosine from ``init_value`` to ``alpha`` times it, which it keeps.

    Raises `AttributeValueError` for an option or a size out of range and `ConcretizationError`
    for an option that is unknown while tracing.

    >>> tj.optim.cosine_decay_schedule(1.0, 10)(5)
    np.float64(0.5)
    """
    _require_positive("cosine_decay_schedule", "decay_steps", decay_steps)

    def schedule(step: Any) -> Any:
        progress = np.clip(step / decay_steps, 0.0, 1.0)
        return init_value * ((1 - alpha) * 0.5 * (1 + np.cos(np.pi * progress)) + alpha)

    return schedule


def exponential_decay(
    init_value: float,
    transition_steps: int,
    decay_rate: float,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """``init_value`` times ``decay_rate`` to the power step / transition_steps.

    With ``staircase`` the power is whole; ``end_value`` is where the decay stops.

    Raises `AttributeValueError` for an option or a size out of range and `ConcretizationError`
    for an option that is unknown while tracing.

    >>> tj.optim.exponential_decay(1.0, 10, 0.5)(10)
    0.5
    """
    _require_positive("exponential_decay", "transition_steps", transition_steps)

    def schedule(step: Any) -> Any:
        power = step / transition_steps
        value = init_value * decay_rate ** (np.floor(power) if staircase else power)
        if end_value is None:
            return value
        return np.maximum(value, end_value) if decay_rate < 1 else np.minimum(value, end_value)

    return schedule


def piecewise_constant_schedule(
    init_value: float, boundaries_and_scales: Mapping[int, float]
) -> Schedule:
    """``init_value``, multiplied by a scale from each boundary on.

    Raises `ArgumentError` for what is no number.

    >>> tj.optim.piecewise_constant_schedule(1.0, {5: 0.1})(7)
    np.float64(0.1)
    """

    def schedule(step: Any) -> Any:
        value = np.multiply(step, 0.0) + init_value
        for boundary, factor in boundaries_and_scales.items():
            value = value * np.where(step >= boundary, factor, 1.0)
        return value

    return schedule


@names_misuse
def warmup_cosine_decay_schedule(
    init_value: float,
    peak_value: float,
    warmup_steps: int,
    decay_steps: int,
    end_value: float = 0.0,
) -> Schedule:
    """A line from ``init_value`` up to ``peak_value``, then half a cosine down to ``end_value``.

    ``decay_steps`` counts both parts. Raises `AttributeValueError` unless it is more than
    ``warmup_steps``.

    >>> tj.optim.warmup_cosine_decay_schedule(0.0, 1.0, 5, 10)(2)
    array(0.4)
    """
    if decay_steps <= warmup_steps:
        raise AttributeValueError(
            f"warmup_cosine_decay_schedule: decay_steps is {decay_steps}, and must be more than "
            f"warmup_steps, {warmup_steps}"
        )
    up = linear_schedule(init_value, peak_value, warmup_steps) if warmup_steps else None
    alpha = end_value / peak_value if peak_value else 0.0
    down = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha)

    def schedule(step: Any) -> Any:
        falling = down(step - warmup_steps)
        return falling if up is None else np.where(step < warmup_steps, up(step), falling)

    return schedule


def _require_positive(function: str, name: str, value: Any) -> None:
    if isinstance(value, str) or value <= 0:
        raise AttributeValueError(f"{function}: {name} must be positive, not {value}")
