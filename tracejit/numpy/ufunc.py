"""Universal functions: elementwise functions with NumPy's promotion, broadcasting and methods.

tanh = Ufunc(np.tanh, elementwise_unary.tanh)
tanh(x, out=y, where=mask, dtype=np.float32)
add.reduce(x, axis=0)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, ElementTypeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops import elementwise
from tracejit.shapes import element_type_of
from tracejit.trace.convert import broadcast_together, converted, operand, stretch
from tracejit.trace.promotion import ufunc_dtypes
from tracejit.trace.public import enter, public
from tracejit.trace.tracer import Tracer, lift
from tracejit.trace.views import broadcast

Kernel = Callable[..., Instruction | tuple[Instruction, ...]]


class Ufunc:
    """What records one of NumPy's ufuncs.

    ``kernel`` takes instructions of equal dimensions and of the element types that NumPy's loop
    has, and returns those of the results.
    """

    def __init__(self, like: np.ufunc, kernel: Kernel) -> None:
        self.like = like
        self.kernel = kernel
        self.__name__ = like.__name__
        self.__qualname__ = like.__name__
        self.__doc__ = f"``np.{like.__name__}`` on traced values."
        self._call = public(self._record, like)
        enter(like, self)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__}>"

    @property
    def nin(self) -> int:
        return self.like.nin

    @property
    def nout(self) -> int:
        return self.like.nout

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._call(*inputs, **kwargs)

    def _record(
        self,
        *inputs: Any,
        out: Any = None,
        where: Any = True,
        dtype: Any = None,
        casting: str = "same_kind",
        order: str = "K",
        subok: bool = True,
    ) -> Any:
        if len(inputs) > self.nin:
            *inputs, out = inputs  # type: ignore[assignment]
        if len(inputs) != self.nin:
            raise ArgumentError(f"{self.__name__}: takes {self.nin} arrays, not {len(inputs)}")
        operands = [operand(value) for value in inputs]
        wanted = None if dtype is None else element_type_of(dtype).dtype
        types, _ = ufunc_dtypes(self.like, tuple(o.type for o in operands), wanted)
        arrays = [o.to(element_type_of(t)) for o, t in zip(operands, types, strict=True)]
        made = self.kernel(*broadcast_together(self.__name__, *arrays))
        results = made if isinstance(made, tuple) else (made,)
        outs = out if isinstance(out, tuple) else (out,) * (1 if out is not None else 0)
        targets = list(outs) or [None] * len(results)
        finished = [
            _finish(self.__name__, result, target, where, casting)
            for result, target in zip(results, targets, strict=True)
        ]
        return finished[0] if len(finished) == 1 else tuple(finished)


def _finish(
    function: str, result: Instruction, out: Any, where: Any, casting: str
) -> Tracer:
    """The result as an array, written to ``out`` if there is one, where ``where`` says so."""
    if out is None:
        if where is True:
            return lift(result)
        raise UnsupportedError(
            f"{function}: where= without out= leaves elements undefined; pass out=, or write "
            f"np.where(condition, {function}(...), other)"
        )
    return store(function, result, out, where, casting)


def store(
    function: str, result: Instruction, out: Any, where: Any = True, casting: Any = "same_kind"
) -> Tracer:
    """Writes ``result`` to the array ``out`` and returns that.

    Raises `ArgumentError` for an ``out`` that is not traced, `ElementTypeError` when the cast
    breaks the rule, `ShapeError` when the shapes do not fit.
    """
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
    value = converted(result, out.element_type)
    if where is not True:
        mask = operand(where).to(element_type_of(np.bool_))
        value = broadcast(value, out.shape)
        value = elementwise.select(stretch(function, mask, out.shape), value, out.instruction)
    if value.array_shape.dimensions != out.shape:
        value = stretch(function, value, out.shape)
    out.write(value)
    return out


def composed(function: Callable[..., Instruction]) -> Callable[..., Instruction]:
    """Marks a kernel that several instructions make up."""
    return functools.wraps(function)(function)


Dimensions = Sequence[int]
