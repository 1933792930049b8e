"""Universal functions: elementwise functions with NumPy's promotion, broadcasting and methods.

tanh = Ufunc(np.tanh, elementwise_unary.tanh)
tanh(x, out=y, where=mask, dtype=np.float32)
add.reduce(x, axis=0); add.accumulate(x); add.outer(x, y); add.at(x, i, v)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    StaticIndexError,
)
from tracejit.graph import Instruction
from tracejit.loading import load
from tracejit.numpy.building import Axis, along
from tracejit.numpy.reducing import NO_VALUE, accumulator_type, reduced, reduction_axes
from tracejit.numpy.storing import finish
from tracejit.ops.layout import concatenate
from tracejit.ops.windows import cumulative
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import Operand, broadcast_together, operand
from tracejit.trace.examples import documented
from tracejit.trace.promotion import ufunc_dtypes
from tracejit.trace.public import enter, public
from tracejit.trace.result_layouts import elementwise
from tracejit.trace.table import origin
from tracejit.trace.tracer import Tracer, lift

Kernel = Callable[..., Instruction | tuple[Instruction, ...]]


def _summary(like: np.ufunc) -> str:
    """The sentence with which NumPy or SciPy describes a ufunc, after its signature."""
    paragraphs = (like.__doc__ or "").split("\n\n")
    sentence = " ".join(paragraphs[1 if len(paragraphs) > 1 else 0].split())
    return sentence if sentence.endswith(".") else f"{sentence}."


class Ufunc:
    """What records one of NumPy's ufuncs.

    Those that ``takes_all`` is true of test numbers of every dtype, without a cast.

    ``kernel`` takes instructions of equal dimensions and of the element types that NumPy's loop
    has, and returns those of the results. ``reducer`` is the name of the associative op that
    `reduce`, `accumulate` and `at` use.
    """

    takes_all = False

    def __init__(self, like: np.ufunc, kernel: Kernel, reducer: str | None = None) -> None:
        self.like = like
        self.kernel = kernel
        self.reducer = reducer
        self.__name__ = like.__name__
        self.__qualname__ = like.__name__
        module = origin(like)
        name = f"{'np' if module == 'numpy' else module}.{like.__name__}"
        about = f"{_summary(like)}\n\nTakes arguments and options as ``{name}`` does."
        self.__doc__ = documented(about, f"{module}.{like.__name__}")
        self._public = public(self._record, like, layout=elementwise)
        enter(like, self)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__}>"

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._public(*inputs, **kwargs)

    @cached_property
    def reduce(self) -> Callable[..., Any]:
        return public(self._reduce, self.like.reduce)

    @cached_property
    def accumulate(self) -> Callable[..., Any]:
        return public(self._accumulate, self.like.accumulate)

    @cached_property
    def outer(self) -> Callable[..., Any]:
        return public(self._outer, self.like.outer)

    @cached_property
    def at(self) -> Callable[..., Any]:
        return public(self._at)

    @cached_property
    def reduceat(self) -> Callable[..., Any]:
        return public(self._reduceat, self.like.reduceat)

    @property
    def nin(self) -> int:
        return self.like.nin

    @property
    def nout(self) -> int:
        return self.like.nout

    @property
    def identity(self) -> Any:
        return self.like.identity

    def operands(
        self, inputs: Any, dtype: Any = None, casting: Any = "same_kind"
    ) -> list[Instruction]:
        """The inputs, promoted as NumPy's loop wants them; not yet stretched to one shape.

        Raises `ElementTypeError` when a cast that they need breaks the rule ``casting``.
        """
        operands = [operand(value) for value in inputs]
        wanted = None if dtype is None else element_type_of(dtype).dtype
        types, _ = ufunc_dtypes(self.like, tuple(o.type for o in operands), wanted)
        for value, taken in zip(operands, types, strict=True):
            if not (self.takes_all or value.is_weak or np.can_cast(value.type, taken, casting)):
                raise ElementTypeError(
                    f"{self.__name__}: cannot cast an argument from {value.type} to {taken} by "
                    f"the rule {casting!r}"
                )
        return [self.convert(o, element_type_of(t)) for o, t in zip(operands, types, strict=True)]

    def convert(self, value: Operand, element_type: ElementType) -> Instruction:
        """One input in the loop's element type."""
        return value.to(element_type)

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
        if len(inputs) > self.nin and out is None:
            inputs, out = inputs[: self.nin], inputs[self.nin :]
        if len(inputs) != self.nin:
            raise ArgumentError(f"{self.__name__}: takes {self.nin} arrays, not {len(inputs)}")
        made = self.kernel(
            *broadcast_together(self.__name__, *self.operands(inputs, dtype, casting))
        )
        results = made if isinstance(made, tuple) else (made,)
        targets = out if isinstance(out, tuple) else (out,) * len(results)
        finished = tuple(
            finish(self.__name__, result, target, where, casting)
            for result, target in zip(results, targets, strict=True)
        )
        return finished if self.nout > 1 else finished[0]

    def _require_binary(self, method: str) -> None:
        """Raises `AttributeValueError` for the methods that ufuncs of two arguments have."""
        if self.nin != 2:
            raise AttributeValueError(
                f"np.{self.__name__}.{method}: only for functions of two arguments"
            )
        if self.nout != 1 and method != "outer":
            raise AttributeValueError(
                f"np.{self.__name__}.{method}: only for functions of one result"
            )

    def _reduce(
        self,
        array: Any,
        axis: Axis = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """The elements along ``axis`` combined into one.

        Ufuncs that are no reduction of XLA's are folded from the first element on.
        """
        self._require_binary("reduce")
        if self.reducer is None:
            fold = load("tracejit.numpy.folding").Fold
            made = fold("reduce", self, array, axis, dtype, initial, where).reduced(keepdims)
            return finish(f"{self.__name__}.reduce", made, out)
        return reduced(self.reducer, array, axis, dtype, out, keepdims, initial, where)

    def _accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Each element combined with all before it along ``axis``."""
        name = f"{self.__name__}.accumulate"
        self._require_binary("accumulate")
        value = operand(array)
        one = _one_axis(name, axis, len(value.dimensions))
        if self.reducer is None:
            fold = load("tracejit.numpy.folding").Fold
            return finish(name, fold("accumulate", self, array, one, dtype).accumulated(), out)
        made = value.to(accumulator_type(self.reducer, value, dtype))
        return finish(name, cumulative(self.reducer, made, one), out)

    def _outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        """The function of every element of ``a`` with every element of ``b``."""
        self._require_binary("outer")
        x, y = lift(operand(a).natural, False), lift(operand(b).natural, False)
        return self._record(x.reshape(x.shape + (1,) * y.ndim), y, **kwargs)

    def _at(self, a: Any, indices: Any, b: Any = NO_VALUE[1], /) -> None:
        """``a[indices] = function(a[indices], b)``, where repeated indices count repeatedly."""
        if not isinstance(a, Tracer):
            raise ArgumentError(
                f"{self.__name__}.at: the array must be made inside the traced function, not "
                f"{type(a).__name__}"
            )
        given = () if b is NO_VALUE[1] else (b,)
        if self.nin != len(given) + 1 or self.nout != 1:
            raise AttributeValueError(
                f"np.{self.__name__}.at: takes {self.nin} arrays, not {len(given) + 1}, and is "
                f"only for functions of one result"
            )
        load("tracejit.numpy.applying").apply_at(self, a, indices, *given)

    def _reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """`reduce` over ``indices[i]:indices[i + 1]``, for each i; the indices must be known."""
        name = f"{self.__name__}.reduceat"
        self._require_binary("reduceat")
        x = lift(operand(array).natural, False)
        axis = _one_axis(name, axis, x.ndim)
        places = np.asarray(indices)
        if places.ndim != 1:
            raise ShapeError(f"{name}: the indices must be a vector, not of rank {places.ndim}")
        size = x.shape[axis]
        known = [int(i) for i in places]
        outside = [i for i in known if not 0 <= i < size]
        if outside:
            raise StaticIndexError(f"{name}: index {outside[0]} is out of bounds for size {size}")
        if not known:
            empty = self._reduce(x, axis, dtype, keepdims=True, initial=1)[along(axis, slice(0, 0))]
            return finish(name, empty.instruction, out)
        parts = []
        for start, stop in zip(known, [*known[1:], size], strict=True):
            run = slice(start, stop if stop > start else start + 1)
            parts.append(self._reduce(x[along(axis, run)], axis, dtype, keepdims=True).instruction)
        return finish(name, concatenate(parts, axis), out)


def _one_axis(function: str, axis: Any, rank: int) -> int:
    """The one dimension that an accumulation is along.

    Raises `ArgumentError` for a number, `DimensionError` for several dimensions.
    """
    axes = reduction_axes(function, axis, rank)
    if not rank:
        raise ArgumentError(f"{function}: a number has no elements in a row")
    if len(axes) != 1:
        raise DimensionError(f"{function}: one axis must be given, not {axis}")
    return axes[0]
