"""What can be known of reductions: whether they may be reordered, whether they are cumulative."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import Window, WindowDimension
from tracejit.graph import Computation, Op
from tracejit.ops import elementwise as binary
from tracejit.ops.computations import binary_op

_MONOIDS = frozenset(
    {binary.ADD, binary.MUL, binary.MAX, binary.MIN, binary.AND, binary.OR, binary.XOR}
)


def running_axis(window: Window, sizes: Sequence[int]) -> tuple[int, bool] | None:
    """The axis along which a window only grows, and whether it grows from the end.

    Such a window is as long as the axis, padded on one side to begin with a single element.
    """
    wide = [d for d, w in enumerate(window) if w != WindowDimension(1)]
    if len(wide) != 1:
        return None
    (axis,) = wide
    size = sizes[axis]
    if window[axis] == WindowDimension(size, padding_low=size - 1):
        return axis, False
    if window[axis] == WindowDimension(size, padding_high=size - 1):
        return axis, True
    return None


def monoid(computation: Computation) -> Op | None:
    """The op of a computation that is one associative op with a known identity, else None."""
    op = binary_op(computation)
    return op if op in _MONOIDS else None
