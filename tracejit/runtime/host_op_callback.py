"""Ops that compiled code leaves to the interpreter.

A kernel passes the op as the HLO text of a computation, then the addresses of the computation's
parameters and of the arrays that its root consists of, as `backends.tvm.library` writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.backends.abi import EVALUATE
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation
from tracejit.hlo import parse
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.runtime.callbacks import callback, viewer
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import DeviceFunction, device_function_for, find_target


class HostComputation:
    """A computation of arrays that the interpreter evaluates.

    ``given`` and ``made`` are the shapes of its parameters, and of the arrays of its root.
    """

    def __init__(self, text: str) -> None:
        entry = parse(text).entry
        self._root = entry.root
        self.given = [p.array_shape for p in entry.parameters]
        self.made = _leaf_shapes(entry.root.shape)
        self._function = _function(entry)

    @functools.cached_property
    def device_function(self) -> DeviceFunction | None:
        """A function of the user's that takes the parameters where they lie, if it is all."""
        root = self._root
        given = [p for p in root.operands if p.op is PARAMETER]
        return device_function_for(root) if len(given) == len(root.operands) else None

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays of the root."""
        return _leaves(self._function(*arrays))


@functools.lru_cache(maxsize=4096)
def host_computation(text: str) -> HostComputation:
    """The computation of a module's text."""
    return HostComputation(text)


@functools.lru_cache(maxsize=4096)
def _computation(text: str) -> Callable[[tuple[int, ...]], None]:
    """What evaluates a computation, from the addresses of its parameters and results."""
    computation = host_computation(text)
    count = len(computation.given)
    views = [viewer(s.dimensions, s.dtype, writeable=False) for s in computation.given]
    views += [viewer(s.dimensions, s.dtype) for s in computation.made]

    def computed(addresses: tuple[int, ...]) -> None:
        arrays = [view(address) for view, address in zip(views, addresses, strict=True)]
        results = computation(arrays[:count])
        for target, result in zip(arrays[count:], results, strict=True):
            target[...] = result

    return computed


def _function(entry: Computation) -> Callable[..., Any]:
    """What evaluates the computation.

    The library's own linear algebra is called at once: of a small matrix the interpreter's checks
    would take longer.
    """
    root, given = entry.root, entry.parameters
    fixed = tuple(o.attributes["literal"] for o in root.operands[len(given) :] if o.op is CONSTANT)
    # What has no memory of its own, such as a share of the greatest singular value, comes last.
    is_plain = root.operands[: len(given)] == given and len(given + fixed) == len(root.operands)
    if root.op is CUSTOM_CALL and is_plain:
        target: str = root.attributes["custom_call_target"]
        if target.startswith(LINEAR_ALGEBRA):
            function = find_target(target).function
            return functools.partial(_with_fixed, function, fixed) if fixed else function
    return lambda *operands: evaluate(entry, operands)


def _with_fixed(function: Callable[..., Any], fixed: tuple[Any, ...], *operands: Any) -> Any:
    return function(*operands, *fixed)


def _leaf_shapes(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaf_shapes(element)]
    return [shape] if isinstance(shape, Shape) else []


def _leaves(value: Any) -> list[np.ndarray]:
    if not isinstance(value, tuple):
        return [value]
    if not any(isinstance(each, tuple) for each in value):
        return list(value)
    return [leaf for each in value for leaf in _leaves(each)]


@callback(EVALUATE)
def evaluate_at(text: str, *addresses: int) -> None:
    """Evaluates a computation, from the addresses of its parameters and of its results."""
    _computation(text)(addresses)
