"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit import errors, hlo, tree
from tracejit.api import compile, interpret
from tracejit.loading import on_first_use
from tracejit.trace.table import implemented_in
from tracejit.transforms import (
    checkpoint,
    checkpoint_policies,
    custom_jvp,
    custom_vjp,
    grad,
    gradient_of,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linear_transpose,
    linearize,
    remat,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)

if TYPE_CHECKING:
    from tracejit import builder, lax, nn, numpy, random, scipy

__all__ = [
    "builder",
    "checkpoint",
    "checkpoint_policies",
    "compile",
    "custom_jvp",
    "custom_vjp",
    "errors",
    "grad",
    "gradient_of",
    "hessian",
    "hlo",
    "hvp",
    "interpret",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "nn",
    "numpy",
    "random",
    "remat",
    "scipy",
    "stop_gradient",
    "tree",
    "value_and_grad",
    "vjp",
    "vmap",
]

__getattr__ = on_first_use(__name__, ("builder", "lax", "nn", "numpy", "random", "scipy"))
implemented_in("tracejit.numpy", "numpy", "math", "cmath")
implemented_in("tracejit.numpy.fft", "numpy.fft")
implemented_in("tracejit.scipy.special", "scipy.special")
implemented_in("tracejit.numpy.linalg", "numpy.linalg")
