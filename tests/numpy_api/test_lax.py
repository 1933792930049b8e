"""`tracejit.lax`: operations without promotion, and control flow, against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit import lax
from tracejit.errors import (
    ArgumentError,
    AttributeValueError,
    ElementTypeError,
    ShapeError,
    TracejitError,
)

X = np.arange(1.0, 7.0).reshape(2, 3)
ROW = np.arange(5.0)


def both(function: Any, *args: Any) -> Any:
    """At once and inside jit; both must agree."""
    now = function(*args)
    same(tj.jit(function)(*args), now)
    return now


def test_elementwise() -> None:
    same(both(lax.add, X, 2), X + 2)
    same(both(lambda x: lax.max(lax.neg(x), -3.0), X), np.maximum(-X, -3))
    same(both(lambda x: lax.clamp(2.0, x, 4.0), X), np.clip(X, 2, 4))
    same(both(lambda x: lax.select(x > 2, x, lax.mul(x, 10)), X), np.where(X > 2, X, 10 * X))
    same(both(lambda x: lax.select_n(x > 2, x, -x), X), np.where(X > 2, -X, X))
    same(both(lambda x: lax.integer_pow(x, -3), X), X**-3.0)
    same(both(lambda x: lax.rsqrt(x), X), 1 / np.sqrt(X))
    same(both(lambda x: lax.convert_element_type(x, np.int32), X), X.astype(np.int32))
    same(both(lambda x: lax.bitcast_convert_type(x, np.uint64), X), X.view(np.uint64))


def test_nothing_is_promoted_or_stretched() -> None:
    with pytest.raises(ElementTypeError, match="add: element types must be equal"):
        lax.add(X, np.float32(1))
    with pytest.raises(ShapeError, match="need broadcast_dimensions"):
        lax.add(X, np.ones(3))


def test_shapes() -> None:
    same(both(lambda x: lax.broadcast_in_dim(x, (3, 2, 3), (1, 2)), X), np.stack([X] * 3))
    same(both(lambda x: lax.reshape(x, (3, 2), (1, 0)), X), X.T.reshape(3, 2))
    same(both(lambda x: lax.expand_dims(x, (0, -1)), X), X[None, :, :, None])
    same(both(lambda x: lax.squeeze(x[None], (0,)), X), X)
    same(both(lambda x: lax.rev(x, (0,)), X), X[::-1])
    same(both(lambda x: lax.transpose(x, (1, 0)), X), X.T)
    same(both(lambda x: lax.concatenate([x, x], 1), X), np.concatenate([X, X], 1))
    same(both(lambda x: lax.slice(x, (0, 1), (2, 3)), X), X[:, 1:])
    same(both(lambda x: lax.slice_in_dim(x, 0, -1, 1, 1), X), X[:, :-1])
    padded = np.zeros((4, 5))
    padded[1:3, ::2] = X
    same(both(lambda x: lax.pad(x, 0.0, [(1, 1, 0), (0, 0, 1)]), X), padded)
    same(both(lambda: lax.iota(np.int32, 4)), np.arange(4, dtype=np.int32))
    same(both(lambda: lax.full((2,), 1.5)), np.full(2, 1.5))


def test_unknown_places() -> None:
    same(both(lambda x, i: lax.dynamic_slice(x, (0, i), (2, 2)), X, 1), X[:, 1:])
    same(both(lambda x, i: lax.dynamic_slice(x, (0, i), (2, 2)), X, 9), X[:, 1:])
    same(both(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, False), X, -1), X[:, -1])
    same(both(lambda x, i: lax.dynamic_slice_in_dim(x, i, 1), X, 1), X[1:])
    changed = X.copy()
    changed[1] = 0
    zeros = np.zeros((1, 3))
    same(both(lambda x, i: lax.dynamic_update_slice(x, zeros, (i, 0)), X, 1), changed)
    same(both(lambda x, i: lax.dynamic_update_index_in_dim(x, zeros[0], i, 0), X, 1), changed)
    same(both(lambda x, i: lax.dynamic_update_slice_in_dim(x, zeros, i, 0), X, 1), changed)


def test_reductions() -> None:
    same(both(lambda x: lax.reduce(x, 0.0, lax.add, (0,)), X), X.sum(0))
    same(both(lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0, 1)), X), X.prod())
    pair = both(
        lambda x: lax.reduce(
            (x, -x), (0.0, 0.0), lambda a, b: (lax.add(a[0], b[0]), lax.min(a[1], b[1])), (1,)
        ),
        X,
    )
    same(pair, (X.sum(1), -X.max(1)))
    same(both(lambda x: lax.reduce_max(x, (1,)), X), X.max(1))
    same(both(lambda x: lax.argmax(x, 1, np.int32), X), X.argmax(1).astype(np.int32))
    same(both(lambda x: lax.cumsum(x, 1), X), X.cumsum(1))
    same(both(lambda x: lax.cumsum(x, 1, reverse=True), X), X[:, ::-1].cumsum(1)[:, ::-1])
    windows = np.lib.stride_tricks.sliding_window_view(ROW, 2)
    for function, expected in ((lax.max, windows.max(1)), (lax.add, windows.sum(1))):
        start = -np.inf if function is lax.max else 0.0
        same(both(lambda x, f=function, s=start: lax.reduce_window(x, s, f, (2,)), ROW), expected)
    with pytest.raises(ArgumentError, match="must not use traced values from outside"):
        tj.jit(lambda x, y: lax.reduce(x, 0.0, lambda a, b: a + b * y, (0,)))(X, 2.0)


def test_sorting() -> None:
    x = np.array([3.0, 1.0, 2.0])
    same(both(lambda x: lax.sort(x), x), np.sort(x))
    same(both(lambda x: lax.sort((x, x * 10)), x), (np.sort(x), np.sort(x) * 10))
    same(both(lambda x: lax.top_k(x, 2), x), (np.array([3.0, 2.0]), np.array([0, 2], np.int32)))


def test_sort_by_several_keys() -> None:
    first = np.array([2, 1, 2, 1, 1, 2])
    second = np.array([3.0, np.nan, -0.0, 5.0, np.nan, 0.0])
    places = np.arange(6)
    order = np.lexsort((second, first))
    expected = first[order], second[order], places[order]
    same(both(lambda *x: lax.sort(x, num_keys=2), first, second, places), expected)
    # By the third as well, where the others are equal.
    order = np.lexsort((-places, second, first))
    expected = first[order], second[order], -places[order]
    same(both(lambda *x: lax.sort(x, num_keys=3), first, second, -places), expected)
    weighted = tj.grad(lambda y: (lax.sort((first, y), num_keys=2)[1] * places).sum())
    # Each element has the weight of the place that it goes to.
    same(both(weighted, np.array([3.0, 7.0, 1.0, 5.0, 6.0, 2.0])), np.array([5, 2, 3, 0, 1, 4.0]))
    for count in (0, 2):
        with pytest.raises(AttributeValueError, match="num_keys must be between 1 and the number"):
            lax.sort((first,), num_keys=count)


def test_contractions() -> None:
    same(both(lambda x: lax.dot(x, x.T), X), X @ X.T)
    same(both(lambda x: lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,)))), X), (X * X).sum(1))
    batch = np.stack([X, X + 1])
    same(both(lambda x: lax.batch_matmul(x, x.swapaxes(1, 2)), batch), batch @ batch.swapaxes(1, 2))


def direct_convolution(x: np.ndarray, k: np.ndarray, stride: int) -> np.ndarray:
    """N H W C with H W I O, VALID."""
    height, width = (np.array(x.shape[1:3]) - k.shape[:2]) // stride + 1
    made = np.zeros((x.shape[0], height, width, k.shape[3]))
    for i in range(height):
        for j in range(width):
            part = x[:, i * stride : i * stride + k.shape[0], j * stride : j * stride + k.shape[1]]
            made[:, i, j] = np.tensordot(part, k, ([1, 2, 3], [0, 1, 2]))
    return made


def test_convolution() -> None:
    rng = np.random.default_rng(0)
    x, k = rng.normal(size=(2, 6, 5, 3)), rng.normal(size=(3, 2, 3, 4))
    labels = ("NHWC", "HWIO", "NHWC")
    for stride in (1, 2):
        made = both(
            lambda x, k, s=stride: lax.conv_general_dilated(
                x, k, (s, s), "VALID", dimension_numbers=labels
            ),
            x,
            k,
        )
        same(made, direct_convolution(x, k, stride))
    moved = both(
        lambda x, k: lax.conv(x, k, (1, 1), "VALID"),
        x.transpose(0, 3, 1, 2),
        k.transpose(3, 2, 0, 1),
    )
    same(moved, direct_convolution(x, k, 1).transpose(0, 3, 1, 2))

    # A transposed convolution is the gradient of the convolution with the same kernel.
    def convolved(y: Any) -> Any:
        return lax.conv_general_dilated(y, k, (2, 2), "SAME", dimension_numbers=labels)

    y = rng.normal(size=(2, 8, 8, 3))
    value, pull = tj.vjp(convolved, y)
    made = both(lambda v: lax.conv_transpose(v, k, (2, 2), "SAME", transpose_kernel=True), value)
    same(made, pull(value)[0])


def test_cond() -> None:
    def function(p: Any, x: Any) -> Any:
        factor = x.sum()
        return lax.cond(
            p,
            lambda x: {"a": x * factor, "n": 1},
            lambda x: {"a": x - 1, "n": 2},
            x,
        )

    for p in (True, False, 0.0, np.bool_(True)):
        expected = {"a": X * X.sum(), "n": 1} if p else {"a": X - 1, "n": 2}
        same(both(function, p, X), expected)
    same(tj.grad(lambda x: function(True, x)["a"].sum())(X), np.full((2, 3), 2 * X.sum()))


def test_switch() -> None:
    branches = [lambda x: x, lambda x: x * 10, lambda x: -x]
    for index, expected in ((0, X), (1, X * 10), (2, -X), (7, -X), (-3, X)):
        same(both(lambda i, x: lax.switch(i, branches, x), index, X), expected)


def test_branches_must_agree() -> None:
    with pytest.raises(ArgumentError, match="true_fun and false_fun must return equal trees"):
        lax.cond(True, lambda x: x, lambda x: (x, x), X)
    with pytest.raises(ShapeError, match=r"result\[0\] is f64\[2,3\] and f64\[3\]"):
        lax.cond(True, lambda x: (x,), lambda x: (x[0],), X)
    with pytest.raises(ArgumentError, match="switch: needs at least one branch"):
        lax.switch(0, [], X)


def test_while_loop() -> None:
    def collatz(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, steps = state
            return np.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return lax.while_loop(lambda state: state[0] != 1, body, (n, 0))[1]

    assert both(collatz, 27) == 111
    assert both(collatz, np.int32(1)) == 0

    def with_captured(x: Any, limit: Any) -> Any:
        return lax.while_loop(
            lambda s: s["v"].sum() < limit, lambda s: {"v": s["v"] * x[0, 1]}, {"v": x}
        )

    same(both(with_captured, X, 100.0), {"v": X * 8})


def test_carried_python_numbers_take_the_type_of_the_body() -> None:
    x = np.ones(3, np.float32)
    result = both(lambda x: lax.fori_loop(0, 3, lambda i, s: s + x.sum(), 0), x)
    assert result == 9
    assert np.asarray(result).dtype == np.float32
    with pytest.raises(ElementTypeError, match="enters as f32"):
        lax.fori_loop(0, 3, lambda i, s: s + np.float64(1), np.float32(0))
    with pytest.raises(ShapeError, match=r"carried value\[1\] enters as f64\[3\] and leaves as"):
        lax.fori_loop(0, 3, lambda i, s: np.stack([s, s]), np.ones(3))
    with pytest.raises(ArgumentError, match="must return the tree that it takes"):
        lax.while_loop(lambda s: s[0] < 3, lambda s: s[0] + 1, (0,))


def test_fori_loop() -> None:
    def function(x: Any, n: Any) -> Any:
        return lax.fori_loop(1, n, lambda i, s: s + x[i] * i, np.zeros(()))

    same(both(function, ROW, 4), np.asarray(ROW[1] + 2 * ROW[2] + 3 * ROW[3]))
    same(both(function, ROW, 0), np.asarray(0.0))
    gradient = tj.grad(lambda x: lax.fori_loop(0, 3, lambda i, s: s * x[i], 2.0, unroll=True))
    same(gradient(ROW + 1), np.array([12.0, 6, 4, 0, 0]))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, True])
def test_scan(reverse: bool, unroll: Any) -> None:
    def step(carry: Any, x: Any) -> Any:
        total, n = carry
        total = total + x["a"] * x["b"].sum()
        return (total, n + 1), {"t": total, "x": x["a"]}

    def function(a: Any, b: Any) -> Any:
        return lax.scan(step, (0.0, 0), {"a": a, "b": b}, reverse=reverse, unroll=unroll)

    rows = np.arange(10.0).reshape(5, 2)
    total, ts = 0.0, np.zeros(5)
    for i in reversed(range(5)) if reverse else range(5):
        total += ROW[i] * rows[i].sum()
        ts[i] = total
    (made, count), ys = both(function, ROW, rows)
    assert made == total
    assert count == 5
    same(ys, {"t": ts, "x": ROW})


def test_scan_of_nothing_and_by_length() -> None:
    carry, ys = both(lambda x: lax.scan(lambda c, v: (c + v, c * v), 1.0, x), ROW[:0])
    assert carry == 1.0
    same(ys, np.zeros(0))
    carry, ys = both(lambda x: lax.scan(lambda c, _: (c * 2, c), x, None, length=3), X)
    same(carry, X * 8)
    same(ys, np.stack([X, X * 2, X * 4]))
    for start in (1.0, np.ones(4)):
        carry, ys = both(lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3), start)
        assert ys is None
        same(carry, np.multiply(start, 8))
    with pytest.raises(ShapeError, match=r"first dimensions of one length.*\[2, 5\]"):
        lax.scan(lambda c, x: (c, x), 0, (ROW, X))
    with pytest.raises(ArgumentError, match=r"the body must return \(carry, y\)"):
        lax.scan(lambda c, x: c, 0, ROW)


def test_nested_loops_capture() -> None:
    def function(x: Any) -> Any:
        scale = x.max()

        def outer(total: Any, row: Any) -> Any:
            shift = row.sum()
            inner = lax.map(lambda v: v * scale + shift, row)
            return total + inner.sum(), inner

        return lax.scan(outer, 0.0, x)

    inner = X * X.max() + X.sum(1, keepdims=True)
    same(both(function, X), (inner.sum(), inner))


def test_a_body_raises() -> None:
    with pytest.raises(KeyError, match="mine"):
        lax.map(lambda v: dict[str, int]()["mine"], ROW)
    assert issubclass(ShapeError, TracejitError)
