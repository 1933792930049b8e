"""Arguments and results of a program that runs on several devices: one more dimension in front.

    for_each_device(shapes, arrays, 2, 2)      the arguments of each of the four devices

An argument of its parameter's own rank goes to every device as it is. One with one more dimension
in front has an array for each device, that of replica r and partition p at r * partitions + p; with
two more, [replicas, partitions] in front. A list of arrays is such an argument too. An argument for
a parameter that is a tuple is a tuple of such arguments.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.devices import run_on_devices
from tracejit.backends.numpy.extents import leaving
from tracejit.errors import ArgumentError, AttributeValueError
from tracejit.graph import Module
from tracejit.runtime.structure import value_of
from tracejit.shapes import AnyShape, Shape, TupleShape


def interpret(
    module: Module, arguments: Sequence[Any], replicas: int | None, partitions: int | None
) -> Any:
    """What the interpreter makes of a module; the numbers default to the module's own.

    Where neither is given and both are 1, arguments and results have no dimension in front.
    """
    for name, count in (("replicas", replicas), ("partitions", partitions)):
        if count is not None and operator.index(count) < 1:
            raise AttributeValueError(f"interpret: {name} must be at least 1, not {count}")
    replica_count = module.replica_count if replicas is None else replicas
    num_partitions = module.num_partitions if partitions is None else partitions
    if replicas is None and partitions is None and replica_count * num_partitions == 1:
        parameters = module.entry.parameters
        _require_count(len(parameters), len(arguments))
        pairs = enumerate(zip(parameters, arguments, strict=True))
        values = [value_of(p.shape, a, f"interpret: argument {n}") for n, (p, a) in pairs]
        return leaving(run_on_devices(module.entry, [values])[0])
    shapes = [parameter.shape for parameter in module.entry.parameters]
    given = for_each_device(shapes, arguments, replica_count, num_partitions)
    return stacked(run_on_devices(module.entry, given, replica_count, num_partitions))


def for_each_device(
    shapes: Sequence[AnyShape], arguments: Sequence[Any], replicas: int, partitions: int
) -> list[list[Any]]:
    """Every device's arguments, in the order of the devices.

    Raises `ArgumentError` for another number of arguments, or one that is not of its parameter's
    shape and element type, for every device or for each.
    """
    _require_count(len(shapes), len(arguments))
    columns = [
        _spread(shape, argument, (replicas, partitions), f"argument {position}")
        for position, (shape, argument) in enumerate(zip(shapes, arguments, strict=True))
    ]
    return [[column[device] for column in columns] for device in range(replicas * partitions)]


def _require_count(wanted: int, given: int) -> None:
    if wanted != given:
        raise ArgumentError(f"interpret: the module has {wanted} parameters; {given} arrays given")


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
