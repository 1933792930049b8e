"""Derivatives of DotGeneral and ConvGeneralDilated: contractions again, exact for any window.

Both are linear in each operand: <f(x, w), g> = <x, gx> = <w, gw>, exactly in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.autodiff.structure import gradients, opcodes, pulled_back
from tests.building import computation
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.backends.numpy import evaluate
from tracejit.graph import Instruction
from tracejit.ops import DotDimensionNumbers
from tracejit.shapes import ElementType, shape_of


def check_bilinear(build: Callable[..., Instruction], sizes: Sequence[Sequence[int]]) -> None:
    rng = np.random.default_rng(0)
    operands = [rng.integers(-9, 10, size).astype(np.float64) for size in sizes]
    result = evaluate(computation("product", build, *map(shape_of, operands)), operands)
    cotangent = rng.integers(-9, 10, result.shape).astype(np.float64)
    for operand, gradient in zip(operands, gradients(build, operands, [cotangent]), strict=True):
        expected = 0 if gradient is None else np.sum(gradient * operand)
        assert np.sum(result * cotangent) == expected


@given(st.data())
def test_dot_general_with_any_dimension_numbers(data: st.DataObject) -> None:
    sizes = {"batch": [2, 3], "contracting": [4, 2], "lhs": [3, 2], "rhs": [2, 5]}
    counts = {kind: data.draw(st.integers(0, 2), kind) for kind in sizes}
    shared = [(kind, i) for kind in ("batch", "contracting") for i in range(counts[kind])]

    def arranged(own: str) -> list[tuple[str, int]]:
        return data.draw(st.permutations([*shared, *[(own, i) for i in range(counts[own])]]), own)

    lhs, rhs = arranged("lhs"), arranged("rhs")

    def places(roles: list[tuple[str, int]], kind: str) -> tuple[int, ...]:
        return tuple(roles.index((kind, i)) for i in range(counts[kind]))

    numbers = DotDimensionNumbers(
        places(lhs, "contracting"),
        places(rhs, "contracting"),
        places(lhs, "batch"),
        places(rhs, "batch"),
    )
    check_bilinear(
        lambda x, y: ops.dot_general(x, y, numbers),
        [[sizes[kind][i] for kind, i in roles] for roles in (lhs, rhs)],
    )


spatial = st.fixed_dictionaries(
    {
        "size": st.integers(0, 6),
        "window": st.integers(1, 4),
        "stride": st.integers(1, 3),
        "low": st.integers(-2, 4),
        "high": st.integers(-2, 4),
        "lhs_dilation": st.integers(1, 3),
        "rhs_dilation": st.integers(1, 3),
        "reversal": st.booleans(),
    }
)


@given(
    st.lists(spatial, max_size=2),
    st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]),
    st.tuples(*[st.integers(1, 2)] * 3),
    st.data(),
)
def test_conv_with_any_window_groups_and_dimension_numbers(
    window: list[dict[str, int]],
    groups: tuple[int, int],
    factors: tuple[int, int, int],
    data: st.DataObject,
) -> None:
    for entry in window:
        dilated = (entry["size"] - 1) * entry["lhs_dilation"] + 1 if entry["size"] else 0
        assume(dilated + entry["low"] + entry["high"] >= 0)
    feature_groups, batch_groups = groups
    batch, features, out_features = factors
    rank = 2 + len(window)

    def order(label: str) -> list[int]:
        return data.draw(st.permutations(range(rank)), label)

    lhs, rhs, out = order("lhs"), order("rhs"), order("out")
    numbers = ConvDimensionNumbers(
        *(lhs[0], lhs[1], tuple(lhs[2:])),
        *(rhs[0], rhs[1], tuple(rhs[2:])),
        *(out[0], out[1], tuple(out[2:])),
    )
    image, kernel = [0] * rank, [0] * rank
    image[lhs[0]], image[lhs[1]] = batch * batch_groups, features * feature_groups
    kernel[rhs[0]], kernel[rhs[1]] = features, out_features * feature_groups * batch_groups
    for i, entry in enumerate(window):
        image[lhs[2 + i]], kernel[rhs[2 + i]] = entry["size"], entry["window"]
    check_bilinear(
        lambda x, w: ops.conv_general_dilated(
            x,
            w,
            [e["stride"] for e in window],
            [(e["low"], e["high"]) for e in window],
            [e["lhs_dilation"] for e in window],
            [e["rhs_dilation"] for e in window],
            numbers,
            feature_groups,
            batch_groups,
            window_reversal=[bool(e["reversal"]) for e in window],
        ),
        [image, kernel],
    )


def test_the_gradients_of_a_convolution_are_two_convolutions() -> None:
    found = opcodes(
        lambda x, w: ops.conv(x, w, (1, 1), "SAME"), np.zeros((2, 3, 8, 8)), np.zeros((4, 3, 3, 3))
    )
    assert found == {"parameter": 3, "convolution": 2}


def test_the_gradients_of_a_matrix_product_are_two_products() -> None:
    found = opcodes(ops.dot, np.zeros((2, 3)), np.zeros((3, 4)))
    assert found["dot"] == 2
    assert set(found) <= {"parameter", "dot", "transpose"}


@pytest.mark.parametrize("preferred", [ElementType.F32, ElementType.BF16])
def test_gradients_have_their_operands_types_whatever_is_preferred(
    preferred: ElementType,
) -> None:
    half = np.ones((2, 2), np.float16)
    _, _, results = pulled_back(
        lambda x, y: ops.dot(x, y, preferred_element_type=preferred), half, half
    )
    assert [str(r.shape) for r in results if r is not None] == ["f16[2,2]", "f16[2,2]"]


def test_integers_have_no_gradient_even_where_floats_are_preferred() -> None:
    whole = np.ones((2, 2), np.int8)
    _, _, results = pulled_back(
        lambda x, y: ops.dot(x, y, preferred_element_type=ElementType.F32), whole, whole
    )
    assert results == [None, None]


def test_precision_is_handed_on() -> None:
    _, _, (result, _) = pulled_back(
        lambda x, y: ops.dot(x, y, "highest"), np.zeros((2, 3)), np.zeros((3, 4))
    )
    while result is not None and result.op.opcode != "dot":
        (result,) = result.operands
    assert result is not None
    assert result.attributes["operand_precision"] == ("highest", "highest")
