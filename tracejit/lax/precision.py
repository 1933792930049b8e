"""The precisions of products, by JAX's names: strings, which every function takes as well."""

from __future__ import annotations


class Precision:
    """``lax.dot(x, y, precision=lax.Precision.HIGHEST)``."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"
