"""A convolution as a problem: its axes, its operands, and their memory access patterns.

    result(n, o, x) = sum over c, t of left(n, c, x * stride + t * dilation - low) * right(o, c, t)

for features c of o's group, and an x, t, low … for each axis. Positions of the left operand count
in steps of 1 / base_dilation, and hold 0 in between and outside. Batch groups and reversed windows
are gone: they are other accessors of the same problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracejit.backends.tvm.cpu.kernels.access import AccessPattern, reading, writing
from tracejit.backends.tvm.cpu.kernels.arithmetic import Arithmetic, Parts, Value
from tracejit.backends.tvm.ir.tir import Expr, Stmt


@dataclass(frozen=True)
class SpatialAxis:
    """One spatial dimension: sizes of input, result and window, and how the window moves.

    ``low`` is the padding below (negative: cut off; an expression where a loop decides it);
    ``stride`` moves the window, ``dilation`` spreads its taps, ``base_dilation`` the input's
    elements.
    """

    input: int
    result: int
    window: int
    stride: int = 1
    low: int | Expr = 0
    dilation: int = 1
    base_dilation: int = 1

    @property
    def is_pointwise(self) -> bool:
        """Whether every result depends only on the input at its own index."""
        return (
            self.window == 1
            and self.stride == 1
            and isinstance(self.low, int)
            and self.low == 0
            and self.base_dilation == 1
            and self.input == self.result
        )


@dataclass(frozen=True)
class Correlation:
    """``in_features`` and ``out_features`` are those of one group."""

    batch: int
    groups: int
    in_features: int
    out_features: int
    axes: tuple[SpatialAxis, ...]
    left: Callable[..., Parts]
    right: Callable[..., Parts]
    store: Callable[..., Stmt]
    arithmetic: Arithmetic
    left_access: AccessPattern
    right_access: AccessPattern
    result_access: AccessPattern

    @staticmethod
    def of(
        batch: int,
        groups: int,
        in_features: int,
        out_features: int,
        axes: Sequence[SpatialAxis],
        lhs: Callable[..., Value],
        rhs: Callable[..., Value],
        store: Callable[..., Stmt],
        accumulate_dtype: str,
        index_dtype: str,
    ) -> Correlation:
        """The problem for accessors of values."""
        rank = 2 + len(axes)
        left_access, sample = reading(lhs, rank, index_dtype)
        right_access, _ = reading(rhs, rank, index_dtype)
        arithmetic = Arithmetic.like(sample, accumulate_dtype)
        zero = arithmetic.join(arithmetic.zero)
        result_access = writing(store, rank, zero, index_dtype)

        def index(indices: Sequence[Expr]) -> list[Expr]:
            return [i.astype(index_dtype) for i in indices]

        def put(*indices_and_parts: Any) -> Stmt:
            *indices, parts = indices_and_parts
            return store(*index(indices), arithmetic.join(parts))

        return Correlation(
            batch,
            groups,
            in_features,
            out_features,
            tuple(axes),
            lambda *indices: arithmetic.split(lhs(*index(indices))),
            lambda *indices: arithmetic.split(rhs(*index(indices))),
            put,
            arithmetic,
            left_access,
            right_access,
            result_access,
        )

    @property
    def taps(self) -> int:
        """Positions of the window."""
        return math.prod(axis.window for axis in self.axes)

    @property
    def results(self) -> int:
        """Positions of the result in one feature of one image."""
        return math.prod(axis.result for axis in self.axes)

    def with_(self, **changes: Any) -> Correlation:
        return replace(self, **changes)
