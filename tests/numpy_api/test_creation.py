"""Making arrays inside traced functions, and functions that write, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.arrays import COUNT, F32, F64
from tests.numpy_api.compare import Function, check, check_writes, same
from tracejit.errors import AttributeValueError, ConcretizationError

KNOWN: dict[str, Function] = {
    "zeros": lambda np, x: (np.zeros(3), np.zeros((2, 3), np.int8), np.ones((), complex)),
    "full": lambda np, x: (np.full((2, 2), 3), np.full(2, 2.5, np.float32)),
    "array": lambda np, x: (np.array([1, 2.5]), np.array([[1, 2], [3, 4]], "f4"), np.array(3)),
    "ndmin": lambda np, x: np.array([1, 2], ndmin=3),
    "arange": lambda np, x: (
        np.arange(5),
        np.arange(2, 40, 3),
        np.arange(40, 2, -3),
        np.arange(0.5, 30, 0.25),
        np.arange(3, dtype=np.float32),
        np.arange(5, 5),
    ),
    "linspace": lambda np, x: (
        np.linspace(0, 1, 7),
        np.linspace(2, -3, 5, endpoint=False),
        np.linspace(1, 2, 1),
        np.linspace(0, 10, 4, dtype=int),
        np.linspace(0, 1, 0),
        np.linspace(1.0, 2, 3, retstep=True),
    ),
    "logspace": lambda np, x: (np.logspace(0, 2, 5), np.geomspace(1, 1000, 4)),
    "eye": lambda np, x: (np.eye(3), np.eye(2, 4, 1, np.int32), np.identity(2), np.tri(3, 4, -1)),
    "meshgrid": lambda np, x: np.meshgrid(np.arange(3), np.arange(2.0)),
    "asarray": lambda np, x: (np.asarray([1, 2]), np.asarray(2.5, np.float32)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_from_known_values(name: str) -> None:
    check_writes(KNOWN[name], F64)


UNKNOWN: dict[str, Function] = {
    "array": lambda np, x: np.array([x[0], 2 * x[1], 3.0]),
    "nested": lambda np, x: np.array([[x[0], 1], [2, x[1]]]),
    "of rows": lambda np, x: np.array([x, x + 1, np.zeros(5)]),
    "full": lambda np, x: (np.full((2, 3), x[0]), np.full_like(x, x[1])),
    "like": lambda np, x: (np.zeros_like(x), np.ones_like(x, dtype=int), np.empty_like(x) * 0),
    "like of shape": lambda np, x: np.zeros_like(x, shape=(2, 2)),
    "linspace": lambda np, x: (
        np.linspace(x[0], x[1], 7),
        np.linspace(x, x + 1, 4, axis=1, endpoint=False),
    ),
    "meshgrid": lambda np, x: (
        np.meshgrid(x, x[:2]),
        np.meshgrid(x, x[:2], indexing="ij", sparse=True),
    ),
    "vander": lambda np, x: (np.vander(x, 3), np.vander(x, 4, increasing=True)),
    "asarray": lambda np, x: np.asarray(x, np.float32),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_from_unknown_values(name: str) -> None:
    check_writes(UNKNOWN[name], COUNT)
    check_writes(UNKNOWN[name], COUNT.astype(np.float32))


def test_arrays_made_inside_can_be_written_to() -> None:
    def function(np: Any, x: Any) -> Any:
        made = [
            np.zeros(4),
            np.arange(4.0),
            np.linspace(0, 1, 4),
            np.array([1.0, 2, 3, 4]),
            np.ones_like(x[0]),
            np.tile([1.0, 2.0], 2),
            np.copy([1.0, 2, 3, 4]),
        ]
        for number, array in enumerate(made):
            array[number % 4] = x[0, 0]
        return made

    check_writes(function, F64)


def test_asarray_is_the_array_itself() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        same_one = np.asarray(y)
        same_one[0] = 5
        other = np.array(y)
        other[1] = 6
        return y

    check_writes(function, F64)


def test_sizes_must_be_known() -> None:
    with pytest.raises(
        ConcretizationError, match="arange: the result's size depends on argument n"
    ):
        tj.jit(lambda n: np.arange(n))(3)
    with pytest.raises(ConcretizationError, match="linspace: the result's size depends on"):
        tj.jit(lambda n: np.linspace(0, 1, n))(3)


def test_out_where_and_dtype() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.zeros((3, 4))
        np.add(x, 1, out=y, where=x > 0)
        z = np.empty((3, 4), np.float32)
        np.multiply(x, x, out=z)
        total = np.zeros(4)
        np.sum(x, axis=0, out=total)
        whole, rest = np.zeros((3, 4)), np.zeros((3, 4))
        np.modf(x, out=(rest, whole))
        return y, z, total, whole, rest, np.add(x, 1, dtype=np.float32)

    check_writes(function, F64)


NARROW = {
    "bfloat16", "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "int2", "int4", "uint2", "uint4",
}  # fmt: skip


def test_the_namespace_is_numpys() -> None:
    """Every public function has the name of NumPy's function that it records.

    The scalar types that NumPy lacks are those of ml_dtypes.
    """
    public = [name for name in tj.numpy.__all__ if callable(getattr(tj.numpy, name))]
    assert len(public) > 250
    assert {name for name in public if not hasattr(np, name)} == NARROW
    for name in NARROW:
        assert getattr(tj.numpy, name) is getattr(ml_dtypes, name), name
    assert tj.numpy.pi == np.pi
    assert tj.numpy.float32 is np.float32


def test_what_is_known_stays_numpys() -> None:
    """Calls on nothing traced are NumPy's own: their results are numbers for Python."""

    def function(x: Any) -> Any:
        n = np.prod(x.shape)
        assert isinstance(n, np.int64)
        assert isinstance(np.sqrt(4.0), np.float64)
        table = {int(n): 1}
        return x.reshape(n) * table[12]

    same(tj.jit(function)(F32), F32.reshape(12))
    check(lambda np, x: x * np.float32(np.sqrt(2.0)), F32)


