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
from tracejit.graph import Computation
from tracejit.hlo import parse
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.runtime.callbacks import callback, view
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.targets import LINEAR_ALGEBRA, find_target


@functools.lru_cache(maxsize=4096)
def _computation(text: str) -> tuple[Callable[..., Any], list[Shape], list[Shape]]:
    """A function of the parameters' arrays, and the shapes of parameters and of results."""
    entry = parse(text).entry
    given = [p.array_shape for p in entry.parameters]
    return _function(entry), given, _leaf_shapes(entry.root.shape)


def _function(entry: Computation) -> Callable[..., Any]:
    """What evaluates the computation.

    The library's own linear algebra is called at once: of a small matrix the interpreter's checks
    would take longer.
    """
    root = entry.root
    if root.op is CUSTOM_CALL and root.operands == entry.parameters:
        target: str = root.attributes["custom_call_target"]
        if target.startswith(LINEAR_ALGEBRA):
            return find_target(target).function
    return lambda *operands: evaluate(entry, operands)


def _leaf_shapes(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaf_shapes(element)]
    return [shape] if isinstance(shape, Shape) else []


def _leaves(value: Any) -> list[np.ndarray]:
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, tuple) else [value]


@callback(EVALUATE)
def _evaluate(text: str, *addresses: int) -> None:
    function, given, made = _computation(text)
    views = [
        view(address, shape.dimensions, shape.dtype)
        for address, shape in zip(addresses, (*given, *made), strict=True)
    ]
    operands, targets = views[: len(given)], views[len(given) :]
    for operand in operands:
        operand.flags.writeable = False
    for target, result in zip(targets, _leaves(function(*operands)), strict=True):
        np.copyto(target, result)
