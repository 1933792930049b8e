"""Convolution; NumPy's own way of writing it is a view of windows and a matrix product."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal


def conv(lib: Any, x: Any, kernel: Any) -> Any:
    return lib.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")


def conv_numpy(lib: Any, x: numpy.ndarray, kernel: numpy.ndarray) -> Any:
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return numpy.tensordot(windows, kernel, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def conv_torch(torch: Any, x: Any, kernel: Any) -> Any:
    return torch.nn.functional.conv2d(x, kernel, padding=1)


CASES = [
    Case(
        "conv 3x3, 8x32x56x56 to 64",
        (8, 32, 56, 64),
        tiny=(2, 3, 5, 4),
        inputs=normal(lambda n, c, s, _: (n, c, s, s), lambda _n, c, _s, o: (o, c, 3, 3)),
        tracejit=conv,
        numpy=conv_numpy,
        jax=conv,
        torch=conv_torch,
    ),
]