@pytest.mark.parametrize("dtype", [None, "u1", "f2", "i4", "f4", "f8", "c8"])
@pytest.mark.parametrize("bounds", [(20,), (3, 64, 7), (0, 20, 0.5), (2.5, 33), (5, 5)])
def test_ranges_are_numpys(bounds: tuple[float, ...], dtype: str | None) -> None:
    same(tj.jit(lambda: np.arange(*bounds, dtype=dtype))(), np.arange(*bounds, dtype=dtype))


def test_a_long_range_is_never_made() -> None:
    text = tj.jit(lambda: np.arange(5, 10**14, 2)).lower().as_text("hlo")
    assert "s64[49999999999998]" in text


def test_few_known_floats_are_numpys_own() -> None:
    """To the last bit: -1 + 5 * 0.2 is zero, and so is the place where it stands."""

    def known(x: Any) -> Any:
        ends = np.linspace(-1, 2, 16), np.linspace(np.float32(-1), 2, 16), np.arange(-1, 2, 0.2)
        return *ends, np.searchsorted(ends[0], x, side="right")

    for found, expected in zip(tj.jit(known)(0.0), known(np.float64(0.0)), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


def test_arrays_of_a_dtype_are_not_copied() -> None:
    def function(np: Any, x: Any) -> Any:
        y = x.copy()
        y.astype(np.float64, copy=False)[0] = 1
        np.astype(y, np.float64, copy=False)[1] = 2
        y.astype(np.float32, copy=False)[2] = 3
        y.astype(np.float64)[:, 0] = 4
        return y

    check_writes(function, F64)


@pytest.mark.parametrize(
    "make",
    [
        lambda np, x: np.zeros(3, device="gpu"),
        lambda np, x: np.full(3, x[0, 0], device="gpu"),
        lambda np, x: np.ones_like(x, device="gpu"),
        lambda np, x: np.asarray(x, device="gpu"),
        lambda np, x: np.astype(x, np.float32, device="gpu"),
        lambda np, x: np.arange(3, device="gpu"),
        lambda np, x: np.linspace(0, x[0, 0], 3, device="gpu"),
        lambda np, x: np.eye(3, device="gpu"),
    ],
)
def test_other_devices_are_refused(make: Function) -> None:
    with pytest.raises(AttributeValueError, match="device must be 'cpu', not 'gpu'"):
        tj.jit(lambda x: make(np, x))(F64)
