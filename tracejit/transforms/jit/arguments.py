"""The key of an array argument, as a trace sees it; refuses other arguments.

The key of an argument holds all that a compiled function depends on: element type, dimensions,
whether it was an array, a NumPy scalar or a Python number, and how a large array lies in memory.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.passes.input_layouts import Order, order_of_array
from tracejit.shapes import ElementType, Shape, element_type_of
from tracejit.trace.body import Abstract
from tracejit.trace.convert import KNOWN_WHILE_TRACING, PYTHON_SCALARS, plain_array
from tracejit.trace.promotion import weak_dtype
from tracejit.transforms.shape_structs import ShapeDtypeStruct

COPIED_BYTES = 1 << 16
"""Up to this size it is quicker to make an array row-major than to compile for how it lies."""


def key_of(leaf: Any) -> Any:
    """What a leaf brings to the key of the cache; None for what needs `normalised` first."""
    kind = type(leaf)
    if kind is np.ndarray:
        order = order_of_argument(leaf)
        return (leaf.dtype, leaf.shape, order) if order else (leaf.dtype, leaf.shape)
    if kind in PYTHON_SCALARS:
        return kind
    if isinstance(leaf, np.generic):
        return leaf.dtype
    if is_device_array(leaf):
        return (leaf.dtype, leaf.shape)
    return None


def is_device_array(leaf: Any) -> bool:
    """Whether a leaf is an array of ours in a device's memory."""
    return getattr(type(leaf), "is_device_array", False)


def order_of_argument(leaf: Any) -> Order:
    """The order of dimensions that a leaf is compiled for; None for one that is row-major then.

    A large array that is dense is taken as it lies, others are copied where they are not row-major.
    """
    if not isinstance(leaf, np.ndarray) or leaf.flags.c_contiguous or leaf.nbytes <= COPIED_BYTES:
        return None
    return order_of_array(leaf)


def normalised(leaf: Any, describe: Callable[[], str]) -> Any:
    """A leaf as an array, a NumPy scalar or a Python number of an element type XLA has.

    Raises `ArgumentError`, naming the argument, for what is none of these.
    """
    if type(leaf) in PYTHON_SCALARS or is_device_array(leaf):
        return leaf
    try:
        array = plain_array(leaf)
    except ArgumentError as error:
        name = describe()
        raise ArgumentError(f"{name}: {error.message}{_advice(leaf, name)}") from None
    native = array.astype(element_type_of(array.dtype).dtype, copy=False)
    return native[()] if isinstance(leaf, np.generic) else native


def as_shape(leaf: Any) -> Any:
    """A leaf, or the `Shape` that it says an array has."""
    return leaf.array_shape if isinstance(leaf, ShapeDtypeStruct) else leaf


def _advice(leaf: Any, name: str) -> str:
    """How an argument that is no array can be one that is known while tracing."""
    own = name.split()[1]
    if own == "self":
        return (
            "; a jitted method's object is compiled for with jit(static_argnums=0), or its class "
            "is registered as a tree"
        )
    if isinstance(leaf, KNOWN_WHILE_TRACING | enum.Enum) and own.isidentifier():
        return f"; jit(f, static_argnames={own!r}) compiles for each of its values"
    return ""


def abstract_of(leaf: Any) -> Abstract:
    """What a normalised leaf looks like to a trace."""
    kind = type(leaf)
    if kind in PYTHON_SCALARS:
        return Abstract(Shape(element_type_of(weak_dtype(kind))), is_weak=True, is_scalar=True)
    if isinstance(leaf, Shape):
        return Abstract(leaf)
    element_type: ElementType = element_type_of(leaf.dtype)
    return Abstract(Shape(element_type, tuple(leaf.shape)), is_scalar=isinstance(leaf, np.generic))


def static_key(value: Any, name: str) -> Hashable:
    """A static argument as a key that tells 1, 1.0 and True, and 0.0 and -0.0, apart."""
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, tuple):
        return type(value), tuple(static_key(item, name) for item in value)
    try:
        hash(value)
    except TypeError as error:
        raise ArgumentError(
            f"{name} is static and must be hashable; {type(value).__name__} is not"
        ) from error
    return type(value), value
