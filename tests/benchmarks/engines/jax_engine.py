"""JAX: `jax.jit`, arrays on the CPU device, each result waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from tests.benchmarks.case import Implementation
from tests.benchmarks.engines.base import Engine
from tests.benchmarks.tree import leaves


def wait(result: Any) -> None:
    """Blocks until the first leaf is ready: one executable makes all of them at once."""
    while not isinstance(result, jax.Array):
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    result.block_until_ready()


class JaxEngine(Engine):
    compiles = True
    wait = staticmethod(wait)

    def __init__(self) -> None:
        self.module = jax
        self.version = f"JAX {jax.__version__}"

    def arguments(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs as JAX's arrays; its 64-bit floats are there for those who give it such."""
        given = [leaf for tree in inputs for leaf in leaves(tree)]
        jax.config.update("jax_enable_x64", any(leaf.dtype == np.float64 for leaf in given))
        return super().arguments(inputs)

    def convert(self, array: np.ndarray) -> Any:
        return jax.numpy.asarray(array)

    def prepare(self, implementation: Implementation) -> Callable[..., Any]:
        return jax.jit(lambda *arguments: implementation(jax, *arguments))  # type: ignore[no-any-return]

    def trace(self, prepared: Any, arguments: tuple[Any, ...]) -> None:
        prepared.lower(*arguments)


ENGINE = JaxEngine
