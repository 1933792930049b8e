"""From a call's arguments to the arrays that a program was lowered for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.errors import ArgumentError
from tracejit.trace.body import Abstract
from tracejit.trace.context import Bounds
from tracejit.transforms.jit.arguments import abstract_of, normalised, static_key
from tracejit.transforms.jit.signature import Parameters
from tracejit.transforms.jit.specialization import Call, Static, taken_apart


class Conforming:
    """What a compiled function asks of its arguments: called with them it returns flat arrays.

    ``call`` is the one that it was lowered for, and ``wanted`` has its arrays. It needs the names
    of the function's parameters only, not the function, and can be pickled without. ``bounds`` are
    those of Python's integers, by number.
    """

    def __init__(
        self,
        parameters: Parameters,
        static: Static,
        call: Call,
        wanted: Sequence[Abstract],
        bounds: Mapping[int, Bounds],
    ) -> None:
        self._parameters = parameters
        self._static = static
        self._structure = call.structure
        self._static_values = self._by_name(call)
        self._wanted = wanted
        self._bounds = bounds

    def __call__(self, /, *args: Any, **kwargs: Any) -> list[np.ndarray]:
        """The arrays. Raises `ArgumentError` for other shapes, types or static values."""
        title = self._parameters.title
        given = taken_apart(args, kwargs, self._static)
        if given.structure != self._structure:
            raise ArgumentError(
                f"{title}: lowered for arguments {self._structure}, not {given.structure}"
            )
        self._require_static(self._by_name(given))
        arrays = []
        for number, (leaf, abstract) in enumerate(zip(given.leaves, self._wanted, strict=True)):

            def describe(number: int = number) -> str:
                return self._parameters.describe(given.structure, number, given.positions)

            leaf = normalised(leaf, describe)
            if abstract_of(leaf).shape != abstract.shape:
                raise ArgumentError(
                    f"{describe()}: lowered for {abstract.shape}, not {abstract_of(leaf).shape}"
                )
            if number in self._bounds:
                self._bounds[number].require(leaf, describe())
            arrays.append(np.asarray(leaf, abstract.shape.dtype))
        return arrays

    def _by_name(self, call: Call) -> dict[str, Any]:
        by_place = {self._parameters.name_of(p): value for p, value in call.static_args.items()}
        return by_place | call.static_kwargs

    def _require_static(self, given: dict[str, Any]) -> None:
        """Static arguments may be left out, but not be others than those lowered for."""
        for name, value in given.items():
            title = f"argument {name} of {self._parameters.title}"
            known = self._static_values.get(name, value)
            if static_key(value, title) != static_key(known, title):
                raise ArgumentError(f"{title}: lowered for {known!r}, not {value!r}")
