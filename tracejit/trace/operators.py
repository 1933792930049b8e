"""Python's operators on a traced array: each one calls its NumPy function."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import ArgumentError, DimensionError
from tracejit.shapes import ElementType
from tracejit.trace.affine_bounds import are_counted
from tracejit.trace.convert import PYTHON_SCALARS
from tracejit.trace.int_overflow import require_exact
from tracejit.trace.table import Traced, call

_ACCEPTED = (Traced, np.ndarray, np.generic, *PYTHON_SCALARS, list, tuple)


def _is_weak(value: Any) -> bool:
    return type(value) in PYTHON_SCALARS or getattr(value, "is_weak", False)


def _operate(function: np.ufunc, lhs: Any, rhs: Any) -> Any:
    """A binary operator. Between Python numbers the result counts as a Python number too."""
    if not isinstance(lhs, _ACCEPTED) or not isinstance(rhs, _ACCEPTED):
        return NotImplemented
    if not (_is_weak(lhs) and _is_weak(rhs)):
        return call(function, lhs, rhs)
    if function not in _BITWISE:
        lhs, rhs = _number(lhs), _number(rhs)
    return _weakened(function, lhs, rhs)


def _weakened(function: np.ufunc, *numbers: Any) -> Any:
    """What a function makes of Python's numbers, one itself."""
    made = call(function, *numbers)
    made.is_weak = True
    if are_counted():
        require_exact(function, numbers, made)
    return made


_BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)


def _number(value: Any) -> Any:
    """A Python bool as the integer that arithmetic takes it for."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Traced) and value.element_type is ElementType.PRED:  # type: ignore[attr-defined]
        return value.astype(np.int64).weakened()  # type: ignore[attr-defined]
    return value


class Operators(Traced):
    """Mixin: arithmetic, comparison and bit operators, also reflected and in place."""

    __slots__ = ()
    is_scalar: bool

    def _in_place(self, function: np.ufunc, other: Any) -> Any:
        """``self op= other``: a number is replaced, an array is written to."""
        if self.is_scalar:
            return _operate(function, self, other)
        if not isinstance(other, _ACCEPTED):
            return NotImplemented
        call(function, self, other, out=self)
        return self

    def __add__(self, other: Any) -> Any:
        return _operate(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _operate(np.add, other, self)

    def __iadd__(self, other: Any) -> Any:
        return self._in_place(np.add, other)

    def __sub__(self, other: Any) -> Any:
        return _operate(np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _operate(np.subtract, other, self)

    def __isub__(self, other: Any) -> Any:
        return self._in_place(np.subtract, other)

    def __mul__(self, other: Any) -> Any:
        return _operate(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operate(np.multiply, other, self)

    def __imul__(self, other: Any) -> Any:
        return self._in_place(np.multiply, other)

    def __truediv__(self, other: Any) -> Any:
        return _operate(np.true_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _operate(np.true_divide, other, self)

    def __itruediv__(self, other: Any) -> Any:
        return self._in_place(np.true_divide, other)

    def __floordiv__(self, other: Any) -> Any:
        return _operate(np.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _operate(np.floor_divide, other, self)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._in_place(np.floor_divide, other)

    def __mod__(self, other: Any) -> Any:
        return _operate(np.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _operate(np.remainder, other, self)

    def __imod__(self, other: Any) -> Any:
        return self._in_place(np.remainder, other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise ArgumentError(
                "pow: a modulus is not supported for traced values; multiply in a loop, and take "
                "the remainder by the modulus in each step"
            )
        if type(other) is int and other == 2 and self.operand().type == np.bool_:
            # NumPy squares, which truth values do as int8.
            return _operate(np.multiply, self.astype(np.int8), self)  # type: ignore[attr-defined]
        return _operate(np.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _operate(np.power, other, self)

    def __ipow__(self, other: Any) -> Any:  # type: ignore[misc]  # no statement has a modulus
        return self._in_place(np.power, other)

    def __matmul__(self, other: Any) -> Any:
        return _operate(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _operate(np.matmul, other, self)

    def __imatmul__(self, other: Any) -> Any:
        if not self.is_scalar and len(self.operand().dimensions) == 1:
            raise DimensionError("matmul: x @= y needs an x of rank 2 at least, not of rank 1")
        return self._in_place(np.matmul, other)

    def __and__(self, other: Any) -> Any:
        return _operate(np.bitwise_and, self, other)

    def __rand__(self, other: Any) -> Any:
        return _operate(np.bitwise_and, other, self)

    def __iand__(self, other: Any) -> Any:
        return self._in_place(np.bitwise_and, other)

    def __or__(self, other: Any) -> Any:
        return _operate(np.bitwise_or, self, other)

    def __ror__(self, other: Any) -> Any:
        return _operate(np.bitwise_or, other, self)

    def __ior__(self, other: Any) -> Any:
        return self._in_place(np.bitwise_or, other)

    def __xor__(self, other: Any) -> Any:
        return _operate(np.bitwise_xor, self, other)

    def __rxor__(self, other: Any) -> Any:
        return _operate(np.bitwise_xor, other, self)

    def __ixor__(self, other: Any) -> Any:
        return self._in_place(np.bitwise_xor, other)

    def __lshift__(self, other: Any) -> Any:
        return _operate(np.left_shift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _operate(np.left_shift, other, self)

    def __ilshift__(self, other: Any) -> Any:
        return self._in_place(np.left_shift, other)

    def __rshift__(self, other: Any) -> Any:
        return _operate(np.right_shift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _operate(np.right_shift, other, self)

    def __irshift__(self, other: Any) -> Any:
        return self._in_place(np.right_shift, other)

    def __lt__(self, other: Any) -> Any:
        return _operate(np.less, self, other)

    def __le__(self, other: Any) -> Any:
        return _operate(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return _operate(np.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return _operate(np.greater_equal, self, other)

    def __eq__(self, other: Any) -> Any:
        return _operate(np.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return _operate(np.not_equal, self, other)

    def __neg__(self) -> Any:
        return self._unary(np.negative)

    def __pos__(self) -> Any:
        return self._unary(np.positive)

    def __abs__(self) -> Any:
        return self._unary(np.absolute)

    def __invert__(self) -> Any:
        return self._unary(np.invert)

    def __round__(self, ndigits: int | None = None) -> Any:
        rounded = call(np.round, self, 0 if ndigits is None else ndigits)
        if ndigits is not None or not self.is_scalar:
            return rounded
        # NumPy's own numbers give an integer of Python's, too.
        whole = rounded.astype(np.int64).weakened()
        if are_counted():
            require_exact(np.positive, (self,), whole)
        return whole

    def _unary(self, function: np.ufunc) -> Any:
        if not _is_weak(self):
            return call(function, self)
        return _weakened(function, _number(self))
