"""Universal functions: elementwise functions with NumPy's promotion, broadcasting and methods.

tanh = Ufunc(np.tanh, elementwise_unary.tanh)
tanh(x, out=y, where=mask, dtype=np.float32)
add.reduce(x, axis=0); add.accumulate(x); add.outer(x, y); add.at(x, i, v)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, DimensionError, ShapeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.lax.scanning import scan
from tracejit.numpy.building import Axis, along, axes_of, canonical_axis
from tracejit.numpy.manipulation import as_array
from tracejit.numpy.reducing import NO_VALUE, accumulator_type, mask_of, reduced
from tracejit.numpy.storing import finish
from tracejit.ops import elementwise_unary, layout
from tracejit.ops.computations import scalar_computation
from tracejit.ops.layout import concatenate
from tracejit.ops.windows import cumulative
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import Operand, broadcast_together, operand, stretch
from tracejit.trace.index_fancy import FancyIndex
from tracejit.trace.index_parse import parse_index
from tracejit.trace.promotion import ufunc_dtypes
from tracejit.trace.public import enter, public
from tracejit.trace.tracer import Tracer, lift

FEW = 32
"""Up to so many steps of a fold are recorded one by one, which gives them a derivative."""

Kernel = Callable[..., Instruction | tuple[Instruction, ...]]


class Ufunc:
    """What records one of NumPy's ufuncs.

    ``kernel`` takes instructions of equal dimensions and of the element types that NumPy's loop
    has, and returns those of the results. ``reducer`` is the name of the associative op that
    `reduce`, `accumulate` and `at` use.
    """

    def __init__(self, like: np.ufunc, kernel: Kernel, reducer: str | None = None) -> None:
        self.like = like
        self.kernel = kernel
        self.reducer = reducer
        self.__name__ = like.__name__
        self.__qualname__ = like.__name__
        self.__doc__ = f"``np.{like.__name__}``, recorded."
        self._public = public(self._record, like)
        self.reduce = public(self._reduce, like.reduce)
        self.accumulate = public(self._accumulate, like.accumulate)
        self.outer = public(self._outer, like.outer)
        self.at = public(self._at)
        self.reduceat = public(self._reduceat, like.reduceat)
        enter(like, self)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__}>"

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._public(*inputs, **kwargs)

    @property
    def nin(self) -> int:
        return self.like.nin

    @property
    def nout(self) -> int:
        return self.like.nout

    @property
    def identity(self) -> Any:
        return self.like.identity

    def operands(self, inputs: Any, dtype: Any = None) -> list[Instruction]:
        """The inputs, promoted as NumPy's loop wants them; not yet stretched to one shape."""
        operands = [operand(value) for value in inputs]
        wanted = None if dtype is None else element_type_of(dtype).dtype
        types, _ = ufunc_dtypes(self.like, tuple(o.type for o in operands), wanted)
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
        made = self.kernel(*broadcast_together(self.__name__, *self.operands(inputs, dtype)))
        results = made if isinstance(made, tuple) else (made,)
        targets = out if isinstance(out, tuple) else (out,) * len(results)
        finished = tuple(
            finish(self.__name__, result, target, where, casting)
            for result, target in zip(results, targets, strict=True)
        )
        return finished if self.nout > 1 else finished[0]

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
        if self.reducer is None:
            made = Fold(self, array, axis, dtype, initial, where).reduced(keepdims)
            return finish(f"{self.__name__}.reduce", made, out)
        return reduced(self._reducer("reduce"), array, axis, dtype, out, keepdims, initial, where)

    def _accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Each element combined with all before it along ``axis``."""
        if self.reducer is None:
            made = Fold(self, array, axis, dtype, None, True).accumulated()
            return finish(f"{self.__name__}.accumulate", made, out)
        name = self.reducer
        value = operand(array)
        wanted = accumulator_type(name, value, dtype)
        made = value.to(wanted)
        axis = canonical_axis(f"{self.__name__}.accumulate", axis, made.array_shape.rank)
        return finish(f"{self.__name__}.accumulate", cumulative(name, made, axis), out)

    def _outer(self, a: Any, b: Any, **kwargs: Any) -> Any:
        """The function of every element of ``a`` with every element of ``b``."""
        x, y = lift(operand(a).natural, False), lift(operand(b).natural, False)
        x.is_weak, y.is_weak = operand(a).is_weak, operand(b).is_weak
        return self._record(x.reshape(x.shape + (1,) * y.ndim), y, **kwargs)

    def _at(self, a: Any, indices: Any, b: Any = None) -> None:
        """``a[indices] = function(a[indices], b)``, where repeated indices count repeatedly."""
        if not isinstance(a, Tracer):
            raise ArgumentError(
                f"{self.__name__}.at: the array must be made inside the traced function, not "
                f"{type(a).__name__}"
            )
        index = parse_index(indices, a.shape, lambda item: operand(item).natural)
        if b is None or not isinstance(index, FancyIndex):
            a[indices] = self._record(a[indices]) if b is None else self._record(a[indices], b)
            return
        name = "add" if self.like is np.subtract else self._reducer("at")
        update = stretch(
            f"{self.__name__}.at",
            operand(b).to(a.element_type),
            index.result_dimensions(a.instruction),
        )
        if self.like is np.subtract:
            update = elementwise_unary.neg(update)
        a.write(index.write(a.instruction, update, scalar_computation(name, a.element_type)))

    def _reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """`reduce` over ``indices[i]:indices[i + 1]``, for each i; the indices must be known."""
        x = lift(operand(array).natural, False)
        axis = canonical_axis(f"{self.__name__}.reduceat", axis, x.ndim)
        known = [int(i) for i in np.asarray(indices)]
        parts = []
        for start, stop in zip(known, [*known[1:], x.shape[axis]], strict=True):
            run = slice(start, stop if stop > start else start + 1)
            parts.append(self._reduce(x[along(axis, run)], axis, dtype, keepdims=True).instruction)
        return finish(f"{self.__name__}.reduceat", concatenate(parts, axis), out)

    def _reducer(self, method: str) -> str:
        if self.reducer is None:
            raise UnsupportedError(
                f"np.{self.__name__}.{method}: cannot be traced where an index may repeat, only "
                f"add, subtract, multiply, maximum, minimum and the logical and bitwise ones can"
            )
        return self.reducer


class Fold:
    """A ufunc of two arguments applied from the first element of an axis to the last.

    Raises `ArgumentError` for ufuncs of other arguments, `DimensionError` for several axes,
    since the order of the elements counts.
    """

    def __init__(
        self, ufunc: Ufunc, array: Any, axis: Axis, dtype: Any, initial: Any, where: Any
    ) -> None:
        if (ufunc.nin, ufunc.nout) != (2, 1):
            raise ArgumentError(f"np.{ufunc.__name__}.reduce: only for functions of two arguments")
        self._ufunc = ufunc
        value = operand(array)
        kinds = (value.element_type.dtype,) * 2
        wanted = None if dtype is None else element_type_of(dtype).dtype
        inputs, outputs = ufunc_dtypes(ufunc.like, kinds, wanted)
        x = lift(value.to(element_type_of(inputs[0])), False)
        axes = axes_of(f"{ufunc.__name__}.reduce", axis, x.ndim)
        if len(axes) != 1:
            raise DimensionError(
                f"{ufunc.__name__}.reduce: the order counts, so one axis must be given, not {axis}"
            )
        self._axis = axes[0]
        self._shape = x.shape
        self._result = element_type_of(outputs[0])
        self._rows = x.transpose([axes[0], *(d for d in range(x.ndim) if d != axes[0])])
        mask = mask_of(ufunc.__name__, where, x.shape)
        self._mask = None
        if mask is not None:
            self._mask = lift(mask, False).transpose(
                [axes[0], *(d for d in range(x.ndim) if d != axes[0])]
            )
        self._start = initial
        if initial in NO_VALUE and ufunc.identity is not None and (mask is not None or not len(x)):
            self._start = ufunc.identity

    def _steps(self) -> tuple[Any, Any]:
        """The first value, and the rows that are still to come with their masks."""
        rows, mask = self._rows, self._mask
        if self._start not in NO_VALUE:
            first = stretch("reduce", operand(self._start).to(self._result), rows.shape[1:])
            return lift(first, False), (rows, mask)
        if not rows.shape[0] or mask is not None:
            raise ShapeError(
                f"{self._ufunc.__name__}.reduce: no identity; an array {self._shape} of which "
                f"nothing may be left needs initial="
            )
        first = rows[0].astype(self._result.dtype)
        return first, (rows[1:], None)

    def _step(self, carry: Any, row: Any, holds: Any) -> Any:
        made = self._ufunc(carry, row).astype(self._result.dtype)
        return made if holds is None else np.where(holds, made, carry)

    def reduced(self, keepdims: Any) -> Instruction:
        """The last value."""
        first, (rows, mask) = self._steps()
        given = rows if mask is None else (rows, mask)

        def step(carry: Any, row: Any) -> Any:
            pair = (row, None) if mask is None else row
            return self._step(carry, *pair), ()

        last, _ = scan(step, first, given, unroll=rows.shape[0] <= FEW)
        made = as_array(last)
        if keepdims is True or (keepdims not in NO_VALUE and keepdims):
            made = made.reshape([1 if d == self._axis else s for d, s in enumerate(self._shape)])
        result: Instruction = made.instruction
        return result

    def accumulated(self) -> Instruction:
        """All values on the way."""
        if not self._rows.shape[0]:
            result: Instruction = self._rows.astype(self._result.dtype).instruction
            return layout.reshape(result, self._shape)
        first, (rows, _) = self._steps()

        def step(carry: Any, row: Any) -> Any:
            made = self._step(carry, row, None)
            return made, made

        _, rest = scan(step, first, rows, unroll=rows.shape[0] <= FEW)
        column = layout.reshape(first.instruction, (1, *first.shape))
        parts = [column, as_array(rest).instruction] if rows.shape[0] else [column]
        made = lift(concatenate(parts, 0), False)
        order = [*range(1, self._axis + 1), 0, *range(self._axis + 1, made.ndim)]
        turned: Instruction = made.transpose(order).instruction
        return turned
