"""Arrays that unknown masks shorten: in loops and branches, written to, as indices; as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.errors import ConcretizationError, ShapeError, TracejitError, UnsupportedError

X = np.arange(40.0) % 7


def escape(x: Any, n: int) -> Any:
    """The steps after which points of a grid diverge; those that have are dropped."""
    rows, columns = np.mgrid[0:6, 0:5]
    c = x[:30].reshape(6, 5) * 0.3 - 1 + 0.4j
    steps, last = np.zeros(c.shape, int), np.zeros(c.shape, complex)
    rows.shape = columns.shape = c.shape = 30
    z = np.zeros(c.shape, complex)
    for i in range(n):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        gone = abs(z) > 2
        steps[rows[gone], columns[gone]] = i + 1
        last[rows[gone], columns[gone]] = z[gone]
        np.logical_not(gone, gone)
        z, c = z[gone], c[gone]
        rows, columns = rows[gone], columns[gone]
    return steps, last


def above_the_mean(x: Any, n: int) -> Any:
    total = 0.0
    while len(x) > n:
        x = x[x > x.mean()]
        total += x.sum()
    return total


def together(x: Any, n: int) -> Any:
    y = x * 2
    i = 0
    while i < n:
        keep = x > i
        x, y = x[keep], y[keep]
        x -= 0.5
        i += 1
    return x.sum(), (x * y).sum(), len(x)


def apart(x: Any, n: int) -> Any:
    y = x[:20] + 1
    for i in range(n):
        x = x[x > i]
        y = y[y > 2 * i]
    return x.sum() + y.sum()


def parted(x: Any, n: int) -> Any:
    """One mask at first, two after the first step."""
    y = x + 1
    for i in range(n):
        x = x[x > i]
        if i == 0:
            y = y[y > 1]
        else:
            y = y[y < 6]
    return x.sum(), y.sum()


def in_a_branch(x: Any, n: int) -> Any:
    if n > 2:
        x = x[x > 3]
        x *= 2
    return x.sum(), x.max()


def two_names(x: Any, n: int) -> Any:
    z = x[x > 1]
    w, v = z, z.copy()
    if n > 2:
        z += 1
    z[z > 5] = 0
    z[...] = z * 2
    z[z > 3] *= 3
    return w.sum(), z.sum(), v.sum()


def written_by_index(x: Any, n: int) -> Any:
    table, flat = np.zeros((8, 8)), np.zeros(8)
    index = np.arange(8, dtype=np.uint8)[x[:8] > 3]
    flat[index] = x[:8][x[:8] > 3]
    flat[index] += 1
    table[index, 0] = 2.0
    table[n % 8, index] = 3
    table[index] *= 2
    return flat, table, table[index, 0].sum()


def other_name_of_a_loop(x: Any, n: int) -> Any:
    """Where no step runs both names are one array."""
    y = z = x + 1
    for i in range(n):
        z = z[z > i]
        z += 1
    for i in range(n):
        y = y[y > i]
        y += 1
    z[z > 2] = 7
    y *= 2
    return y.sum(), z.sum()


def other_name_of_a_branch(x: Any, n: int) -> Any:
    y = z = x + 1
    if n > 1:
        y = y[y > 2]
        y += 1
        z += 3
    else:
        y += 2
    w = y
    y *= 2
    z -= 1
    v = y.copy()
    w[w > 4] = 1
    return y.sum(), z.sum(), v.sum(), w.sum()


def whole_in_a_branch(x: Any, n: int) -> Any:
    x = x + 1
    w = x[x > 2]
    if n > 1:
        w = x
        w += 1
    x *= 2
    w += 1
    for i in range(n):
        w += i
    if n > 2:
        x[1] = 9
    return w.sum(), x.sum()


def in_a_function(x: Any, n: int) -> Any:
    z = x[x > 2]

    def write() -> None:
        z[...] = z + 1

    if n > 1:
        write()
    w = z
    for i in range(n):
        w[w > i] = i
    return z.sum(), w.sum()


PROGRAMS = [
    escape, above_the_mean, together, apart, parted, in_a_branch, two_names, written_by_index,
    other_name_of_a_loop, other_name_of_a_branch, whole_in_a_branch, in_a_function,
]  # fmt: skip


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("function", PROGRAMS)
def test_as_numpy(function: Callable[..., Any], check: bool, static: bool) -> None:
    jitted = tj.jit(function, autograph=True, check=check, static_argnames="n" if static else ())
    for n in (0, 3) if check else (0, 1, 3, 25):
        if function is above_the_mean and n == 0:
            n = 100
        with np.errstate(all="ignore"):
            expected, found = function(X.copy(), n), jitted(X, n)
        pair = [value if isinstance(value, tuple) else (value,) for value in (found, expected)]
        for one, other in zip(*pair, strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12)


def shaped(x: Any) -> Any:
    y = x * 1
    y.shape = 5, 8
    y[0] = 0
    y.shape = -1
    return y


def shaped_behind_a_view(x: Any) -> Any:
    y = x * 1
    view = y[1:]
    y.shape = 5, 8
    return y, view


def shaped_askew(x: Any) -> Any:
    y = x.reshape(5, 8).T
    y.shape = 40
    return y


def test_shapes_that_are_set() -> None:
    np.testing.assert_array_equal(tj.jit(shaped)(X), shaped(X))
    with pytest.raises(UnsupportedError, match="keeps its shape, since views of it were made"):
        tj.jit(shaped_behind_a_view)(X)
    with pytest.raises(UnsupportedError, match="since its elements do not lie row by row"):
        tj.jit(shaped_askew)(X)


def returned(x: Any, y: Any) -> Any:
    return x[x > 2]


def of_another_mask(x: Any, y: Any) -> Any:
    z = x[x > 2]
    z[z > 3] = x[x > 4]
    return z.sum()


def cast_away(x: Any, y: Any) -> Any:
    z = np.arange(40)[x > 2]
    z += 0.5
    return z.sum()


def two_masks(x: Any, y: Any) -> Any:
    i = np.arange(40)
    y[i[x > 2], i[x > 3]] = 0
    return y


def beside_an_array(x: Any, y: Any) -> Any:
    y[np.arange(40)[x > 2], np.arange(40)] = 0
    return y


def assigned_from_another(x: Any, y: Any) -> Any:
    y[np.arange(40)[x > 2]] = x[x > 3]
    return y


def assigned_an_array(x: Any, y: Any) -> Any:
    y[np.arange(40)[x > 2], 0] = np.arange(3)
    return y


def into_two(x: Any, y: Any) -> Any:
    z = x[x > 2]
    np.divmod(z, 2, z, z)
    return z.sum()


def another_axis(x: Any, y: Any) -> Any:
    z = y[y[:, 0] > 1] if x[0] > 0 else 3
    return z


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (returned, "index: how many elements a mask selects depends on"),
        (of_another_mask, "assignment of elements that another mask selects"),
        (cast_away, "cannot cast float64 to int64 by the rule same_kind"),
        (two_masks, "integers that different masks select, of unknown number"),
        (beside_an_array, "beside integers that a mask selects there can be numbers alone"),
        (assigned_from_another, "assignment: elements that another mask selects, of unknown"),
        (assigned_an_array, "cannot be put beside elements of unknown number"),
        (into_two, "out= of np.divmod"),
        (another_axis, "is an array of unknown size after one branch, and none after the other"),
    ],
)
def test_refusals(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TracejitError, match=message) as caught:
        tj.jit(function, autograph=True)(X, np.outer(X, X))
    assert isinstance(caught.value, ConcretizationError | ShapeError | tj.errors.ArgumentError)


def test_a_batch_leaves_no_function() -> None:
    with pytest.raises(TracejitError):
        tj.vmap(lambda x: x[x > 2])(np.outer(X, X))


def bound_to_another(x: Any, n: int) -> Any:
    x, y = x[x > 1], x + 1
    for _ in range(n):
        y[y > 2] = 0
        y = x
    return x.sum(), y.sum()


def read_under_an_older_name(x: Any, n: int) -> Any:
    z = x[x > 1]
    w = z
    if n > 1:
        z += 1
        z = z[z > 3]
    return w.sum(), z.sum()


def shortened_apart(x: Any, n: int) -> Any:
    y = x = x + 1
    for i in range(n):
        x = x[x > i]
        y = y[y > 0.5]
    x[x > 1] = 5
    return y.sum()


def written_and_read(x: Any, n: int) -> Any:
    y = x = x + 1
    total = 0.0
    if n > 3:
        y = y[y > 2]
    if n > 1:
        y += 1
        total = x.sum()
    return y.sum(), total


def read_behind_the_other(x: Any, n: int) -> Any:
    y = x = x + 1
    total = 0.0
    if n > 3:
        y = y[y > 2]
    for _ in range(n):
        x += 1
        total += y.sum()
        y += 1
    return total


def read_as_another_name(x: Any, n: int) -> Any:
    z = w = x[x > 1]
    total = 0.0
    for _ in range(n):
        z += 1
        total += w.sum()
    return total


def written_and_bound_anew(x: Any, n: int) -> Any:
    y = x = x + 1
    if n > 3:
        y = y[y > 2]
    if n > 1:
        y += 1
        y = y[y > 3]
    return x.sum()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (bound_to_another, "y is a second name of an array that a mask has shortened"),
        (read_under_an_older_name, "recorded, writes to it as z and binds z anew"),
        (shortened_apart, "the loop at .* binds names anew and writes to their arrays"),
        (written_and_read, "if: y, which a mask has shortened, may be one array"),
        (read_behind_the_other, "for: y, which a mask has shortened"),
        (read_as_another_name, "for: z, which a mask has shortened, may be one array with another"),
        (written_and_bound_anew, "recorded, writes to it as y and binds y anew"),
    ],
)
def test_second_names_are_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ConcretizationError, match=message):
        tj.jit(function, autograph=True)(X, 2)


def test_a_second_name_that_is_written_to() -> None:
    """The error names what to copy, not a value of a trace that has ended."""

    def in_branch(x: Any, n: Any) -> Any:
        y = x[x > 0.5]
        z = x * 2
        if n > 0:
            z = y
            z += 1
        return z.sum()

    def in_loop(x: Any, n: Any) -> Any:
        y = x[x > 0.5]
        i = 0
        while i < n:
            x = y
            x *= x
            i = i + 1
        return x.sum(), y.sum()

    for function in (in_branch, in_loop):
        with pytest.raises(ConcretizationError, match=r"copy (it|the array).* = .\.copy\(\)"):
            tj.jit(function, autograph=True)(np.linspace(0, 1, 5), 2.0)


def test_whole_arrays_take_the_place_of_shortened_ones() -> None:
    def product(z: Any, n: int) -> Any:
        w = z[z > 2]
        for _ in range(n):
            w = z * 2
        return w.sum(), w.max()

    def beside(z: Any, n: int) -> Any:
        w = z[z > 2]
        for _ in range(n):
            w = z
            z = z + 1
        return w.sum() + z.sum()

    def copied(z: Any, n: int) -> Any:
        w, i = z[z > 2], 0
        while i < n:
            w = z.copy()
            i += 1
        return w.mean()

    for function in (product, beside, copied):
        jitted = tj.jit(function, autograph=True)
        for n in (0, 1, 3):
            np.testing.assert_allclose(jitted(np.arange(6.0), n), function(np.arange(6.0), n))

    def renamed(z: Any, n: int) -> Any:
        w = z[z > 2]
        for _ in range(n):
            w = z
        return w.sum()

    with pytest.raises(ConcretizationError, match=r"takes the place of one.* w = x\.copy\(\)"):
        tj.jit(renamed, autograph=True)(np.arange(6.0), 2)
