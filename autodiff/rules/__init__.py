"""Every op's derivative; the families are imported here, so that the rule table is full."""

from __future__ import annotations

from tracejit.autodiff.rules import (
    comparison,
    constants,
    contraction,
    control,
    element_types,
    elementwise,
    elementwise_unary,
    indexing,
    layout,
    normalisation,
    reduction,
    windows,
)

__all__ = [
    "comparison",
    "constants",
    "contraction",
    "control",
    "element_types",
    "elementwise",
    "elementwise_unary",
    "indexing",
    "layout",
    "normalisation",
    "reduction",
    "windows",
]
