"""Functions from functions to functions: jit, grad, value_and_grad, vjp, stop_gradient."""

from __future__ import annotations

from tracejit.transforms.gradient import grad, value_and_grad, vjp
from tracejit.transforms.jit import JitFunction, jit

__all__ = ["JitFunction", "grad", "jit", "value_and_grad", "vjp"]
