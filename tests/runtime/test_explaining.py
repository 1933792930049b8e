"""What `explain` says of kernels whose costs are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.runtime import explaining, roofline
from tracejit.runtime.explaining import Report

F32 = np.float32
PIECE = np.ones((64, 48), F32)


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> roofline.Limits:
    """A machine whose limits are round numbers."""
    made = roofline.Limits(1e9, 5e8, (1 << 20,), (1e9,))
    monkeypatch.setattr(explaining, "machine_limits", lambda: made)
    monkeypatch.setattr(explaining, "limits_measured_again", lambda known: known)
    return made


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    return tj.jit(function).lower(*args).compile()


def report(function: Callable[..., Any], *args: Any) -> Report:
    made = compiled(function, *args).explain()
    assert isinstance(made, Report)
    return made


def test_matrix_product() -> None:
    lhs, rhs = np.ones((64, 48), F32), np.ones((48, 80), F32)
    (kernel,) = report(lambda x, y: x @ y, lhs, rhs).kernels
    assert kernel.ops == ("dot",)
    assert kernel.flops == 2 * 64 * 48 * 80
    assert kernel.bytes_read == lhs.nbytes + rhs.nbytes
    assert kernel.bytes_written == 64 * 80 * 4
    assert kernel.schedule == "tiled product"
    assert (kernel.bound, kernel.share) == ("arithmetic", 1.0)
    assert kernel.bound_seconds == pytest.approx(kernel.flops / 1e9)
    (kernel,) = report(lambda x, y: np.maximum(x @ y, 0), lhs, rhs).kernels
    assert [nest.kind for nest in kernel.loops].count("vectorized") > 0


def test_matrix_product_in_complex_numbers_and_wide_floats() -> None:
    x = np.ones((16, 16), np.complex128)
    (kernel,) = report(lambda x: x @ x, x).kernels
    assert kernel.flops == 8 * 16**3
    assert kernel.bound_seconds == pytest.approx(kernel.flops / 5e8)


def test_matrix_times_vector() -> None:
    (kernel,) = report(lambda x, v: x @ v, PIECE, np.ones(48, F32)).kernels
    assert kernel.flops == 2 * 64 * 48
    assert kernel.schedule == "dot products"
    assert kernel.bound == "memory"
    assert kernel.bound_seconds == pytest.approx((PIECE.nbytes + 48 * 4 + 64 * 4) / 1e9)


def test_elementwise_chain_is_one_kernel() -> None:
    (kernel,) = report(lambda x, y: np.exp(x * 2 + y) - y, PIECE, PIECE).kernels
    assert kernel.schedule == "elementwise"
    assert {"multiply", "add", "exponential", "subtract"} <= set(kernel.ops)
    assert (kernel.flops, kernel.transcendentals) == (3 * PIECE.size, PIECE.size)
    assert (kernel.bytes_read, kernel.bytes_written) == (2 * PIECE.nbytes, PIECE.nbytes)


@pytest.mark.parametrize(
    ("function", "written"),
    [
        (lambda x: np.concatenate([np.sin(x), x * 2], 1), 2),
        (lambda x: np.concatenate([(x + 1).T, np.exp(x).T, x.T]), 3),
        (lambda x: np.stack([x + 1, x * 2, np.tanh(x)], -1), 3),
    ],
)
def test_what_is_joined_is_computed_in_place(function: Callable[..., Any], written: int) -> None:
    (kernel,) = report(function, PIECE).kernels
    assert kernel.bytes_read == PIECE.nbytes
    assert kernel.bytes_written == written * PIECE.nbytes


def test_padding_is_written_once() -> None:
    (kernel,) = report(lambda x: np.pad(np.exp(x), 1), PIECE).kernels
    assert kernel.bytes_written == 66 * 50 * 4


def test_too_many_parts_are_computed_before() -> None:
    def joined(x: Any) -> Any:
        parts = []
        for number in range(30):
            part = x
            for _ in range(20):
                part = np.sin(part) * number + 1
            parts.append(part)
        return np.concatenate(parts)

    assert len(report(joined, PIECE[:4]).kernels) > 1


def test_softmax_is_one_kernel() -> None:
    def softmax(x: np.ndarray) -> Any:
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    (kernel,) = report(softmax, PIECE).kernels
    assert kernel.schedule == "row by row"
    assert (kernel.bytes_read, kernel.bytes_written) == (PIECE.nbytes, PIECE.nbytes)
    # A subtraction and a division each, and two reductions of 48 elements to one.
    assert kernel.flops == 2 * PIECE.size + 2 * 64 * 47
    assert kernel.transcendentals == PIECE.size


@pytest.mark.parametrize(
    ("axis", "schedule", "kept"),
    [(1, "row reduction", 64), (0, "column reduction", 48), (None, "full reduction", 1)],
)
def test_reductions(axis: int | None, schedule: str, kept: int) -> None:
    (kernel,) = report(lambda x: np.sum(x * x, axis=axis), PIECE).kernels
    assert kernel.schedule == schedule
    assert kernel.flops == PIECE.size + PIECE.size - kept
    assert (kernel.bytes_read, kernel.bytes_written) == (PIECE.nbytes, kept * 4)


def test_only_what_a_slice_needs_is_read() -> None:
    big = np.ones((1000, 16), F32)
    (kernel,) = report(lambda x: x[10:20] + 1, big).kernels
    assert kernel.bytes_read == kernel.bytes_written == 10 * 16 * 4
    (kernel,) = report(lambda x: x[1:] - x[:-1], big).kernels
    assert kernel.bytes_read == big.nbytes


def test_gather_reads_rows_and_places() -> None:
    table, places = np.ones((1000, 16), F32), np.zeros(7, np.int32)
    made = report(lambda t, i: np.take(t, i, axis=0, mode="clip"), table, places)
    (kernel,) = (k for k in made.kernels if "gather" in k.ops)
    assert kernel.bytes_read == 7 * 16 * 4 + 7 * 8  # places are 64 bits wide
    assert kernel.bytes_written == 7 * 16 * 4


def test_constants_are_read() -> None:
    weights = np.linspace(0, 1, 48, dtype=F32)
    (kernel,) = report(lambda x: x * weights, PIECE).kernels
    assert kernel.bytes_read == PIECE.nbytes + weights.nbytes


def test_cumulative_sum_is_linear() -> None:
    (kernel,) = report(lambda x: np.cumsum(x, axis=1), PIECE).kernels
    assert (kernel.schedule, kernel.flops) == ("running reduction", PIECE.size)


def test_convolution() -> None:
    image, weights = np.ones((2, 3, 16, 16), F32), np.ones((8, 3, 3, 3), F32)

    def convolve(x: np.ndarray, w: np.ndarray) -> Any:
        return tj.lax.conv_general_dilated(x, w, (1, 1), "VALID")

    (kernel,) = report(convolve, image, weights).kernels
    assert kernel.flops == 2 * (2 * 8 * 14 * 14) * (3 * 3 * 3)
    assert kernel.schedule == "direct convolution"


def halved(x: np.ndarray) -> Any:
    return tj.pure_callback(lambda y: y / 2, x, np.exp(x))


def test_call_into_python() -> None:
    made = report(halved, PIECE)
    (kernel,) = (k for k in made.kernels if k.callbacks)
    assert (kernel.bound, kernel.schedule) == ("library", "library call")
    assert "custom-call" in kernel.ops
    assert kernel.bytes_written == PIECE.nbytes


def test_loop_and_its_measured_turns() -> None:
    def ten_times(x: np.ndarray) -> Any:
        return tj.lax.fori_loop(0, 10, lambda i, v: np.sin(v), x)

    made = compiled(ten_times, PIECE)
    counted = made.explain()
    (sine,) = (k for k in counted.kernels if "sine" in k.ops)
    assert (sine.where[:6], sine.calls) == ("loop 0", None)
    assert counted.unknown_loops == 0
    assert counted.transcendentals == 10 * PIECE.size
    measured = made.explain(PIECE, measure=True)
    (sine,) = (k for k in measured.kernels if "sine" in k.ops)
    assert sine.calls == 10
    assert measured.transcendentals == 10 * PIECE.size


def test_a_loop_of_unknown_length_counts_once() -> None:
    def some_times(x: np.ndarray, n: Any) -> Any:
        return tj.lax.fori_loop(0, n, lambda i, v: np.sin(v), x)

    counted = compiled(some_times, PIECE, np.int32(3)).explain()
    assert counted.transcendentals == PIECE.size
    assert counted.unknown_loops == 1
    assert "1 loop is counted as if it ran once" in str(counted)


def test_of_a_branch_the_dearest_side_counts() -> None:
    def either(flag: Any, x: np.ndarray) -> Any:
        return tj.lax.cond(flag, lambda v: v @ v, lambda v: v + 1, x)

    square = np.ones((32, 32), F32)
    made = compiled(either, np.bool_(True), square)
    assert 2 * 32**3 <= made.explain().flops < 2 * 32**3 + 32 * 32
    measured = made.explain(np.bool_(False), square, measure=True)
    assert 32 * 32 <= measured.flops < 2 * 32**3


def test_measured_times_add_up() -> None:
    x = np.ones((300, 300), F32)
    made = compiled(lambda x: np.sort(np.tanh(x @ x), axis=1), x)
    measured = made.explain(x, measure=True)
    seconds = [k.seconds or 0.0 for k in measured.kernels]
    assert all(s > 0 for s in seconds)
    assert {k.calls for k in measured.kernels} == {1}
    assert measured.seconds == pytest.approx(sum(seconds))
    assert 0 < (measured.call_seconds or 0) < 1
    text = str(measured)
    assert all(k.name in text for k in measured.kernels)
    assert "attained" in text


def test_programs_that_signals_may_end_are_measured_and_tuned() -> None:
    x, w = np.ones((512, 1024), F32), np.ones((1024, 1024), F32)
    program = compiled(lambda x, w: np.tanh(x @ w), x, w)
    assert program.program.artifact.explanation.count(b"signals") == 1
    measured = program.explain(x, w, measure=True)
    assert all((kernel.seconds or 0) > 0 for kernel in measured.kernels)
    tuned = tj.jit(lambda x, w: np.tanh(x @ w) + 1, tune=2)
    assert tuned(x, w)[0, 0] == 2


def test_measuring_calls_into_python() -> None:
    made = compiled(halved, PIECE)
    measured = made.explain(PIECE, measure=True)
    np.testing.assert_allclose(made(PIECE), np.exp(PIECE) / 2, rtol=1e-6)
    assert sum(k.seconds or 0 for k in measured.kernels if k.callbacks) > 0


def test_what_a_callback_raises_is_raised() -> None:
    def refuse(x: np.ndarray) -> np.ndarray:
        raise ValueError("not today")

    made = compiled(lambda x: tj.pure_callback(refuse, x, x), PIECE)
    with pytest.raises(ValueError, match="not today"):
        made.explain(PIECE, measure=True)


def test_layers_alike_are_one_kernel_called_often() -> None:
    square = np.ones((32, 32), F32)

    def layers(x: np.ndarray, w: np.ndarray) -> Any:
        for _ in range(3):
            x = np.sort(np.tanh(x @ w), axis=1)
        return x

    made = compiled(layers, square, square)
    counted = made.explain()
    assert counted.flops == 3 * 2 * 32**3
    assert sum(k.flops * (k.calls or 0) for k in counted.kernels) == counted.flops
    measured = made.explain(square, square, measure=True)
    assert [k.calls for k in measured.kernels] == [k.calls for k in counted.kernels]


def test_shares_add_up_to_one() -> None:
    made = report(lambda x: np.sort(np.exp(x) @ np.ones((48, 8), F32), axis=0), PIECE)
    assert sum(k.share for k in made.kernels) == pytest.approx(1)


def test_programs_from_the_disk_cache() -> None:
    def once(x: np.ndarray) -> Any:
        return np.cos(x) * np.float32(1.25)

    first = report(once, PIECE)
    assert report(once, PIECE) == first


def test_module() -> None:
    module = tj.jit(lambda x, y: x @ y).lower(PIECE, PIECE.T).module
    made = tj.compile(module)
    assert made.explain().flops == 2 * 64 * 64 * 48
    assert made.explain(PIECE, PIECE.T, measure=True).seconds is not None


def test_misuse() -> None:
    made = compiled(lambda x: x + 1, PIECE)
    with pytest.raises(ArgumentError, match="explain: arguments are only used with measure=True"):
        made.explain(PIECE)
    with pytest.raises(ArgumentError, match="lowered for"):
        made.explain(PIECE[:3], measure=True)
    checked = tj.jit(lambda x: x + 1, check=True).lower(PIECE).compile()
    with pytest.raises(UnsupportedError, match="check=True"):
        checked.explain()


def test_limits_are_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(roofline, "SIZES", (32 << 10, 1 << 20))
    monkeypatch.setattr(roofline, "_SECONDS", 0.01)
    found = roofline.machine_limits.__wrapped__()
    assert found.flops32 > found.flops64 / 2 > 1e8
    assert found.bandwidths[0] >= found.bandwidths[-1] > 1e8
    (file,) = tmp_path.glob("limits-*.json")
    monkeypatch.setattr(roofline, "_measured", lambda: pytest.fail("measured again"))
    assert roofline.machine_limits.__wrapped__() == found
    file.write_text(json.dumps({"flops32": 1}))
    monkeypatch.setattr(roofline, "_measured", lambda: found)
    assert roofline.machine_limits.__wrapped__() == found


def test_limits_are_measured_again_where_a_kernel_is_faster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Both the flops and each bandwidth are then the greater of the two measurements."""
    monkeypatch.setenv("TRACEJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(explaining, "limits_measured_again", roofline.limits_measured_again)
    slow = roofline.Limits(1e3, 5e12, roofline.SIZES, (1e3,) * 5 + (1e6,))
    fast = roofline.Limits(1e12, 1e12, roofline.SIZES, (1e12,) * len(roofline.SIZES))
    monkeypatch.setattr(explaining, "machine_limits", lambda: slow)
    monkeypatch.setattr(roofline, "_measured", lambda: fast)
    made = compiled(lambda x: np.exp(x) * 2, PIECE)
    assert made.explain().limits == slow
    report = made.explain(PIECE, measure=True)
    assert report.limits == roofline.Limits(1e12, 5e12, roofline.SIZES, fast.bandwidths)
    assert all(kernel.attained <= 1 for kernel in report.kernels)
    monkeypatch.setattr(roofline, "_measured", lambda: pytest.fail("measured again"))
    assert made.explain(PIECE, measure=True).limits == report.limits
    assert roofline.machine_limits.__wrapped__() == report.limits


def test_what_may_lie_in_the_last_cache_is_bound_by_it() -> None:
    sizes, rates = roofline.SIZES, (6e11, 5e11, 4e11, 3e11, 2e11, 1e11)
    limits = roofline.Limits(1e9, 1e9, sizes, rates)
    assert limits.bandwidth(100) == limits.bandwidth(sizes[0]) == 6e11
    assert limits.bandwidth(sizes[1] + 1) == limits.bandwidth(sizes[2]) == 4e11
    assert limits.bandwidth(sizes[2] + 1) == limits.bandwidth(sizes[3] - 1) == 4e11
    assert limits.bandwidth(sizes[3]) == limits.bandwidth(sizes[4] - 1) == 3e11
    assert limits.bandwidth(sizes[5]) == limits.bandwidth(1 << 40) == 1e11


def test_code_of_this_process_alone_is_counted_but_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled(lambda x: x + 1, PIECE)  # loads the compiler
    monkeypatch.setattr("tracejit.backends.tvm.cpu.objects.build.can_link", lambda: False)
    monkeypatch.setattr(
        "tracejit.backends.tvm.cpu.objects.build.warn_of_missing_linker", lambda: None
    )
    made = compiled(lambda x: np.exp(x) * np.float32(0.3125), PIECE)
    assert made.explain().transcendentals == PIECE.size
    with pytest.raises(UnsupportedError, match="linker"):
        made.explain(PIECE, measure=True)
