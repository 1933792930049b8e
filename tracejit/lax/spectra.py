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
    """
    (operand,) = operands(x)
    name = getattr(fft_type, "name", fft_type)
    return lift(spectra.fft(operand, str(name).upper(), tuple(fft_lengths)), False)
