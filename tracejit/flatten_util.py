"""A tree of arrays as one vector, the name of `jax.flatten_util`.

vector, unravel = ravel_pytree(parameters)
parameters = unravel(vector - 0.1 * gradient)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ShapeError
from tracejit.numpy.joining import concatenate
from tracejit.numpy.manipulation import as_array
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import public

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(vector, unravel): all elements of a tree in one dimension, and the way back.

    The vector has the dtype that the leaves are promoted to, float64 for a tree without leaves.
    ``unravel(vector)`` is a tree like ``pytree`` with the leaves' own shapes and dtypes; it raises
    `ShapeError` for a vector of another length.
    """
    leaves, structure = tree.flatten(pytree)
    shapes = [operand(leaf).dimensions for leaf in leaves]
    types = [operand(leaf).element_type.dtype for leaf in leaves]
    sizes = [int(np.prod(shape)) for shape in shapes]
    ends = np.cumsum([0, *sizes]).tolist()

    @public
    def unravel(vector: Any) -> Any:
        array = as_array(vector)
        if array.shape != (ends[-1],):
            raise ShapeError(f"unravel: the vector must be ({ends[-1]},), not {array.shape}")
        parts = [
            array[ends[n] : ends[n + 1]].reshape(shape).astype(kind)
            for n, (shape, kind) in enumerate(zip(shapes, types, strict=True))
        ]
        return tree.unflatten(structure, parts)

    return _raveled(leaves), unravel


@public
def _raveled(leaves: list[Any]) -> Any:
    if not leaves:
        return as_array(np.zeros(0))
    dtype = result_dtype(operand(leaf).type for leaf in leaves)
    return concatenate([as_array(leaf).astype(dtype).reshape(-1) for leaf in leaves])


def __dir__() -> list[str]:
    return __all__
