"""Computations of scalars, evaluated for whole arrays at once.

evaluate_elementwise(scalar_computation("max", F32), [x, y])        like np.maximum(x, y)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation
from tracejit.ops.constants import parameter
from tracejit.ops.lifting import lift
from tracejit.shapes import Shape

# Elements that a long computation is applied to at once.
BLOCK = 1 << 14


def evaluate_elementwise(computation: Computation, arrays: Sequence[np.ndarray]) -> Value:
    """``computation``, which takes and returns scalars, for every element of the arrays.

    The arrays have one shape; so has the result, or each element of it if it is a tuple.
    """
    dimensions = arrays[0].shape
    if arrays[0].size > BLOCK:
        return _in_blocks(computation, arrays)
    wide = _lifted(computation, dimensions)
    if wide is not None:
        return evaluate(wide, arrays)
    shapes = [s for s in computation.root.element_shapes if isinstance(s, Shape)]
    results = [np.empty(dimensions, s.dtype) for s in shapes]
    for index in np.ndindex(dimensions):
        value = evaluate(computation, [np.asarray(a[index]) for a in arrays])
        parts = value if isinstance(value, tuple) else (value,)
        for result, part in zip(results, parts, strict=True):
            result[index] = part
    return results[0] if isinstance(computation.root.shape, Shape) else tuple(results)


def _in_blocks(computation: Computation, arrays: Sequence[np.ndarray]) -> Value:
    """The same a piece at a time, whose intermediate results stay in the processor's cache."""
    flat = [array.reshape(-1) for array in arrays]
    parts = [
        evaluate_elementwise(computation, [array[start : start + BLOCK] for array in flat])
        for start in range(0, flat[0].size, BLOCK)
    ]
    dimensions = arrays[0].shape
    if isinstance(parts[0], tuple):
        columns = zip(*parts, strict=True)
        return tuple(np.concatenate(column).reshape(dimensions) for column in columns)
    return np.concatenate(parts).reshape(dimensions)


@functools.lru_cache(maxsize=1024)
def _lifted(computation: Computation, dimensions: tuple[int, ...]) -> Computation | None:
    """The computation on arrays of ``dimensions``, or None if some op of it is not elementwise."""
    parameters = tuple(
        parameter(i, p.array_shape.with_dimensions(dimensions))
        for i, p in enumerate(computation.parameters)
    )
    try:
        return Computation(computation.name, parameters, lift(computation, parameters))
    except UnsupportedError:
        return None
