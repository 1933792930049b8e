"""The ops: one block each, with its shape rule and the function that builds it.

The families are imported here, so that the op table is complete.
"""

from __future__ import annotations

from tracejit.ops.constants import (
    constant,
    elements_of,
    get_tuple_element,
    iota,
    parameter,
    tuple_,
)
from tracejit.ops.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
)
from tracejit.ops.layout import (
    broadcast,
    broadcast_in_dim,
    collapse,
    concat_in_dim,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    full,
    full_like,
    pad,
    pad_in_dim,
    reshape,
    rev,
    scalar_like,
    slice_,
    slice_in_dim,
    transpose,
)

__all__ = [
    "GatherDimensionNumbers",
    "ScatterDimensionNumbers",
    "broadcast",
    "broadcast_in_dim",
    "collapse",
    "concat_in_dim",
    "concatenate",
    "constant",
    "dynamic_slice",
    "dynamic_update_slice",
    "elements_of",
    "full",
    "full_like",
    "gather",
    "get_tuple_element",
    "iota",
    "pad",
    "pad_in_dim",
    "parameter",
    "reshape",
    "rev",
    "scalar_like",
    "scatter",
    "slice_",
    "slice_in_dim",
    "transpose",
    "tuple_",
]
