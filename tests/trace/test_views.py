"""Views: a write to a base or to any view of it is seen through all of them, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import check_writes
from tracejit.errors import ReadOnlyError, ShapeError, UnsupportedError
from tracejit.trace.views import reshaped_strides

X = np.arange(60.0).reshape(3, 4, 5)


def slices_of_slices(np: Any, x: Any) -> Any:
    y = np.array(x)
    a = y[1:]
    b = a[:, ::2]
    b[0] = 100
    c = y.T
    c[0, 0] = -5
    y += 1
    a *= 2
    return y, a, b, c


def reshapes(np: Any, x: Any) -> Any:
    """A reshape is a view where memory allows it, else a copy."""
    y = np.array(x)
    flat = y.reshape(-1)
    flat[3] = 77
    copy = y.T.reshape(-1)
    copy[0] = 55
    strided = y[:, ::2].reshape(-1)
    strided[0] = 66
    swapped = y.swapaxes(0, 1)[2]
    swapped[...] = 4
    squeezed = np.squeeze(y[:1])
    squeezed[0] = 8
    return y, flat, copy, strided, swapped, squeezed


def swaps(np: Any, x: Any) -> Any:
    y = np.array(x)
    a, b = y[0], y[1]
    temporary = a.copy()
    a[:] = b
    b[:] = temporary
    y[0], y[2] = y[2].copy(), y[0].copy()
    return y


def numbers(np: Any, x: Any) -> Any:
    """An element is a number: changing it changes nothing else."""
    y = np.array(x)
    s = y[0, 0, 0]
    s += 100
    total = y[0, 0, 1]
    for i in range(3):
        total += y[i, 0, 0]
    last = y[..., 0]
    last += 1
    return y, s, total, last


def loops(np: Any, x: Any) -> Any:
    y = np.zeros((3, 4))
    for i in range(3):
        for j in range(4):
            y[i, j] = x[i, j, 0] * 2
    y[1] -= y[0]
    for row in y:
        row += row[0]
    np.add(y, 1, out=y)
    np.add.at(y, ([0, 0, 0], [1, 1, 2]), 5.0)
    np.subtract.at(y, ([0, 0], [1, 1]), 2.0)
    np.maximum.at(y, [0, 0], 3.0)
    y[y > 10] = 0
    return y


def complex_parts(np: Any, x: Any) -> Any:
    y = np.array(x) + 1j
    y.real = 3
    y.imag[0] = 2
    y[1].real[...] = 9
    return y, y.real, x.imag


def bits(np: Any, x: Any) -> Any:
    """A view of another type shares memory, and so do its reshapes."""
    y = np.array(x)
    words = y.view(np.int64)
    words[0] ^= -(2**63)
    halves = y.view(np.uint32).reshape(-1, 2)
    halves[3, 1] = 0
    np.ascontiguousarray(y).view(np.uint8)[..., :2] = 7
    wide = halves.view(np.complex64)[5]
    pairs = y[..., :2].copy().view(np.complex128)
    pairs[0] += 3j
    pairs.view(np.float64)[1, 0] = 2
    y[1] = 5
    words[2, 0] += 1
    return y, words, halves, wide, pairs, y[0].view(np.float32), wide[0].view(np.int64)


def in_place_functions(np: Any, x: Any) -> Any:
    z = np.empty_like(x)
    np.copyto(z, x)
    z.fill(2)
    z[0] = x[0]
    z.sort(axis=0)
    np.put(z, [0, 1], [5.0, 6.0])
    np.fill_diagonal(z[0], 1)
    np.put_along_axis(z, np.argmax(z, 0, keepdims=True), 0, 0)
    np.place(z, z > 50, [1, 2])
    np.putmask(z, z > 40, [7.0])
    w = np.array(z)
    w.flat = [1.0, 2.0]
    return z, w


@pytest.mark.parametrize(
    "function",
    [
        slices_of_slices,
        reshapes,
        swaps,
        numbers,
        loops,
        complex_parts,
        bits,
        in_place_functions,
    ],
)
def test_aliasing(function: Any) -> None:
    check_writes(function, X)


def test_operators_in_place() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        z = y
        y += 2
        y *= 3
        y -= 1
        y /= 4
        y **= 2
        y //= 2
        y %= 5
        b = np.array(x).astype(int)
        b |= 1
        b &= 14
        b ^= 3
        b <<= 2
        b >>= 1
        m = np.eye(3)
        m @= m * 2
        return y, z, b, m

    check_writes(function, np.arange(6.0))


def test_a_cast_that_loses_is_refused_in_place() -> None:
    def function(x: Any) -> Any:
        y = np.array(x)
        y += 0.5
        return y

    with pytest.raises(TypeError, match="cannot cast the result from float64 to int64"):
        tj.jit(function)(np.arange(3))


OPERATIONS: list[Any] = [
    lambda v: v[1:],
    lambda v: v[::-1],
    lambda v: v[..., ::2],
    lambda v: v.T,
    lambda v: v.reshape(-1),
    lambda v: v[None],
    lambda v: v.reshape(v.shape[0], -1),
    lambda v: v.swapaxes(0, -1),
]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=6))
def test_any_chain_of_views(steps: list[tuple[int, int]]) -> None:
    """Views of views of views, each written to, then all read."""

    def function(np: Any, x: Any) -> Any:
        views = [np.array(x)]
        for number, (operation, base) in enumerate(steps):
            view = OPERATIONS[operation](views[base % len(views)])
            if view.size:
                view[0] = -float(number)
            view *= 2
            views.append(view)
        return views

    check_writes(function, X)


MERGES: list[Any] = [
    lambda a, b, c: (a * b * c,),
    lambda a, b, c: (a * b, c),
    lambda a, b, c: (a, b * c),
    lambda a, b, c: (a, 1, b, c, 1),
    lambda a, b, c: (a, b, 2, c // 2) if c % 2 == 0 else (a * b * c, 1),
    lambda a, b, c: (2, a // 2, b * c) if a % 2 == 0 else (1, a, b, c),
    lambda a, b, c: (c, b, a),
]


@given(
    st.permutations(range(3)),
    st.tuples(*[st.sampled_from([slice(None), slice(None, None, 2), slice(1), slice(1, 3)])] * 3),
    st.sampled_from(MERGES),
)
def test_when_a_reshape_is_a_view(order: list[int], cut: tuple[slice, ...], merge: Any) -> None:
    base = np.zeros((4, 3, 6))
    view = base.transpose(order)[cut]
    shape = merge(*view.shape)
    made = view.reshape(shape)
    strides = tuple(s // base.itemsize for s in view.strides)
    found = reshaped_strides(view.shape, strides, shape)
    assert (found is not None) == np.shares_memory(made, base)
    if found is not None:
        sizes = zip(made.strides, found, made.shape, strict=True)
        assert all(s // base.itemsize == f for s, f, size in sizes if size != 1)


def test_read_only() -> None:
    def function(x: Any) -> Any:
        np.broadcast_to(x, (2, 3))[0] = 1
        return x

    with pytest.raises(ReadOnlyError, match="broadcast_to is read-only"):
        tj.jit(function)(np.arange(3.0))


def test_arguments_are_not_written_to() -> None:
    x = np.arange(4.0)

    @tj.jit
    def scaled(x: Any) -> Any:
        x *= 2
        x[0] = -1
        return x

    np.testing.assert_array_equal(scaled(x), [-1, 2, 4, 6])
    np.testing.assert_array_equal(x, [0, 1, 2, 3])

    @tj.jit
    def outer(x: Any) -> Any:
        y = scaled(x)
        return x, y

    np.testing.assert_array_equal(outer(x)[0], x)


def test_a_function_that_only_writes_is_refused() -> None:
    @tj.jit
    def update(w: Any, g: Any) -> None:
        w["a"] -= g

    with pytest.raises(
        TypeError, match=r"update: writes to argument w\['a'\] of update and returns"
    ):
        update({"a": np.ones(3)}, np.ones(3))


def test_writes_from_an_inner_trace_are_refused() -> None:
    @tj.jit
    def function(x: Any) -> Any:
        total = np.zeros(3)

        def loss(x: Any) -> Any:
            total[0] = x.sum()
            return x.sum()

        return tj.grad(loss)(x)

    with pytest.raises(UnsupportedError, match="an array of function is written to inside loss"):
        function(np.ones(2))


def test_the_array_api_of_traced_arrays() -> None:
    def function(x: Any) -> Any:
        namespace = x.__array_namespace__(api_version="2024.12")
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        y = x.copy()
        y.partition(1)
        return namespace.sum(x), y[1]

    with pytest.raises(TypeError, match="device must be 'cpu'"):
        tj.jit(lambda x: x.to_device("gpu"))(X)
    total, second = tj.jit(function)(np.array([3.0, 1.0, 2.0]))
    assert (total, second) == (6, 2)


def test_an_array_of_rank_0_is_written_under_a_mask() -> None:
    def function(np: Any, x: Any) -> Any:
        y = np.array(x)
        y[y > 1] = 7
        return y

    check_writes(function, np.array(2.0))
    check_writes(function, np.array(0.0))


def written_through_a_copy(np: Any, x: Any, how: str) -> Any:
    """``x`` after a write to what a way of flattening or laying it out gives."""
    y = x.copy()
    ways = {
        "ravel of a reversed view": lambda: y[::-1].ravel(),
        "ravel of a column": lambda: np.ravel(y[:, 0]),
        "ravel in memory order": lambda: y.T.ravel(order="K"),
        "ravel in any order": lambda: y.T.ravel(order="A"),
        "ravel by columns": lambda: y.ravel(order="F"),
        "reshape in any order": lambda: y.T.reshape(2, -1, order="A"),
        "reshape with a copy": lambda: y.reshape(-1, copy=True),
        "asfortranarray": lambda: np.asfortranarray(y),
        "asfortranarray of a view": lambda: np.asfortranarray(y.T),
        "then by columns": lambda: np.asfortranarray(y).reshape(-1, order="F"),
        "ascontiguousarray of a view": lambda: np.ascontiguousarray(y.T),
        "asarray by columns": lambda: np.asarray(y, order="F"),
        "array by rows, if need be": lambda: np.array(y, copy=None, order="C"),
        "flat": lambda: y.T.flat,
        "an index of rank 0": lambda: y[np.array(1)],
        "a part of a number": lambda: y[0, 0].reshape(1),
    }
    made = ways[how]()
    made[1:2] = 77
    return y, made if how != "flat" else y.T


WAYS = [
    "ravel of a reversed view", "ravel of a column", "ravel in memory order",
    "ravel in any order", "ravel by columns", "reshape in any order", "reshape with a copy",
    "asfortranarray", "asfortranarray of a view", "then by columns", "ascontiguousarray of a view",
    "asarray by columns", "array by rows, if need be", "flat", "an index of rank 0",
    "a part of a number",
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
def test_where_numpy_copies_writes_stay_there(how: str) -> None:
    check_writes(lambda np, x: written_through_a_copy(np, x, how), X[0])


def test_writes_to_flat_places_reach_a_view_that_is_not_contiguous() -> None:
    def function(np: Any, x: Any) -> Any:
        y = x.copy()
        np.put(y.T, [0, 1], 3)
        y.T[::2].put([-1], 4)
        y[::-1].flat[0] = 5
        y.T.flat = [1, 2]
        return y

    check_writes(function, X[0])


def test_a_number_has_no_memory_to_view() -> None:
    def function(np: Any, x: Any) -> Any:
        y = x * 1
        z = y[None]
        z[...] = 5
        return y, z, y[...]

    check_writes(function, np.array(2.0))


def test_a_reshape_that_must_not_copy() -> None:
    def function(np: Any, x: Any) -> Any:
        return x.T.reshape(-1, copy=False)

    with pytest.raises(ShapeError, match="copy=False, but this shape needs a copy"):
        tj.jit(lambda x: function(tj.numpy, x))(X[0])
    check_writes(lambda np, x: np.reshape(x, -1, copy=False), X[0])


def test_a_product_in_place_needs_a_matrix() -> None:
    def function(x: Any) -> Any:
        x @= x
        return x

    with pytest.raises(ValueError, match="x @= y needs an x of rank 2 at least"):
        tj.jit(function)(np.arange(3.0))


def test_bits_must_make_whole_elements() -> None:
    whole = r"view: f64\[5\] as c128: its last dimension is no whole number of these elements"
    with pytest.raises(ShapeError, match=whole):
        tj.jit(lambda x: x.view(complex))(np.arange(5.0))
    number = r"view: f64\[\] as f32: a number is not of these elements"
    with pytest.raises(ShapeError, match=number):
        tj.jit(lambda x: x[0].view(np.float32))(np.arange(5.0))
