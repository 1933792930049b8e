"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""

from __future__ import annotations

from tracejit import errors, hlo, lax, nn, numpy, tree
from tracejit.api import compile, interpret
from tracejit.transforms import grad, jit, stop_gradient, value_and_grad, vjp

__all__ = [
    "compile",
    "errors",
    "grad",
    "hlo",
    "interpret",
    "jit",
    "lax",
    "nn",
    "numpy",
    "stop_gradient",
    "tree",
    "value_and_grad",
    "vjp",
]
