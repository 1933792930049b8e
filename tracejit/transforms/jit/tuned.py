"""`jit(f, tune=seconds)`: programs whose kernels are measured before they are used.

tune = Tune(10.0, "step")
executable = tune.compiled(module, target)                   # the one found before, or untuned
better = tune.improved(executable, module, target, arrays)   # measured on these arrays
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracejit.backends.target import Target
from tracejit.errors import ArgumentError
from tracejit.graph import Module
from tracejit.runtime.executable import Executable as Program
from tracejit.shapes import Shape
from tracejit.sources import warn
from tracejit.transforms.jit.hooks import Executable, compile_module, the_tuner

SEED = 0
"""The generator of random arrays for arguments that are only shapes."""


class Tune:
    """What a function is to be tuned for.

    Raises `ArgumentError` unless ``seconds`` is a positive number.
    """

    def __init__(self, seconds: object, title: str) -> None:
        is_number = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds <= sys.float_info.max:  # type: ignore[operator]
            raise ArgumentError(
                f"jit of {title}: tune must be a positive number of seconds, not {seconds!r}"
            )
        self._seconds = float(seconds)  # type: ignore[arg-type]
        self._title = title

    def compiled(self, module: Module, target: Target) -> Executable:
        """The tuned program, where another call or process has tuned it; else the untuned one."""
        found = the_tuner().find(module, target, self._seconds)
        return compile_module(module, target, False) if found is None else found

    def improved(
        self, executable: Executable, module: Module, target: Target, arguments: Sequence[object]
    ) -> Executable:
        """The program with the quickest kernels found, which may be ``executable`` itself.

        That is so, too, where no linker makes a library of the kernels. Warns of a program that
        cannot be measured, because running it leaves traces.
        """
        if not isinstance(executable, Program) or executable.library is None:
            return executable
        if executable.tuning is not None:
            return executable
        if module.entry.has_effect:
            warn(
                f"jit of {self._title}: tune has no effect on a function with side effects, which "
                "measuring it would repeat",
                RuntimeWarning,
            )
            return executable
        return the_tuner().tune(executable, module, target, self._seconds, arguments)


def stand_ins(module: Module, leaves: Sequence[Any]) -> list[np.ndarray]:
    """The arrays among ``leaves``, and others for those that are shapes.

    Floats lie between 0 and 1; integers are 0 or 1, which are valid indices.
    """
    rng = np.random.default_rng(SEED)
    shapes = [parameter.array_shape for parameter in module.entry.parameters]
    return [
        _drawn(rng, shape) if isinstance(leaf, Shape) else np.asarray(leaf, shape.dtype)
        for leaf, shape in zip(leaves, shapes, strict=True)
    ]


def _drawn(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    drawn = rng.random(shape.dimensions)
    if shape.element_type.is_floating or shape.element_type.is_complex:
        return drawn.astype(shape.dtype)
    return (drawn < 0.5).astype(shape.dtype)
