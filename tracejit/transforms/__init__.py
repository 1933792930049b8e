"""Functions from functions to functions: jit, grad, value_and_grad, vjp, stop_gradient, vmap."""

from __future__ import annotations

from tracejit.transforms.gradient import grad, value_and_grad, vjp
from tracejit.transforms.jit import JitFunction, jit
from tracejit.transforms.stop_gradient import stop_gradient
from tracejit.transforms.vmap import vmap

__all__ = ["JitFunction", "grad", "jit", "stop_gradient", "value_and_grad", "vjp", "vmap"]
