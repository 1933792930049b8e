"""Which kernels share an LLVM module, and their estimated compile cost."""

from __future__ import annotations

import pytest

from tracejit.runtime import importing_tvm

with importing_tvm():
    from tracejit.backends.tvm.cpu import mathematics
    from tracejit.backends.tvm.cpu.objects.partition import chunks, cost_to_compile
    from tracejit.backends.tvm.ir.tir import UNROLLED, Expr, Stmt, buffer, i32, loop, store

X, Y = (buffer(name, (64,), "float32") for name in "xy")


def copy(index: Expr) -> Stmt:
    return store(Y, index, X[index])


def test_unrolled_loops_and_functions_cost_more() -> None:
    once = cost_to_compile(copy(i32(0)))
    rolled = cost_to_compile(loop(64, copy))
    unrolled = cost_to_compile(loop(8, lambda i: loop(8, lambda j: copy(8 * i + j), UNROLLED)))
    nested = cost_to_compile(
        loop(8, lambda i: loop(8, lambda j: copy(8 * i + j), UNROLLED), UNROLLED)
    )
    assert once < rolled < unrolled < nested
    assert nested - once == 63
    assert cost_to_compile(store(Y, 0, mathematics.exp(X[0], "float32"))) > rolled


def test_two_that_cost_much_are_compiled_at_once() -> None:
    assert [c.items for c in chunks([("a", 30.0), ("b", 40.0)], 2)] == [["b"], ["a"]]
    assert [c.items for c in chunks([("a", 30.0), ("b", 40.0)], 1)] == [["b", "a"]]


def test_small_ones_share_a_module() -> None:
    assert [len(c.items) for c in chunks([(n, 11.0) for n in range(2)], 2)] == [2]


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_every_one_is_in_one_chunk_and_chunks_shrink(count: int, threads: int) -> None:
    made = chunks([(n, 12.0 + n % 5) for n in range(count)], threads)
    assert sorted(item for chunk in made for item in chunk.items) == list(range(count))
    sizes = [len(chunk.items) for chunk in made]
    assert max(sizes, default=0) <= 8
    assert sizes == sorted(sizes, reverse=True) or count < 300
    assert len(made) >= min(count // 8, threads)
