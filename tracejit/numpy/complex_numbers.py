"""Complex numbers: their parts, their angle, and which arrays hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import fill, scaled
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary, layout
from tracejit.shapes import element_type_of
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


def _conjugate(x: Instruction) -> Instruction:
    return elementwise_unary.conj(x) if x.array_shape.element_type.is_complex else x


conjugate = conj = Ufunc(np.conjugate, _conjugate)


def _floating(x: Instruction) -> Instruction:
    """``x``; integers as the floats that ``arctan2`` makes of them."""
    if x.array_shape.element_type.is_inexact:
        return x
    made = np.arctan2.resolve_dtypes((int, x.array_shape.dtype, None))
    return converted(x, element_type_of(made[-1]))


@implements(np.real)
def real(val: Any) -> Any:
    """The real part; of a traced complex array, a view.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.real([1 + 2j])
    array([1.])
    """
    return val.real if isinstance(val, Tracer) else lift(_real(operand(val).natural))


def _real(x: Instruction) -> Instruction:
    return elementwise_unary.real(x) if x.array_shape.element_type.is_complex else x


@implements(np.imag)
def imag(val: Any) -> Any:
    """The imaginary part; of a traced complex array, a view.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.imag([1 + 2j])
    array([2.])
    """
    if isinstance(val, Tracer) and val.element_type.is_complex:
        return val.imag
    is_number = None if operand(val).is_weak else False
    return lift(_imag(operand(val).natural), is_number)


def _imag(x: Instruction) -> Instruction:
    if x.array_shape.element_type.is_complex:
        return elementwise_unary.imag(x)
    return fill(x, 0)


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """The angle from the positive real axis, in radians or degrees, within (-π, π].

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.angle([1j, -1.0], deg=True)
    array([ 90., 180.])
    """
    x = _floating(operand(z).natural)
    if x.array_shape.element_type.is_complex:
        made = elementwise.atan2(elementwise_unary.imag(x), elementwise_unary.real(x))
    else:
        made = elementwise.atan2(layout.full_like(x, 0), x)
    return lift(scaled(made, 180 / np.pi) if deg else made)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """Which elements have an imaginary part other than zero.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.iscomplex([1 + 1j, 1.0])
    array([ True, False])
    """
    part = _imag(operand(x).natural)
    return lift(comparison.ne(part, fill(part, 0)))


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Which elements have no imaginary part other than zero.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isreal([1 + 1j, 1.0])
    array([False,  True])
    """
    part = _imag(operand(x).natural)
    return lift(comparison.eq(part, fill(part, 0)))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    """Whether the array holds complex numbers.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.iscomplexobj([1j])
    True
    """
    return operand(x).element_type.is_complex


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    """Whether the array holds no complex numbers.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.isrealobj([1.0])
    True
    """
    return not operand(x).element_type.is_complex


@implements(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The array as it is: whether its imaginary parts vanish is unknown while tracing.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.real_if_close([1 + 0j])
    array([1.+0.j])
    """
    return lift(operand(a).natural)
