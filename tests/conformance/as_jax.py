"""Programs written for JAX, with tracejit in JAX's place: `import jax` finds tracejit's names.

    install()          before the program is imported

A name that tracejit does not have is an AttributeError, as a misspelt one would be.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import tracejit as tj

_SAME = (
    *("checkpoint", "custom_jvp", "custom_vjp", "grad", "hessian", "jacfwd", "jacrev", "jit"),
    *("jvp", "lax", "linearize", "nn", "numpy", "random", "value_and_grad", "vjp", "vmap"),
)


class _Config:
    """`jax.config`: element types are NumPy's here whatever it says."""

    def update(self, name: str, value: Any) -> None:
        """Nothing."""


def install() -> None:
    """Puts a module named jax into `sys.modules`, for the rest of the process."""
    jax = ModuleType("jax")
    for name in _SAME:
        setattr(jax, name, getattr(tj, name))
    jax.config = _Config()  # type: ignore[attr-defined]
    sys.modules["jax"] = jax
    for name in ("lax", "nn", "numpy", "random"):
        sys.modules[f"jax.{name}"] = getattr(tj, name)
