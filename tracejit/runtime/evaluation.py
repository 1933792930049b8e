"""Ops that compiled code leaves to the interpreter.

A kernel passes the op as the HLO text of a computation, then the addresses of the computation's
parameters and of the arrays that its root consists of, as `backends.tvm.library` writes it.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tracejit.backends.abi import EVALUATE
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation
from tracejit.hlo import parse
from tracejit.runtime.callbacks import callback, view
from tracejit.shapes import AnyShape, Shape, TupleShape


@functools.lru_cache(maxsize=4096)
def _computation(text: str) -> tuple[Computation, list[Shape], list[Shape]]:
    """The computation, and the shapes of its parameters and of its results."""
    entry = parse(text).entry
    return entry, [p.array_shape for p in entry.parameters], _leaf_shapes(entry.root.shape)


def _leaf_shapes(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in _leaf_shapes(element)]
    return [shape] if isinstance(shape, Shape) else []


def _leaves(value: Any) -> list[np.ndarray]:
    return [leaf for v in value for leaf in _leaves(v)] if isinstance(value, tuple) else [value]


@callback(EVALUATE)
def _evaluate(text: str, *addresses: int) -> None:
    entry, given, made = _computation(text)
    views = [
        view(address, shape.dimensions, shape.dtype)
        for address, shape in zip(addresses, (*given, *made), strict=True)
    ]
    operands, targets = views[: len(given)], views[len(given) :]
    for operand in operands:
        operand.flags.writeable = False
    for target, result in zip(targets, _leaves(evaluate(entry, operands)), strict=True):
        np.copyto(target, result)
