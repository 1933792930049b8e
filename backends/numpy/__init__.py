"""The reference interpreter; its families are imported here, so that its rule table is full."""

from __future__ import annotations

from tracejit.backends.numpy import (
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
from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction, interpret

__all__ = [
    "comparison",
    "constants",
    "contraction",
    "control",
    "element_types",
    "elementwise",
    "elementwise_unary",
    "evaluate",
    "evaluate_instruction",
    "indexing",
    "interpret",
    "layout",
    "normalisation",
    "reduction",
    "windows",
]
