"""ReduceWindow and SelectAndScatter: the specification's examples, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.ops.evaluation import evaluated
from tracejit import ops
from tracejit.attributes import WindowDimension
from tracejit.errors import AttributeValueError, ElementTypeError, ShapeError, TracejitError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER, Padding, running_axis
from tracejit.shapes import ElementType, Shape

F32, S32 = ElementType.F32, ElementType.S32


def array(*dimensions: int, element_type: ElementType = F32) -> Instruction:
    return ops.parameter(0, Shape(element_type, dimensions))


def test_maximum_over_windows_apart() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 6)
    pooled = evaluated(lambda x: ops.reduce_window_by("max", x, [2, 3], [2, 3], "VALID"), values)
    assert_array_equal(pooled, [[8, 11], [20, 23]])


@pytest.mark.parametrize(("padding", "minima"), [("VALID", [100, 1]), ("SAME", [1000, 10, 1])])
def test_minimum_with_both_paddings(padding: Padding, minima: Sequence[int]) -> None:
    values = np.array([10000, 1000, 100, 10, 1], np.float32)
    assert_array_equal(
        evaluated(lambda x: ops.reduce_window_by("min", x, [3], [2], padding), values), minima
    )


def test_sum_with_both_dilations() -> None:
    values = np.array([[1, 2], [3, 4], [5, 6]], np.int32)

    def build(x: Instruction) -> Instruction:
        return ops.reduce_window_by("add", x, [2, 1], [4, 1], [(2, 1), (0, 0)], [2, 1], [3, 1])

    assert_array_equal(evaluated(build, values), [[0, 0], [3, 4]])


def test_init_value_counts_once_and_padding_not_at_all() -> None:
    add = ops.scalar_computation("add", F32)

    def build(x: Instruction, init: Instruction) -> Instruction:
        return ops.reduce_window(x, init, add, [3], [1], [(2, 2)], [2])

    values, init = np.array([1, 2, 4], np.float32), np.float32(100)
    assert_array_equal(evaluated(build, values, init), [101, 101, 103, 102, 106, 104, 104])


@pytest.mark.parametrize(
    ("name", "function"),
    [("add", np.cumsum), ("mul", np.cumprod), ("max", np.maximum.accumulate)],
)
def test_cumulative_follows_numpy(name: str, function: Callable[..., np.ndarray]) -> None:
    values = np.random.default_rng(0).integers(-3, 4, (4, 5)).astype(np.int32)
    for axis in (0, 1):
        forward = evaluated(lambda x, a=axis: ops.cumulative(name, x, a), values)
        assert_array_equal(forward, function(values, axis=axis))
        backward = evaluated(lambda x, a=axis: ops.cumulative(name, x, a, True), values)
        assert_array_equal(backward, np.flip(function(np.flip(values, axis), axis=axis), axis))


def test_running_axis_is_that_of_cumulative_windows_only() -> None:
    forward = ops.cumulative("add", array(4, 5), 1)
    backward = ops.cumulative("add", array(4, 5), 0, reverse=True)
    pooled = ops.reduce_window_by("add", array(4, 5), [1, 5], None, "SAME")
    assert running_axis(forward.attributes["window"], (4, 5)) == 1
    assert running_axis(backward.attributes["window"], (4, 5)) == 0
    assert running_axis(pooled.attributes["window"], (4, 5)) is None


OVERLAPPING = np.array(
    [[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]], np.float32
)
APART = np.array(
    [[7, 2, 5, 3, 10, 2], [3, 8, 9, 3, 4, 2], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]], np.float32
)
SOURCE = np.array([[2, 6], [3, 1]], np.float32)


@pytest.mark.parametrize(
    ("operand", "strides", "scattered"),
    [
        (
            APART,
            (2, 3),
            [[0, 0, 0, 0, 6, 0], [0, 0, 2, 0, 0, 0], [0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 0, 1]],
        ),
        (
            OVERLAPPING,
            (2, 2),
            [[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]],
        ),
    ],
    ids=["apart", "overlapping"],
)
def test_select_and_scatter(
    operand: np.ndarray, strides: tuple[int, int], scattered: object
) -> None:
    def build(x: Instruction, source: Instruction) -> Instruction:
        return ops.select_and_scatter(
            x,
            ops.scalar_computation("ge", F32),
            (2, 3),
            strides,
            "VALID",
            source,
            ops.constant(0, F32),
            ops.scalar_computation("add", F32),
        )

    assert_array_equal(evaluated(build, operand, SOURCE), scattered)


def test_select_and_scatter_drops_what_belongs_to_windows_of_padding_only() -> None:
    def build(x: Instruction, source: Instruction) -> Instruction:
        return ops.select_and_scatter(
            x,
            ops.scalar_computation("ge", F32),
            (2,),
            (2,),
            [(2, 2)],
            source,
            ops.constant(0.5, F32),
            ops.scalar_computation("add", F32),
        )

    operand, source = np.array([1, 2], np.float32), np.array([10, 20, 30], np.float32)
    assert_array_equal(evaluated(build, operand, source), [0.5, 20.5])


def scatter(operand: Instruction, source: Instruction, **changed: object) -> Instruction:
    arguments: dict[str, object] = {
        "select": ops.scalar_computation("ge", F32),
        "window_dimensions": (2,),
        "window_strides": (2,),
        "padding": "VALID",
        "init_value": ops.constant(0, F32),
        "scatter": ops.scalar_computation("add", F32),
        **changed,
    }
    return ops.select_and_scatter(operand, source=source, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: ops.reduce_window_by("add", array(4), [2, 2]),
            AttributeValueError,
            r"reduce_window: window_dimensions must be 1 positive numbers, not \(2, 2\)",
        ),
        (
            lambda: ops.reduce_window_by("add", array(4), [0]),
            AttributeValueError,
            r"reduce_window: window_dimensions must be 1 positive numbers, not \(0,\)",
        ),
        (
            lambda: ops.reduce_window_by("add", array(4), [2], [0]),
            AttributeValueError,
            r"reduce_window: window_strides must be 1 positive numbers",
        ),
        (
            lambda: ops.reduce_window_by("add", array(4), [2], None, "FULL"),
            AttributeValueError,
            r"reduce_window: padding must be SAME, VALID or pairs, not 'FULL'",
        ),
        (
            lambda: ops.reduce_window_by("add", array(4), [2], None, [(0, 0), (0, 0)]),
            AttributeValueError,
            r"reduce_window: padding must be 1 pairs \(low, high\)",
        ),
        (
            lambda: ops.reduce_window_by("add", array(4), [2], None, [(-3, -2)]),
            AttributeValueError,
            r"reduce_window: padding \(-3, -2\) of window dimension 0 removes more than there is "
            r"of operand 0 f32\[4\]",
        ),
        (
            lambda: make(
                REDUCE_WINDOW,
                array(4),
                ops.constant(0, F32),
                window=(WindowDimension(2), WindowDimension(2)),
                to_apply=ops.scalar_computation("add", F32),
            ),
            AttributeValueError,
            r"reduce_window: window must have 1 dimensions for operand 0 f32\[4\], not 2",
        ),
        (
            lambda: make(
                REDUCE_WINDOW,
                array(4),
                ops.constant(0, F32),
                window=(WindowDimension(2, reversal=True),),
                to_apply=ops.scalar_computation("add", F32),
            ),
            AttributeValueError,
            r"reduce_window: window must not be reversed",
        ),
        (
            lambda: make(
                REDUCE_WINDOW,
                array(4),
                ops.constant(0, F32),
                window=(WindowDimension(2, base_dilation=0),),
                to_apply=ops.scalar_computation("add", F32),
            ),
            AttributeValueError,
            r"reduce_window: window dimension 0 must have positive size, stride and dilations",
        ),
        (
            lambda: ops.reduce_window(
                array(4), ops.constant(0, F32), ops.scalar_computation("add", S32), [2]
            ),
            ShapeError,
            r"reduce_window: computation must be a computation \(f32\[\], f32\[\]\) -> f32\[\]; "
            r"add_s32 is",
        ),
        (
            lambda: ops.reduce_window([], [], ops.scalar_computation("add", F32), []),
            ShapeError,
            r"reduce_window: needs at least one operand",
        ),
        (
            lambda: scatter(array(4), array(3)),
            ShapeError,
            r"select_and_scatter: source f32\[3\] must have the dimensions \[2\], the window's "
            r"positions over operand f32\[4\]",
        ),
        (
            lambda: scatter(array(4), array(2, element_type=S32)),
            ElementTypeError,
            r"select_and_scatter: element types must be equal; operand f32\[4\], source s32\[2\]",
        ),
        (
            lambda: scatter(array(4), array(2), init_value=array(1)),
            ShapeError,
            r"select_and_scatter: init_value f32\[1\] must be a scalar",
        ),
        (
            lambda: scatter(array(4), array(2), select=ops.scalar_computation("max", F32)),
            ShapeError,
            r"select_and_scatter: select must be a computation .* -> pred\[\]; max_f32",
        ),
        (
            lambda: scatter(array(4), array(2), scatter=ops.scalar_computation("ge", F32)),
            ShapeError,
            r"select_and_scatter: scatter must be a computation .* -> f32\[\]; ge_f32",
        ),
        (
            lambda: make(
                SELECT_AND_SCATTER,
                array(4),
                array(2),
                ops.constant(0, F32),
                window=(WindowDimension(2, window_dilation=2),),
                select=ops.scalar_computation("ge", F32),
                scatter=ops.scalar_computation("add", F32),
            ),
            AttributeValueError,
            r"select_and_scatter: window must not be dilated or reversed",
        ),
    ],
)
def test_refusals(
    build: Callable[[], Instruction], error: type[TracejitError], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
