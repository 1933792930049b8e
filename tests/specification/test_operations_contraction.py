"""The page "Operation semantics": Dot, DotGeneral and the convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tests.specification.running import F32, computation, expect, f32
from tracejit.attributes import ConvDimensionNumbers
from tracejit.errors import ShapeError
from tracejit.ops import DotDimensionNumbers
from tracejit.shapes import Shape


@pytest.mark.parametrize(
    ("lhs", "rhs", "wanted"), [((3,), (3,), ()), ((2, 3), (3,), (2,)), ((2, 3), (3, 4), (2, 4))]
)
def test_dot_of_vectors_and_matrices(
    lhs: tuple[int, ...], rhs: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    x = np.arange(np.prod(lhs), dtype=np.float32).reshape(lhs)
    y = np.arange(np.prod(rhs), dtype=np.float32).reshape(rhs)
    assert (x @ y).shape == wanted
    expect(lambda b, x, y: b.dot(x, y), [x, y], np.asarray(x @ y))


def test_dot_contracts_dimensions_of_one_size() -> None:
    with pytest.raises(ShapeError, match=r"lhs f32\[2,3\] dimension 1 is 3, rhs f32\[4,5\]"):
        computation(lambda b, x, y: b.dot(x, y), Shape(F32, (2, 3)), Shape(F32, (4, 5)))


def test_dot_general_contracts_named_dimensions() -> None:
    lhs, rhs = f32([[1, 2, 3], [4, 5, 6]]), f32([[1, 1, 1], [2, 2, 2]])
    numbers = DotDimensionNumbers((1,), (1,))
    wanted = f32([[6, 12], [15, 30]])
    expect(lambda b, x, y: b.dot_general(x, y, numbers), [lhs, rhs], wanted)


def test_dot_general_runs_batches_in_step() -> None:
    lhs = f32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    rhs = f32([[[1, 0], [0, 1]], [[1, 0], [0, 1]]])
    numbers = DotDimensionNumbers((2,), (1,), (0,), (0,))
    expect(lambda b, x, y: b.dot_general(x, y, numbers), [lhs, rhs], lhs)


@pytest.mark.parametrize("batch", [(2,), (2, 5)])
def test_dot_general_of_batches_of_matrices(batch: tuple[int, ...]) -> None:
    rank = len(batch)
    numbers = DotDimensionNumbers((rank + 1,), (rank,), tuple(range(rank)), tuple(range(rank)))
    made = computation(
        lambda b, x, y: b.dot_general(x, y, numbers),
        Shape(F32, (*batch, 3, 4)),
        Shape(F32, (*batch, 4, 6)),
    )
    assert made.root.array_shape.dimensions == (*batch, 3, 6)


def convolved(
    x: np.ndarray, w: np.ndarray, strides: Sequence[int], padding: Sequence[tuple[int, int]]
) -> np.ndarray:
    """The page's pseudocode of a convolution over two dimensions, loop by loop."""
    batch, features, height, width = x.shape
    out_features, _, kernel_height, kernel_width = w.shape
    (low_y, high_y), (low_x, high_x) = padding
    rows = (height + low_y + high_y - kernel_height) // strides[0] + 1
    columns = (width + low_x + high_x - kernel_width) // strides[1] + 1
    out = np.zeros((batch, out_features, rows, columns), x.dtype)
    for b, oz, oy, ox in np.ndindex(out.shape):
        for iz, ky, kx in itertools.product(
            range(features), range(kernel_height), range(kernel_width)
        ):
            iy, ix = oy * strides[0] + ky - low_y, ox * strides[1] + kx - low_x
            if 0 <= iy < height and 0 <= ix < width:
                out[b, oz, oy, ox] += x[b, iz, iy, ix] * w[oz, iz, ky, kx]
    return out


X = np.arange(2 * 3 * 5 * 6, dtype=np.float32).reshape(2, 3, 5, 6) % 7 - 3
W = np.arange(4 * 3 * 2 * 3, dtype=np.float32).reshape(4, 3, 2, 3) % 5 - 2


