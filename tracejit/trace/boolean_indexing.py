"""What ``x[mask]`` gives while the mask is unknown: elements whose number is unknown too.

x[m] *= 2;  x[m] = np.sqrt(y[m]) + 1;  x[m].sum() / x[m].size;  x[m][y[m] > 0].max()

Elementwise functions work on all elements of the array, reductions count those that the mask
selects, and an assignment under the same mask writes them. Nothing else is possible: the shape is
unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError, ShapeError, TracerLeakError
from tracejit.graph import Computation, Instruction
from tracejit.ops import comparison, elementwise, layout
from tracejit.ops.computations import highest, lowest
from tracejit.ops.constants import parameter
from tracejit.ops.control import composite_call
from tracejit.shapes import ElementType
from tracejit.trace.concrete import dependence
from tracejit.trace.convert import PYTHON_SCALARS, operand
from tracejit.trace.masks import bounds_of, is_same_mask
from tracejit.trace.table import Traced, call

REDUCTIONS = (
    np.sum, np.prod, np.max, np.min, np.mean, np.std, np.var, np.any, np.all, np.count_nonzero,
    np.amax, np.amin,
)  # fmt: skip


class Masked:
    """The elements of ``whole`` that ``mask``, which covers its dimensions from ``axis`` on,
    selects; along one dimension, whose size is unknown."""

    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("_mask", "axis", "whole")

    def __init__(self, whole: Any, mask: Any, axis: int) -> None:
        self.whole = whole
        self._mask = mask
        self.axis = axis

    @property
    def mask(self) -> Instruction:
        """Which elements of ``whole`` are selected."""
        made: Any = self._mask
        try:
            mask: Instruction = made if isinstance(made, Instruction) else made.instruction
        except TracerLeakError as error:
            raise ConcretizationError(
                "an array that a mask has shortened is read that a traced loop or branch writes to "
                "under another name; copy it where it gets that name, x = x.copy()"
            ) from error
        return mask

    def become(self, other: Masked) -> None:
        """Takes the elements of ``other``, of the same number."""
        if other.whole is not self.whole:
            self.whole.write(other.whole.instruction)
        self._mask = other._mask

    @property
    def _covered(self) -> int:
        return self.mask.array_shape.rank

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self.whole.dtype
        return dtype

    @property
    def ndim(self) -> int:
        rank: int = self.whole.ndim
        return rank - self._covered + 1

    @property
    def size(self) -> Any:
        """How many elements there are: a traced number."""
        return call(np.sum, self._wide())

    @property
    def count(self) -> Any:
        """How many elements there are along the dimension of unknown size."""
        return call(np.sum, self.whole._new(self.mask, False))

    @property
    def shape(self) -> NoReturn:
        self._refuse("shape")

    def __len__(self) -> NoReturn:
        self._refuse("len")

    def __iter__(self) -> NoReturn:
        self._refuse("iteration")

    def __getitem__(self, index: Any) -> Masked:
        """The elements that another mask over these selects."""
        if not isinstance(index, Masked) or index.whole.element_type is not ElementType.PRED:
            self._refuse("index")
        inner = index.whole.instruction
        if inner.array_shape != self.mask.array_shape or not is_same_mask(index.mask, self.mask):
            self._refuse("index")
        made = Masked(self.whole, elementwise.and_(self.mask, inner), self.axis)
        # Among ones: of those every function is defined.
        made.whole = call(np.where, made._wide(), made.whole, np.ones((), self.dtype))
        return made

    def __setitem__(self, index: Any, value: Any) -> None:
        """``x[m][...] = value``, and ``x[m][k] = value`` under another mask."""
        chosen: Any = True
        if isinstance(index, Masked) and index.whole.element_type is ElementType.PRED:
            chosen = self._other(index)
            if isinstance(value, Masked):
                inner = elementwise.and_(self.mask, index.whole.instruction)
                if not is_same_mask(value.mask, inner):
                    self._refuse("assignment of elements that another mask selects")
                value = Masked(value.whole, self.mask, value.axis)
        elif index is not Ellipsis and index != slice(None):
            self._refuse("index")
        self._store(call(np.where, chosen, self._other(value), self.whole))

    def _store(self, whole: Any) -> None:
        """Writes to the elements, which are an array of their own."""
        if not np.can_cast(whole.dtype, self.dtype, "same_kind"):
            raise ArgumentError(f"cannot cast {whole.dtype} to {self.dtype} by the rule same_kind")
        made = call(np.broadcast_to, whole, self.whole.shape).astype(self.dtype)
        self.whole.write(made.instruction)

    def _in_place(self, ufunc: np.ufunc, other: Any) -> Masked:
        self._store(self.elementwise(ufunc, (self, other), {}).whole)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._refuse("index")

    def __bool__(self) -> NoReturn:
        self._refuse("bool")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(name)

    def __repr__(self) -> str:
        return f"Masked<{self.whole.dtype}, of {self.whole.shape}>"

    def _refuse(self, wish: str) -> NoReturn:
        raise ConcretizationError(
            f"{wish}: how many elements a mask selects depends on {dependence(self.mask)}, unknown "
            f"while tracing, and with it the result's shape; write np.where(mask, x, other), "
            f"x[mask] = value, or a reduction: x[mask].sum()"
        )

    def _wide(self) -> Any:
        """The mask over all of the array."""
        covered = range(self.axis, self.axis + self._covered)
        sizes = self.whole.shape
        return self.whole._new(layout.broadcast_in_dim(self.mask, sizes, covered), False)

    def _other(self, value: Any) -> Any:
        """An operand beside these elements, as one beside the whole array."""
        if isinstance(value, Masked):
            if not (is_same_mask(value.mask, self.mask) and value.axis == self.axis):
                raise ShapeError(
                    "elements that different masks select cannot be combined: how many there are "
                    "is unknown; combine the arrays first, and select then"
                )
            return value.whole
        if type(value) in PYTHON_SCALARS:
            return value
        shape = operand(value).dimensions
        behind = self.ndim - self.axis - 1
        if len(shape) > behind and any(size != 1 for size in shape[: len(shape) - behind]):
            raise ShapeError(
                f"an array {shape} cannot be combined with elements of unknown number along axis "
                f"{self.axis}; combine the arrays first, and select then"
            )
        if len(shape) <= behind:
            return value
        kept = (*shape[: len(shape) - behind - 1], *[1] * self._covered)
        array = call(np.asarray, value)
        return call(np.reshape, array, (*kept, *shape[len(shape) - behind :]))

    def elementwise(self, function: Any, inputs: Any, kwargs: Any) -> Any:
        """A ufunc of these elements and others."""
        made = call(function, *(self._other(value) for value in inputs), **kwargs)
        if isinstance(made, tuple):
            return tuple(Masked(one, self.mask, self.axis) for one in made)
        return Masked(made, self.mask, self.axis)

    def reduced(self, function: Any, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A reduction over these elements; of none it gives what the reduction starts from."""
        if kwargs.get("where", True) is not True:
            self._refuse("where=")
        whole = self.whole
        if function is np.count_nonzero:
            function, whole = np.sum, call(np.not_equal, whole, 0)
        if function in _EXTREMES and kwargs.get("initial") is None:
            kwargs["initial"] = _of_none(whole.element_type, _EXTREMES[function])
            selected = Masked(whole, some(self.mask), self.axis)
            return call(function, whole, self._axes(axis), *args, **kwargs, where=selected._wide())
        return call(function, whole, self._axes(axis), *args, **kwargs, where=self._wide())

    def _axes(self, axis: Any) -> Any:
        if axis is None:
            return None
        made: list[int] = []
        for one in (axis,) if np.ndim(axis) == 0 else tuple(axis):
            place = one % self.ndim
            if place == self.axis:
                made.extend(range(self.axis, self.axis + self._covered))
            else:
                made.append(place if place < self.axis else place + self._covered - 1)
        if self.axis not in made:
            self._refuse("reduction along other axes")
        return tuple(made)

    def product(self, function: Any, left: Any, right: Any) -> Any:
        """np.matmul or np.dot of elements that one mask selects, summed over these.

        Beside an array, of vectors and matrices, they are those along the dimension that is left.
        """
        parts = (left, right)
        if not all(isinstance(part, Masked) and part._covered == 1 for part in parts):
            return self._beside(function, left, right)
        if left.axis != left.ndim - 1 or right.axis != max(right.ndim - 2, 0):
            self._refuse(f"np.{function.__name__} along other axes")
        if not is_same_mask(left.mask, right.mask):
            raise ShapeError(
                f"{function.__name__}: elements that different masks select; how many there are is "
                f"unknown"
            )
        zeros = [np.zeros((), part.dtype) for part in parts]
        return call(
            function,
            *(call(np.where, p._wide(), p.whole, z) for p, z in zip(parts, zeros, strict=True)),
        )

    def _beside(self, function: Any, left: Any, right: Any) -> Masked:
        """np.matmul or np.dot of these elements and an array, not summed over these."""
        is_left = left is self
        other = right if is_left else left
        ranks = (self.ndim, len(operand(other).dimensions) if isinstance(other, _ACCEPTED) else 0)
        is_free = (ranks[0], self.axis) == (2, 0 if is_left else 1)
        if isinstance(other, Masked) or not is_free or ranks[1] not in (1, 2):
            self._refuse(f"np.{function.__name__} along other axes")
        made = call(function, self.whole, other) if is_left else call(function, other, self.whole)
        return Masked(made, self.mask, 0 if is_left else ranks[1] - 1)

    def taken_from(self, array: Any) -> Masked:
        """``array[self]``, for integers that one mask selects from a vector."""
        return Masked(array[self.places(0)], self.mask, 0)

    def places(self, otherwise: int) -> Any:
        """Indices for an array, ``otherwise`` where the mask selects none."""
        if self.ndim != 1 or self._covered != 1 or not self.whole.element_type.is_integral:
            self._refuse("index")
        if otherwise:
            whole = self.whole.astype(np.int64)
            return call(np.where, self._wide(), whole, np.int64(otherwise))
        return call(np.where, self._wide(), self.whole, np.zeros((), self.dtype))

    def flipped(self, axis: Any = None) -> Masked:
        """np.flip; of slices between counters of loops, which lie together."""
        given = range(self.ndim) if axis is None else np.atleast_1d(axis).tolist()
        axes = {one % self.ndim for one in given if -self.ndim <= one < self.ndim}
        bounds = bounds_of(self.mask)
        if bounds is None or len(axes) != len(tuple(given)):
            self._refuse("np.flip")
        whole = call(np.flip, self.whole, tuple(axes))
        if self.axis not in axes:
            return Masked(whole, self.mask, self.axis)
        # Element p is what was first + end - 1 - p, of all n which is now n - first - end + p.
        array, (size,) = whole.instruction, self.mask.array_shape.dimensions
        first, end = bounds
        total = layout.full_like(first, size)
        by = elementwise.sub(elementwise.sub(total, first), end)
        is_behind = comparison.lt(by, layout.full_like(by, 0))
        by = elementwise.select(is_behind, elementwise.add(by, total), by)
        starts = [layout.full_like(by, 0)] * array.array_shape.rank
        starts[self.axis] = by
        twice = layout.concatenate([array, array], self.axis)
        made = layout.dynamic_slice(twice, starts, array.array_shape.dimensions)
        return Masked(self.whole._new(made, False), self.mask, self.axis)

    def __matmul__(self, other: Any) -> Any:
        return self.product(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.product(np.matmul, other, self)

    def dot(self, other: Any) -> Any:
        """np.dot."""
        return self.product(np.dot, self, other)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and ufunc is np.matmul and not kwargs:
            return self.product(ufunc, *inputs)
        if ufunc.signature is not None:
            self._refuse(f"np.{ufunc.__name__}")
        if method == "__call__":
            out = kwargs.pop("out", None)
            made = self.elementwise(ufunc, inputs, kwargs)
            return made if out is None else self._stored_to(out, made, ufunc)
        if method == "reduce" and ufunc in _BY_UFUNC:
            return self.reduced(_BY_UFUNC[ufunc], kwargs.pop("axis", 0), **kwargs)
        self._refuse(f"np.{ufunc.__name__}.{method}")

    def _stored_to(self, out: Any, made: Any, ufunc: np.ufunc) -> Any:
        """The elements that ``made`` has, in the one array of ``out``."""
        (target,) = out if isinstance(out, tuple) and len(out) == 1 else (None,)
        if not isinstance(made, Masked) or type(target) is not Masked:
            self._refuse(f"out= of np.{ufunc.__name__}")
        target[...] = made
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in REDUCTIONS and args and args[0] is self:
            return self.reduced(function, *args[1:], **kwargs)
        if function in (np.dot, np.matmul) and len(args) == 2 and not kwargs:
            return self.product(function, *args)
        if function is np.linalg.norm and len(args) == 1 and self.ndim == 1 and not kwargs:
            squares = call(np.square, call(np.absolute, self.whole))
            return call(np.sqrt, Masked(squares, self.mask, self.axis).reduced(np.sum))
        if function is np.flip and args[0] is self:
            return self.flipped(*args[1:], **kwargs)
        self._refuse(f"np.{function.__name__}")

    def astype(self, dtype: Any, **kwargs: Any) -> Masked:
        """The elements as another dtype."""
        return Masked(self.whole.astype(dtype, **kwargs), self.mask, self.axis)

    def copy(self, order: str = "C") -> Masked:
        """The same elements, another array."""
        return Masked(self.whole.copy(), self.mask, self.axis)


SOME = "tracejit.some"
"""A composite that returns its operand; with ``check=True`` one of its elements must be true."""


def some(mask: Instruction) -> Instruction:
    """``mask``, which must select something."""
    given = parameter(0, mask.shape)
    return composite_call(Computation("some", (given,), given), [mask], SOME)


def _of_none(element_type: ElementType, extreme: Callable[[ElementType], Any]) -> Any:
    """What counts as the greatest or the least of no elements."""
    if element_type.is_complex:
        return complex(*[float(extreme(element_type.real))] * 2)
    return extreme(element_type)


_EXTREMES = {np.max: lowest, np.amax: lowest, np.min: highest, np.amin: highest}
_BY_UFUNC = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any,
}  # fmt: skip


