"""Bad and odd arguments of jitted functions: a right answer or one clear error, nothing changed."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit.errors import ArgumentError, ShapeError

X = np.arange(24.0).reshape(4, 6)


@tj.jit
def function(x: Any) -> Any:
    return x * 2 + x.sum(), x[::-1]


def plain(x: Any) -> Any:
    return x * 2 + x.sum(), x[::-1]


def odd_arrays() -> dict[str, np.ndarray]:
    read_only = X.copy()
    read_only.flags.writeable = False
    padded = np.zeros(24 * 8 + 1, np.uint8)
    unaligned = padded[1:].view(np.float64).reshape(4, 6)
    unaligned[...] = X
    return {
        "read-only": read_only,
        "fortran": np.asfortranarray(X),
        "transposed": X.T,
        "strided": X[::2, 1::3],
        "reversed": X[::-1, ::-1],
        "zero strides": np.broadcast_to(X[0], (3, 6)),
        "overlapping": np.lib.stride_tricks.sliding_window_view(X[0], 3),
        "big-endian": X.astype(">f8"),
        "big-endian and strided": X.astype(">f8")[::2, ::-1],
        "unaligned": unaligned,
        "empty": X[:, :0],
        "empty rows": X[:0],
        "one element": X[:1, :1],
        "rank 0": np.array(3.0)[None],
        "special": np.array([[np.nan, np.inf], [-np.inf, -0.0]]),
        "subnormal": np.full((2, 2), 5e-324),
    }


@pytest.mark.parametrize("name", odd_arrays())
def test_odd_arrays(name: str) -> None:
    x = odd_arrays()[name]
    before = x.copy()
    with np.errstate(all="ignore"):
        expected = plain(x.astype(x.dtype.newbyteorder("=")))
        for _ in range(2):
            same(function(x), expected)
    np.testing.assert_array_equal(x, before)


@given(
    st.sampled_from(
        [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.complex64]
    ),
    st.tuples(*[st.sampled_from([slice(None), slice(None, None, 2), slice(None, None, -1)])] * 2),
    st.booleans(),
    st.booleans(),
)
def test_any_layout(
    dtype: type[np.generic], cut: tuple[slice, ...], fortran: bool, swapped: bool
) -> None:
    x = np.arange(24).reshape(4, 6).astype(dtype)
    x = np.asfortranarray(x) if fortran else x
    x = x.astype(x.dtype.newbyteorder()) if swapped else x
    x = x[cut]
    native = x.astype(dtype)
    same(tj.jit(lambda x: (x, x.T, x + x))(x), (native, native.T, native + native))


def test_the_same_array_twice() -> None:
    x = X.copy()

    def both(x: Any, y: Any) -> Any:
        x += 1
        y[0] = 7
        return x, y

    first, second = tj.jit(both)(x, x)
    expected = X + 1
    expected[0] = 7
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(second, expected)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([1, None], object), "an array of dtype object cannot be traced"),
        (np.array(["a", "b"]), "an array of dtype <U1 cannot be traced"),
        (np.array([b"a"]), "an array of dtype |S1 cannot be traced"),
        (np.array(["2020-01-01"], "datetime64[D]"), "an array of dtype datetime64[D] cannot"),
        (np.zeros(2, [("a", "f8")]), "cannot be traced"),
        (np.zeros(2, np.longdouble), "arrays of dtype"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "MaskedArray is not supported"),
        (X.view(np.matrix), "matrix is not supported"),
        ("text", "a str is no array of numbers"),
        (b"bytes", "a bytes is no array of numbers"),
        (object(), "an object is no array of numbers; make its class a tree of arrays"),
        ({1, 2}, "a set is no array of numbers"),
        (lambda x: x, "a function is no array of numbers"),
        (np.sin, "an object of class ufunc is no array of numbers"),
        (np.float32, "a type is no array of numbers"),
        (slice(2), "a slice is no array of numbers"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_refused(value: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        tj.jit(lambda p: p["k"][0])({"k": (value,)})
    assert str(caught.value).startswith("argument p['k'][0] of <lambda>: ")
    assert text in str(caught.value)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("value", ["a", b"a", np.sin, np.float32, np.dtype("f4"), slice(2), len])
def test_what_can_only_be_static(value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        tj.jit(lambda x, option: x)(1.0, value)
    assert "jit(f, static_argnames='option') compiles for each of its" in str(caught.value)
    assert "tree of arrays" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "options", "text"),
    [
        (3, {}, "jit: a function is needed, not int"),
        (abs, {"donate_argnums": "x"}, "positions of arguments are integers, not 'x'"),
        (abs, {"static_argnums": 0.5}, "positions of arguments are integers, not 0.5"),
        (abs, {"static_argnums": ["x"]}, r"positions of arguments are integers, not \['x'\]"),
    ],
)
def test_refused_options(function: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        tj.jit(function, **options)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tj.compile("HloModule m"), "compile: a module or .* not str; hlo.parse reads"),  # type: ignore[arg-type]
        (lambda: tj.interpret(np.sin, X), "interpret: a module or .*; jit takes functions"),  # type: ignore[arg-type]
        (lambda: tj.hlo.parse(b"HloModule m"), "hlo.parse: text is needed, not bytes"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_program_is_refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call()


def test_positions_may_be_numpys_integers() -> None:
    gradient = tj.grad(lambda x, y: x * y, argnums=np.int64(1))
    assert gradient(2.0, 3.0) == (2,)


def test_refused_results() -> None:
    with pytest.raises(ArgumentError, match=r"<lambda>: its result\['a'\] is not an array: a str"):
        tj.jit(lambda x: {"a": "text"})(X)


def test_trees() -> None:
    """Lists are trees, as in JAX; other sequences of numbers too."""
    same(tj.jit(lambda x: x)([1, 2.5, [3]]), [1, 2.5, [3]])
    same(tj.jit(lambda d: d["b"] - d["a"])({"b": 3, "a": 1}), 2)
    ordered = collections.OrderedDict(b=X, a=1)
    result = tj.jit(lambda d: d)(ordered)
    assert list(result) == ["b", "a"]
    same(result["b"], X)


def test_subclasses_are_refused() -> None:
    """A subclass may mean more than its elements: units, a mask."""

    class Renamed(np.ndarray):
        pass

    with pytest.raises(ArgumentError, match=r"argument x of .*: Renamed is not supported"):
        function(X.view(Renamed))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: x + np.ones(5), "add: operands could not be broadcast together with shapes"),
        (lambda x: x @ x, "matmul: the last dimension of lhs f64[4,6]"),
        (lambda x: np.sum(x, axis=2), "sum: axis 2 is out of bounds for array of dimension 2"),
        (lambda x: np.sum(x, axis=(0, 0)), "names a dimension twice"),
        (lambda x: x.reshape(5, 5), "cannot reshape array of size 24 into shape (5, 5)"),
        (lambda x: x.reshape(-1, -1), "only one size"),
        (lambda x: np.concatenate([x, x[:, :1]]), "concatenate: operands must agree"),
        (lambda x: np.stack([x, x[0]]), "stack: all arrays must have the same shape"),
        (lambda x: np.transpose(x, (0, 0)), "names a dimension twice"),
        (lambda x: np.squeeze(x, 0), "a size other than 1 in axis 0"),
        (lambda x: np.max(x[:0]), "max: zero-size array f64[0,6] has no maximum"),
        (lambda x: np.argmax(x[:0]), "argmax of an empty sequence"),
        (lambda x: np.einsum("ij,jk", x, x), "einsum: j in"),
        (lambda x: np.split(x, 5), "split: 4 elements do not make 5 equal parts"),
        (lambda x: np.power(x.astype(int), -1), "negative integer powers"),
        (lambda x: -(x > 0), "negative: not defined for bool"),
        (lambda x: x & 1, "bitwise_and: not defined for float64, int"),
        (lambda x: np.add(x, 1, where=x > 0), "where= without out= leaves elements undefined"),
        (lambda x: np.add(x, 1, out=X), "out= must be an array"),
        (lambda x: np.quantile(x + 1j, 0.5), "complex numbers have no order"),
    ],
)
def test_wrong_calls(call: Any, text: str) -> None:
    with pytest.raises(Exception, match=r"test_arguments\.py:\d+\)") as caught:
        tj.jit(call)(X)
    assert text in str(caught.value)
    assert isinstance(caught.value, tj.errors.TracejitError)


def test_errors_are_numpys_kinds() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        tj.jit(lambda x: x + np.ones(5))(X)
    with pytest.raises(IndexError, match="out of bounds"):
        tj.jit(lambda x: np.sum(x, axis=2))(X)
    with pytest.raises(ShapeError):
        tj.numpy.matmul(X, X)


class Kind(enum.Enum):
    FAST = "fast"


class Model:
    @tj.jit
    def apply(self, x: Any) -> Any:
        return x


def test_what_is_known_is_said_to_be_static() -> None:
    jitted = tj.jit(lambda x, kind: x)
    for kind, words in ((Kind.FAST, "an object of class Kind"), ("fast", "a str")):
        message = f"argument kind of <lambda>: {words} is no array.*jit.f, static_argnames='kind'"
        with pytest.raises(ArgumentError, match=message):
            jitted(1.0, kind)
    with pytest.raises(ArgumentError, match=r"an object of class Model is .*static_argnums=0"):
        Model().apply(1.0)


def test_recursion_on_a_traced_number() -> None:
    def factorial(n: Any) -> Any:
        return 1 if n <= 0 else n * factorial(n - 1)

    with pytest.raises(tj.errors.ConcretizationError, match="a function calls itself in one"):
        tj.jit(factorial, autograph=True)(3)


def test_without_a_source_autograph_is_no_advice() -> None:
    names: dict[str, Any] = {}
    exec("def f(x): return x if x > 0 else -x", names)
    with pytest.raises(tj.errors.ConcretizationError, match=r"bool: .*tracing; if, and, or"):
        tj.jit(names["f"])(1.0)
