"""Ops that compiled code leaves to the interpreter.

A kernel passes the op as the HLO text of a computation, then the addresses of the computation's
parameters and of the arrays that its root consists of, as `backends.tvm.library` writes it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.backends.abi import EVALUATE
from tracejit.backends.numpy import evaluate
from tracejit.errors import UnknownTargetError
from tracejit.graph import Computation
from tracejit.hlo import parse
from tracejit.ops.constants import CONSTANT
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.runtime.callbacks import callback, viewer
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import Site, find_target, native_function


@functools.lru_cache(maxsize=4096)
def _computation(text: str) -> Callable[[tuple[int, ...]], None]:
    """What evaluates a computation, from the addresses of its parameters and results."""
    entry = parse(text).entry
    if entry.root.op is CUSTOM_CALL:
        name = entry.root.attributes["custom_call_target"]
        if native_function(name) is not None:
            return _native(entry, name)
    function, count = _function(entry), len(entry.parameters)
    given = [p.array_shape for p in entry.parameters]
    made = _leaf_shapes(entry.root.shape)
    views = [viewer(s.dimensions, s.dtype, writeable=False) for s in given]
    views += [viewer(s.dimensions, s.dtype) for s in made]

    def evaluate_at(addresses: tuple[int, ...]) -> None:
        arrays = [view(address) for view, address in zip(views, addresses, strict=True)]
        results = _leaves(function(*arrays[:count]))
        for target, result in zip(arrays[count:], results, strict=True):
            target[...] = result

    return evaluate_at


def _native(entry: Computation, name: str) -> Callable[[tuple[int, ...]], None]:
    """A call of a compiled library's function on the addresses themselves.

    Operands that are constants have no memory of the program's. The call keeps the states of its
    function until another function is registered under the name.
    """
    root, count = entry.root, len(entry.parameters)
    fixed = {o: o.attributes["literal"].copy() for o in root.operands if o.op is CONSTANT}
    place = {parameter: number for number, parameter in enumerate(entry.parameters)}
    shapes = [o.array_shape for o in root.operands]
    results = _leaf_shapes(root.shape)
    attributes = root.attributes
    config, aliasing = attributes["backend_config"], attributes["output_to_operand_aliasing"]
    sites: dict[Any, Site] = {}

    def call(addresses: tuple[int, ...]) -> None:
        native = native_function(name)
        if native is None:
            raise UnknownTargetError(f"custom_call: target {name!r} is no native function now")
        site = sites.get(native)
        if site is None:
            sites.clear()
            site = sites[native] = native.site(shapes, results, config, aliasing)
        given = [fixed[o].ctypes.data if o in fixed else addresses[place[o]] for o in root.operands]
        site(given, addresses[count:], root.source)

    return call


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
def _evaluate(text: str, *addresses: int) -> None:
    _computation(text)(addresses)
