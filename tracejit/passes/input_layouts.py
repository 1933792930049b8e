"""Programs for arrays that are dense but not row-major, without copying them.

With its dimensions transposed into the order in which they lie in memory, every dense array is
row-major, and transposing a NumPy array moves nothing. So a program that takes column-major
arguments is one whose parameters are row-major and transposed at once, where the compiler joins
the transposition with what reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import elements_of
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.traversal import inline_with_effects

Order = tuple[int, ...] | None
"""The dimensions from the slowest to the fastest in memory; None for a row-major array."""


def order_of(shape: AnyShape) -> Order:
    """The order that a shape's layout asks for; dynamic arrays are row-major in any case."""
    if not isinstance(shape, Shape) or shape.layout is None or shape.layout.is_row_major:
        return None
    if shape.is_dynamic:
        return None
    return shape.layout.major_to_minor


def order_of_array(array: np.ndarray) -> Order:
    """The order in which an array lies; None as well for one that is not dense."""
    if array.flags.c_contiguous:
        return None
    strides = array.strides
    order = tuple(sorted(range(array.ndim), key=lambda d: -strides[d]))
    return order if array.transpose(order).flags.c_contiguous else None


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes ``order``."""
    places = [0] * len(order)
    for place, dimension in enumerate(order):
        places[dimension] = place
    return tuple(places)


def in_memory_order(
    module: Module, parameters: Sequence[Order], results: Sequence[Order] = ()
) -> Module:
    """The program that takes and returns arrays transposed into memory order.

    ``parameters`` has the order of each parameter, ``results`` that of each result, all row-major
    where it is left out. The module itself when all are row-major.
    """
    results = tuple(results)
    if not any([*parameters, *results]):
        return module
    made: list[Instruction] = []
    values: list[Instruction] = []
    for parameter, order in zip(module.entry.parameters, parameters, strict=True):
        shape, number = parameter.shape, len(made)
        if order is None or not isinstance(shape, Shape):
            made.append(ops.parameter(number, shape))
            values.append(made[-1])
            continue
        turned = shape.with_dimensions([shape.dimensions[d] for d in order])
        made.append(ops.parameter(number, turned))
        values.append(ops.transpose(made[-1], inverse(order)))
    root, effects = inline_with_effects(module.entry, values)
    if any(results):
        turned_results = [
            element if order is None else ops.transpose(element, order)
            for element, order in zip(elements_of(root), results, strict=True)
        ]
        is_tuple = isinstance(root.shape, TupleShape)
        root = ops.tuple_(turned_results) if is_tuple else turned_results[0]
    entry = Computation(module.entry.name, tuple(made), root, effects)
    return replace(module, entry=entry)
