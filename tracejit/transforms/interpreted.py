"""Running a module by the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate
from tracejit.errors import ArgumentError
from tracejit.graph import Module


class Interpreted:
    """An executable that works a module out op by op with NumPy; it writes over no argument."""

    donated: tuple[int, ...] = ()

    def __init__(self, module: Module) -> None:
        self._entry = module.entry
        self._specs = [
            (p.array_shape.dtype, p.array_shape.dimensions) for p in self._entry.parameters
        ]

    def run(self, arguments: Sequence[object]) -> list[np.ndarray] | None:
        """The results, or None unless the arguments are exactly the arrays of the module."""
        if len(arguments) != len(self._specs):
            return None
        for argument, (dtype, dimensions) in zip(arguments, self._specs, strict=True):
            if type(argument) is not np.ndarray:
                return None
            if argument.dtype != dtype or argument.shape != dimensions:
                return None
        return self(arguments)

    def __call__(self, arguments: Sequence[object]) -> list[np.ndarray]:
        """The results for arrays of any layout and either byte order."""
        if len(arguments) != len(self._specs):
            raise ArgumentError(f"compiled for {len(self._specs)} arguments, not {len(arguments)}")
        arrays = [
            np.asarray(argument, dtype)
            for argument, (dtype, _) in zip(arguments, self._specs, strict=True)
        ]
        result = self._evaluate(arrays)
        values = result if isinstance(result, tuple) else (result,)
        return [np.array(value, order="C") for value in values]

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Any:
        return evaluate(self._entry, arrays)
