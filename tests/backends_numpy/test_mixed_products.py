"""Products of two element types, the narrow ones among them, as XLA computes them."""

from __future__ import annotations

import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import tracejit as tj
from tests.fuzz import refused
from tests.judge import run_xla
from tracejit.hlo import parse
from tracejit.shapes import ElementType

# Without s1, whose -1 XLA's CPU backend takes for 1, and u1, whose products it refuses.
INTEGERS = ("s2", "u2", "s4", "u4", "s8", "u8")
FLOATS = (
    *("f4e2m1fn", "f8e8m0fnu", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e3m4", "f8e4m3", "f8e4m3fnuz"),
    *("f8e4m3fn", "f8e5m2", "bf16", "f32"),
)


def _product(left: str, right: str, result: str) -> str:
    return f"""HloModule mixed

ENTRY %e (p: {left}[3,5], q: {right}[5,4]) -> {result}[3,4] {{
  %p = {left}[3,5] parameter(0)
  %q = {right}[5,4] parameter(1)
  ROOT %r = {result}[3,4] dot(%p, %q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


def _given(name: str, shape: tuple[int, int]) -> np.ndarray:
    element_type = ElementType(name)
    numbers = np.arange(np.prod(shape)).reshape(shape) * 5 % 7
    if element_type.is_integral:
        least = -(1 << (element_type.bits - 1)) if name.startswith("s") else 0
        return np.asarray((numbers % (1 << min(element_type.bits, 3))) + max(least, -3)).astype(
            element_type.dtype
        )
    if name == "f8e8m0fnu":
        return np.asarray(2.0 ** (numbers % 3 - 1)).astype(element_type.dtype)
    return np.asarray((numbers - 3) / 2).astype(element_type.dtype)


def _check(text: str, given: list[np.ndarray]) -> None:
    """Compares interpreter and compiled code, and both with XLA where it does not refuse."""
    ours = tj.interpret(parse(text), *given)
    np.testing.assert_array_equal(tj.compile(parse(text))(*given), ours, text)
    try:
        expected = run_xla(parse(text), *given)
    except JaxRuntimeError as error:
        if not refused.reason(error):
            raise
        return
    np.testing.assert_array_equal(ours, expected, text)


@pytest.mark.parametrize("names", [INTEGERS, FLOATS], ids=["integers", "floats"])
def test_mixed_products(names: tuple[str, ...]) -> None:
    """Each type with itself and the next two, from either side."""
    result = "s32" if names is INTEGERS else "f32"
    pairs = [(a, b) for n, a in enumerate(names) for b in (*names[n : n + 3], names[-1])]
    for left, right in dict.fromkeys([*pairs, *((b, a) for a, b in pairs)]):
        text = _product(left, right, result)
        given = [_given(left, (3, 5)), _given(right, (5, 4))]
        _check(text, given)


@pytest.mark.parametrize("right", ["s8", "u2"])
@pytest.mark.parametrize("left", ["f4e2m1fn", "f8e8m0fnu", "bf16", "f32"])
def test_products_of_floats_and_integers(left: str, right: str) -> None:
    text = _product(left, right, "f32")
    given = [_given(left, (3, 5)), _given(right, (5, 4))]
    _check(text, given)
