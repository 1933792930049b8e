"""Functions from functions to functions: jit, grad, vmap and their kin."""

from __future__ import annotations

from tracejit.transforms.forward import jvp, linear_transpose, linearize
from tracejit.transforms.gradient import grad, value_and_grad, vjp
from tracejit.transforms.jacobian import hessian, hvp, jacfwd, jacrev
from tracejit.transforms.jit import JitFunction, jit
from tracejit.transforms.stop_gradient import stop_gradient
from tracejit.transforms.vmap import vmap

__all__ = [
    "JitFunction",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]
