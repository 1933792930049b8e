"""The interpreter's windows against loops that say what a window is, and at length."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.building import computation
from tracejit import ops
from tracejit.attributes import WindowDimension
from tracejit.backends.numpy import evaluate
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.windows import REDUCE_WINDOW
from tracejit.shapes import ElementType, shape_of

entries = st.builds(
    WindowDimension,
    size=st.integers(1, 3),
    stride=st.integers(1, 3),
    padding_low=st.integers(-2, 3),
    padding_high=st.integers(-2, 3),
    window_dilation=st.integers(1, 3),
    base_dilation=st.integers(1, 3),
)


@given(st.lists(st.tuples(entries, st.integers(0, 5)), max_size=2), st.sampled_from(["add", "max"]))
def test_reduce_window_as_a_loop(dimensions: list[tuple[WindowDimension, int]], name: str) -> None:
    window = tuple(entry for entry, _ in dimensions)
    sizes = tuple(size for _, size in dimensions)
    for entry, size in dimensions:
        assume(entry.dilated_base(size) + entry.padding_low + entry.padding_high >= 0)
    values = np.random.default_rng(0).integers(-9, 10, sizes).astype(np.int32)

    def build(x: Instruction) -> Instruction:
        init = ops.constant(-3, ElementType.S32)
        to_apply = ops.scalar_computation(name, ElementType.S32)
        return make(REDUCE_WINDOW, x, init, window=window, to_apply=to_apply)

    result = evaluate(computation("main", build, shape_of(values)), [values])
    combine = max if name == "max" else int.__add__
    for position in np.ndindex(result.shape):
        expected = -3
        for offset in itertools.product(*[range(entry.size) for entry in window]):
            places = [
                p * e.stride + o * e.window_dilation - e.padding_low
                for p, o, e in zip(position, offset, window, strict=True)
            ]
            steps = [divmod(p, e.base_dilation) for p, e in zip(places, window, strict=True)]
            inside = [
                not hole and 0 <= i < size for (i, hole), size in zip(steps, sizes, strict=True)
            ]
            if all(inside):
                expected = combine(expected, int(values[tuple(i for i, _ in steps)]))
        assert result[position] == expected


def test_long_cumulative_sums_take_one_pass() -> None:
    values = np.arange(1 << 18, dtype=np.int64)
    summed = computation("sums", lambda x: ops.cumulative("add", x, 0), shape_of(values))
    assert_array_equal(evaluate(summed, [values]), np.cumsum(values))