_ACCEPTED = (Masked, Traced, np.ndarray, np.generic, *PYTHON_SCALARS)


def _binary(ufunc: np.ufunc, reflected: bool) -> Callable[[Masked, Any], Any]:
    def method(self: Masked, other: Any) -> Any:
        if not isinstance(other, _ACCEPTED):
            return NotImplemented
        return self.elementwise(ufunc, (other, self) if reflected else (self, other), {})

    return method


def _reduction(function: Any) -> Callable[..., Any]:
    return lambda self, axis=None, **kwargs: self.reduced(function, axis, **kwargs)


ARITHMETIC: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
for _name, _ufunc in ARITHMETIC.items():
    setattr(Masked, f"__{_name}__", _binary(_ufunc, False))
    setattr(Masked, f"__r{_name}__", _binary(_ufunc, True))
    setattr(Masked, f"__i{_name}__", lambda self, v, _of=_ufunc: self._in_place(_of, v))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Masked, f"__{_name}__", _binary(_ufunc, False))
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}  # fmt: skip
for _name, _of in _UNARY.items():
    setattr(Masked, f"__{_name}__", lambda self, _of=_of: self.elementwise(_of, (self,), {}))
for _name in ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all"):
    setattr(Masked, _name, _reduction(getattr(np, _name)))
