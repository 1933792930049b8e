"""Matrix products equal NumPy's for every size, layout, element type and schedule."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends_tvm.kernel_harness import (
    LEVELS,
    MACHINE,
    Compiled,
    Operand,
    accumulate_dtype,
)
from tracejit.backends.tvm.cpu.kernels import tiling
from tracejit.backends.tvm.cpu.kernels.gemm.gemm import gemm
from tracejit.backends.tvm.cpu.machine import Machine
from tracejit.backends.tvm.ir.tir import const, tirx

DTYPES = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", ml_dtypes.bfloat16),
]

Orders = tuple[Sequence[int], Sequence[int], Sequence[int]]
ROWS, COLUMNS = (0, 1, 2), (0, 2, 1)


def product(
    sizes: Sequence[int],
    dtype: Any = "float32",
    orders: Orders = (ROWS, ROWS, ROWS),
    machine: Machine = MACHINE,
    **target: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel computes for random operands, and what it should; sizes are b, m, n, k."""
    b, m, n, k = sizes
    lhs = Operand("lhs", (b, m, k), dtype, orders[0])
    rhs = Operand("rhs", (b, k, n), dtype, orders[1])
    result = Operand("result", (b, m, n), dtype, orders[2])
    work = gemm(
        m, n, k, lhs.load, rhs.load, result.store,
        accumulate_dtype=accumulate_dtype(dtype), machine=machine, batch=b,
    )  # fmt: skip
    generator = np.random.default_rng(0)
    x, y = lhs.random(generator), rhs.random(generator)
    out = result.in_memory(np.zeros(result.shape, dtype))
    compiled = Compiled([lhs.buffer, rhs.buffer, result.buffer], work, **target)
    compiled(lhs.in_memory(x), rhs.in_memory(y), out)
    return result.from_memory(out), expected(x, y)


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    wide: Any = {"f": np.float64, "c": np.complex128, "V": np.float64}.get(x.dtype.kind, x.dtype)
    with np.errstate(over="ignore"):
        return np.asarray(np.matmul(x.astype(wide), y.astype(wide)))


def close(pair: tuple[np.ndarray, np.ndarray], k: int) -> None:
    found, wanted = pair
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted)
        return
    unit = 2.0**-8 if found.dtype.kind == "V" else float(np.finfo(found.dtype).eps)
    sums = float(np.finfo(accumulate_dtype(found.dtype)).eps) * 4 * (k + 1)
    np.testing.assert_allclose(found.astype(wanted.dtype), wanted, rtol=2 * unit, atol=sums)


SHAPES = [
    *((1, 1, 1, 1), (1, 1, 1, 7), (1, 2, 3, 5), (1, 7, 1, 64), (1, 1, 9, 33), (1, 5, 4, 17)),
    *((1, 13, 17, 19), (1, 61, 67, 71), (1, 64, 64, 64), (1, 128, 10, 80), (1, 15, 33, 300)),
    *((1, 97, 131, 40), (1, 3, 200, 100), (1, 200, 3, 100), (5, 4, 4, 4), (3, 20, 30, 40)),
]


@pytest.mark.parametrize("sizes", SHAPES)
@pytest.mark.parametrize("orders", [*itertools.product([ROWS, COLUMNS], repeat=3)])
def test_layouts(sizes: Sequence[int], orders: Orders) -> None:
    close(product(sizes, orders=orders), sizes[3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(1, 9, 21, 35), (1, 40, 1, 70), (1, 1, 40, 70), (2, 3, 2, 9)])
def test_element_types(dtype: Any, sizes: Sequence[int]) -> None:
    close(product(sizes, dtype), sizes[3])


