"""Argmin and argmax: ties, NaN and zeros, in rows whose last vectors overlap, and in slices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends_tvm.compiled import compiled, computation
from tracejit import ops
from tracejit.ops.reduction import argmax, argmin
from tracejit.shapes import ElementType, Shape

SIZES = {"few": (3, 33), "overlapping": (2, 300), "whole": (2, 256), "in parts": (1, 70_001)}
TYPES = (ElementType.F32, ElementType.F64, ElementType.S32)


def values(kind: str, size: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "zeros":
        return np.where(rng.random(size) < 0.5, 0.0, -0.0)
    made = rng.integers(-9, 9, size).astype(np.float64)
    if kind == "NaN":
        made[rng.random(size) < 0.05] = np.nan
        made[rng.random(size) < 0.05] = -np.nan
    return made


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("element_type", TYPES, ids=str)
def test_the_first_of_equals_counts(element_type: ElementType, size: tuple[int, ...]) -> None:
    shape = Shape(element_type, size)
    run = compiled(computation(lambda x: ops.tuple_([argmax(x, 1), argmin(x, 1)]), shape))
    kinds = ("ties", "zeros", "NaN") if element_type.is_floating else ("ties",)
    for kind in kinds:
        x = values(kind, size).astype(element_type.dtype)
        for found, expected in zip(run([x]), (np.argmax(x, 1), np.argmin(x, 1)), strict=True):
            np.testing.assert_array_equal(found, expected, err_msg=kind)


@pytest.mark.parametrize("place", [0, 1, 255, 256, 299])
def test_a_single_best_is_found_wherever_it_is(place: int) -> None:
    shape = Shape(ElementType.F32, (1, 300))
    x = np.full((1, 300), -np.inf, np.float32)
    x[0, place] = 1
    (found,) = compiled(computation(lambda x: argmax(x, 1), shape))([x])
    assert found.tolist() == [place]
