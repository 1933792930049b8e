"""Ops that order side effects by tokens: AfterAll, AddDependency, Infeed, Outfeed.

token = after_all([])
data = infeed(token, Shape(F32, (2, 3)))        the pair (f32[2,3], token[])
outfeed(value, token)                           a token again
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Attribute, Kind
from tracejit.errors import ShapeError
from tracejit.graph import Instruction
from tracejit.ops.base import define, make
from tracejit.shapes import TOKEN, AnyShape, Shape, TupleShape


def _require_token(function: str, argument: str, shape: AnyShape) -> None:
    if shape != TOKEN:
        raise ShapeError(f"{function}: {argument} must be a token, not {shape}")


def _require_data(function: str, argument: str, shape: AnyShape) -> None:
    """Raises `ShapeError` unless ``shape`` is an array's or a tuple of arrays'."""
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    if not all(isinstance(part, Shape) for part in parts):
        raise ShapeError(
            f"{function}: {argument} must be an array or a tuple of arrays, not {shape}"
        )


@define("AfterAll", "after-all")
def AFTER_ALL(*tokens: AnyShape) -> AnyShape:
    for position, token in enumerate(tokens):
        _require_token("after_all", f"operand {position}", token)
    return TOKEN


def after_all(tokens: Sequence[Instruction]) -> Instruction:
    """A token that comes after all ``tokens``; of none, the first token (XLA: AfterAll).

    Raises `ShapeError` for an operand that is no token.
    """
    return make(AFTER_ALL, *tokens)


@define("AddDependency", "add-dependency")
def ADD_DEPENDENCY(operand: AnyShape, token: AnyShape) -> AnyShape:
    _require_token("add_dependency", "token", token)
    return operand


def add_dependency(operand: Instruction, token: Instruction) -> Instruction:
    """``operand``, not before the effect of ``token`` has happened (XLA: AddDependency).

    Raises `ShapeError` when ``token`` is no token.
    """
    return make(ADD_DEPENDENCY, operand, token)


@define(
    "Infeed",
    "infeed",
    Attribute("infeed_config", Kind.STRING, ""),
    Attribute("shape", Kind.SHAPE),
    side_effect=True,
)
def INFEED(token: AnyShape, *, infeed_config: str, shape: AnyShape) -> AnyShape:
    _require_token("infeed", "token", token)
    pair = shape.elements if isinstance(shape, TupleShape) else ()
    if len(pair) != 2 or pair[1] != TOKEN:
        raise ShapeError(f"infeed: the result must be a pair of data and a token, not {shape}")
    _require_data("infeed", "shape", pair[0])
    return shape


def infeed(token: Instruction, shape: AnyShape, config: str = "") -> Instruction:
    """The next datum of the infeed queue, of ``shape``, and a token: a pair (XLA: Infeed).

    ``shape`` is an array's or a tuple of arrays', () for no data at all. Raises `ShapeError` for
    another shape, or when ``token`` is no token.
    """
    _require_data("infeed", "shape", shape)
    return make(INFEED, token, infeed_config=config, shape=TupleShape((shape, TOKEN)))


@define(
    "Outfeed",
    "outfeed",
    Attribute("outfeed_shape", Kind.SHAPE_VALUE),
    Attribute("outfeed_config", Kind.STRING, ""),
    side_effect=True,
)
def OUTFEED(
    operand: AnyShape, token: AnyShape, *, outfeed_shape: AnyShape, outfeed_config: str
) -> AnyShape:
    _require_token("outfeed", "token", token)
    _require_data("outfeed", "operand", operand)
    if outfeed_shape != operand:
        raise ShapeError(
            f"outfeed: outfeed_shape {outfeed_shape} must be the operand's shape {operand}"
        )
    return TOKEN


def outfeed(
    operand: Instruction,
    token: Instruction,
    shape_with_layout: AnyShape | None = None,
    outfeed_config: str = "",
) -> Instruction:
    """Puts ``operand``, an array or a tuple of arrays, into the outfeed queue (XLA: Outfeed).

    Returns a token. ``shape_with_layout`` is the operand's shape, with the layout of the data in
    the queue; values do not depend on it. Raises `ShapeError` for another shape, or when ``token``
    is no token.
    """
    shape = operand.shape if shape_with_layout is None else shape_with_layout
    return make(OUTFEED, operand, token, outfeed_shape=shape, outfeed_config=outfeed_config)
