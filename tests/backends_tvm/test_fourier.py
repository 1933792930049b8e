"""The kernels of Fourier transforms, lengths powers of two, beside NumPy in f64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import compiled, computation
from tracejit import ops
from tracejit.backends.tvm.schedule.fourier_plan import LONGEST, Transform, circle, columns, smooth, split
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

LENGTHS = [1 << n for n in range(4, LONGEST.bit_length())]
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


@pytest.mark.parametrize("length", [8, *LENGTHS, 2 * LONGEST, 16 * LONGEST, 48])
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


@pytest.mark.parametrize("size", [1, 2, 3, 8, 24, 1000, 4096, 100_003])
def test_roots_of_one(size: int) -> None:
    """Exact where sine and cosine are, and as near as can be elsewhere."""
    n = np.arange(size)
    for inverse in (False, True):
        angle = mp_angle(n, size) * (1 if inverse else -1)
        expected = np.exp(1j * angle).astype(np.complex128)
        assert np.abs(circle(n, size, inverse) - expected).max() < 2e-16
        quarters = circle(n[:: max(size // 4, 1)], size, inverse) if size % 4 == 0 else []
        assert set(quarters) <= {1, -1, 1j, -1j}


def mp_angle(n: np.ndarray, size: int) -> np.ndarray:
    return np.asarray(2 * np.longdouble("3.14159265358979323846264338327950288") * n / size)


@given(st.integers(1, 1 << 20))
def test_plans(length: int) -> None:
    """Columns make up the length, and every index that the kernel computes is in its memory."""
    ways = split(length)
    if ways is None:
        assert length == 1 or length > LONGEST or not smooth(length)
        return
    assert math.prod(column.length for column in ways) == length
    for column in ways:
        assert math.prod(column.radices) == column.length
    for count, itemsize in ((1, 4), (20, 8)):
        check_plan(Transform(count, 1, ways, False, itemsize))


def library_calls(function: Callable[..., Any], x: np.ndarray) -> int:
    return str(tj.jit(function).lower(x).compile().explain()).count("library call")


@pytest.mark.parametrize("kind", list(EXACTNESS), ids=str)
@pytest.mark.parametrize(
    ("sizes", "axes"),
    [
        ((3, 16, 32), (-2, -1)),  # a vector divides the columns
        ((5, 4, 16, 64), (-3, -2, -1)),
        ((64, 7), (0,)),  # it does not
        ((8, 3), (0,)),  # fewer columns than a vector has lanes
        ((2, 128, 5, 3), (1,)),
        ((16, 9, 32), (0, 2)),
    ],
)
def test_several_axes_and_others_than_the_last(
    kind: ElementType, sizes: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    x = numbers(kind, *sizes)

    def there(a: np.ndarray) -> np.ndarray:
        return np.fft.fftn(a, axes=axes)

    def back(a: np.ndarray) -> np.ndarray:
        return np.fft.ifftn(a, axes=axes)

    expected = there(x.astype(np.complex128))
    found = tj.jit(there)(x)
    assert np.abs(found - expected).max() <= EXACTNESS[kind] * np.abs(expected).max()
    assert np.abs(tj.jit(back)(found) - x).max() <= 4 * EXACTNESS[kind] * np.abs(x).max()
    assert library_calls(there, x) == 0


@pytest.mark.parametrize("kind", list(EXACTNESS), ids=str)
@pytest.mark.parametrize("sizes", [(32,), (8, 64), (4096,), (1 << 14,), (3, 16, 32)])
def test_real_numbers_there_and_back(kind: ElementType, sizes: tuple[int, ...]) -> None:
    x = numbers(kind, *sizes).real
    axes = tuple(range(-min(len(sizes), 2), 0))
    expected = np.fft.rfftn(x.astype(np.float64), axes=axes)
    there = tj.jit(lambda a: np.fft.rfftn(a, axes=axes))
    found = there(x)
    assert np.abs(found - expected).max() <= EXACTNESS[kind] * np.abs(expected).max()
    # What must be real is taken to be real.
    found[..., 0] += 1j * (len(sizes) == 1)
    back = tj.jit(lambda a: np.fft.irfftn(a, axes=axes))
    assert np.abs(back(found) - x).max() <= 8 * EXACTNESS[kind] * np.abs(x).max()
    assert library_calls(there, x) == library_calls(back, found) == 0


def test_what_is_left_to_the_library() -> None:
    for x, axes in (((3, 48), (1,)), ((2, 32), (0, 1)), ((0, 32), (1,))):
        a = numbers(ElementType.C64, *x) if 0 not in x else np.zeros(x, np.complex64)
        found = tj.jit(lambda a, axes=axes: np.fft.fftn(a, axes=axes))(a)
        np.testing.assert_allclose(found, np.fft.fftn(a, axes=axes), rtol=1e-5, atol=1e-4)
