"""`stop_gradient`: a value through which no derivative passes."""

from __future__ import annotations

from typing import TypeVar

from tracejit import tree
from tracejit.trace.convert import operand
from tracejit.trace.public import public
from tracejit.trace.stop_gradient import stopped
from tracejit.trace.tracer import Tracer, lift

T = TypeVar("T")


@public
def stop_gradient(x: T) -> T:
    """The same tree of arrays, constant for `grad`; integers and truth values stay as they are.

    >>> tj.grad(lambda x: x * tj.lax.stop_gradient(x))(3.0)
    3.0
    """

    def stop(leaf: object) -> object:
        is_scalar = leaf.is_scalar if isinstance(leaf, Tracer) else None
        made = lift(stopped(operand(leaf).natural), is_scalar)
        made.is_weak = operand(leaf).is_weak
        return made

    result: T = tree.map(stop, x)
    return result
