"""Random ops: bits have no derivative, and a stream's numbers refuse one."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.evaluation import given
from tracejit import ops
from tracejit.autodiff.reverse import pullback
from tracejit.errors import DerivativeError
from tracejit.ops.random import PHILOX
from tracejit.shapes import ElementType, Shape


def test_bits_pass_no_cotangent_on() -> None:
    x = given("f64[4]")
    state = ops.constant(np.zeros(3, np.uint64))
    shape = Shape(ElementType.F64, (4,))
    bits = ops.get_tuple_element(ops.rng_bit_generator(PHILOX, state, shape), 1)
    made = ops.mul(x, bits)
    (cotangent,) = pullback([made], [x], [ops.constant(np.ones(4))])
    assert cotangent is not None


def test_a_stream_has_no_derivative_by_its_bounds() -> None:
    a = given("f64[]")
    made = ops.rng_uniform(a, ops.constant(3.0), Shape(ElementType.F64, ()))
    with pytest.raises(DerivativeError, match="rng: has no derivative"):
        pullback([made], [a], [ops.constant(1.0)])


def test_the_gradient_of_numbers_from_a_key() -> None:
    key = tj.random.key(0)
    u = tj.random.uniform(key, (5,))
    gradient = tj.grad(lambda a: tj.random.uniform(key, (5,), minval=a, maxval=3 * a).sum())(2.0)
    np.testing.assert_allclose(gradient, (1 + 2 * u).sum(), rtol=1e-14)
