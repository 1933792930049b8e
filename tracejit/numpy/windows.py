"""Window functions, and the Bessel function of Kaiser's window."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.numpy import bessel
from tracejit.numpy.manipulation import as_array
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType
from tracejit.trace.convert import operand
from tracejit.trace.public import adopted, implements
from tracejit.trace.tracer import lift


@implements(np.i0)
def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, order 0; floating types keep theirs.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.i0([0.0, 1.0]).round(4)
    array([1.    , 1.2661])
    """
    value = operand(x)
    element_type = value.element_type if value.element_type.is_floating else ElementType.F64
    work = element_type if element_type.bits >= 32 else ElementType.F32
    made = bessel.i0(value.to(work))
    return lift(convert_element_type(made, element_type), False)


@implements(np.bartlett, creates=True)
def bartlett(M: int) -> Any:
    """The triangular window with zeros at both ends, of M points.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.bartlett(5)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return adopted(np.bartlett(M))


@implements(np.blackman, creates=True)
def blackman(M: int) -> Any:
    """Blackman's window, three terms of cosines, of M points.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.blackman(5).round(2)
    array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    return adopted(np.blackman(M))


@implements(np.hamming, creates=True)
def hamming(M: int) -> Any:
    """Hamming's window, a raised cosine, of M points.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.hamming(3)
    array([0.08, 1.  , 0.08])
    """
    return adopted(np.hamming(M))


@implements(np.hanning, creates=True)
def hanning(M: int) -> Any:
    """Hann's window, a cosine raised to touch zero at both ends, of M points.

    Raises `ArgumentError` for arguments that it does not take and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.hanning(3)
    array([0., 1., 0.])
    """
    return adopted(np.hanning(M))


@implements(np.kaiser, creates=True)
def kaiser(M: int, beta: Any) -> Any:
    """Kaiser's window of M points; the shape parameter ``beta`` may be traced.

    Raises `ArgumentError` for what is no array of numbers and `ConcretizationError` for an
    option that is unknown while tracing.

    >>> tnp.kaiser(3, 2.0).round(4)
    array([0.4387, 1.    , 0.4387])
    """
    shape = as_array(beta).astype(np.float64)
    if M <= 1:
        return adopted(np.ones(max(M, 0)))
    middle = (M - 1) / 2.0
    places = (np.arange(M) - middle) / middle
    return i0(np.sqrt(1 - places**2) * shape) / i0(shape)
