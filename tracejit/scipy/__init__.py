"""SciPy's functions on traced arrays: `special`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit.loading import on_first_use

if TYPE_CHECKING:
    from tracejit.scipy import special

__all__ = ["special"]

__getattr__ = on_first_use(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
