"""Trigonometric and hyperbolic functions, their inverses, and conversions of angles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import fill, rounded_once, scaled, where
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.shapes import ElementType
from tracejit.trace.convert import converted, operand
from tracejit.trace.public import implements
from tracejit.trace.tracer import lift

sin = Ufunc(np.sin, elementwise_unary.sin)
cos = Ufunc(np.cos, elementwise_unary.cos)
tan = Ufunc(np.tan, elementwise_unary.tan)
arcsin = asin = Ufunc(np.arcsin, elementwise_unary.asin)
arccos = acos = Ufunc(np.arccos, elementwise_unary.acos)
arctan = atan = Ufunc(np.arctan, elementwise_unary.atan)
arctan2 = atan2 = Ufunc(np.arctan2, elementwise.atan2)
sinh = Ufunc(np.sinh, elementwise_unary.sinh)
cosh = Ufunc(np.cosh, elementwise_unary.cosh)
tanh = Ufunc(np.tanh, elementwise_unary.tanh)
arcsinh = asinh = Ufunc(np.arcsinh, elementwise_unary.asinh)
arccosh = acosh = Ufunc(np.arccosh, elementwise_unary.acosh)
arctanh = atanh = Ufunc(np.arctanh, elementwise_unary.atanh)


@rounded_once
def _degrees(x: Instruction) -> Instruction:
    return scaled(x, 180 / np.pi)


@rounded_once
def _radians(x: Instruction) -> Instruction:
    return scaled(x, np.pi / 180)


degrees = Ufunc(np.degrees, _degrees)
radians = Ufunc(np.radians, _radians)
rad2deg = Ufunc(np.rad2deg, _degrees)
deg2rad = Ufunc(np.deg2rad, _radians)


_SINC = [(-1) ** n / math.factorial(2 * n + 1) for n in range(6, -1, -1)]


def sinc_of(x: Instruction) -> Instruction:
    """sin(πx) / (πx), and 1 at 0."""
    angle = scaled(x, np.pi)
    # Near zero the power series, so that derivatives do not cancel to noise.
    near = comparison.lt(elementwise_unary.abs(angle), fill(elementwise_unary.abs(angle), 0.25))
    square = elementwise.mul(angle, angle)
    series = fill(x, _SINC[0])
    for coefficient in _SINC[1:]:
        series = elementwise.add(elementwise.mul(series, square), fill(x, coefficient))
    far = where(near, fill(x, 1), angle)
    return where(near, series, elementwise.div(elementwise_unary.sin(far), far))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """sin(πx) / (πx), and 1 at 0.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tnp.sinc([0.0, 0.5]).round(4)
    array([1.    , 0.6366])
    """
    value = operand(x).natural
    floating = value.array_shape.element_type.is_inexact
    return lift(sinc_of(value if floating else converted(value, ElementType.F64)))
