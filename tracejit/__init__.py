"""Trace NumPy-style Python into an XLA graph, differentiate the graph, compile it with TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracejit import errors, hlo, shapes, tree
from tracejit.api import compile, interpret
from tracejit.loading import adds_names, on_first_use, supply
from tracejit.targets import register_custom_call, unregister_custom_call
from tracejit.trace.table import implemented_in
from tracejit.transforms.jit.jit import jit

if TYPE_CHECKING:
    from tracejit import (
        builder,
        config,
        custom_ops,
        debug,
        distributed,
        ffi,
        flatten_util,
        interop,
        lax,
        nn,
        numpy,
        ops,
        optim,
        random,
        scipy,
        tree_util,
        typing,
    )
    from tracejit.callbacks import pure_callback
    from tracejit.display import show
    from tracejit.display.magic import load_ipython_extension as load_ipython_extension
    from tracejit.interop import from_jax, from_stablehlo
    from tracejit.lax.stopping import stop_gradient
    from tracejit.queues import Queue, feeds, infeed, outfeed
    from tracejit.sharding import (
        Mesh,
        NamedSharding,
        P,
        PartitionSpec,
        devices,
        load_checkpoint,
        make_array_from_process_local_data,
        make_mesh,
        pmap,
        save_checkpoint,
        shard_map,
        visualize_sharding,
    )
    from tracejit.sharding.counting import (
        default_backend,
        device_count,
        local_device_count,
        local_devices,
        process_count,
        process_index,
    )
    from tracejit.transforms.abstract import eval_shape, make_graph, make_jaxpr
    from tracejit.transforms.autograph import autograph
    from tracejit.transforms.check_grads import check_grads
    from tracejit.transforms.checkpoint import checkpoint, checkpoint_policies, remat
    from tracejit.transforms.custom import custom_jvp, custom_vjp
    from tracejit.transforms.disabling import disable_jit
    from tracejit.transforms.forward import jvp, linear_transpose, linearize
    from tracejit.transforms.gradient import grad, value_and_grad, vjp
    from tracejit.transforms.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
    from tracejit.transforms.module_gradient import gradient_of
    from tracejit.transforms.porting import (
        Array,
        block_until_ready,
        device_get,
        device_put,
        named_call,
        named_scope,
    )
    from tracejit.transforms.shape_structs import ShapeDtypeStruct
    from tracejit.transforms.vmap import vmap
    from tracejit.transforms.why_zero import why_zero

__version__ = "0.1.0"

__all__ = [
    "Array",
    "Mesh",
    "NamedSharding",
    "P",
    "PartitionSpec",
    "Queue",
    "ShapeDtypeStruct",
    "__version__",
    "autograph",
    "block_until_ready",
    "builder",
    "check_grads",
    "checkpoint",
    "checkpoint_policies",
    "compile",
    "config",
    "custom_jvp",
    "custom_ops",
    "custom_vjp",
    "debug",
    "default_backend",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "errors",
    "eval_shape",
    "feeds",
    "ffi",
    "flatten_util",
    "from_jax",
    "from_stablehlo",
    "grad",
    "gradient_of",
    "hessian",
    "hlo",
    "hvp",
    "infeed",
    "interop",
    "interpret",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "load_checkpoint",
    "local_device_count",
    "local_devices",
    "make_array_from_process_local_data",
    "make_graph",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "ops",
    "optim",
    "outfeed",
    "pmap",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "register_custom_call",
    "remat",
    "save_checkpoint",
    "scipy",
    "shapes",
    "shard_map",
    "show",
    "stop_gradient",
    "tree",
    "tree_util",
    "typing",
    "unregister_custom_call",
    "value_and_grad",
    "visualize_sharding",
    "vjp",
    "vmap",
    "why_zero",
]

supply(
    array_namespace="tracejit.numpy",
    display="tracejit.display",
    factorizations="tracejit.numpy.factorization_gradients",
    gradients="tracejit.transforms.gradient",
    lapack_calls="tracejit.numpy.lapack_calls",
    methods="tracejit.transforms.autograph.methods",
    sparse_calls="tracejit.numpy.sparse_calls",
    traversal="tracejit.traversal",
    vectorization="tracejit.transforms.vmap",
)

_MEMBERS = {
    "tracejit.callbacks": ("pure_callback",),
    "tracejit.display": ("show",),
    "tracejit.display.magic": ("load_ipython_extension",),
    "tracejit.queues": (
        "Queue",
        "feeds",
        "infeed",
        "outfeed",
    ),
    "tracejit.sharding": (
        "Mesh",
        "NamedSharding",
        "P",
        "PartitionSpec",
        "devices",
        "load_checkpoint",
        "make_array_from_process_local_data",
        "make_mesh",
        "pmap",
        "save_checkpoint",
        "shard_map",
        "visualize_sharding",
    ),
    "tracejit.sharding.counting": (
        "default_backend",
        "device_count",
        "local_device_count",
        "local_devices",
        "process_count",
        "process_index",
    ),
    "tracejit.transforms.autograph": ("autograph",),
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
    "tracejit.transforms.module_gradient": ("gradient_of",),
    "tracejit.lax.stopping": ("stop_gradient",),
    "tracejit.interop": (
        "from_jax",
        "from_stablehlo",
    ),
    "tracejit.transforms.abstract": (
        "eval_shape",
        "make_graph",
        "make_jaxpr",
    ),
    "tracejit.transforms.disabling": ("disable_jit",),
    "tracejit.transforms.porting": (
        "Array",
        "block_until_ready",
        "device_get",
        "device_put",
        "named_call",
        "named_scope",
    ),
    "tracejit.transforms.shape_structs": ("ShapeDtypeStruct",),
    "tracejit.transforms.vmap": ("vmap",),
    "tracejit.transforms.why_zero": ("why_zero",),
}
_SUBMODULES = (
    "builder",
    "config",
    "custom_ops",
    "debug",
    "distributed",
    "ffi",
    "flatten_util",
    "interop",
    "lax",
    "nn",
    "numpy",
    "ops",
    "optim",
    "random",
    "scipy",
    "tree_util",
    "typing",
)
__getattr__ = on_first_use(
    __name__, _SUBMODULES, {name: module for module, names in _MEMBERS.items() for name in names}
)


def __dir__() -> list[str]:
    return __all__


adds_names(
    "tracejit.ops",
    {
        name: "tracejit.numpy.segments"
        for name in ("segment_max", "segment_min", "segment_prod", "segment_sum")
    },
)
implemented_in("tracejit.numpy", "numpy")
implemented_in("tracejit.numpy.fft", "numpy.fft")
implemented_in("tracejit.numpy.linalg", "numpy.linalg")
implemented_in("tracejit.numpy.mathematics", "math")
for _part in ("fft", "integrate", "interpolate", "linalg", "ndimage", "signal", "special", "stats"):
    implemented_in(f"tracejit.scipy.{_part}", f"scipy.{_part}")
