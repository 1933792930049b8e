"""The kernels of Fourier transforms beside NumPy in f64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracejit as tj
from tests.backends_tvm.compiled import compiled, computation
from tracejit import ops
from tracejit.backends.tvm.analysis.fft_plan import (
    BEFORE_STAGES,
    COARSE,
    FINE,
    FROM_MATRIX,
    FROM_ROW,
    LAST,
    LENGTH,
    LONGEST,
    PER_STAGE,
    STAGES,
    STRIPS,
    TO_MATRIX,
    TO_ROW,
    Transform,
    circle,
    columns,
    smooth,
    split,
)
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


@pytest.mark.parametrize(
    "length",
    [2, 7, 8, *LENGTHS, 2 * LONGEST, 16 * LONGEST, 48, 77, 1000, 4056, 30030, 50000, 17, 257],
)
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
        if size % 4 == 0:
            assert set(circle(n[:: size // 4], size, inverse)) == {1, -1, 1j, -1j}


def mp_angle(n: np.ndarray, size: int) -> np.ndarray:
    return np.asarray(2 * np.longdouble("3.14159265358979323846264338327950288") * n / size)


SMOOTH = st.lists(st.sampled_from([2, 3, 4, 5, 7, 8, 11, 13]), max_size=7).map(math.prod)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5000) | SMOOTH, st.sampled_from([(1, 4), (3, 8), (20, 4), (17, 8)]))
def test_plans_of_rows(length: int, given: tuple[int, int]) -> None:
    ways = split(length)
    if ways is None:
        is_prime = not any(length % n == 0 for n in range(2, math.isqrt(length) + 1))
        assert length == 1 or length > LONGEST or is_prime or not smooth(length)
        return
    count, itemsize = given
    for vector_bytes in (16, 32, 64):
        check_plan(Transform(count, 1, ways, False, itemsize, vector_bytes))


@settings(max_examples=40, deadline=None)
@given(SMOOTH.filter(lambda n: 1 < n <= LONGEST), st.integers(1, 40), st.integers(1, 3))
def test_plans_of_columns(length: int, across: int, count: int) -> None:
    for way in columns(length):
        for vector_bytes in (16, 32, 64):
            check_plan(Transform(count, across, (way,), False, 4, vector_bytes))


def check_plan(what: Transform) -> None:
    """Every index that the kernel computes from the plan lies in its memory, and all are met."""
    plan, table = what.tables()
    number, width, length = 2 * what.itemsize, what.width, what.length
    room = {"scratch": what.room, "middle": what.middle, "end": what.count * length * what.columns}
    assert math.prod(column.length for column in what.ways) == length
    for sweep, (rows, across) in enumerate(what.sizes):
        fields = plan.reshape(len(what.ways), -1)[sweep]
        matrices = 1 if what.by_rows else what.count
        assert 1 <= width <= across
        assert fields[LENGTH] == rows
        assert fields[LAST] == across - width >= (fields[STRIPS] - 2) * width
        assert fields[STRIPS] * width >= across
        source = "middle" if sweep else "end"
        target = "middle" if what.is_row and not sweep else "end"
        for memory, matrix, row, lines, items in (
            (source, FROM_MATRIX, FROM_ROW, rows, across),
            (
                target,
                TO_MATRIX,
                TO_ROW,
                *((across, rows) if target == "middle" else (rows, across)),
            ),
        ):
            last = (matrices - 1) * fields[matrix] + (lines - 1) * fields[row] + number * items
            assert last <= room[memory] * number
            assert fields[row] >= number * items
        assert rows * width <= room["scratch"]
        if target == "middle":
            assert rows >= what.lanes
            turns = number * rows * width * 2 * (1 if what.coarse else fields[STRIPS])
            assert fields[FINE] + turns <= table.size * what.itemsize
            if what.coarse:
                all_strips = 2 * number * rows * fields[STRIPS]
                assert fields[COARSE] + all_strips <= table.size * what.itemsize
        stages = fields[BEFORE_STAGES:].reshape(-1, PER_STAGE)[: fields[STAGES]]
        before = 1
        for body, m, s, factors in stages:
            radix, twiddled = what.bodies[body]
            assert s == before
            assert radix * m * s == rows
            assert twiddled or m == 1
            if twiddled:
                taken = 2 * number * m * (radix - 1)
                assert factors + taken <= table.size * what.itemsize
            before *= radix
        assert before == rows


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.data(),
    st.sampled_from([np.complex64, np.complex128]),
    st.sampled_from(["fftn", "ifftn", "rfftn", "irfftn"]),
)
def test_any_size_any_axis(sizes: list[int], data: st.DataObject, dtype: Any, name: str) -> None:
    """Also primes and ones, and arrays that are not contiguous."""
    axis = data.draw(st.integers(0, len(sizes) - 1))
    rng = np.random.default_rng(sizes)
    x = (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes)).astype(dtype)
    x = np.moveaxis(x, axis, 0) if data.draw(st.booleans()) else x
    if name == "rfftn":
        x = x.real
    transform = getattr(np.fft, name)
    if name == "irfftn" and x.shape[axis] == 1:
        return
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    expected = transform(wide, axes=(axis,))
    found = tj.jit(lambda a: transform(a, axes=(axis,)))(x)
    assert found.shape == expected.shape
    assert found.dtype.itemsize * 2 == expected.dtype.itemsize * (1 + (dtype is np.complex128))
    close = 5e-7 if dtype is np.complex64 else 3e-15
    scale = np.abs(expected).max()
    assert np.abs(found - expected).max() <= close * max(
        scale, np.abs(x).max() * x.shape[axis] ** -0.5
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft"])
@pytest.mark.parametrize("length", [8, 60, 250])
def test_what_is_not_finite_spreads(value: float, name: str, length: int) -> None:
    """To all of its row, as in NumPy, and to no other."""
    x = numbers(ElementType.C64, 3, length)
    x = x.real.copy() if name == "rfft" else x
    x[1, 5] = value
    transform = getattr(np.fft, name)
    with np.errstate(invalid="ignore"):
        expected = np.isfinite(transform(x))
    found = np.isfinite(tj.jit(lambda a: transform(a))(x))
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    assert not found[1].any()


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
        ((12, 35), (0, 1)),
        ((3, 2, 21), (0, 1, 2)),
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
@pytest.mark.parametrize(
    "sizes", [(32,), (8, 64), (4096,), (1 << 14,), (3, 16, 32), (12, 90), (50_000,)]
)
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


def test_nothing_and_single_numbers() -> None:
    for x, axes in (((0, 32), (1,)), ((3, 1), (1,)), ((1, 4, 1), (0, 1, 2))):
        a = numbers(ElementType.C64, *x) if 0 not in x else np.zeros(x, np.complex64)
        found = tj.jit(lambda a, axes=axes: np.fft.fftn(a, axes=axes))(a)
        np.testing.assert_allclose(found, np.fft.fftn(a, axes=axes), rtol=1e-5, atol=1e-4)


# Primes and products of them: of few rows, by chirps; of many, by sums and in parts.
LARGE_PRIMES = [(17,), (97,), (1009,), (2 * 3 * 17 * 19,), (20014,), (3, 17), (40, 23), (40, 34)]
LARGE_PRIMES += [(20, 57 * 19), (12, 101), (9, 6 * 67)]


@pytest.mark.parametrize("kind", list(EXACTNESS), ids=str)
@pytest.mark.parametrize("sizes", LARGE_PRIMES)
def test_large_prime_factors(kind: ElementType, sizes: tuple[int, ...]) -> None:
    x = numbers(kind, *sizes)

    def there(a: np.ndarray) -> np.ndarray:
        return np.fft.fft(a)

    def back(a: np.ndarray) -> np.ndarray:
        return np.fft.ifft(a)

    expected = there(x.astype(np.complex128))
    found = tj.jit(there)(x)
    assert found.dtype == x.dtype
    assert np.abs(found - expected).max() <= 2 * EXACTNESS[kind] * np.abs(expected).max()
    assert np.abs(tj.jit(back)(found) - x).max() <= 8 * EXACTNESS[kind] * np.abs(x).max()
    assert library_calls(there, x) == library_calls(back, found) == 0


@pytest.mark.parametrize("sizes", [(17, 19), (34, 3, 23), (9, 2, 17)])
def test_large_prime_factors_along_several_axes(sizes: tuple[int, ...]) -> None:
    x = numbers(ElementType.C128, *sizes)
    there, back = tj.jit(lambda a: np.fft.fftn(a)), tj.jit(lambda a: np.fft.ifftn(a))
    expected = np.fft.fftn(x)
    assert np.abs(there(x) - expected).max() <= 4e-15 * np.abs(expected).max()
    assert np.abs(back(expected) - x).max() <= 2e-14 * np.abs(x).max()


@pytest.mark.parametrize("kind", list(EXACTNESS), ids=str)
@pytest.mark.parametrize(
    "sizes",
    [(1,), (2,), (3,), (15,), (34,), (101,), (20, 9), (40, 17), (30, 255), (10, 62), (5, 51, 99)],
)
def test_real_numbers_of_any_length(kind: ElementType, sizes: tuple[int, ...]) -> None:
    x = numbers(kind, *sizes).real
    axes = tuple(range(-min(len(sizes), 2), 0))
    expected = np.fft.rfftn(x.astype(np.float64), axes=axes)
    there = tj.jit(lambda a: np.fft.rfftn(a, axes=axes))
    back = tj.jit(lambda a: np.fft.irfftn(a, [sizes[axis] for axis in axes], axes))
    found = there(x)
    assert found.dtype == kind.dtype
    assert np.abs(found - expected).max() <= 2 * EXACTNESS[kind] * np.abs(expected).max()
    # What must be real is taken to be real.
    found[..., 0] += 1j * (len(sizes) == 1)
    assert np.abs(back(found) - x).max() <= 8 * EXACTNESS[kind] * np.abs(x).max()
    assert library_calls(there, x) == library_calls(back, found) == 0


def test_transforms_of_constants() -> None:
    """What only the compiler has is computed by it, not folded: three rows are 24 numbers."""
    spectrum = np.fft.rfft(np.arange(24, dtype=np.float32).reshape(3, 8))

    def build(_: Instruction) -> Instruction:
        return ops.fft(ops.constant(spectrum.astype(np.complex64)), "IRFFT", (8,))

    made = compiled(computation(build, Shape(ElementType.F32, (1,))))([np.zeros(1, np.float32)])
    assert np.allclose(made[0], np.arange(24).reshape(3, 8), atol=1e-4)
