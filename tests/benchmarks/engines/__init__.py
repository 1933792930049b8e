"""The engines: how each converts arguments, compiles, waits for a result and hands it back."""

from __future__ import annotations

from importlib import import_module

from tests.benchmarks.engines.base import Engine


def load(name: str) -> Engine:
    """The engine of that name. ModuleNotFoundError when its library is not installed."""
    engine: Engine = import_module(f"tests.benchmarks.engines.{name}_engine").ENGINE()
    return engine