@given(
    sizes=st.tuples(st.integers(1, 4), *[st.integers(1, 70)] * 3),
    orders=st.tuples(*[st.permutations(range(3))] * 3),
    dtype=st.sampled_from(DTYPES),
    threads=st.integers(1, 5),
)
def test_any_product(sizes: Sequence[int], orders: Orders, dtype: Any, threads: int) -> None:
    machine = dataclasses.replace(MACHINE, threads=threads)
    close(product(sizes, dtype, orders, machine), sizes[3])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("sizes", [(1, 61, 67, 71), (1, 50, 1, 99), (1, 1, 50, 99), (3, 7, 40, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "complex64"])
def test_narrower_vectors(sizes: Sequence[int], dtype: str, level: str) -> None:
    target, machine = LEVELS[level]
    close(product(sizes, dtype, machine=machine, target=target), sizes[3])


@pytest.mark.parametrize("sizes", [(1, 0, 3, 4), (1, 3, 0, 4), (0, 3, 3, 4), (2, 3, 40, 0)])
def test_empty(sizes: Sequence[int]) -> None:
    found, wanted = product(sizes)
    assert found.shape == wanted.shape
    assert not found.any()


LARGE = {
    "packed left operand": (1, 60, 1100, 50),
    "rows at an aliasing distance": (1, 40, 40, 1024),
    "a split contraction": (1, 5, 40, 30000),
    "a split contraction in blocks": (1, 20, 33, 70000),
    "a split dot product": (1, 1, 1, 100001),
    "a split sum of rows": (1, 2, 50, 40000),
    "many columns of few rows": (1, 2, 9001, 33),
    "blocks of the contraction": (1, 300, 200, 5000),
    "threads share columns": (1, 9, 3000, 200),
    "threads share a batch": (9, 40, 50, 60),
    "threads share each matrix": (3, 130, 130, 130),
}


@pytest.mark.parametrize("case", LARGE)
def test_large(case: str) -> None:
    close(product(LARGE[case]), LARGE[case][3])


@pytest.mark.parametrize("case", LARGE)
def test_results_do_not_depend_on_the_number_of_threads(case: str) -> None:
    found = [
        product(LARGE[case], machine=dataclasses.replace(MACHINE, threads=threads))[0]
        for threads in (1, 2, 5)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_columns_pass_by_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "_PANEL_BYTES", 1 << 14)
    close(product((1, 70, 200, 40)), 40)


def test_producers_and_epilogues_are_fused() -> None:
    """relu(x @ (w + w) + bias), with the result stored transposed and rounded to float16."""
    m, n, k = 37, 45, 29
    x, w = Operand("x", (m, k), "float32"), Operand("w", (k, n), "float32")
    bias, out = Operand("bias", (n,), "float32"), Operand("out", (n, m), "float16")
    work = gemm(
        m, n, k,
        lambda b, i, q: x.load(i, q),
        lambda b, q, j: w.load(q, j) + w.load(q, j),
        lambda b, i, j, v: out.store(j, i, tirx.max(v + bias.load(j), const(0, "float32"))),
        accumulate_dtype="float32", machine=MACHINE,
    )  # fmt: skip
    generator = np.random.default_rng(1)
    arrays = [o.random(generator) for o in (x, w, bias)]
    found = np.zeros(out.shape, "float16")
    Compiled([o.buffer for o in (x, w, bias, out)], work)(*arrays, found)
    wanted = np.maximum(arrays[0] @ (2 * arrays[1]) + arrays[2], 0).T
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_indices_of_64_bits() -> None:
    seen: list[str] = []
    lhs, rhs = Operand("lhs", (1, 20, 30), "float32"), Operand("rhs", (1, 30, 20), "float32")
    out = Operand("out", (1, 20, 20), "float32")

    def load(b: Any, i: Any, q: Any) -> Any:
        seen.extend(str(index.expr_ty()) for index in (b, i, q))
        return lhs.load(b, i, q)

    work = gemm(
        20, 20, 30, load, rhs.load, out.store,
        accumulate_dtype="float32", machine=MACHINE, index_dtype="int64",
    )  # fmt: skip
    assert all("int64" in dtype for dtype in seen)
    generator = np.random.default_rng(2)
    x, y = lhs.random(generator), rhs.random(generator)
    found = np.zeros(out.shape, "float32")
    Compiled([lhs.buffer, rhs.buffer, out.buffer], work)(x, y, found)
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 200, 200, 200), (1, 1, 64, 64), (1, 300, 300, 5000)])
def test_builds_quickly(sizes: Sequence[int]) -> None:
    """Statements, not unrolled bodies: their number does not grow with the sizes."""
    b, m, n, k = sizes
    operands = [Operand("o", s, "float32") for s in ((b, m, k), (b, k, n), (b, m, n))]
    work = gemm(
        m, n, k, operands[0].load, operands[1].load, operands[2].store,
        accumulate_dtype="float32", machine=MACHINE,
    )  # fmt: skip
    assert len(str(work.statement).splitlines()) < 400
