"""Pow and Atan2 of complex numbers that are zero, infinite or NaN: one definition everywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tracejit as tj
from tracejit import ops
from tracejit.graph import Computation, Instruction
from tracejit.shapes import Shape, element_type_of

PARTS = (0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan)
NUMBERS = np.array([complex(a, b) for a in PARTS for b in PARTS])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("function", [ops.pow, ops.atan2], ids=["pow", "atan2"])
def test_interpreted_and_compiled_agree(
    function: Callable[[Instruction, Instruction], Instruction], dtype: type
) -> None:
    z, w = (each.ravel().astype(dtype) for each in np.meshgrid(NUMBERS, NUMBERS))
    shape = Shape(element_type_of(dtype), z.shape)
    x, y = (ops.parameter(number, shape) for number in range(2))
    computation = Computation("edges", (x, y), function(x, y))
    expected, made = tj.interpret(computation, z, w), tj.compile(computation)(z, w)
    for part in ("real", "imag"):
        a, b = getattr(made, part), getattr(expected, part)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-12)


def test_values_that_are_written_down() -> None:
    def of(function: Callable[..., Instruction], a: complex, b: complex) -> complex:
        return complex(tj.interpret(Computation("c", (), function(*map(ops.constant, (a, b))))))

    assert of(ops.atan2, 0j, -1j) == np.pi
    assert of(ops.pow, 0j, 0j) == 1
    assert of(ops.pow, 0j, 2 + 1j) == 0
    power = of(ops.pow, complex(0, np.inf), 1 + 0j)
    assert power.real == np.inf
    assert np.isnan(power.imag)
