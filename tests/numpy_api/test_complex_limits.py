"""Complex functions of zeros, infinities and NaN: NumPy's numbers, compiled and interpreted."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import tracejit as tj
import tracejit.numpy as tnp

PARTS = (0.0, -0.0, 1.0, -2.0, 1e-310, np.inf, -np.inf, np.nan)
NUMBERS = np.array([complex(re, im) for re, im in itertools.product(PARTS, PARTS)])
NAMES = """
    arccos arccosh arcsin arcsinh arctan arctanh exp log log2 log10 sign sin sinh sqrt tan tanh
""".split()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def assert_alike(found: np.ndarray, wanted: np.ndarray) -> None:
    """Each part close to the other's, with the same sign, also of a zero."""
    for part in ("real", "imag"):
        ours, right = getattr(found, part), getattr(wanted, part)
        np.testing.assert_allclose(ours, right, rtol=1e-12)
        known = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(right)[known])


@pytest.mark.parametrize("name", NAMES)
def test_limits(name: str) -> None:
    function = getattr(tnp, name)
    wanted = getattr(np, name)(NUMBERS)
    assert_alike(tj.jit(lambda z: function(z))(NUMBERS), wanted)
    assert_alike(np.asarray(function(NUMBERS)), wanted)


def test_expm1_of_complex_infinities() -> None:
    """What C's annex G asks for, where NumPy has NaN."""
    numbers = np.array([complex(np.inf, 0.0), complex(np.nan, -0.0), complex(-np.inf, np.nan)])
    wanted = np.array([complex(np.inf, 0.0), complex(np.nan, -0.0), complex(-1.0, 0.0)])
    assert_alike(tj.jit(lambda z: tnp.expm1(z))(numbers), wanted)
    assert_alike(np.asarray(tnp.expm1(numbers)), wanted)
