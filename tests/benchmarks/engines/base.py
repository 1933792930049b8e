"""What the worker asks of an engine; the defaults are NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.case import Implementation
from tests.benchmarks.tree import leaves, map_leaves


class Engine:
    """A library in a process of its own; making one imports the library."""

    module: Any
    version: str
    # Whether a first call traces and compiles, so that timing it makes sense.
    compiles = False
    # Whether something else can answer while it compiles.
    has_tiers = False
    # Called on every result inside the timed region, unless it is None.
    wait: Callable[[Any], None] | None = None

    def convert(self, array: np.ndarray) -> Any:
        """The array as this library's own kind."""
        return array

    def convert_back(self, array: Any) -> np.ndarray:
        """The library's own kind of array (or a scalar) as a NumPy array."""
        return np.asarray(array)

    def prepare(self, implementation: Implementation) -> Callable[..., Any]:
        """What is called, as a user of the library would write it; nothing is reused."""
        return partial(implementation, self.module)

    def prepare_tiered(self, implementation: Implementation) -> Callable[..., Any]:
        """The same, but the first calls are answered by something that needs no compiler."""
        raise NotImplementedError(f"{type(self).__name__} has no tiers")

    def settle(self, prepared: Any) -> None:
        """Returns when what `prepare_tiered` made is compiled."""
        raise NotImplementedError(f"{type(self).__name__} has no tiers")

    def trace(self, prepared: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Traces without compiling; only if ``compiles``."""
        raise NotImplementedError(f"{type(self).__name__} does not trace")

    def arguments(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs with every array converted."""
        return tuple(map_leaves(self.convert, tree) for tree in inputs)

    def results(self, result: Any) -> list[np.ndarray]:
        """The leaves of a result as NumPy arrays."""
        return [self.convert_back(leaf) for leaf in leaves(result)]
