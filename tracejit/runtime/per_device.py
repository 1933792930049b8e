"""Arguments and results of a program that runs on several devices: one more dimension in front.

    for_each_device(shapes, arrays, 2, 2)      the arguments of each of the four devices

An argument of its parameter's own rank goes to every device as it is. One with one more dimension
in front has an array for each device, that of replica r and partition p at r * partitions + p; with
two more, [replicas, partitions] in front. A list of arrays is such an argument too. An argument for
a parameter that is a tuple is a tuple of such arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.shapes import AnyShape, Shape, TupleShape


def for_each_device(
    shapes: Sequence[AnyShape], arguments: Sequence[Any], replicas: int, partitions: int
) -> list[list[Any]]:
    """Every device's arguments, in the order of the devices.

    Raises `ArgumentError` for another number of arguments, or one that is not of its parameter's
    shape and element type, for every device or for each.
    """
    if len(arguments) != len(shapes):
        raise ArgumentError(
            f"interpret: the module has {len(shapes)} parameters; {len(arguments)} arrays given"
        )
    columns = [
        _spread(shape, argument, (replicas, partitions), f"argument {position}")
        for position, (shape, argument) in enumerate(zip(shapes, arguments, strict=True))
    ]
    return [[column[device] for column in columns] for device in range(replicas * partitions)]


def _spread(shape: AnyShape, argument: Any, grid: tuple[int, int], name: str) -> list[Any]:
    count = grid[0] * grid[1]
    if isinstance(shape, TupleShape):
        if not isinstance(argument, tuple | list) or len(argument) != len(shape.elements):
            raise ArgumentError(f"interpret: {name} must be a tuple of shape {shape}")
        columns = [
            _spread(element, part, grid, f"{name}, element {position}")
            for position, (element, part) in enumerate(zip(shape.elements, argument, strict=True))
        ]
        return [tuple(column[device] for column in columns) for device in range(count)]
    if not isinstance(shape, Shape):
        return [shape] * count
    try:
        array = np.asarray(argument)
    except ValueError as error:
        raise ArgumentError(f"interpret: {name} is not an array: {error}") from error
    sizes = shape.dimensions
    if array.dtype == shape.dtype:
        if array.shape == sizes:
            return [array] * count
        if array.shape == (count, *sizes):
            return list(array)
        if array.shape == (*grid, *sizes):
            return list(array.reshape(count, *sizes))
    raise ArgumentError(
        f"interpret: {name} must be {shape} for all {count} devices, or [{count}] of them; "
        f"given is {array.dtype}{list(array.shape)}"
    )


def stacked(values: Sequence[Any]) -> Any:
    """The devices' results with one more dimension in front, tuples element by element."""
    if isinstance(values[0], tuple):
        return tuple(stacked(parts) for parts in zip(*values, strict=True))
    return np.stack(values) if isinstance(values[0], np.ndarray | np.generic) else values[0]
