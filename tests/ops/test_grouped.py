"""RaggedDot and ScaledDot: the shapes they make, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.evaluation import evaluated, given
from tests.judge import parse_xla
from tracejit import ops
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops import DotDimensionNumbers, RaggedDotDimensionNumbers

MATRICES = DotDimensionNumbers((1,), (0,))


def ragged(
    lhs: str, rhs: str, sizes: str, numbers: RaggedDotDimensionNumbers | None = None
) -> Instruction:
    x, y, groups = (given(text, n) for n, text in enumerate((lhs, rhs, sizes)))
    if numbers is None:
        return ops.ragged_dot(x, y, groups)
    return ops.ragged_dot(x, y, groups, numbers)


def ragged_numbers(
    ragged: tuple[int, ...], group: tuple[int, ...] = (), **kwargs: Any
) -> RaggedDotDimensionNumbers:
    dot = DotDimensionNumbers(**{"lhs_contracting_dimensions": (1,), **kwargs})
    return RaggedDotDimensionNumbers(dot, ragged, group)


def test_shapes() -> None:
    assert str(ragged("f32[6,4]", "f32[3,4,5]", "s64[3]").shape) == "f32[6,5]"
    sums = RaggedDotDimensionNumbers(DotDimensionNumbers((0,), (0,)), (0,))
    assert str(ragged("f32[6,4]", "f32[6,5]", "u8[3]", sums).shape) == "f32[3,4,5]"
    batch = RaggedDotDimensionNumbers(DotDimensionNumbers((2,), (1,), (0,), (0,)), (0,))
    assert str(ragged("f32[6,2,4]", "f32[6,4,5]", "s32[3]", batch).shape) == "f32[6,2,5]"


REFUSALS: list[tuple[tuple[str, str, str], RaggedDotDimensionNumbers | None, type, str]] = [
    (("f32[6,4]", "f64[3,4,5]", "s32[3]"), None, ElementTypeError, "ragged_dot: element types"),
    (("f32[6,4]", "f32[3,4,5]", "f32[3]"), None, ElementTypeError, "group_sizes f32"),
    (("f32[6,4]", "f32[3,4,5]", "s32[]"), None, ShapeError, "at least one dimension"),
    (("f32[6,4]", "f32[3,4,5]", "s32[2]"), None, ShapeError, r"one entry for each group; .* is 3"),
    (("f32[6,4]", "f32[3,4,5]", "s32[2,3]"), None, ShapeError, r"the dimensions \[3\]"),
    (("f32[6,4]", "f32[3,7,5]", "s32[3]"), None, ShapeError, "ragged_dot: contracting dimensions"),
    (
        ("f32[6,4]", "f32[3,4,5]", "s32[3]"),
        ragged_numbers((), (0,), rhs_contracting_dimensions=(1,)),
        AttributeValueError,
        "lhs_ragged_dimensions must be one dimension",
    ),
    (
        ("f32[6,4]", "f32[3,4,5]", "s32[3]"),
        ragged_numbers((0,), (1,), rhs_contracting_dimensions=(1,)),
        AttributeValueError,
        "rhs_group_dimensions must be one dimension of rhs",
    ),
    (
        ("f32[6,4]", "f32[4,5]", "s32[3]"),
        ragged_numbers((1,), (1,), rhs_contracting_dimensions=(0,)),
        AttributeValueError,
        "must be empty where lhs_ragged_dimensions is a contracting dimension",
    ),
]


@pytest.mark.parametrize(("arrays", "numbers", "error", "message"), REFUSALS)
def test_ragged_dot_refuses(
    arrays: tuple[str, str, str],
    numbers: RaggedDotDimensionNumbers | None,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        ragged(*arrays, numbers)


def scaled(lhs: str, lhs_scale: str, rhs: str, rhs_scale: str) -> Instruction:
    x, s, y, t = (given(text, n) for n, text in enumerate((lhs, lhs_scale, rhs, rhs_scale)))
    return ops.scaled_dot(x, s, y, t, MATRICES)


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        (("s8[4,8]", "f32[]", "s8[8,2]", "f32[]"), ElementTypeError, "lhs s8"),
        (("f32[4,8]", "f32[]", "bf16[8,2]", "f32[]"), ElementTypeError, "must be equal"),
        (("f32[4,8]", "s32[]", "f32[8,2]", "f32[]"), ElementTypeError, "lhs_scale s32"),
        (("f32[4,8]", "f32[4,3]", "f32[8,2]", "f32[]"), ShapeError, "lhs_scale must be a scalar"),
        (("f32[4,8]", "f32[]", "f32[8,2]", "f32[8]"), ShapeError, "rhs_scale must be a scalar"),
        (("f32[4,8]", "f32[]", "f32[7,2]", "f32[]"), ShapeError, "scaled_dot: contracting"),
    ],
)
def test_scaled_dot_refuses(
    arrays: tuple[str, str, str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        scaled(*arrays)


def test_text_is_xlas() -> None:
    """Operands first, then their scales."""
    made = scaled("f8e4m3fn[4,64]", "bf16[4,2]", "f8e4m3fn[64,5]", "bf16[2,5]")
    entry = Computation("entry", tuple(sorted(made.operands, key=lambda o: o.serial)), made)
    text = parse_xla(str(Module("scaled", entry)))
    assert "scaled-dot(%parameter.0, %parameter.2, %parameter.1, %parameter.3)" in text


def test_scaled_dot_orders_its_arguments_as_the_page() -> None:
    x, w = np.ones((2, 4), np.float32), np.ones((4, 1), np.float32)
    made = evaluated(
        lambda x, s, w, t: ops.scaled_dot(x, s, w, t, MATRICES),
        x, np.array([[1, 10], [2, 20]], np.float32), w, np.float32(3) * np.ones((), np.float32),
    )  # fmt: skip
    np.testing.assert_array_equal(made, [[66], [132]])
