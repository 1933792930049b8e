"""Functions from functions to functions: jit, grad, vmap and their kin."""

from __future__ import annotations

from tracejit.transforms.checkpoint import checkpoint, checkpoint_policies, remat
from tracejit.transforms.custom import custom_jvp, custom_vjp
from tracejit.transforms.forward import jvp, linear_transpose, linearize
from tracejit.transforms.gradient import grad, value_and_grad, vjp
from tracejit.transforms.jacobian import hessian, hvp, jacfwd, jacrev
from tracejit.transforms.jit import JitFunction, jit
from tracejit.transforms.of_module import gradient_of
from tracejit.transforms.stop_gradient import stop_gradient
from tracejit.transforms.vmap import vmap

__all__ = [
    "JitFunction",
    "checkpoint",
    "checkpoint_policies",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "gradient_of",
    "hessian",
    "hvp",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "remat",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]
