"""Types for annotations, by the names of `jax.typing`."""

from __future__ import annotations

from numpy.typing import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]


def __dir__() -> list[str]:
    return __all__
