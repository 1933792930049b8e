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


def rows_and_indices(
    rng: numpy.random.Generator, rows: int, width: int, count: int
) -> tuple[numpy.ndarray, ...]:
    table = rng.standard_normal((rows, width), dtype=numpy.float32)
    sensitivity = rng.standard_normal((count, width), dtype=numpy.float32)
    return table, rng.integers(0, rows, count, dtype=numpy.int64), sensitivity


def embedding(lib: Any, table: Any, indices: Any, _: Any) -> Any:
    return lib.numpy.take(table, indices, axis=0)


def embedding_torch(torch: Any, table: Any, indices: Any, _: Any) -> Any:
    return torch.nn.functional.embedding(indices, table)


def embedding_gradient(lib: Any, table: Any, indices: Any, sensitivity: Any) -> Any:
    def loss(table: Any) -> Any:
        return (lib.numpy.take(table, indices, axis=0) * sensitivity).sum()

    return lib.grad(loss)(table)


def embedding_gradient_numpy(_: Any, table: Any, indices: Any, sensitivity: Any) -> Any:
    result = numpy.zeros_like(table)
    numpy.add.at(result, indices, sensitivity)
    return result


def embedding_gradient_torch(torch: Any, table: Any, indices: Any, sensitivity: Any) -> Any:
    return torch.ops.aten.embedding_dense_backward(sensitivity, indices, len(table), -1, False)


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
        "embedding, 8192 of 30,000x128",
        (30_000, 128, 8192),
        tiny=(7, 5, 20),
        inputs=rows_and_indices,
        tracejit=embedding,
        numpy=embedding,
        jax=embedding,
        torch=embedding_torch,
    ),
    Case(
        "gradient of embedding, 8192 of 30,000x128",
        (30_000, 128, 8192),
        tiny=(7, 5, 20),
        inputs=rows_and_indices,
        tracejit=embedding_gradient,
        numpy=embedding_gradient_numpy,
        jax=embedding_gradient,
        torch=embedding_gradient_torch,
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
