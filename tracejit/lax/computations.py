"""From Python functions of numbers, such as `lax.add` or a lambda, to computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit.errors import ArgumentError, ElementTypeError, UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import parameter, tuple_
from tracejit.shapes import ElementType, Shape
from tracejit.trace.body import Abstract, record_body

Function = Callable[..., Any]


def scalar_function(function: Function, element_types: Sequence[ElementType]) -> Computation:
    """``function`` of one number of each element type, as a computation.

    Raises `ArgumentError` when it uses values of the trace around it, `ElementTypeError` when it
    returns something other than numbers.
    """
    name = getattr(function, "__name__", "function").strip("<>")
    arguments = [Abstract(Shape(t), is_scalar=True) for t in element_types]
    body = record_body(function, name, arguments)
    if body.captured:
        raise ArgumentError(
            f"{name}: a function of numbers must not use traced values from outside; "
            f"pass them as operands"
        )
    for abstract in body.abstract:
        if abstract.shape.rank:
            raise ElementTypeError(f"{name}: must return numbers, not {abstract.shape}")
    parameters = tuple(parameter(i, Shape(t)) for i, t in enumerate(element_types))
    if body.effects:
        raise UnsupportedError(f"{name}: a function of numbers must not have side effects")
    results, _ = body.rebuilt(dict(zip(body.parameters, parameters, strict=True)))
    return Computation(name, parameters, as_root(results))


def as_root(results: Sequence[Instruction]) -> Instruction:
    """The one result, or a tuple of several."""
    return results[0] if len(results) == 1 else tuple_(results)
