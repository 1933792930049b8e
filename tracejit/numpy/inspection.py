"""Questions about arrays that are answered while tracing: dtypes, memory, texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ElementTypeError
from tracejit.numpy.creation import asarray
from tracejit.numpy.manipulation import as_array, is_contiguous
from tracejit.numpy.sizes import known_or_none
from tracejit.trace.convert import operand
from tracejit.trace.promotion import result_dtype
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> np.dtype:
    """The dtype that arrays, dtypes and numbers have in common by NumPy's promotion.

    Raises `ArgumentError` for what has no dtype.

    >>> tnp.result_type(np.float32, np.int64)
    dtype('float64')
    """
    return result_dtype([_type_of(value) for value in arrays_and_dtypes])


def _type_of(value: Any) -> Any:
    if isinstance(value, Tracer) or type(value) in (bool, int, float, complex):
        return operand(value).type
    if isinstance(value, str | type | np.dtype):
        return np.dtype(value)
    return operand(value).type


def min_scalar_type(a: Any) -> np.dtype:
    """The smallest dtype that holds a known number; for arrays, their dtype.

    >>> tnp.min_scalar_type(300)
    dtype('uint16')
    """
    return a.dtype if isinstance(a, Tracer) else np.min_scalar_type(a)


@implements(np.common_type)
def common_type(*arrays: Any) -> Any:
    """The floating or complex scalar type that all arrays fit into; integers count as float64.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.common_type(np.float32([1]), np.float64([1]))
    <class 'numpy.float64'>
    """
    if any(np.dtype(x.dtype) == np.bool_ for x in map(as_array, arrays)):
        raise ElementTypeError("common_type: truth values have no common type with numbers")
    floats = [
        x.dtype if x.element_type.is_inexact else np.dtype(float) for x in map(as_array, arrays)
    ]
    return result_dtype(floats).type


@implements(np.isfortran)
def isfortran(a: Any) -> bool:
    """Whether an array lies in memory by columns, and not by rows: the transpose of one does.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isfortran(np.ones((2, 2)))
    False
    """
    x = as_array(a)
    x.ask_order("isfortran")
    return not is_contiguous(x) and is_contiguous(x.T)


@implements(np.isscalar)
def isscalar(element: Any) -> bool:
    """Whether a value is a number, and no array of rank 0.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.isscalar(3.0)
    True
    """
    return element.is_scalar if isinstance(element, Tracer) else np.isscalar(element)


@implements(np.require, creates=True)
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """The array as one that lies in an order (C, F), or owns its memory (O), copied if need be.

    Traced arrays are aligned and can be written to.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.require([1, 2], np.float32)
    array([1., 2.], dtype=float32)
    """
    wanted = {str(one)[0].upper() for one in requirements or ()}
    order = next((order for order in ("F", "C") if order in wanted), None)
    x: Any = asarray(a, dtype, order)
    return x.copy("K") if "O" in wanted and x.root is not x else x


def __array_namespace_info__() -> Any:
    """What the array-API standard asks a namespace about itself: NumPy's answers.

    Shapes that depend on elements need ``size=`` while tracing.

    >>> tnp.__array_namespace_info__().default_device()
    'cpu'
    """
    return np.__array_namespace_info__()


def _root(x: Any) -> Any:
    return x.root if isinstance(x, Tracer) else x


@implements(np.shares_memory, np.may_share_memory)
def may_share_memory(a: Any, b: Any, /, max_work: int | None = None) -> bool:
    """Whether one array is a view of the other, or both are of a third.

    Raises `ArgumentError` for arguments that it does not take.

    >>> tnp.may_share_memory(np.ones(2), np.ones(2))
    False
    """
    return _root(a) is _root(b)


shares_memory = may_share_memory


@implements(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """The array, after a look at its elements where they are known while tracing.

    Raises `AttributeValueError` for NaN and infinities; unknown ones are not looked at.

    >>> tnp.asarray_chkfinite([1.0, 2.0])
    array([1., 2.])
    """
    x = as_array(a) if dtype is None else as_array(a).astype(dtype)
    values = known_or_none(x)
    if values is not None and x.element_type.is_inexact and not np.isfinite(values).all():
        raise AttributeValueError("asarray_chkfinite: array must not contain infs or NaNs")
    return x


@implements(np.array_repr)
def array_repr(
    arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The elements as text if they are known, else the shape.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.array_repr(np.arange(3))
    'array([0, 1, 2])'
    """
    values = known_or_none(arr)
    if values is None:
        return repr(arr)
    return np.array_repr(values, max_line_width, precision, suppress_small)


@implements(np.array_str)
def array_str(
    a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None
) -> str:
    """The elements as text if they are known, else the shape.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.array_str(np.arange(3))
    '[0 1 2]'
    """
    values = known_or_none(a)
    if values is None:
        return str(a)
    return np.array_str(values, max_line_width, precision, suppress_small)
