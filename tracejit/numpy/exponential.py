"""Exponentials and logarithms, to the bases e, 2 and 10, and sums of exponentials."""

from __future__ import annotations

import math

import numpy as np

from tracejit.graph import Instruction
from tracejit.numpy.building import both_parts, fill, rounded_once, scaled, where
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary

exp = Ufunc(np.exp, elementwise_unary.exp)
exp2 = Ufunc(np.exp2, lambda x: elementwise.pow(fill(x, 2), x))
expm1 = Ufunc(np.expm1, elementwise_unary.expm1)
log = Ufunc(np.log, elementwise_unary.log)
log1p = Ufunc(np.log1p, elementwise_unary.log1p)


def _log_to(base: float, x: Instruction) -> Instruction:
    logarithm = elementwise_unary.log(x)
    if not x.array_shape.element_type.is_complex:
        return elementwise.div(logarithm, fill(logarithm, math.log(base)))
    # Part by part: zero times an infinite part would be NaN.
    re, im = both_parts(logarithm)
    factor = fill(re, math.log(base))
    return elementwise.complex(elementwise.div(re, factor), elementwise.div(im, factor))


log2 = Ufunc(np.log2, lambda x: _log_to(2, x))
log10 = Ufunc(np.log10, lambda x: _log_to(10, x))


@rounded_once
def _log_add_exp(x: Instruction, y: Instruction) -> Instruction:
    # log(e^x + e^y) = larger + log1p(e^(smaller - larger)), chosen by a comparison and not by max
    # and abs, so that the derivatives of any order are right where both are equal.
    first = comparison.ge(x, y)
    larger, smaller = elementwise.select(first, x, y), elementwise.select(first, y, x)
    # Equal infinities have no difference.
    equal = elementwise.and_(comparison.eq(x, y), comparison.eq(elementwise_unary.abs(x), _inf(x)))
    difference = elementwise.sub(
        where(equal, fill(x, 0), smaller), where(equal, fill(x, 0), larger)
    )
    unequal = elementwise.add(larger, elementwise_unary.log1p(elementwise_unary.exp(difference)))
    # The mean of the two, so that the derivative is 1/2 in each.
    mean = elementwise.add(scaled(x, 0.5), scaled(y, 0.5))
    return where(equal, mean, unequal)


def _inf(like: Instruction) -> Instruction:
    return fill(like, math.inf)


@rounded_once
def _log_add_exp2(x: Instruction, y: Instruction) -> Instruction:
    factor = math.log(2)
    return scaled(_log_add_exp(scaled(x, factor), scaled(y, factor)), 1 / factor)


logaddexp = Ufunc(np.logaddexp, _log_add_exp)
logaddexp2 = Ufunc(np.logaddexp2, _log_add_exp2)
