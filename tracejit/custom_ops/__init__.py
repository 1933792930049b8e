"""Ops that users define: an interface, kernels, a derivative, documentation.

    zero_out = (
        register_op("ZeroOut")
        .attr("T: {float, int32}")
        .input("to_zero: T")
        .output("zeroed: T")
        .set_shape_fn(unchanged_shape)
    )

    @kernel("ZeroOut", device="CPU")
    def _(to_zero):
        zeroed = np.zeros_like(to_zero)
        zeroed.flat[:1] = to_zero.flat[:1]
        return zeroed

The op is a function of arrays, outside `jit` and `grad` and inside. In a graph it is a custom call
to its name, with its attributes as configuration, so that HLO text keeps it.
"""

from __future__ import annotations

from tracejit.custom_ops.builder import DefinitionBuilder, define_op
from tracejit.custom_ops.checking import opcheck
from tracejit.custom_ops.compatibility import Compatibility, compatibility
from tracejit.custom_ops.definition import Argument, Attr, Definition
from tracejit.custom_ops.gradients import Operation
from tracejit.custom_ops.kernels import Kernel, OpKernelConstruction, OpKernelContext
from tracejit.custom_ops.op import Op
from tracejit.custom_ops.registry import (
    batching,
    get_op,
    gradient,
    kernel,
    kernel_labels,
    load_op_library,
    not_differentiable,
    register_op,
    unregister_op,
)
from tracejit.custom_ops.sessions import Session, current_session
from tracejit.custom_ops.shape_inference import (
    InferenceContext,
    merged_shape,
    scalar_shape,
    unchanged_shape,
)
from tracejit.custom_ops.sharding import require, shard
from tracejit.errors import InvalidArgumentError

__all__ = [
    "Argument",
    "Attr",
    "Compatibility",
    "Definition",
    "DefinitionBuilder",
    "InferenceContext",
    "InvalidArgumentError",
    "Kernel",
    "Op",
    "OpKernelConstruction",
    "OpKernelContext",
    "Operation",
    "Session",
    "batching",
    "compatibility",
    "current_session",
    "define_op",
    "get_op",
    "gradient",
    "kernel",
    "kernel_labels",
    "load_op_library",
    "merged_shape",
    "not_differentiable",
    "opcheck",
    "register_op",
    "require",
    "scalar_shape",
    "shard",
    "unchanged_shape",
    "unregister_op",
]


def __dir__() -> list[str]:
    return __all__
