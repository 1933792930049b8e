"""Products of two element types and permuted broadcasts, as XLA compiles them."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.judge import run_text
from tracejit.ops.mixed_types import common_type
from tracejit.shapes import ElementType

TYPES = [
    ("f8e4m3fn", "f8e5m2", "f32"),
    ("bf16", "f32", "f32"),
    ("f16", "bf16", "f32"),
    ("bf16", "f16", "f16"),
    ("f8e5m2", "bf16", "f32"),
    ("f64", "f32", "f32"),
    ("s8", "u8", "s32"),
    ("s8", "u8", "s8"),
    ("s8", "s16", "s32"),
    ("s32", "s8", "s8"),
    ("u8", "s64", "s64"),
    ("s8", "f32", "f32"),
    ("pred", "s8", "s8"),
    ("f32", "c64", "c64"),
]

DOT = """HloModule m
ENTRY e {{
  x = f32[3,4] parameter(0)
  a = {0}[3,4] convert(x)
  b = {1}[3,4] convert(x)
  ROOT d = {2}[3,3] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}
"""
CONVOLUTION = """HloModule m
ENTRY e {{
  x = f32[3,4] parameter(0)
  i = f32[1,3,4] reshape(x)
  k = f32[3,4,1] reshape(x)
  a = {0}[1,3,4] convert(i)
  b = {1}[3,4,1] convert(k)
  ROOT c = {2}[1,3,1] convolution(a, b), window={{size=3 pad=1_1}}, dim_labels=b0f_0io->b0f
}}
"""
X = np.arange(12, dtype=np.float32).reshape(3, 4) % 7


# Convolutions of these XLA refuses, since neither type holds the other's values.
OF_DOTS_ALONE = {frozenset(t) for t in (("f8e4m3fn", "f8e5m2"), ("f16", "bf16"), ("s8", "u8"))}


@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("text", [DOT, CONVOLUTION], ids=["dot", "convolution"])
def test_products_of_two_types(text: str, types: tuple[str, str, str]) -> None:
    given = text.format(*types)
    module = tj.hlo.parse(given)
    is_judged = text is DOT or frozenset(types[:2]) not in OF_DOTS_ALONE
    expected = run_text(given, X)[0] if is_judged else tj.interpret(module, X)
    made = tj.interpret(module, X)
    np.testing.assert_array_equal(made, expected)
    np.testing.assert_array_equal(tj.compile(module)(X), expected)
    np.testing.assert_array_equal(tj.interpret(tj.hlo.parse(str(module)), X), expected)


def test_gradient_of_a_product_of_two_types() -> None:
    module = tj.hlo.parse(DOT.format("bf16", "f32", "f32"))
    cotangent = np.eye(3, dtype=np.float32)
    gradient = tj.gradient_of(module, cotangents=True)
    np.testing.assert_array_equal(tj.compile(gradient)(X, cotangent), 2 * X)


def test_no_pair_of_types_loses_a_narrow_float() -> None:
    floats = [t for t in ElementType if t.is_floating]
    narrow = [t for t in floats if t.bits == 8]
    for a in narrow:
        values = np.arange(2**8).astype(np.uint8).view(a.dtype)
        for b in floats:
            if a is not b:
                kept = values.astype(common_type(a, b, None).dtype).astype(np.float32)
                np.testing.assert_array_equal(values.astype(np.float32), kept)


def test_a_permuted_broadcast() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[3,4] parameter(0)
  ROOT b = f32[4,2,3] broadcast(x), dimensions={2,0}
}
"""
    module = tj.hlo.parse(text)
    expected = run_text(text, X)[0]
    np.testing.assert_array_equal(tj.interpret(module, X), expected)
    np.testing.assert_array_equal(tj.compile(module)(X), expected)
