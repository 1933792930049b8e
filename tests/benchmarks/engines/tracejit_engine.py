"""tracejit: `tracejit.jit`, NumPy arrays in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tracejit as tj
from tests.benchmarks.case import Implementation
from tests.benchmarks.engines.base import Engine


class TracejitEngine(Engine):
    compiles = True
    has_tiers = True

    def __init__(self) -> None:
        self.module = tj
        self.version = f"tracejit {tj.__version__}"

    def prepare(self, implementation: Implementation) -> Callable[..., Any]:
        prepared: Callable[..., Any] = tj.jit(lambda *arguments: implementation(tj, *arguments))
        return prepared

    def prepare_tiered(self, implementation: Implementation) -> Callable[..., Any]:
        prepared: Callable[..., Any] = tj.jit(
            lambda *arguments: implementation(tj, *arguments), tiered=True
        )
        return prepared

    def settle(self, prepared: Any) -> None:
        prepared.wait_until_compiled()

    def trace(self, prepared: Any, arguments: tuple[Any, ...]) -> None:
        prepared.lower(*arguments)


ENGINE = TracejitEngine
