"""Reductions by row, by column and whole, alone and within softmax and layer normalisation."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal, same


def softmax(lib: Any, x: Any) -> Any:
    np = lib.numpy
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layernorm(lib: Any, x: Any, scale: Any, offset: Any) -> Any:
    np = lib.numpy
    centred = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(centred * centred, axis=1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * scale + offset


def layernorm_torch(torch: Any, x: Any, scale: Any, offset: Any) -> Any:
    return torch.nn.functional.layer_norm(x, scale.shape, scale, offset)


def row_sums(lib: Any, x: Any) -> Any:
    return x.sum(1)


def column_moments(lib: Any, x: Any) -> Any:
    return lib.numpy.mean(x, axis=0), lib.numpy.var(x, axis=0)


def column_moments_torch(torch: Any, x: Any) -> Any:
    return torch.mean(x, dim=0), torch.var(x, dim=0, unbiased=False)


def integers(rng: numpy.random.Generator, *size: int) -> tuple[numpy.ndarray, ...]:
    return (rng.integers(-1000, 1000, size, dtype=numpy.int32),)


def integer_sum(lib: Any, x: Any) -> Any:
    return x.sum(dtype=numpy.int32)


def integer_sum_torch(torch: Any, x: Any) -> Any:
    return torch.sum(x, dtype=torch.int32)


def row_maxima(lib: Any, x: Any) -> Any:
    return x.max(1)


def greatest_of_rows(lib: Any, x: Any) -> Any:
    return lib.numpy.argmax(x, axis=1)


def greatest(lib: Any, x: Any) -> Any:
    return lib.numpy.argmax(x)


def whole_sum(lib: Any, x: Any) -> Any:
    return x.sum()


CASES = [
    Case(
        "softmax, 1024x1024",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same),
        tracejit=softmax,
        numpy=softmax,
        jax=softmax,
        torch=lambda torch, x: torch.softmax(x, 1),
        start=True,
    ),
    Case(
        "layernorm, 1024x1024",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same, lambda _, n: (n,), lambda _, n: (n,)),
        tracejit=layernorm,
        numpy=layernorm,
        jax=layernorm,
        torch=layernorm_torch,
    ),
    Case(
        "sum of rows, 1024x1024",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same),
        tracejit=row_sums,
        numpy=row_sums,
        jax=row_sums,
        torch=row_sums,
    ),
    Case(
        "mean and variance of columns, 1024x1024",
        (1024, 1024),
        tiny=(33, 5),
        inputs=normal(same),
        tracejit=column_moments,
        numpy=column_moments,
        jax=column_moments,
        torch=column_moments_torch,
    ),
    Case(
        "sum, 4M",
        (4_000_000,),
        tiny=(1000,),
        inputs=normal(same),
        tracejit=whole_sum,
        numpy=whole_sum,
        jax=whole_sum,
        torch=whole_sum,
        tolerance=1e-3,
    ),
    Case(
        "sum, 4M, f64",
        (4_000_000,),
        tiny=(1000,),
        inputs=normal(same, dtype=numpy.float64),
        tracejit=whole_sum,
        numpy=whole_sum,
        jax=whole_sum,
        torch=whole_sum,
    ),
    Case(
        "sum of integers, 4M",
        (4_000_000,),
        tiny=(1000,),
        inputs=integers,
        tracejit=integer_sum,
        numpy=integer_sum,
        jax=integer_sum,
        torch=integer_sum_torch,
    ),
    Case(
        "sum, 10,000",
        (10_000,),
        tiny=(1000,),
        inputs=normal(same),
        tracejit=whole_sum,
        numpy=whole_sum,
        jax=whole_sum,
        torch=whole_sum,
    ),
    Case(
        "sum of rows, 100,000x16",
        (100_000, 16),
        tiny=(5, 16),
        inputs=normal(same),
        tracejit=row_sums,
        numpy=row_sums,
        jax=row_sums,
        torch=row_sums,
    ),
    Case(
        "maxima of rows, 1024x1024",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same),
        tracejit=row_maxima,
        numpy=row_maxima,
        jax=row_maxima,
        torch=lambda torch, x: torch.amax(x, 1),
    ),
    Case(
        "argmax of rows, 1024x1024",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same),
        tracejit=greatest_of_rows,
        numpy=greatest_of_rows,
        jax=greatest_of_rows,
        torch=lambda torch, x: torch.argmax(x, 1),
    ),
    Case(
        "argmax, 1M",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same),
        tracejit=greatest,
        numpy=greatest,
        jax=greatest,
        torch=lambda torch, x: torch.argmax(x),
    ),
    Case(
        "softmax, 1024x1024, f64",
        (1024, 1024),
        tiny=(5, 33),
        inputs=normal(same, dtype=numpy.float64),
        tracejit=softmax,
        numpy=softmax,
        jax=softmax,
        torch=lambda torch, x: torch.softmax(x, 1),
    ),
]
