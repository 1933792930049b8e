"""Samples of CustomCall: functions registered here, which `tests.plain` says with ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import Operand, Sample
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.base import NUMERIC
from tracejit.shapes import TOKEN, TupleShape
from tracejit.targets import register_custom_call

SAID: dict[str, Callable[..., Instruction]] = {
    "tests.double": lambda x: ops.add(x, x),
    "tests.swap": lambda x, y: ops.tuple_([y, ops.neg(x)]),
    "tests.first": lambda pair, token: ops.tuple_([ops.get_tuple_element(pair, 0), token]),
}
"""Each target's function, as a graph."""


@register_custom_call("tests.double", gradient=lambda x, g: g + g)
def double(x: np.ndarray) -> np.ndarray:
    return np.asarray(x + x, x.dtype)


@register_custom_call("tests.swap", gradient=lambda x, y, of_y, of_x: (-of_x, of_y))
def swap(x: np.ndarray, y: np.ndarray, backend_config: str) -> tuple[np.ndarray, np.ndarray]:
    assert backend_config == "{a = 1}"
    return y, np.asarray(-x, x.dtype)


@register_custom_call("tests.first")
def first(pair: tuple[np.ndarray, np.ndarray]) -> Any:
    return pair[0]


def doubled(x: Instruction) -> Instruction:
    return ops.custom_call("tests.double", [ops.add(x, x)], x.shape)


def swapped(x: Instruction, y: Instruction) -> Instruction:
    shape = TupleShape((y.shape, x.shape))
    return ops.custom_call(
        "tests.swap", [x, y], shape, "{a = 1}", api_version="API_VERSION_TYPED_FFI"
    )


def first_of_tuple(x: Instruction, y: Instruction) -> Instruction:
    """A tuple that holds an expression, and a token, go in and out."""
    pair = ops.tuple_([ops.add(x, y), y])
    made = ops.custom_call(
        "tests.first",
        [pair, ops.after_all([])],
        TupleShape((x.shape, TOKEN)),
        has_side_effect=True,
    )
    value, token = ops.elements_of(made)
    return ops.add_dependency(value, token)


SAMPLES = [
    Sample("CustomCall", doubled, (Operand(),), NUMERIC, "array"),
    Sample("CustomCall", swapped, (Operand(), Operand((3,))), NUMERIC, "tuple result"),
    Sample(
        "CustomCall",
        first_of_tuple,
        (Operand(), Operand()),
        NUMERIC,
        "tuple operand, token",
        differentiable=False,
        why="the function is registered without a gradient",
    ),
]
