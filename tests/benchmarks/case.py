"""What one measurement is: inputs, and the same computation once per engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

# The first argument is the engine's own module: `numpy`, `jax`, `torch` or `tracejit`.
Implementation = Callable[..., Any]

# Order of the columns; the first that is measured is what the others are compared with.
ENGINES = ("tracejit", "numpy", "jax", "torch")


@dataclass(frozen=True)
class Target:
    """tracejit may take ``ratio`` times as long as ``against``: an engine, or the best of them."""

    ratio: float = 1.0
    against: Literal["best", "jax"] = "best"

    def __str__(self) -> str:
        return f"{self.ratio:.2f} of {self.against}"


@dataclass(frozen=True)
class Case:
    """One computation, written for each engine that can be asked to do it.

    ``inputs(rng, *size)`` gives the arguments: a tuple of pytrees of NumPy arrays. Every engine
    gets them as its own kind of array, made beforehand, or as NumPy arrays if ``arguments`` says
    so. Results must agree within ``tolerance`` times the greatest magnitude in each array.

    ``measure="graph"`` is for graphs too long to be worth running often: only tracing and
    compiling are timed. ``start`` measures the first call in a new process as well, ``memory`` the
    memory of a process that does nothing else.
    """

    name: str
    size: tuple[int, ...]
    tiny: tuple[int, ...]
    inputs: Callable[..., tuple[Any, ...]]
    tracejit: Implementation | None = None
    numpy: Implementation | None = None
    jax: Implementation | None = None
    torch: Implementation | None = None
    arguments: Literal["native", "numpy"] = "native"
    measure: Literal["run", "graph"] = "run"
    start: bool = False
    memory: bool = False
    target: Target = Target()
    tolerance: float = 1e-4

    def implementation(self, engine: str) -> Implementation | None:
        """How ``engine`` computes this, or None when it is not asked to."""
        found: Implementation | None = getattr(self, engine)
        return found

    def make_inputs(self, tiny: bool) -> tuple[Any, ...]:
        """The arguments: the same ones in every process."""
        return self.inputs(np.random.default_rng(0), *(self.tiny if tiny else self.size))


def normal(
    *shapes: Callable[..., tuple[int, ...]], dtype: type[np.floating[Any]] = np.float32
) -> Callable[..., tuple[np.ndarray, ...]]:
    """Inputs drawn from the normal distribution; each shape is a function of the size.

    >>> normal(lambda n: (n, n), lambda n: (n,))(np.random.default_rng(0), 3)[1].shape
    (3,)
    """

    def inputs(rng: np.random.Generator, *size: int) -> tuple[np.ndarray, ...]:
        return tuple(rng.standard_normal(shape(*size)).astype(dtype) for shape in shapes)

    return inputs


def same(*size: int) -> tuple[int, ...]:
    """The shape that is the size itself, for `normal`."""
    return size
