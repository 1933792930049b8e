"""Fourier transforms, spelled as in `jax.lax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracejit.lax.elementwise import operands
from tracejit.ops import spectra
from tracejit.trace.public import public
from tracejit.trace.tracer import lift


@public
def fft(x: Any, fft_type: Any, fft_lengths: Sequence[int]) -> Any:
    """Transforms over the last one to three axes; ``fft_type`` is fft, ifft, rfft or irfft.

    A string in either case, or an enumeration's member of that name.

    Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element
    type that it does not take, `ShapeError` for shapes that do not fit and
    `AttributeValueError` for an option or a size out of range.

    >>> tj.lax.fft(np.array([1.0 + 0j, 0.0]), "fft", (2,))
    array([1.+0.j, 1.+0.j])
    """
    (operand,) = operands(x)
    name = getattr(fft_type, "name", fft_type)
    return lift(spectra.fft(operand, str(name).upper(), tuple(fft_lengths)), False)
