"""The rules that turn instructions into TIR, one module per family."""

from tracejit.backends.tvm.emit import (
    comparison,
    constants,
    contraction,
    control,
    custom,
    element_types,
    elementwise,
    elementwise_unary,
    grouped,
    indexing,
    layout,
    linalg,
    random,
    reduction,
    spectra,
    windows,
)
from tracejit.backends.tvm.roots import rooted
from tracejit.backends.tvm.scope import indexed, pointwise

__all__ = [
    "comparison",
    "constants",
    "contraction",
    "control",
    "custom",
    "element_types",
    "elementwise",
    "elementwise_unary",
    "grouped",
    "indexed",
    "indexing",
    "layout",
    "linalg",
    "pointwise",
    "random",
    "reduction",
    "rooted",
    "spectra",
    "windows",
]
