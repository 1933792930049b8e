"""Products by cuBLASLt: what it is asked, by a look-alike that multiplies on the host."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracejit as tj
from tests.cuda.emulation import Emulator, with_cublas
from tracejit.cuda import cublas, device_of
from tracejit.cuda.cublas import Algorithm, Cublas, Matrix, Product
from tracejit.cuda.libraries import candidates
from tracejit.errors import DeviceError, DeviceNotFoundError

RNG = np.random.default_rng(0)
Count = Callable[[], int]


def numbers(*shape: int, dtype: Any = "float32") -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


@pytest.fixture
def products(emulated: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Count]:
    """cuBLASLt is installed; returns how many products it has computed since it was asked."""
    for name, value in with_cublas().items():
        monkeypatch.setenv(name, value)
    cublas.cublas.cache_clear()
    found = cublas.cublas()
    assert found is not None
    counter = ctypes.c_uint.in_dll(found._library, "emulated_products")

    def count() -> int:
        made, counter.value = counter.value, 0
        return made

    count()
    yield count
    cublas.cublas.cache_clear()


def with_bias(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b


def layer(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(b + x @ w, 0)


def by_rows(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b[:, None]


def against_all(x: Any, w: Any) -> Any:
    return np.broadcast_to(x, (4, *x.shape)) @ w


def rounded_at_last(x: Any, w: Any) -> Any:
    return tj.lax.dot(x, w, preferred_element_type="float32").astype("bfloat16")


def in_tf32(x: Any, w: Any) -> Any:
    return tj.lax.dot(x, w, precision="high")


X, W, B = numbers(130, 100), numbers(100, 90), numbers(90)
HALF, BF16 = "float16", ml_dtypes.bfloat16
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], int]] = {
    # The function, its arguments, and the kernels that are left beside the product.
    "plain": (np.matmul, [X, W], 0),
    "bias": (with_bias, [X, W, B], 0),
    "bias_and_more": (layer, [X, W, B], 1),
    "bias_of_rows": (by_rows, [X, W, numbers(130)], 1),
    "left_transposed": (lambda x, w: x.T @ w, [numbers(100, 130), W], 0),
    "right_transposed": (lambda x, w: x @ w.T, [X, numbers(90, 100)], 0),
    "both_transposed": (lambda x, w: x.T @ w.T, [numbers(100, 130), numbers(90, 100)], 0),
    "batches": (np.matmul, [numbers(4, 70, 80), numbers(4, 80, 60)], 0),
    "one_for_all": (against_all, [numbers(70, 80), numbers(4, 80, 60)], 0),
    "slices": (lambda x, w: x[5:, 3:67] @ w[30:94], [numbers(140, 100), numbers(100, 131)], 0),
    "residual": (lambda x, w, y: x @ w * 2 + y, [X, W, numbers(130, 90)], 1),
    "two_results": (lambda x, w: (x @ w, (x @ w) ** 2), [X, W], 1),
    "double": (with_bias, [each.astype("float64") for each in (X, W, B)], 1),
    "complex": (np.matmul, [X * (1 + 2j), W * 1j], 0),
    "half": (np.matmul, [X.astype(HALF), W.astype(HALF)], 0),
    "half_with_bias": (with_bias, [each.astype(HALF) for each in (X, W, B)], 0),
    "sums_in_f32": (rounded_at_last, [X.astype(BF16), W.astype(BF16)], 1),
    "tf32": (in_tf32, [X, W], 0),
}


@pytest.mark.parametrize("name", CASES)
def test_products_are_the_cpus(products: Count, emulated: Emulator, name: str) -> None:
    function, arguments, kernels = CASES[name]
    before = emulated.launches
    made = tj.jit(function, target="cuda")(*arguments)
    assert products() == 1
    assert emulated.launches - before == kernels
    expected = tj.jit(function)(*arguments)
    tolerance = 3e-2 if X.dtype != arguments[0].dtype and arguments[0].itemsize == 2 else 1e-4
    for ours, theirs in zip(*map(tj.tree_util.tree_leaves, (made, expected)), strict=True):
        assert ours.dtype == theirs.dtype
        wide = np.result_type(theirs.dtype, np.float32) if theirs.dtype != BF16 else np.float32
        np.testing.assert_allclose(
            np.asarray(ours).astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance * 10
        )


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (np.matmul, [numbers(30, 40), numbers(40, 20)]),  # small
        (np.matmul, [np.ones((130, 100), "int8"), np.ones((100, 90), "int8")]),
        (lambda x, w: np.exp(x) @ w[::-1], [X, W]),  # computed, or in another order
    ],
)
def test_what_stays_ours(products: Count, function: Any, arguments: list[np.ndarray]) -> None:
    made = tj.jit(function, target="cuda")(*arguments)
    assert products() == 0
    np.testing.assert_allclose(np.asarray(made), tj.jit(function)(*arguments), rtol=1e-4, atol=1e-3)


def test_one_program_with_and_without_the_library(
    products: Count, emulated: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tj.jit(layer, target="cuda").lower(X, W, B).compile()
    expected = tj.jit(layer)(X, W, B)
    np.testing.assert_allclose(np.asarray(compiled(X, W, B)), expected, rtol=1e-4, atol=1e-4)
    assert products() == 1
    for algorithms, library in (("none", with_cublas()[cublas.VARIABLE]), ("", "none")):
        monkeypatch.setenv("EMULATED_ALGORITHMS", algorithms)
        monkeypatch.setenv(cublas.VARIABLE, library)
        cublas.cublas.cache_clear()
        other = tj.jit(layer, target="cuda").lower(X, W, B).compile()
        made = other(X, W, B)
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-4, atol=1e-4)
    assert products() == 0


def test_products_join_graphs(products: Count, emulated: Emulator) -> None:
    def step(x: Any, w: Any) -> Any:
        return np.tanh(x @ w) @ w

    f = tj.jit(step, target="cuda", donate_argnums=0)
    square = numbers(110, 110) / 11
    x, w = tj.device_put(square, "cuda"), tj.device_put(square, "cuda")
    expected, before = square, emulated.graphs
    for _ in range(4):
        x, expected = f(x, w), tj.jit(step)(expected, square)
    assert products() == 8
    assert emulated.graphs - before == 3
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-3, atol=1e-3)


def test_a_reset_device_gets_a_new_handle(products: Count) -> None:
    f = tj.jit(np.matmul, target="cuda")
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(f(X, W)), X @ W, rtol=1e-4, atol=1e-3)
        device_of().reset()
    assert products() == 2


def test_addresses_of_any_alignment(products: Count) -> None:
    """Columns that start at an odd element have an algorithm of their own."""
    f = tj.jit(lambda x, w: x[:, 1:] @ w[1:, 1:], target="cuda")
    for rows in (130, 131):
        x, w = numbers(rows, 101), numbers(101, 91)
        np.testing.assert_allclose(np.asarray(f(x, w)), x[:, 1:] @ w[1:, 1:], rtol=1e-4, atol=1e-3)
    assert products() == 2


def test_a_product_that_fails_names_the_line(
    products: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = tj.jit(np.matmul, target="cuda")
    monkeypatch.setenv("EMULATED_ALGORITHMS", "failing")
    with pytest.raises(
        DeviceError, match=r"cuBLAS \(test_cublas.py:\d+\), a product of 130 x 100 and 100 x 90"
    ):
        f(X, W)


def test_timed_with_its_kernels(products: Count) -> None:
    compiled = tj.jit(layer, target="cuda").lower(X, W, B).compile()
    timed = compiled.explain(X, W, B, measure=True)
    assert [kernel.calls for kernel in timed.kernels] == [1]
    assert products() > 1


def test_a_library_that_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cublas.VARIABLE, "missing.so")
    cublas.cublas.cache_clear()
    with pytest.raises(DeviceNotFoundError, match=r"TRACEJIT_LIBCUBLASLT: missing\.so"):
        cublas.cublas()
    monkeypatch.setenv(cublas.VARIABLE, "none")
    cublas.cublas.cache_clear()
    assert cublas.cublas() is None
    cublas.cublas.cache_clear()


def test_products_as_text() -> None:
    product = Product(2, 3, 4, 5, "float32", "float32", Matrix(True, 3, 15), Matrix(False, 4), 8)
    assert Product.from_json(product.to_json()) == product
    assert ctypes.sizeof(Algorithm) == 96


def test_constants_and_functions_are_the_librarys() -> None:
    """Against the headers and the library of the package, where it is installed."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(f) for f in (found and found.submodule_search_locations) or ()]
    headers = [h for f in folders for h in f.glob("cu*/include/cublas*.h")]
    files = [p for p in candidates("", cublas._FILES, ()) if Path(p).exists()]
    if not headers or not files:
        pytest.skip("nvidia-cublas is not installed")
    text = "".join(h.read_text(encoding="utf-8", errors="replace") for h in headers)
    told = {name: int(number) for name, number in re.findall(r"(\bCUBLAS\w+) *= *(\d+)\b", text)}
    ours = {name: number for name, number in cublas.NUMBERS.items() if name.startswith("CUBLAS")}
    assert {name: told.get(name) for name in ours} == ours
    Cublas(ctypes.CDLL(files[0]), files[0])  # it has every function that is called
