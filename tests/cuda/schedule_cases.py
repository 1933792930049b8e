"""One function for each way in which kernels for CUDA devices are written."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tests.cuda.programs import Case

RNG = np.random.default_rng(0)


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers from a normal distribution."""
    return RNG.normal(size=shape).astype(dtype)


def cross_entropy(logits: Any, labels: Any) -> Any:
    losses = tj.nn.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + offset


def against_the_first(x: Any) -> Any:
    shares = np.exp(x - x.max(-1, keepdims=True))
    return shares * shares[:, :1] / shares.sum(-1, keepdims=True)


TEAM, PHASES = "team a row", "team a row, in phases"
PARTS = "parts of a result by blocks, then joined"
REDUCTIONS = [
    Case("short_rows", lambda x: x.sum(1), [numbers(101, 3)], TEAM),
    Case("rows_of_half_a_warp", lambda x: x.max(1), [numbers(37, 13)], TEAM),
    Case("rows_of_a_warp", lambda x: np.exp(x).sum(1), [numbers(9, 100)], TEAM),
    Case("rows_of_a_block", lambda x: x.prod(1), [1 + numbers(5, 700) / 99], TEAM),
    Case("argmax", lambda x: x.argmax(1), [numbers(6, 333)], TEAM),
    Case("any", lambda x: (x > 2).any(1), [numbers(6, 130)], TEAM),
    Case("complex", lambda x: x.sum(1), [numbers(6, 130) * 1j + 1], TEAM),
    Case("double", lambda x: (x.sum(1), x.min(1)), [numbers(3, 77, dtype="float64")], TEAM),
    Case("half", lambda x: x.sum(1), [numbers(3, 77, dtype="float16")], TEAM, 1e-3),
    Case("int8", lambda x: x.max(1), [(9 * numbers(3, 77)).astype("int8")], TEAM),
    Case("columns", lambda x: x.sum(0), [numbers(150, 70)], "warps a column"),
    Case("short_columns", lambda x: x.sum(0), [numbers(7, 70)], "thread a column"),
    Case("argmin_of_columns", lambda x: x.argmin(0), [numbers(99, 33)], "warps a column"),
    Case("whole", lambda x: x.sum(), [numbers(100, 101)], PARTS),
    Case("long_columns", lambda x: x.max(0), [numbers(9000, 3)], PARTS),
    Case("sum_of_squares", lambda x: np.sqrt((x * x).sum()), [numbers(9001)], PARTS),
]
ROWS = [
    Case("softmax", tj.nn.softmax, [numbers(33, 10)], PHASES),
    Case("softmax_of_long_rows", tj.nn.softmax, [numbers(5, 1000)], PHASES),
    Case("log_softmax", tj.nn.log_softmax, [numbers(70, 130)], PHASES),
    Case("layer_norm", layer_norm, [numbers(70, 96), numbers(96), numbers(96)], PHASES),
    Case("against_the_first", against_the_first, [numbers(9, 41)], PHASES),
    Case("against_the_first_long", against_the_first, [numbers(5, 1003)], PHASES),
    Case(
        "cross_entropy",
        tj.value_and_grad(cross_entropy),
        [numbers(65, 10), RNG.integers(0, 10, 65).astype("int32")],
        "",
    ),
]


def biased(x: Any, w: Any, b: Any) -> Any:
    return tj.nn.relu(np.exp(x) @ w.T + b)


def product(rows: int, depth: int, columns: int, dtype: str = "float32") -> list[np.ndarray]:
    return [numbers(rows, depth, dtype=dtype), numbers(depth, columns, dtype=dtype)]


TILES = "tiles of {0} x {0}"
CASTS, BY_MMA = "elementwise; elementwise; ", "tiles of {0} x {0} by mma"


def in_bf16(x: Any, y: Any) -> Any:
    return tj.lax.dot(
        x.astype("bfloat16") * 2, y.astype("bfloat16"), preferred_element_type="float32"
    )


def half_of_floats(x: Any, y: Any) -> Any:
    return x.astype("float16") @ y.astype("float16")


