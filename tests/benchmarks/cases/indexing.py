"""Gathering from a table and adding into it, a million indices; sorting."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal, same


def table_and_indices(
    rng: numpy.random.Generator, rows: int, count: int
) -> tuple[numpy.ndarray, numpy.ndarray]:
    table = rng.standard_normal(rows, dtype=numpy.float32)
    return table, rng.integers(0, rows, count, dtype=numpy.int64)


def take(lib: Any, table: Any, indices: Any) -> Any:
    return lib.numpy.take(table, indices)


def scatter_add(lib: Any, table: Any, indices: Any) -> Any:
    result = table.copy()
    lib.numpy.add.at(result, indices, numpy.float32(1))
    return result


def scatter_add_jax(jax: Any, table: Any, indices: Any) -> Any:
    return table.at[indices].add(1.0)


def scatter_add_torch(torch: Any, table: Any, indices: Any) -> Any:
    return table.index_add(0, indices, torch.ones(()).expand(indices.shape))


def sort(lib: Any, x: Any) -> Any:
    return lib.numpy.sort(x)


def argsort(lib: Any, x: Any) -> Any:
    return lib.numpy.argsort(x)


def greatest(lib: Any, x: Any) -> Any:
    return lib.lax.top_k(x, 5)[0]


CASES = [
    Case(
        "gather 1M from 100k",
        (100_000, 1_000_000),
        tiny=(7, 100),
        inputs=table_and_indices,
        tracejit=take,
        numpy=take,
        jax=take,
        torch=lambda torch, table, indices: torch.take(table, indices),
    ),
    Case(
        "scatter-add 1M into 100k",
        (100_000, 1_000_000),
        tiny=(7, 100),
        inputs=table_and_indices,
        tracejit=scatter_add,
        numpy=scatter_add,
        jax=scatter_add_jax,
        torch=scatter_add_torch,
    ),
    Case(
        "sort, 1M",
        (1_000_000,),
        tiny=(100,),
        inputs=normal(same),
        tracejit=sort,
        numpy=sort,
        jax=sort,
        torch=lambda torch, x: torch.sort(x).values,
    ),
    Case(
        "sort of rows, 1024x1024",
        (1024, 1024),
        tiny=(9, 70),
        inputs=normal(same),
        tracejit=sort,
        numpy=sort,
        jax=sort,
        torch=lambda torch, x: torch.sort(x).values,
    ),
    Case(
        "argsort, 1M",
        (1_000_000,),
        tiny=(100,),
        inputs=normal(same),
        tracejit=argsort,
        numpy=lambda _, x: numpy.argsort(x, kind="stable"),
        jax=argsort,
        torch=lambda torch, x: torch.argsort(x, stable=True),
    ),
    Case(
        "top 5 of 1M",
        (1_000_000,),
        tiny=(100,),
        inputs=normal(same),
        tracejit=greatest,
        numpy=lambda _, x: numpy.sort(numpy.partition(x, -5)[-5:])[::-1],
        jax=greatest,
        torch=lambda torch, x: torch.topk(x, 5).values,
    ),
]
