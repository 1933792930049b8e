"""Whole numbers: greatest common divisors, and bits packed into bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.errors import AttributeValueError, ElementTypeError
from tracejit.graph import Instruction
from tracejit.lax.control import while_loop
from tracejit.numpy.building import canonical_axis, fill, where
from tracejit.numpy.manipulation import as_array, moveaxis, ravel
from tracejit.numpy.universal import Ufunc
from tracejit.ops import comparison, elementwise, elementwise_unary
from tracejit.trace.public import implements
from tracejit.trace.tracer import Tracer, lift


def _magnitude(x: Instruction) -> Instruction:
    return elementwise_unary.abs(x) if x.array_shape.element_type.is_signed else x


def _gcd(x: Instruction, y: Instruction) -> Instruction:
    """Euclid's algorithm on all elements at once, until every remainder is 0."""

    def step(pair: tuple[Tracer, Tracer]) -> tuple[Tracer, Tracer]:
        a, b = pair[0].instruction, pair[1].instruction
        goes_on = comparison.ne(b, fill(b, 0))
        rest = elementwise.rem(a, where(goes_on, b, fill(b, 1)))
        return lift(where(goes_on, b, a), False), lift(where(goes_on, rest, b), False)

    first = lift(_magnitude(x), False), lift(_magnitude(y), False)
    found, _ = while_loop(lambda pair: (pair[1] != 0).any(), step, first)
    made: Instruction = found.instruction
    return made


def _lcm(x: Instruction, y: Instruction) -> Instruction:
    divisor = _gcd(x, y)
    is_some = comparison.ne(divisor, fill(divisor, 0))
    quotient = elementwise.div(_magnitude(x), where(is_some, divisor, fill(divisor, 1)))
    return where(is_some, elementwise.mul(quotient, _magnitude(y)), divisor)


gcd = Ufunc(np.gcd, _gcd)
lcm = Ufunc(np.lcm, _lcm)


def _bit_order(function: str, bitorder: str) -> np.ndarray:
    """How far each of a byte's eight bits is shifted, in the order in which they are listed."""
    if bitorder not in ("big", "little"):
        raise AttributeValueError(
            f"{function}: bitorder must be 'big' or 'little', not {bitorder!r}"
        )
    places = np.arange(8, dtype=np.uint8)
    return places[::-1] if bitorder == "big" else places


@implements(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Truth values along ``axis``, or of the flat array, as bits of uint8, eight in each.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take and `DimensionError` for an axis that the array lacks.

    >>> tnp.packbits([1, 0, 1, 0, 0, 0, 0, 0])
    array([160], dtype=uint8)
    """
    x = as_array(a)
    if not x.element_type.is_integral and x.dtype != np.bool_:
        raise ElementTypeError(f"packbits: takes integers and truth values, not {x.dtype}")
    shifts = _bit_order("packbits", bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    rows = moveaxis(x, canonical_axis("packbits", axis, x.ndim), -1) != 0
    size = rows.shape[-1]
    padding = [(0, 0)] * (rows.ndim - 1) + [(0, -size % 8)]
    bytes_ = np.pad(rows, padding).reshape((*rows.shape[:-1], -(-size // 8), 8))
    packed = np.bitwise_or.reduce(bytes_.astype(np.uint8) << shifts, -1)
    return moveaxis(packed, -1, axis)


@implements(np.unpackbits)
def unpackbits(
    a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """The bits of uint8 elements as 0 and 1, along ``axis`` or of the flat array.

    ``count`` is how many bits are returned, zeros added if needed; a negative one is left off.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take and `DimensionError` for an axis that the array lacks.

    >>> tnp.unpackbits(np.uint8([160]))
    array([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
    """
    x = as_array(a)
    if x.dtype != np.uint8:
        raise ElementTypeError(f"unpackbits: takes uint8, not {x.dtype}")
    shifts = _bit_order("unpackbits", bitorder)
    if axis is None:
        x, axis = ravel(x), 0
    rows = moveaxis(x, canonical_axis("unpackbits", axis, x.ndim), -1)
    bits = ((rows[..., None] >> shifts) & np.uint8(1)).reshape((*rows.shape[:-1], -1))
    if count is not None:
        size = bits.shape[-1]
        wanted = count if count >= 0 else max(size + count, 0)
        missing = [(0, 0)] * (bits.ndim - 1) + [(0, max(wanted - size, 0))]
        bits = np.pad(bits, missing)[..., :wanted]
    return moveaxis(bits, -1, axis)