BATCH = [numbers(3, 17, 20), numbers(3, 20, 9)]
BIASED = [numbers(20, 40), numbers(30, 40), numbers(30)]
INTEGERS = [np.ones((9, 40), "int8"), np.ones((40, 9), "int8")]
PRODUCTS = [
    Case("product", np.matmul, product(33, 41, 27), TILES.format(16)),
    Case("batch", np.matmul, BATCH, TILES.format(16)),
    Case("tiles_of_32", np.matmul, product(321, 50, 420), TILES.format(32), 1e-4),
    Case("tiles_of_64", np.matmul, product(700, 18, 710), TILES.format(64)),
    Case("tiles_of_128", np.matmul, product(1409, 3, 1410), TILES.format(128)),
    Case("thin_half_product", np.matmul, product(20, 30, 9, "float16"), TILES.format(16), 1e-2),
    Case("half_product", np.matmul, product(37, 41, 50, "float16"), BY_MMA.format(32), 1e-2),
    Case("bfloat_product", in_bf16, product(40, 64, 17), f"{CASTS}{BY_MMA.format(32)}", 1e-2),
    Case("mma_tiles_of_64", half_of_floats, product(705, 16, 710), CASTS + BY_MMA.format(64), 1e-2),
    Case(
        "mma_tiles_of_128",
        half_of_floats,
        product(1409, 16, 1410),
        CASTS + BY_MMA.format(128),
        1e-2,
    ),
    Case("matrix_times_vector", np.matmul, [numbers(21, 300), numbers(300)], TEAM),
    Case("vector_times_matrix", np.matmul, [numbers(300), numbers(300, 21)], "warps a column"),
    Case("inner_product", np.matmul, [numbers(10000), numbers(10000)], PARTS, 1e-4),
    Case("complex_product", np.matmul, [numbers(9, 40) * 1j, numbers(40, 9) + 1j], TEAM),
    Case("epilogue", biased, BIASED, "elementwise; " + TILES.format(16), 1e-4),
    Case(
        "deep_product",
        np.matmul,
        product(17, 1029, 20),
        TILES.format(16) + ", sums in 4 parts",
        1e-4,
    ),
    Case(
        "deep_batch",
        lambda x, y: np.tanh(x @ y),
        [numbers(2, 9, 600, dtype="float64"), numbers(2, 600, 9, dtype="float64")],
        TILES.format(16) + ", sums in 2 parts; elementwise",
    ),
    Case(
        "deep_half_product",
        np.matmul,
        product(33, 700, 20, "float16"),
        TILES.format(32) + ", sums in 2 parts by mma",
        3e-2,
    ),
    Case("int8_product", np.matmul, INTEGERS, TILES.format(16)),
]


def convolution(layout: str, **how: Any) -> Any:
    """A convolution of a layout such as NHWC."""
    kernel = layout.replace("N", "O").replace("C", "I")
    kernel = "HWIO" if layout.endswith("C") else kernel
    how = {"window_strides": (1, 1), "padding": "SAME", **how}

    def convolved(x: Any, w: Any) -> Any:
        return tj.lax.conv_general_dilated(x, w, dimension_numbers=(layout, kernel, layout), **how)

    return convolved


IMPLICIT = "implicit product in tiles of {0} x {0}"
NHWC, HWIO = numbers(2, 7, 6, 5), numbers(3, 3, 5, 12)
STRIDED = convolution("NCHW", window_strides=(1, 2), padding=((1, 2), (0, 1)))
DILATED = convolution("NHWC", lhs_dilation=(2, 2), rhs_dilation=(1, 2))
GROUPS = convolution("NHWC", feature_group_count=2)
BATCH_GROUPS = convolution("NHWC", batch_group_count=2)
HALVES = [numbers(2, 7, 6, 5, dtype="float16"), numbers(3, 3, 5, 20, dtype="float16")]
CONVOLUTIONS = [
    Case("convolution", convolution("NHWC"), [NHWC, HWIO], IMPLICIT.format(16), 1e-4),
    Case("strided", STRIDED, [numbers(2, 5, 9, 8), numbers(12, 5, 3, 3)], IMPLICIT.format(16)),
    Case("dilated", DILATED, [NHWC, HWIO], IMPLICIT.format(16), 1e-4),
    Case("groups", GROUPS, [numbers(2, 7, 6, 6), numbers(3, 3, 3, 24)], IMPLICIT.format(16), 1e-4),
    Case(
        "groups_of_images",
        BATCH_GROUPS,
        [numbers(4, 7, 6, 6), numbers(3, 3, 6, 24)],
        IMPLICIT.format(16),
        1e-4,
    ),
    Case("convolved_halves", convolution("NHWC"), HALVES, IMPLICIT.format(32) + " by mma", 1e-2),
    Case(
        "thin_convolution",
        convolution("NHWC"),
        [NHWC, numbers(3, 3, 5, 2)],
        "scalar convolution",
        1e-4,
    ),
]


