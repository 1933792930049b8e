"""Convolutions of several kinds, and pooling.

NumPy's own way of writing a convolution is a view of windows and a matrix product.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal


def conv_numpy(lib: Any, x: numpy.ndarray, kernel: numpy.ndarray) -> Any:
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return numpy.tensordot(windows, kernel, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def conv_case(
    name: str,
    size: tuple[int, ...],
    tiny: tuple[int, ...],
    *,
    stride: int = 1,
    groups: int = 1,
    **more: Any,
) -> Case:
    """``size`` is (images, channels, side, results, window); padding as for "SAME" of one."""
    window = size[-1]
    around = window // 2

    def conv(lib: Any, x: Any, kernel: Any) -> Any:
        return lib.lax.conv_general_dilated(
            x, kernel, (stride, stride), [(around, around)] * 2, feature_group_count=groups
        )

    def conv_torch(torch: Any, x: Any, kernel: Any) -> Any:
        return torch.nn.functional.conv2d(x, kernel, stride=stride, padding=around, groups=groups)

    return Case(
        name,
        size,
        tiny=tiny,
        inputs=normal(
            lambda n, c, s, o, w: (n, c, s, s), lambda n, c, s, o, w: (o, c // groups, w, w)
        ),
        tracejit=conv,
        jax=conv,
        torch=conv_torch,
        **more,
    )


def transposed(lib: Any, x: Any, kernel: Any) -> Any:
    return lib.lax.conv_transpose(
        x,
        kernel,
        (2, 2),
        [(1, 1), (1, 1)],
        dimension_numbers=("NCHW", "IOHW", "NCHW"),
        transpose_kernel=False,
    )


def transposed_torch(torch: Any, x: Any, kernel: Any) -> Any:
    """PyTorch flips the kernel, and counts padding from the other side."""
    return torch.nn.functional.conv_transpose2d(x, kernel.flip(2, 3), stride=2, padding=2)


def weight_gradient(lib: Any, x: Any, kernel: Any, sensitivity: Any) -> Any:
    def loss(kernel: Any) -> Any:
        y = lib.lax.conv_general_dilated(x, kernel, (1, 1), [(1, 1), (1, 1)])
        return (y * sensitivity).sum()

    return lib.grad(loss)(kernel)


def weight_gradient_torch(torch: Any, x: Any, kernel: Any, sensitivity: Any) -> Any:
    return torch.nn.grad.conv2d_weight(x, kernel.shape, sensitivity, padding=1)


def max_pool(lib: Any, x: Any) -> Any:
    return lib.lax.reduce_window(
        x, -numpy.inf, lib.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), padding="VALID"
    )


def max_pool_numpy(lib: Any, x: Any) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


CASES = [
    conv_case("conv 3x3, 8x32x56x56 to 64", (8, 32, 56, 64, 3), (2, 3, 5, 4, 3), numpy=conv_numpy),
    conv_case("conv 1x1, 8x64x56x56 to 128", (8, 64, 56, 128, 1), (2, 3, 5, 4, 1)),
    conv_case(
        "conv 3x3 by strides of 2, 8x64x56x56 to 128",
        (8, 64, 56, 128, 3),
        (2, 3, 5, 4, 3),
        stride=2,
    ),
    conv_case(
        "conv 7x7 by strides of 2, 4x3x224x224 to 64", (4, 3, 224, 64, 7), (2, 3, 9, 4, 7), stride=2
    ),
    conv_case(
        "conv 3x3 by strides of 2, 1x3x224x224 to 32", (1, 3, 224, 32, 3), (2, 3, 9, 4, 3), stride=2
    ),
    conv_case("conv 5x5, 8x16x28x28 to 32", (8, 16, 28, 32, 5), (2, 3, 7, 4, 5)),
    conv_case("conv 3x3, 1x64x56x56 to 64", (1, 64, 56, 64, 3), (1, 3, 5, 4, 3)),
    conv_case("conv 3x3, 64x32x14x14 to 64", (64, 32, 14, 64, 3), (2, 3, 5, 4, 3)),
    conv_case("conv 3x3, 8x256x14x14 to 256", (8, 256, 14, 256, 3), (2, 5, 4, 6, 3)),
    conv_case(
        "conv 3x3 in 4 groups, 8x64x28x28 to 64", (8, 64, 28, 64, 3), (2, 8, 5, 8, 3), groups=4
    ),
    conv_case(
        "depthwise conv 3x3, 8x128x56x56", (8, 128, 56, 128, 3), (2, 128, 5, 128, 3), groups=128
    ),
    conv_case(
        "depthwise conv 3x3 by strides of 2, 1x96x112x112",
        (1, 96, 112, 96, 3),
        (2, 96, 5, 96, 3),
        stride=2,
        groups=96,
    ),
    Case(
        "transposed conv 4x4 by strides of 2, 8x64x28x28 to 32",
        (8, 64, 28, 32),
        tiny=(2, 3, 4, 5),
        inputs=normal(lambda n, c, s, _: (n, c, s, s), lambda n, c, s, o: (c, o, 4, 4)),
        tracejit=transposed,
        jax=transposed,
        torch=transposed_torch,
    ),
    Case(
        "weight gradient of conv 3x3, 8x32x56x56 to 64",
        (8, 32, 56, 64),
        tiny=(2, 3, 5, 4),
        inputs=normal(
            lambda n, c, s, _: (n, c, s, s),
            lambda n, c, s, o: (o, c, 3, 3),
            lambda n, c, s, o: (n, o, s, s),
        ),
        tracejit=weight_gradient,
        jax=weight_gradient,
        torch=weight_gradient_torch,
    ),
    Case(
        "max pooling 2x2, 8x64x112x112",
        (8, 64, 112),
        tiny=(2, 3, 6),
        inputs=normal(lambda n, c, s: (n, c, s, s)),
        tracejit=max_pool,
        numpy=max_pool_numpy,
        jax=max_pool,
        torch=lambda torch, x: torch.nn.functional.max_pool2d(x, 2),
    ),
]
