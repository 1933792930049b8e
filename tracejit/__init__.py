"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit import errors, hlo, shapes, tree
from tracejit.api import compile, interpret
from tracejit.loading import on_first_use
from tracejit.targets import register_custom_call, unregister_custom_call
from tracejit.trace.table import implemented_in
from tracejit.transforms.jit import jit

if TYPE_CHECKING:
    from tracejit import builder, custom_ops, debug, lax, nn, numpy, optim, random, scipy
    from tracejit.callbacks import pure_callback
    from tracejit.queues import Queue, feeds, infeed, outfeed
    from tracejit.statements import autograph
    from tracejit.transforms.check_grads import check_grads
    from tracejit.transforms.checkpoint import checkpoint, checkpoint_policies, remat
    from tracejit.transforms.custom import custom_jvp, custom_vjp
    from tracejit.transforms.forward import jvp, linear_transpose, linearize
    from tracejit.transforms.gradient import grad, value_and_grad, vjp
    from tracejit.transforms.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
    from tracejit.transforms.of_module import gradient_of
    from tracejit.transforms.stop_gradient import stop_gradient
    from tracejit.transforms.vmap import vmap
    from tracejit.transforms.why_zero import why_zero

__all__ = [
    "Queue",
    "autograph",
    "builder",
    "check_grads",
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
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "nn",
    "numpy",
    "optim",
    "outfeed",
    "pure_callback",
    "random",
    "register_custom_call",
    "remat",
    "scipy",
    "shapes",
    "stop_gradient",
    "tree",
    "unregister_custom_call",
    "value_and_grad",
    "vjp",
    "vmap",
    "why_zero",
]

_MEMBERS = {
    "tracejit.callbacks": ("pure_callback",),
    "tracejit.queues": (
        "Queue",
        "feeds",
        "infeed",
        "outfeed",
    ),
    "tracejit.statements": ("autograph",),
    "tracejit.transforms.check_grads": ("check_grads",),
    "tracejit.transforms.checkpoint": (
        "checkpoint",
        "checkpoint_policies",
        "remat",
    ),
    "tracejit.transforms.custom": (
        "custom_jvp",
        "custom_vjp",
    ),
    "tracejit.transforms.forward": (
        "jvp",
        "linear_transpose",
        "linearize",
    ),
    "tracejit.transforms.gradient": (
        "grad",
        "value_and_grad",
        "vjp",
    ),
    "tracejit.transforms.jacobian": (
        "hessian",
        "hvp",
        "jacfwd",
        "jacobian",
        "jacrev",
    ),
    "tracejit.transforms.of_module": ("gradient_of",),
    "tracejit.transforms.stop_gradient": ("stop_gradient",),
    "tracejit.transforms.vmap": ("vmap",),
    "tracejit.transforms.why_zero": ("why_zero",),
}
__getattr__ = on_first_use(
    __name__,
    ("builder", "custom_ops", "debug", "lax", "nn", "numpy", "optim", "random", "scipy"),
    {name: module for module, names in _MEMBERS.items() for name in names},
)
implemented_in("tracejit.numpy", "numpy")
implemented_in("tracejit.numpy.fft", "numpy.fft")
implemented_in("tracejit.numpy.linalg", "numpy.linalg")
implemented_in("tracejit.numpy.mathematics", "math")
implemented_in("tracejit.scipy.special", "scipy.special")