@pytest.mark.parametrize(
    ("strides", "padding"),
    [((1, 1), ((0, 0), (2, 3))), ((2, 3), ((1, 0), (1, 2))), ((1, 2), ((-1, 0), (0, -2)))],
)
def test_convolution_is_the_pages_pseudocode(
    strides: tuple[int, int], padding: tuple[tuple[int, int], ...]
) -> None:
    wanted = convolved(X, W, strides, padding)
    expect(lambda b, x, w: b.conv_with_general_padding(x, w, strides, padding), [X, W], wanted)


def test_conv_pads_same_or_not_at_all() -> None:
    same = ((0, 1), (1, 1))  # as much as keeps the size for a stride of one
    for padding, pairs in (("SAME", same), ("VALID", ((0, 0), (0, 0)))):
        wanted = convolved(X, W, (1, 1), pairs)
        expect(lambda b, x, w, p=padding: b.conv(x, w, (1, 1), p), [X, W], wanted)


def test_convolutions_with_dimension_numbers() -> None:
    numbers = ConvDimensionNumbers.from_labels("NHWC", "HWIO", "NHWC")
    x, w = X.transpose(0, 2, 3, 1).copy(), W.transpose(2, 3, 1, 0).copy()
    wanted = convolved(X, W, (1, 1), ((0, 0), (2, 3))).transpose(0, 2, 3, 1).copy()
    padding = ((0, 0), (2, 3))
    expect(lambda b, x, w: b.conv_general(x, w, (1, 1), padding, numbers), [x, w], wanted)
    valid = convolved(X, W, (1, 1), ((0, 0), (0, 0))).transpose(0, 2, 3, 1).copy()
    expect(
        lambda b, x, w: b.conv_with_general_dimensions(x, w, (1, 1), "VALID", numbers),
        [x, w],
        valid,
    )


def test_dilation_puts_holes_between_elements() -> None:
    holes_x, holes_w = np.zeros((2, 3, 9, 6), np.float32), np.zeros((4, 3, 2, 5), np.float32)
    holes_x[:, :, ::2], holes_w[..., ::2] = X, W
    padding = ((1, 0), (0, 1))
    wanted = convolved(holes_x, holes_w, (1, 1), padding)
    expect(
        lambda b, x, w: b.conv_general_dilated(x, w, (1, 1), padding, (2, 1), (1, 2)),
        [X, W],
        wanted,
    )


def test_window_reversal_turns_the_kernel_round() -> None:
    padding = ((0, 0), (0, 0))
    wanted = convolved(X, W[:, :, ::-1], (1, 1), padding)
    expect(
        lambda b, x, w: b.conv_general_dilated(
            x, w, (1, 1), padding, window_reversal=(True, False)
        ),
        [X, W],
        wanted,
    )


def test_feature_groups_are_separate_convolutions() -> None:
    """Depthwise: [height, width, in_channels, multiplier] becomes [height, width, 1, …]."""
    kernel = np.arange(6 * 1 * 2 * 2, dtype=np.float32).reshape(6, 1, 2, 2) % 5 - 2
    padding = ((0, 0), (0, 0))
    parts = [
        convolved(X[:, i : i + 1], kernel[2 * i : 2 * i + 2], (1, 1), padding) for i in range(3)
    ]
    expect(
        lambda b, x, w: b.conv(x, w, (1, 1), "VALID", feature_group_count=3),
        [X, kernel],
        np.concatenate(parts, axis=1),
    )


def test_batch_groups_pair_with_output_features() -> None:
    padding = ((0, 0), (0, 0))
    parts = [convolved(X[i : i + 1], W[2 * i : 2 * i + 2], (1, 1), padding) for i in range(2)]
    expect(
        lambda b, x, w: b.conv(x, w, (1, 1), "VALID", batch_group_count=2),
        [X, W],
        np.concatenate(parts, axis=1),
    )
