"""Convolutions equal a definition written as a sum, for every option, layout and schedule."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.backends_tvm.kernel_harness import (
    LEVELS,
    MACHINE,
    Compiled,
    Operand,
    accumulate_dtype,
)
from tracejit.backends.tvm.cpu.kernels.conv import convolution as kernel
from tracejit.backends.tvm.cpu.kernels.conv.convolution import ConvolutionShape, convolution
from tracejit.backends.tvm.cpu.kernels.conv.direct_plan import (
    Across,
    DirectPlan,
    Role,
    direct_plan,
)
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import const, tirx


def shape(
    batch: int,
    in_features: int,
    out_features: int,
    in_sizes: Sequence[int],
    window: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[tuple[int, int]] | None = None,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    reversal: Sequence[bool] | None = None,
    groups: int = 1,
    batch_groups: int = 1,
) -> ConvolutionShape:
    rank = len(in_sizes)
    ones = (1,) * rank
    return ConvolutionShape(
        batch, in_features, out_features, tuple(in_sizes), tuple(window),
        tuple(strides or ones), tuple(padding or ((0, 0),) * rank),
        tuple(lhs_dilation or ones), tuple(rhs_dilation or ones),
        tuple(reversal or (False,) * rank), groups, batch_groups,
    )  # fmt: skip


def every(*positions: Any) -> tuple[Any, ...]:
    """An index: all of the first two dimensions, then ``positions``."""
    return (slice(None), slice(None), *positions)


def definition(s: ConvolutionShape, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The convolution as XLA defines it: spread, pad, then multiply and sum window by window."""
    spread = [(n - 1) * d + 1 if n else 0 for n, d in zip(s.in_sizes, s.lhs_dilation, strict=True)]
    base = np.zeros((*x.shape[:2], *spread), x.dtype)
    base[every(*(slice(None, None, d) for d in s.lhs_dilation))] = x
    for axis, (low, high) in enumerate(s.padding, 2):
        grow = [(0, 0)] * base.ndim
        grow[axis] = (max(low, 0), max(high, 0))
        base = np.pad(base, grow)
        kept = range(max(-low, 0), base.shape[axis] - max(-high, 0))
        base = np.take(base, kept, axis)
    w = w[every(*(slice(None, None, -1 if r else 1) for r in s.window_reversal))]
    out = np.zeros((s.out_batch, s.out_features, *s.out_sizes), x.dtype)
    if out.size == 0:
        return out
    per_batch, per_group = s.out_batch, s.in_features // s.feature_group_count
    groups = s.feature_group_count * s.batch_group_count
    width = s.out_features // groups
    for g in range(groups):
        batch, feature = divmod(g, s.feature_group_count)
        images = base[
            batch * per_batch : (batch + 1) * per_batch,
            feature * per_group : (feature + 1) * per_group,
        ]
        own = slice(g * width, (g + 1) * width)
        for tap in itertools.product(*(range(k) for k in s.window)):
            places = [
                slice(t * d, t * d + (o - 1) * step + 1, step)
                for t, d, o, step in zip(tap, s.rhs_dilation, s.out_sizes, s.strides, strict=True)
            ]
            seen = images[every(*places)]
            out[:, own] += np.einsum("nc...,oc->no...", seen, w[own][every(*tap)])
    return out


