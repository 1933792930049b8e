"""A module of a user's, with functions that traced functions call."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

calls = 0


def normalised(x: Any) -> Any:
    """Writes to an array that it makes."""
    out = np.zeros(2)
    out[0] = np.sum(x)
    out[1] = math.sqrt(out[0])
    return out


def count() -> None:
    """Counts how often it is called."""
    global calls
    calls += 1


def now() -> float:
    """The time, which changes."""
    return time.perf_counter()
