"""How a computed result leaves a function: as a new array, or into ``out=`` where ``where=`` says.

Every function that takes ``out=`` ends here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ElementTypeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand, stretch
from tracejit.trace.tracer import Tracer, lift


def finish(
    function: str,
    result: Instruction,
    out: Any = None,
    where: Any = True,
    casting: Any = "same_kind",
) -> Tracer:
    """The result as an array, or written to ``out``, which is returned.

    Raises `ArgumentError` for an ``out`` that is not traced, `ElementTypeError` when the cast
    breaks the rule, `ShapeError` when the shapes do not fit.
    """
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        if where is True:
            return lift(result)
        raise UnsupportedError(
            f"{function}: where= without out= leaves elements undefined; pass out=, or write "
            f"np.where(condition, {function}(...), other)"
        )
    if not isinstance(out, Tracer):
        raise ArgumentError(
            f"{function}: out= must be an array made inside the traced function, not "
            f"{type(out).__name__}: a traced value cannot be stored into it"
        )
    given = result.array_shape.dtype
    if not np.can_cast(given, out.dtype, casting):
        raise ElementTypeError(
            f"{function}: cannot cast the result from {given} to {out.dtype} by the rule "
            f"{casting!r}; convert with x.astype, or do not compute in place"
        )
    value = stretch(function, converted(result, out.element_type), out.shape)
    if where is not True:
        mask = stretch(function, operand(where).to(ElementType.PRED), out.shape)
        value = elementwise.select(mask, value, out.instruction)
    out.write(value)
    return out
