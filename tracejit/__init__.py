"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit import debug, errors, hlo, tree
from tracejit.api import compile, interpret
from tracejit.callbacks import pure_callback
from tracejit.loading import on_first_use
from tracejit.queues import Queue, feeds, infeed, outfeed
from tracejit.targets import register_custom_call, unregister_custom_call
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
    from tracejit import builder, custom_ops, lax, nn, numpy, random, scipy

__all__ = [
    "Queue",
    "builder",
    "checkpoint",
    "checkpoint_policies",
    "compile",
    "custom_jvp",
    "custom_ops",
    "custom_vjp",
    "debug",
    "errors",
    "feeds",
    "grad",
    "gradient_of",
    "hessian",
    "hlo",
    "hvp",
    "infeed",
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
    "outfeed",
    "pure_callback",
    "random",
    "register_custom_call",
    "remat",
    "scipy",
    "stop_gradient",
    "tree",
    "unregister_custom_call",
    "value_and_grad",
    "vjp",
    "vmap",
]

__getattr__ = on_first_use(
    __name__, ("builder", "custom_ops", "lax", "nn", "numpy", "random", "scipy")
)
implemented_in("tracejit.numpy", "numpy", "math", "cmath")
implemented_in("tracejit.numpy.fft", "numpy.fft")
implemented_in("tracejit.scipy.special", "scipy.special")
implemented_in("tracejit.numpy.linalg", "numpy.linalg")
