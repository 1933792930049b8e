"""Nothing is timed before its results agree with those of the reference."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.records import Cell

# Who is believed when results differ: the first of these that has any.
REFERENCES = ("numpy", "jax", "torch", "tracejit")


def compare(row: dict[str, Cell], results: dict[str, list[np.ndarray]], tolerance: float) -> None:
    """Notes it in the cell when an engine's results differ from those of the reference."""
    answered = [name for name in REFERENCES if name in row and not row[name].error]
    for name in answered[1:]:
        row[name].error = difference(results[name], results[answered[0]], tolerance)


def difference(found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> str:
    """What differs, in one line; nothing when the results agree.

    Arrays agree when no element is off by more than ``tolerance`` times the greatest magnitude.
    """
    if len(found) != len(expected):
        return f"{len(found)} results instead of {len(expected)}"
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if ours.shape != theirs.shape:
            return f"result {index} has shape {ours.shape} instead of {theirs.shape}"
        wide = np.promote_types(ours.dtype, np.float64)
        scale = float(np.max(np.abs(theirs), initial=0.0))
        worst = float(np.max(np.abs(ours.astype(wide) - theirs), initial=0.0))
        if not worst <= tolerance * scale:
            return f"result {index} is off by {worst:.3g}, where magnitudes go up to {scale:.3g}"
    return ""
