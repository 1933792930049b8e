"""How ops are defined and instructions made; what the shape rules of every family check alike."""

from __future__ import annotations

import functools
import inspect
import math
import re
import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.attributes import REQUIRED, Attribute, Kind
from tracejit.errors import ArgumentError, AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import INTERNAL_OPS, OPS, Instruction, Op, Trait
from tracejit.loading import is_redefined
from tracejit.ops.bounds import with_dynamic_sizes
from tracejit.shapes import AnyShape, ElementType, Shape
from tracejit.sources import user_source

INTEGRAL = frozenset(t for t in ElementType if t.is_integral)
SIGNED_INTEGRAL = frozenset(t for t in INTEGRAL if t.is_signed)
UNSIGNED = INTEGRAL - SIGNED_INTEGRAL
FLOATING = frozenset(t for t in ElementType if t.is_floating)
COMPLEX = frozenset(t for t in ElementType if t.is_complex)
INEXACT = FLOATING | COMPLEX
NUMERIC = INTEGRAL | INEXACT
LOGICAL = INTEGRAL | {ElementType.PRED}
ORDERED = LOGICAL | FLOATING
ALL = frozenset(ElementType)


def function_name(name: str) -> str:
    """An op's name in snake case: shift_left for ShiftLeft."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# Families whose ops all have the same traits.
_TRAITS = {
    "comparison": Trait.ELEMENTWISE,
    "element_types": Trait.ELEMENTWISE | Trait.CONVERSION,
    "elementwise": Trait.ELEMENTWISE,
    "elementwise_unary": Trait.ELEMENTWISE,
}


def define(
    name: str,
    opcode: str,
    *attributes: Attribute,
    side_effect: bool | str = False,
    traits: Trait = Trait.NONE,
) -> Callable[[Callable[..., AnyShape]], Op]:
    """Enters an op in the op table; decorates its shape rule and stands in its place.

    The family is the name of the module that defines the op. ``side_effect`` is as in `Op`;
    ``traits`` are those that not all ops of the family have. A second definition raises.
    """

    def enter(shape_rule: Callable[..., AnyShape]) -> Op:
        if name in OPS:
            if is_redefined(OPS[name].shape_rule, shape_rule):
                return OPS[name]
            raise ValueError(f"op {name} is defined twice")
        family = shape_rule.__module__.rpartition(".")[2]
        function = function_name(name)
        rule = with_dynamic_sizes(shape_rule, family, function)
        own = traits | _TRAITS.get(family, Trait.NONE)
        op = Op(name, opcode, family, function, rule, tuple(attributes), side_effect, own)
        OPS[name] = op
        return op

    return enter


def define_internal(
    name: str,
    opcode: str,
    family: str,
    shape_rule: Callable[..., AnyShape],
    *attributes: Attribute,
    traits: Trait = Trait.NONE,
) -> Op:
    """Enters an op of a compiler's own, which its passes make and no module from outside holds.

    A second definition, or one of an op of the op table, raises.
    """
    known = INTERNAL_OPS.get(name)
    if known is not None and is_redefined(known.shape_rule, shape_rule):
        return known
    if name in OPS or known is not None:
        raise ValueError(f"op {name} is defined twice")
    own = traits | _TRAITS.get(family, Trait.NONE)
    op = Op(name, opcode, family, function_name(name), shape_rule, attributes, traits=own)
    INTERNAL_OPS[name] = op
    return op


def family(name: str) -> list[Op]:
    """The ops of one family, which is imported, in the order of the table."""
    return [op for op in OPS.values() if op.family == name]


class Made(dict[Hashable, Instruction]):
    """Instructions by op, operands and attributes, so that equal ones are built once."""

    def key_of(
        self, op: Op, operands: Sequence[Instruction], attributes: Mapping[str, Any]
    ) -> Hashable:
        """What an instruction depends on; None for one that is made anew each time.

        Those have large constants, attributes that no table can find, or are parameters, which
        belong to one computation.
        """
        if not attributes:
            return op, *operands
        if op.attributes and op.attributes[0].kind is Kind.PARAMETER_NUMBER:
            return None
        key: list[Any] = [op, *operands]
        for name, value in attributes.items():
            if isinstance(value, np.ndarray):
                if value.nbytes > LARGEST:
                    return None
                key += (name, value.dtype, value.shape, value.tobytes())
            else:
                key += (name, type(value), value)
        return tuple(key)


LARGEST = 1024
"""Bytes of the constants that are kept in `Made`, and compared."""


class _Making(threading.local):
    made: Made | None = None


_making = _Making()


def make_from(made: Made | None) -> Made | None:
    """Has `make` in this thread look here first, or nowhere. Returns where it did before."""
    before, _making.made = _making.made, made
    return before


def make(op: Op, *operands: Instruction, **attributes: Any) -> Instruction:
    """An instruction, its shape inferred and checked by the op's shape rule.

    It is a new one, unless an equal one without side effects is found: see `make_from`.
    Attributes left out take the op's defaults. Raises `ArgumentError` for an operand that is
    not an instruction or an attribute the op does not have.
    """
    known = _making.made
    if known is None:
        return _made(op, operands, attributes)
    key = known.key_of(op, operands, attributes)
    try:
        found = known.get(key)
    except TypeError:
        return _made(op, operands, attributes)
    if found is not None:
        return found
    instruction = _made(op, operands, attributes)
    if key is not None and not instruction.has_effect:
        known[key] = instruction
    return instruction


def _made(op: Op, operands: tuple[Instruction, ...], attributes: dict[str, Any]) -> Instruction:
    shapes = []
    for operand in operands:
        if not isinstance(operand, Instruction):
            raise ArgumentError(
                f"{op.function}: operand {len(shapes)} must be an Instruction, "
                f"not {type(operand).__name__}"
            )
        shapes.append(operand.shape)
    complete = {}
    for attribute in op.attributes:
        value = attributes.pop(attribute.name, attribute.default)
        if value is REQUIRED:
            raise ArgumentError(f"{op.function}: attribute {attribute.name} is required")
        complete[attribute.name] = value
    if attributes:
        raise ArgumentError(f"{op.function}: has no attribute {', '.join(attributes)}")
    shape = op.shape_rule(*shapes, **complete)
    if "shape" in complete and isinstance(shape, Shape) and shape.is_dynamic:
        complete["shape"] = shape
    return Instruction(op, operands, shape, complete, user_source())


@functools.cache
def operand_counts(op: Op) -> tuple[int, float]:
    """The fewest and the most operands an op takes, as its shape rule says."""
    parameters = inspect.signature(op.shape_rule).parameters.values()
    named = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return named, math.inf if variadic else named


def require_array(function: str, argument: str, shape: AnyShape) -> Shape:
    """``shape``, known to be an array's; tuples and tokens raise `ShapeError`."""
    if not isinstance(shape, Shape):
        raise ShapeError(f"{function}: {argument} must be an array, not {shape}")
    return shape