def convolved(
    s: ConvolutionShape,
    dtype: Any = "float32",
    orders: tuple[Sequence[int] | None, ...] = (None, None, None),
    machine: Machine = MACHINE,
    **target: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes for random operands, and what it should."""
    per_group = s.in_features // s.feature_group_count
    lhs = Operand("lhs", (s.batch, s.in_features, *s.in_sizes), dtype, orders[0])
    rhs = Operand("rhs", (s.out_features, per_group, *s.window), dtype, orders[1])
    result = Operand("result", (s.out_batch, s.out_features, *s.out_sizes), dtype, orders[2])
    work = convolution(
        s, lhs.load, rhs.load, result.store,
        accumulate_dtype=accumulate_dtype(dtype), machine=machine,
    )  # fmt: skip
    generator = np.random.default_rng(0)
    x, w = lhs.random(generator), rhs.random(generator)
    out = result.in_memory(np.full(result.shape, 7, dtype))
    compiled = Compiled([lhs.buffer, rhs.buffer, result.buffer], work, **target)
    compiled(lhs.in_memory(x), rhs.in_memory(w), out)
    wide: Any = {"f": np.float64, "c": np.complex128, "V": np.float64}.get(x.dtype.kind, x.dtype)
    with np.errstate(over="ignore"):
        return result.from_memory(out), definition(s, x.astype(wide), w.astype(wide))


def close(pair: tuple[np.ndarray, np.ndarray], s: ConvolutionShape) -> None:
    found, wanted = pair
    assert found.shape == wanted.shape
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
        return
    unit = 2.0**-8 if found.dtype.kind == "V" else float(np.finfo(found.dtype).eps)
    products = s.in_features * math.prod(s.window) + 1
    sums = float(np.finfo(accumulate_dtype(found.dtype)).eps) * 4 * products
    np.testing.assert_allclose(found.astype(wanted.dtype), wanted, rtol=2 * unit, atol=sums)


SAME = ((1, 1), (1, 1))
FIRST, LAST = (0, 1, 2, 3), (0, 2, 3, 1)

CASES = {
    "no axes": shape(5, 7, 9, (), ()),
    "groups without axes": shape(3, 6, 4, (), (), groups=2),
    "one axis": shape(3, 5, 7, (31,), (4,), padding=[(2, 1)]),
    "one long axis": shape(1, 1, 1, (5000,), (9,), padding=[(4, 4)]),
    "three axes": shape(2, 3, 5, (5, 6, 7), (2, 3, 2), padding=[(1, 0)] * 3),
    "pointwise": shape(3, 20, 24, (5, 7), (1, 1)),
    "pointwise with stride": shape(3, 20, 24, (5, 7), (1, 1), strides=(2, 3)),
    "same": shape(2, 5, 19, (13, 17), (3, 3), padding=SAME),
    "valid": shape(2, 5, 19, (13, 17), (3, 3)),
    "one feature": shape(2, 1, 1, (40, 50), (5, 5), padding=[(2, 2)] * 2),
    "small images": shape(9, 16, 32, (8, 8), (3, 3), padding=SAME),
    "tiny images": shape(21, 16, 32, (2, 3), (3, 3), padding=SAME),
    "wide images": shape(1, 4, 6, (9, 70), (3, 3), padding=SAME),
    "stride 2": shape(2, 5, 19, (13, 18), (3, 3), strides=(2, 2), padding=SAME),
    "uneven strides": shape(2, 3, 4, (14, 18), (3, 2), strides=(3, 2)),
    "negative padding": shape(2, 3, 4, (14, 18), (3, 2), padding=[(-2, -1), (1, -3)]),
    "padding beyond windows": shape(1, 2, 3, (4, 5), (2, 2), padding=[(5, 4), (3, 6)]),
    "spread window": shape(2, 3, 18, (14, 18), (3, 3), rhs_dilation=(2, 3)),
    "spread base": shape(2, 3, 18, (7, 8), (3, 3), lhs_dilation=(2, 2), padding=SAME),
    "spread base and window": shape(
        1, 3, 4, (7, 8), (3, 4), strides=(3, 2), lhs_dilation=(2, 6), rhs_dilation=(3, 4),
        padding=[(3, 2), (4, 1)],
    ),
    "widely spread base": shape(1, 3, 4, (7, 8), (3, 3), lhs_dilation=(5, 4), padding=SAME),
    "gaps in the result": shape(1, 3, 4, (7, 8), (1, 1), lhs_dilation=(2, 2), padding=SAME),
    "reversed": shape(2, 3, 18, (7, 8), (3, 2), reversal=(True, False)),
    "groups": shape(2, 6, 38, (9, 10), (3, 3), padding=SAME, groups=2),
    "narrow groups": shape(2, 12, 18, (9, 10), (3, 3), padding=SAME, groups=6),
    "depthwise": shape(2, 37, 37, (9, 10), (3, 3), padding=SAME, groups=37),
    "depthwise with multiplier": shape(2, 9, 18, (9, 10), (3, 3), strides=(2, 1), groups=9),
    "batch groups": shape(6, 4, 12, (9, 10), (3, 3), padding=SAME, batch_groups=3),
    "a gradient of weights": shape(7, 33, 21, (10, 11), (9, 10)),
    "a gradient of strided weights": shape(5, 4, 6, (17, 17), (8, 8), rhs_dilation=(2, 2)),
    "a gradient of few weights": shape(1, 40, 9, (10, 10), (8, 8)),
    "a gradient over a large window": shape(3, 2, 5, (40, 42), (38, 40)),
    "many features": shape(1, 300, 40, (5, 5), (3, 3), padding=SAME),
    "a window as large as the input": shape(4, 3, 8, (6, 7), (6, 7)),
    "no results": shape(2, 3, 4, (2, 2), (3, 3)),
    "no features": shape(2, 0, 4, (5, 5), (3, 3)),
    "no images": shape(0, 3, 4, (5, 5), (3, 3)),
    "no inputs": shape(2, 3, 4, (0, 5), (2, 3), padding=[(2, 2), (0, 0)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_options(case: str) -> None:
    close(convolved(CASES[case]), CASES[case])


@pytest.mark.parametrize(
    "case", [case for case, s in CASES.items() if len(s.in_sizes) == 2 and "no" not in case]
)
@pytest.mark.parametrize("layout", ["last", "mixed"])
def test_layouts(case: str, layout: str) -> None:
    orders = (LAST, (2, 3, 1, 0), LAST) if layout == "last" else (LAST, FIRST, FIRST)
    close(convolved(CASES[case], orders=orders), CASES[case])


@pytest.mark.parametrize(
    "dtype",
    [
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16),
    ],
)
@pytest.mark.parametrize("case", ["same", "wide images", "narrow groups", "a gradient of weights"])
def test_element_types(dtype: Any, case: str) -> None:
    close(convolved(CASES[case], dtype), CASES[case])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", ["same", "wide images", "narrow groups", "a gradient of weights"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex128"])
def test_narrower_vectors(case: str, dtype: str, level: str) -> None:
    target, machine = LEVELS[level]
    close(convolved(CASES[case], dtype, machine=machine, target=target), CASES[case])


@st.composite
def shapes(draw: st.DrawFn) -> ConvolutionShape:
    rank = draw(st.integers(0, 3))
    groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (5, 1), (1, 2), (1, 3)]))

    def each(numbers: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(numbers, min_size=rank, max_size=rank))

    most = {0: 1, 1: 60, 2: 16, 3: 6}[rank]
    s = shape(
        batch_groups * draw(st.integers(1, 9)),
        groups * draw(st.integers(1, 20)),
        groups * batch_groups * draw(st.integers(1, 35)),
        each(st.integers(1, most)),
        each(st.integers(1, max(1, most // 2))),
        strides=each(st.integers(1, 3)),
        padding=each(st.tuples(st.integers(-2, 4), st.integers(-2, 4))),
        lhs_dilation=each(st.integers(1, 3)),
        rhs_dilation=each(st.integers(1, 3)),
        reversal=each(st.booleans()),
        groups=groups,
        batch_groups=batch_groups,
    )
    spread = [(n - 1) * d + 1 for n, d in zip(s.in_sizes, s.lhs_dilation, strict=True)]
    assume(all(n + sum(p) >= 0 for n, p in zip(spread, s.padding, strict=True)))
    assume(math.prod(s.out_sizes) * math.prod(s.window) * s.in_features * s.out_features < 1e7)
    return s


@given(
    s=shapes(),
    order=st.permutations(range(5)),
    dtype=st.sampled_from(["float32", "float32", "float64", "int32", "complex64"]),
    threads=st.integers(1, 5),
    cache=st.sampled_from([1 << 12, 1 << 14, MACHINE.l2]),
)
def test_any_convolution(
    s: ConvolutionShape, order: list[int], dtype: str, threads: int, cache: int
) -> None:
    own = [d for d in order if d < 2 + len(s.in_sizes)]
    machine = dataclasses.replace(MACHINE, threads=threads, l2=cache)
    close(convolved(s, dtype, (own, own[::-1], own), machine), s)


@given(
    groups=st.integers(1, 5),
    rows=st.integers(1, 9),
    columns=st.integers(1, 150),
    window=st.tuples(st.integers(1, 3), st.integers(1, 7)),
    strides=st.tuples(st.integers(1, 3), st.integers(2, 5)),
    padding=st.tuples(*[st.tuples(st.integers(-2, 4), st.integers(-2, 4))] * 2),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    is_spread=st.booleans(),
    dtype=st.sampled_from(["float32", "float64", "float16", "int8", "complex64"]),
    cache=st.sampled_from([1 << 12, MACHINE.l2]),
)
@settings(max_examples=25)
def test_depthwise_by_strides(
    groups: int,
    rows: int,
    columns: int,
    window: tuple[int, int],
    strides: tuple[int, int],
    padding: Any,
    dilation: tuple[int, int],
    is_spread: bool,
    dtype: str,
    cache: int,
) -> None:
    """Vectors run along an axis that windows step along."""
    s = shape(
        1, groups, groups, (rows, columns), window, strides=strides, padding=padding,
        lhs_dilation=(1, 3 if is_spread else 1), rhs_dilation=dilation, groups=groups,
    )  # fmt: skip
    spread = [(n - 1) * d + 1 for n, d in zip(s.in_sizes, s.lhs_dilation, strict=True)]
    assume(all(n + sum(p) >= 0 for n, p in zip(spread, s.padding, strict=True)))
    machine = dataclasses.replace(MACHINE, threads=2, l2=cache)
    close(convolved(s, dtype, machine=machine), s)


LARGE = {
    "images": shape(5, 16, 32, (20, 20), (3, 3), padding=SAME),
    "one image": shape(1, 16, 32, (60, 60), (3, 3), padding=SAME),
    "one image of many features": shape(1, 200, 96, (7, 7), (3, 3), padding=SAME),
    "one long signal": shape(1, 1, 2, (200_000,), (33,), padding=[(16, 16)]),
    "a gradient of weights": shape(24, 64, 32, (10, 10), (8, 8)),
    "a gradient over large images": shape(9, 5, 16, (66, 66), (64, 64)),
    "many images of many features": shape(9, 70, 40, (6, 6), (3, 3), padding=SAME),
    "depthwise": shape(3, 48, 48, (40, 40), (3, 3), padding=SAME, groups=48),
    "depthwise by strides": shape(
        1, 48, 48, (41, 70), (3, 3), strides=(2, 2), padding=SAME, groups=48
    ),
    "a signal by strides": shape(1, 1, 1, (50_000,), (9,), strides=(3,)),
    "spread base": shape(3, 16, 16, (30, 30), (3, 3), lhs_dilation=(2, 2), padding=SAME),
}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("order", [FIRST, LAST])
def test_results_do_not_depend_on_the_number_of_threads(case: str, order: Sequence[int]) -> None:
    s = LARGE[case]
    orders = (order, None, order) if len(s.in_sizes) == 2 else (None, None, None)
    found, wanted = convolved(s, orders=orders, machine=dataclasses.replace(MACHINE, threads=1))
    close((found, wanted), s)
    for threads in (2, 5):
        machine = dataclasses.replace(MACHINE, threads=threads)
        np.testing.assert_array_equal(convolved(s, orders=orders, machine=machine)[0], found)


@pytest.mark.parametrize("case", LARGE)
def test_small_caches(case: str) -> None:
    """Slabs in blocks of lines, of features and of images; sums in parts."""
    s = LARGE[case]
    close(convolved(s, machine=dataclasses.replace(MACHINE, l1=1 << 12, l2=1 << 14)), s)


def planned(s: ConvolutionShape, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> DirectPlan:
    """How a convolution is cut up."""
    plans: list[DirectPlan] = []

    def recording(*arguments: Any) -> DirectPlan:
        plans.append(direct_plan(*arguments))
        return plans[-1]

    monkeypatch.setattr(kernel, "direct_plan", recording)
    per_group = s.in_features // s.feature_group_count
    lhs = Operand("lhs", (s.batch, s.in_features, *s.in_sizes), "float32")
    rhs = Operand("rhs", (s.out_features, per_group, *s.window), "float32")
    result = Operand("result", (s.out_batch, s.out_features, *s.out_sizes), "float32")
    convolution(s, lhs.load, rhs.load, result.store, accumulate_dtype="float32", machine=machine)
    return plans[0]


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("features", [64, 256])
def test_weights_of_a_tile_stay_in_the_first_cache(
    vector_bytes: int, features: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(vector_bytes)
    s = shape(8, features, features, (28, 28), (3, 3), padding=SAME)
    plan = planned(s, machine, monkeypatch)
    feature = plan.dimensions[plan.of_role(Role.FEATURE)]
    assert plan.parts[0] > 1
    assert plan.depth * 9 * feature.tile * 4 < machine.l1


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_depthwise_tiles_leave_registers_for_their_weights(
    vector_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(vector_bytes)
    s = shape(2, 8, 8, (56, 56), (3, 3), padding=SAME, groups=8)
    plan = planned(s, machine, monkeypatch)
    assert plan.across is Across.PIXELS
    assert plan.tile_rows * plan.vectors + 9 < 16


def test_producers_and_epilogues_are_fused() -> None:
    """relu(conv(x * x, w) + bias), features last in memory."""
    s = CASES["same"]
    x = Operand("x", (s.batch, s.in_features, *s.in_sizes), "float32", LAST)
    w = Operand("w", (s.out_features, s.in_features, *s.window), "float32")
    bias = Operand("bias", (s.out_features,), "float32")
    out = Operand("out", (s.out_batch, s.out_features, *s.out_sizes), "float32", LAST)

    def store(n: Any, o: Any, y: Any, x: Any, value: Any) -> Any:
        return out.store(n, o, y, x, tirx.max(value + bias.load(o), const(0, "float32")))

    work = convolution(
        s, lambda *i: x.load(*i) * x.load(*i), w.load, store,
        accumulate_dtype="float32", machine=MACHINE,
    )  # fmt: skip
    generator = np.random.default_rng(1)
    images, weights, biases = (o.random(generator) for o in (x, w, bias))
    found = out.in_memory(np.zeros(out.shape, "float32"))
    compiled = Compiled([o.buffer for o in (x, w, bias, out)], work)
    compiled(x.in_memory(images), weights, biases, found)
    wanted = np.maximum(definition(s, images**2, weights) + biases[:, None, None], 0)
    np.testing.assert_allclose(out.from_memory(found), wanted, rtol=1e-4, atol=1e-4)


QUICK = [*("same", "wide images", "narrow groups", "a gradient of weights"), "transposed"]
TRANSPOSED = shape(2, 8, 16, (9, 9), (4, 4), lhs_dilation=(2, 2), padding=[(2, 2)] * 2)


@pytest.mark.parametrize("case", QUICK)
def test_builds_quickly(case: str) -> None:
    """Statements, not unrolled bodies: their number does not grow with the sizes or phases."""
    s = TRANSPOSED if case == "transposed" else CASES[case]
    per_group = s.in_features // s.feature_group_count
    shapes = [(s.batch, s.in_features, *s.in_sizes), (s.out_features, per_group, *s.window)]
    shapes.append((s.out_batch, s.out_features, *s.out_sizes))
    lhs, rhs, result = (Operand("o", each, "float32") for each in shapes)
    work = convolution(
        s, lhs.load, rhs.load, result.store, accumulate_dtype="float32", machine=MACHINE
    )
    assert len(str(work.statement).splitlines()) < 100
