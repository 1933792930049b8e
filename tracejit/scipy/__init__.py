"""SciPy's functions on traced arrays, by SciPy's names.

In a traced function ``scipy.linalg.solve(a, b)`` is recorded as `tracejit.scipy.linalg.solve`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.loading import on_first_use

if TYPE_CHECKING:
    from tracejit.scipy import (
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        signal,
        special,
        stats,
    )

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "signal",
    "special",
    "stats",
]

__getattr__ = on_first_use(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