def double_and_single(x: Any) -> Any:
    return -x, x.astype("float32")


def channels(x: Any) -> Any:
    return x.transpose(3, 1, 0, 2)


def added_at(x: Any, i: Any, v: Any) -> Any:
    np.add.at(x, i, v)
    return x


LARGE = numbers(512, 260)
POINTWISE = [
    Case("vectors", lambda x, y: x * 2 + y, [LARGE, LARGE[0]], "4 elements at once"),
    Case("two_widths", lambda x: (x.astype("float16"), x > 0), [LARGE], "4 elements at once"),
    Case("doubles", double_and_single, [LARGE.astype("float64")], "2 elements at once"),
    Case("shifted", lambda x: x[1:] - x[:-1], [numbers(1 << 17 | 1)], "4 elements at once"),
    Case("transposed", lambda x: x.T * 2, [numbers(45, 70)], "transposing tiles"),
    Case("transposed_sum", lambda x: x + x.T, [numbers(33, 33)], "transposing tiles"),
    Case("batches", lambda x: x.transpose(0, 2, 1), [numbers(3, 40, 9)], "transposing tiles"),
    Case(
        "channels", lambda x: x.transpose(3, 1, 0, 2), [numbers(9, 3, 10, 33)], "transposing tiles"
    ),
]
PLACES = RNG.integers(0, 9, 70).astype("int32")
SCATTERS = [
    Case("added_at", added_at, [numbers(9), PLACES, numbers(70)], "scatter by atomics", 1e-4),
]
BY_WARP, BY_BLOCK = "scan by warp a row", "scan by block a row"
IN_PARTS, BY_COLUMN = "scan in parts: reduce, then scan", "scan by thread a column, in parts"


def backwards(x: Any) -> Any:
    return tj.lax.cumsum(x, 1, reverse=True)


SCANS = [
    Case("scan_of_rows", lambda x: np.cumsum(x, 1), [numbers(7, 131)], BY_WARP, 1e-4),
    Case("scan_backwards", backwards, [numbers(3, 300)], BY_WARP, 1e-4),
    Case("scan_of_long_rows", lambda x: np.cumsum(x, 1), [numbers(3, 2100)], BY_BLOCK, 1e-4),
    Case("scan_of_integers", lambda x: np.cumsum(x), [np.arange(9001) % 7], IN_PARTS),
    Case(
        "scan_of_products",
        lambda x: np.cumprod(x + 1j),
        [numbers(200) / 99],
        f"elementwise; {BY_WARP}",
        1e-4,
    ),
    Case("scan_of_columns", lambda x: np.cumsum(x * 2, 0), [numbers(99, 40)], BY_COLUMN, 1e-4),
    Case("scan_of_maxima", lambda x: np.maximum.accumulate(x), [numbers(9000)], IN_PARTS),
]
ROWS_BY_RADIX, TILES_BY_RADIX = "radix sort by block a row", "radix sort by tiles"
BY_PARTS = "radix sort of parts, then of what they keep"


def largest(x: Any) -> Any:
    return tj.lax.top_k(x, 40)


SORTS = [
    Case("sort_of_rows", lambda x: np.sort(x, 1), [numbers(3, 130)], ROWS_BY_RADIX),
    Case("argsort_of_rows", np.argsort, [(9 * numbers(2, 2500)).astype("int8")], ROWS_BY_RADIX),
    Case("sort_by_tiles", lambda x: np.argsort(x, stable=True), [numbers(9000)], TILES_BY_RADIX),
    Case("top_k_of_many", largest, [numbers(2, 8200).round(1)], BY_PARTS),
]
CASES = [*SORTS, *SCANS, *REDUCTIONS, *ROWS, *PRODUCTS, *CONVOLUTIONS, *POINTWISE, *SCATTERS]
