"""The interpreter's contractions: in what type they sum."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.building import computation
from tracejit import ops
from tracejit.backends.numpy import evaluate
from tracejit.shapes import ElementType, shape_of


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_in_single_precision(dtype: type) -> None:
    ones: np.ndarray = np.ones(4096, dtype)
    vectors = computation("dot", ops.dot, shape_of(ones), shape_of(ones))
    assert evaluate(vectors, [ones, ones]) == 4096
    image, kernel = ones.reshape(1, 4096, 1), ones.reshape(1, 4096, 1)
    convolution = computation(
        "conv", lambda x, w: ops.conv(x, w, (1,), "VALID"), shape_of(image), shape_of(kernel)
    )
    assert evaluate(convolution, [image, kernel]).item() == 4096


def test_wide_integers_keep_every_bit() -> None:
    large = np.array([2**53 + 1], np.int64)
    one = np.array([1], np.int64)
    product = computation("dot", ops.dot, shape_of(large), shape_of(one))
    assert evaluate(product, [large, one]) == 2**53 + 1


def test_products_are_formed_in_the_preferred_type() -> None:
    large = np.array([300.0], np.float16)
    product = computation(
        "dot",
        lambda x, y: ops.dot(x, y, preferred_element_type=ElementType.F32),
        shape_of(large),
        shape_of(large),
    )
    assert evaluate(product, [large, large]) == 90000
