"""Elementwise chains: one pass over memory, and functions that need vector code."""

from __future__ import annotations

from typing import Any

import numpy

from tests.benchmarks.case import Case, normal, same


def tanh_exp(lib: Any, x: Any, y: Any) -> Any:
    np = lib.numpy
    return np.tanh(x * y) + 2 * np.exp(x)


def tanh_exp_torch(torch: Any, x: Any, y: Any) -> Any:
    return torch.tanh(x * y) + 2 * torch.exp(x)


def polynomial(lib: Any, x: Any, y: Any) -> Any:
    return ((x * 0.5 + y) * x - 2.0 * y) * x + y * y


def functions(lib: Any, x: Any) -> Any:
    """Functions of which processors know nothing."""
    np = lib.numpy
    return np.sin(x) * np.log1p(x * x) + np.exp(-x * x)


def functions_torch(torch: Any, x: Any) -> Any:
    return torch.sin(x) * torch.log1p(x * x) + torch.exp(-x * x)


CASES = [
    Case(
        "tanh(x y) + 2 exp(x), 1M",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same, same),
        tracejit=tanh_exp,
        numpy=tanh_exp,
        jax=tanh_exp,
        torch=tanh_exp_torch,
    ),
    Case(
        "polynomial of two arrays, 1M",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same, same),
        tracejit=polynomial,
        numpy=polynomial,
        jax=polynomial,
        torch=polynomial,
    ),
    Case(
        "tanh(x y) + 2 exp(x), 1M, f64",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same, same, dtype=numpy.float64),
        tracejit=tanh_exp,
        numpy=tanh_exp,
        jax=tanh_exp,
        torch=tanh_exp_torch,
    ),
    Case(
        "sin(x) log1p(x x) + exp(-x x), 1M",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same),
        tracejit=functions,
        numpy=functions,
        jax=functions,
        torch=functions_torch,
    ),
    Case(
        "sin(x) log1p(x x) + exp(-x x), 1M, f64",
        (1_000_000,),
        tiny=(1000,),
        inputs=normal(same, dtype=numpy.float64),
        tracejit=functions,
        numpy=functions,
        jax=functions,
        torch=functions_torch,
    ),
]
