"""The inverse of erf, as a Map of one computation, which the compiler knows by its identity.

erf_inv(x)      for f32 and f64

Polynomials in w = -log(1 - x**2) of M. Giles, "Approximating the erfinv function" (GPU Computing
Gems, 2011). Within 4 ulp up to 0.99; nearer to the ends with the error that rounding x**2 makes,
as in XLA.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.graph import Computation, Instruction
from tracejit.ops.comparison import eq, gt, lt
from tracejit.ops.constants import constant, parameter
from tracejit.ops.control import map_
from tracejit.ops.elementwise import add, max, mul, select, sub
from tracejit.ops.elementwise_unary import abs, log1p, neg, sqrt
from tracejit.shapes import ElementType, Shape


@dataclass(frozen=True)
class Piece:
    """Where w is below ``limit``: a polynomial, highest power first, in w or its root."""

    limit: float
    root: bool
    shift: float
    coefficients: tuple[float, ...]


INFINITE = float("inf")

PIECES = {
    ElementType.F32: (
        Piece(
            5.0,
            False,
            2.5,
            (
                2.81022636e-08,
                3.43273939e-07,
                -3.5233877e-06,
                -4.39150654e-06,
                0.00021858087,
                -0.00125372503,
                -0.00417768164,
                0.246640727,
                1.50140941,
            ),
        ),
        Piece(
            INFINITE,
            True,
            3.0,
            (
                -0.000200214257,
                0.000100950558,
                0.00134934322,
                -0.00367342844,
                0.00573950773,
                -0.0076224613,
                0.00943887047,
                1.00167406,
                2.83297682,
            ),
        ),
    ),
    ElementType.F64: (
        Piece(
            6.25,
            False,
            3.125,
            (
                -3.6444120640178196996e-21,
                -1.685059138182016589e-19,
                1.2858480715256400167e-18,
                1.115787767802518096e-17,
                -1.333171662854620906e-16,
                2.0972767875968561637e-17,
                6.6376381343583238325e-15,
                -4.0545662729752068639e-14,
                -8.1519341976054721522e-14,
                2.6335093153082322977e-12,
                -1.2975133253453532498e-11,
                -5.4154120542946279317e-11,
                1.051212273321532285e-09,
                -4.1126339803469836976e-09,
                -2.9070369957882005086e-08,
                4.2347877827932403518e-07,
                -1.3654692000834678645e-06,
                -1.3882523362786468719e-05,
                0.0001867342080340571352,
                -0.00074070253416626697512,
                -0.0060336708714301490533,
                0.24015818242558961693,
                1.6536545626831027356,
            ),
        ),
        Piece(
            16.0,
            True,
            3.25,
            (
                2.2137376921775787049e-09,
                9.0756561938885390979e-08,
                -2.7517406297064545428e-07,
                1.8239629214389227755e-08,
                1.5027403968909827627e-06,
                -4.013867526981545969e-06,
                2.9234449089955446044e-06,
                1.2475304481671778723e-05,
                -4.7318229009055733981e-05,
                6.8284851459573175448e-05,
                2.4031110387097893999e-05,
                -0.0003550375203628474796,
                0.00095328937973738049703,
                -0.0016882755560235047313,
                0.0024914420961078508066,
                -0.0037512085075692412107,
                0.005370914553590063617,
                1.0052589676941592334,
                3.0838856104922207635,
            ),
        ),
        Piece(
            INFINITE,
            True,
            5.0,
            (
                -2.7109920616438573243e-11,
                -2.5556418169965252055e-10,
                1.5076572693500548083e-09,
                -3.7894654401267369937e-09,
                7.6157012080783393804e-09,
                -1.4960026627149240478e-08,
                2.9147953450901080826e-08,
                -6.7711997758452339498e-08,
                2.2900482228026654717e-07,
                -9.9298272942317002539e-07,
                4.5260625972231537039e-06,
                -1.9681778105531670567e-05,
                7.5995277030017761139e-05,
                -0.00021503011930044477347,
                -0.00013871931833623122026,
                1.0103004648645343977,
                4.8499064014085844221,
            ),
        ),
    ),
}


def _horner(x: Instruction, coefficients: Sequence[float]) -> Instruction:
    element_type = x.array_shape.element_type
    total = constant(coefficients[0], element_type)
    for coefficient in coefficients[1:]:
        total = add(mul(total, x), constant(coefficient, element_type))
    return total


@functools.cache
def erf_inv_computation(element_type: ElementType) -> Computation:
    """erf_inv of a scalar f32 or f64."""
    x = parameter(0, Shape(element_type))

    def number(value: float) -> Instruction:
        return constant(value, element_type)

    w = neg(log1p(neg(mul(x, x))))
    pieces = PIECES[element_type]
    # The root's derivative is infinite at 0, where another piece is taken.
    root = sqrt(max(w, number(1.0)))
    factor = None
    for piece in reversed(pieces):
        made = _horner(sub(root if piece.root else w, number(piece.shift)), piece.coefficients)
        factor = made if factor is None else select(lt(w, number(piece.limit)), made, factor)
    assert factor is not None
    end = select(gt(x, number(0.0)), number(INFINITE), number(-INFINITE))
    result = select(eq(abs(x), number(1.0)), end, mul(factor, x))
    return Computation(f"erf_inv_{element_type}", (x,), result)


def erf_inv(x: Instruction) -> Instruction:
    """y with erf(y) = x, element by element: infinite at -1 and 1, NaN beyond. f32 or f64."""
    return map_([x], erf_inv_computation(x.array_shape.element_type))
