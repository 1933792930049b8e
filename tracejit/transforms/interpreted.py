"""Running a module by the interpreter: the plain way, and the way that looks for the first NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction
from tracejit.errors import ArgumentError, NotFiniteError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import PARAMETER
from tracejit.traversal import instructions


class Interpreted:
    """An executable that works a module out op by op with NumPy."""

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
        return [np.array(value) for value in values]

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Any:
        return evaluate(self._entry, arrays)


class Checked(Interpreted):
    """An executable that raises `NotFiniteError` where the first NaN or infinity is made."""

    def _evaluate(self, arrays: Sequence[np.ndarray]) -> Any:
        return _evaluate_checked(self._entry, arrays)


def _evaluate_checked(computation: Computation, arrays: Sequence[np.ndarray]) -> Any:
    values: dict[Instruction, Any] = dict(zip(computation.parameters, arrays, strict=True))
    for instruction in instructions(computation):
        if instruction.op is PARAMETER:
            continue
        operands = [values[o] for o in instruction.operands]
        value = values[instruction] = evaluate_instruction(instruction, operands)
        if all(map(_is_finite, operands)) and not _is_finite(value):
            raise NotFiniteError(
                f"{instruction.op.function}: makes NaN or infinity from finite operands",
                instruction.source,
            )
    return values[computation.root]


def _is_finite(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    if not isinstance(value, np.ndarray | np.generic):  # a token
        return True
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return True
    return bool(np.isfinite(array.astype(np.complex128)).all())
