"""The kernel of Fourier transforms of rows, lengths powers of two, beside NumPy in f64."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tracejit import ops
from tracejit.backends.tvm.schedule.fourier import LONGEST, SHORTEST, factors
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

LENGTHS = [1 << n for n in range(SHORTEST.bit_length() - 1, LONGEST.bit_length())]
EXACTNESS = {ElementType.C64: 3e-7, ElementType.C128: 2e-15}


def numbers(kind: ElementType, *sizes: int) -> np.ndarray:
    rng = np.random.default_rng(sizes[-1])
    return (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)).astype(kind.dtype)


def transformed(x: np.ndarray, kind: ElementType, name: str) -> np.ndarray:
    length = x.shape[-1]
    (made,) = compiled(computation(lambda a: ops.fft(a, name, (length,)), Shape(kind, x.shape)))(
        [x]
    )
    return made


@pytest.mark.parametrize("length", [8, *LENGTHS, 2 * LONGEST, 48])
@pytest.mark.parametrize("kind", list(EXACTNESS), ids=str)
def test_there_and_back(kind: ElementType, length: int) -> None:
    x = numbers(kind, 3, length)
    expected = np.fft.fft(x.astype(np.complex128))
    there = transformed(x, kind, "FFT")
    assert np.abs(there - expected).max() <= EXACTNESS[kind] * np.abs(expected).max()
    back = transformed(there, kind, "IFFT")
    assert np.abs(back - x).max() <= 4 * EXACTNESS[kind] * np.abs(x).max()


@pytest.mark.parametrize("sizes", [(64,), (1, 64), (500, 256), (2, 3, 5, 32)])
def test_batches(sizes: tuple[int, ...]) -> None:
    x = numbers(ElementType.C64, *sizes)
    expected = np.fft.fft(x.astype(np.complex128))
    found = transformed(x, ElementType.C64, "FFT")
    assert np.abs(found - expected).max() <= 3e-7 * np.abs(expected).max()


def test_what_is_computed_before_and_after() -> None:
    """Operands that are no arrays in memory, and results that are used twice."""
    x = numbers(ElementType.C64, 40, 128)

    def build(a: Instruction) -> Instruction:
        made = ops.fft(ops.mul(a, a), "FFT", (128,))
        return ops.tuple_([made, ops.real(made), ops.fft(made, "IFFT", (128,))])

    there, part, back = compiled(computation(build, Shape(ElementType.C64, x.shape)))([x])
    expected = np.fft.fft(x.astype(np.complex128) ** 2)
    assert np.abs(there - expected).max() <= 1e-6 * np.abs(expected).max()
    np.testing.assert_array_equal(part, there.real)
    assert np.abs(back - x * x).max() <= 1e-5


@pytest.mark.parametrize("length", LENGTHS)
def test_factors_lie_on_the_circle(length: int) -> None:
    """In the order re, im for each of three powers, stage by stage; the last stage has ones."""
    table = factors(length, False)
    np.testing.assert_array_equal(factors(length, True)[-1:], -table[-1:])
    assert np.isfinite(table).all()
    assert np.abs(table).max() == 1