def require_element_type(
    function: str, argument: str, shape: Shape, allowed: Collection[ElementType]
) -> None:
    """Raises `ElementTypeError` unless the shape's element type is allowed."""
    if shape.element_type not in allowed:
        names = ", ".join(str(t) for t in ElementType if t in allowed)
        raise ElementTypeError(
            f"{function}: {argument} {shape} has element type {shape.element_type}; "
            f"allowed are {names}"
        )


def require_same_element_type(function: str, **shapes: Shape) -> None:
    """Raises `ElementTypeError` unless all the named shapes share one element type."""
    if len({shape.element_type for shape in shapes.values()}) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ElementTypeError(f"{function}: element types must be equal; {listed}")


def require_rank(function: str, argument: str, shape: Shape, rank: int) -> None:
    """Raises `ShapeError` unless ``shape`` has ``rank`` dimensions."""
    if shape.rank != rank:
        raise ShapeError(f"{function}: {argument} {shape} must have rank {rank}")


def require_unique_dimensions(
    function: str, argument: str, dimensions: Sequence[int], rank: int
) -> None:
    """Raises `AttributeValueError` unless the numbers are distinct and within [0, rank)."""
    if len(set(dimensions)) != len(dimensions) or any(not 0 <= d < rank for d in dimensions):
        raise AttributeValueError(
            f"{function}: {argument} must be distinct dimension numbers below rank {rank}, "
            f"not {tuple(dimensions)}"
        )
