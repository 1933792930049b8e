"""Functions that write to their arguments: `jit(f, mutates="x")`.

The compiled function returns the new values beside its result. It writes them over the caller's
arrays, or they are written back there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ReadOnlyError
from tracejit.loading import load, supplied
from tracejit.trace.context import current_trace
from tracejit.trace.convert import in_words
from tracejit.trace.recording import recording
from tracejit.trace.table import find_traced
from tracejit.transforms.jit.cache_report import CacheReport
from tracejit.transforms.jit.signature import Parameters, shown_signature, title_of
from tracejit.transforms.jit.trace_limit import with_loops

Function = Callable[..., Any]
Mutated = int | str | Iterable[int | str]


class MutatingFunction:
    """A jitted function whose writes to the arguments ``mutates`` reach the caller's arrays.

    ``mutates`` are positions and names. ``jit`` makes the jitted function of one that returns
    (result, new values). With ``autograph`` the function is rewritten. The arguments that are
    written to must be trees of writable NumPy arrays: `ReadOnlyError` otherwise.
    """

    __name__: str
    __qualname__: str
    __wrapped__: Function

    def __init__(
        self,
        function: Function,
        mutates: Mutated,
        jit: Callable[
            [Function, Callable[[], Function | None], tuple[Collection[int], Collection[str]]], Any
        ],
        autograph: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self._mutates, self._autograph = mutates, autograph
        if autograph:
            function = load("tracejit.transforms.autograph").autograph(function)
        self._function = function
        self._title = title_of(function)
        if not isinstance(mutates, Iterable | int):
            raise ArgumentError(
                f"mutates: positions and names of arguments, not {in_words(type(mutates))}"
            )
        given = (mutates,) if isinstance(mutates, int | str) else tuple(mutates)
        self._places, self._names = Parameters(function, self._title).static(
            "mutates",
            [one for one in given if isinstance(one, int)],
            [one for one in given if isinstance(one, str)],
        )

        self._jitted = jit(self._returning(function), self._rewritten, (self._places, self._names))

    def _returning(self, function: Function) -> Function:
        """The function with the new values beside its result."""

        @functools.wraps(function)
        def with_new_values(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            return result, tuple(tree.leaves(value) for value in self._mutated(args, kwargs))

        return with_new_values

    def _rewritten(self) -> Function | None:
        function = with_loops(self._function)
        return None if function is None else self._returning(function)

    def __repr__(self) -> str:
        mutated = ", ".join(sorted(self._names))
        signature = shown_signature(self._function)
        brief = self.cache_report().brief
        return f"<jit of {self._title}{signature}, which mutates {mutated}: {brief}>"

    def _repr_html_(self) -> str:
        """The compilations as a table, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html

    def __reduce__(self) -> Any:
        """As a jitted function that mutates nothing."""
        options = {"mutates": self._mutates, "autograph": self._autograph}
        return load("tracejit.transforms.jit.pickling").reduced(
            self, sys._getframe(1), self._jitted.options | options
        )

    def _mutated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments that may be written to."""
        by_place = [args[place] for place in sorted(self._places) if place < len(args)]
        return by_place + [kwargs[name] for name in sorted(self._names) if name in kwargs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None or find_traced((args, kwargs)) is not None:
            # The arrays of an outer traced function are written to as they are.
            return recording(self._function)(*args, **kwargs)
        arrays = [leaf for value in self._mutated(args, kwargs) for leaf in tree.leaves(value)]
        for array in arrays:
            if not isinstance(array, np.ndarray) or not array.flags.writeable:
                kind = "a read-only array" if isinstance(array, np.ndarray) else "no NumPy array"
                raise ReadOnlyError(
                    f"{self._title}: mutates={sorted(self._names)}, but a value in them is {kind} "
                    f"({type(array).__name__})"
                )
        result, values = self._jitted(*args, **kwargs)
        new = [value for group in values for value in group]
        for array, value in zip(arrays, new, strict=True):
            if array.shape != np.shape(value):
                raise ArgumentError(f"{self._title}: a mutated argument changed its shape")
            if value is not array:
                np.copyto(array, value)
        return result

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The traced function, whose result is (result, new values)."""
        return self._jitted.lower(*args, **kwargs)

    def cache_report(self) -> CacheReport:
        """How often the function was compiled, and what was new each time; print it."""
        report: CacheReport = self._jitted.cache_report()
        return report

    def wait_until_compiled(self, timeout: float | None = None) -> None:
        """As that of a jitted function that mutates nothing."""
        self._jitted.wait_until_compiled(timeout)
