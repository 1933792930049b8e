"""Arrays of others as arguments: array protocol, DLPack, memory maps; subclasses are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError


@tj.jit
def doubled(x: Any) -> Any:
    return x * 2


class Tensor:
    """Offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class Column:
    """Offers NumPy's array protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.array, dtype)


class Quantity(np.ndarray):
    """An array with a meaning of its own."""


@pytest.mark.parametrize("kind", [Tensor, Column])
def test_protocols(kind: Any) -> None:
    given = np.arange(3.0)
    np.testing.assert_array_equal(doubled(kind(given)), [0, 2, 4])
    np.testing.assert_array_equal(tj.grad(lambda x: (x**2).sum())(kind(given)), [0, 2, 4])
    np.testing.assert_array_equal(given, np.arange(3.0))


def test_memory_map(tmp_path: Path) -> None:
    given = np.memmap(tmp_path / "array", np.float64, "w+", shape=(3,))
    given[:] = [1, 2, 3]
    np.testing.assert_array_equal(doubled(given), [2, 4, 6])


def test_results_offer_dlpack() -> None:
    np.testing.assert_array_equal(np.from_dlpack(doubled(np.ones(2))), [2, 2])


@pytest.mark.parametrize("given", [np.ma.array([1.0]), np.arange(2.0).view(Quantity)])
def test_subclasses_are_refused(given: Any) -> None:
    name = type(given).__name__
    with pytest.raises(ArgumentError, match=rf"argument x of doubled: {name} is not supported"):
        doubled(given)


def test_what_does_not_export_itself() -> None:
    class Gone:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            raise RuntimeError("needs a gradient")

    message = (
        r"argument x of doubled: an object of class Gone does not make an array: needs a gradient"
    )
    with pytest.raises(ArgumentError, match=message):
        doubled(Gone())
