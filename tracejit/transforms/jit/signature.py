"""Which arguments are static, and what each array among the others is called in errors."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import optree

from tracejit.errors import ArgumentError
from tracejit.trace.convert import in_words
from tracejit.tree import Structure

Numbers = int | Iterable[int] | None
Names = str | Iterable[str] | None


def as_numbers(numbers: Numbers) -> tuple[int, ...]:
    """One position or several, as a tuple. Raises `ArgumentError` for what is no position."""
    if numbers is None:
        return ()
    several = numbers if isinstance(numbers, Iterable) else (numbers,)
    try:
        return tuple(map(operator.index, several))
    except TypeError:
        raise ArgumentError(
            f"argnums: positions of arguments are integers, not {numbers!r}; "
            "argnames is for their names"
        ) from None


def as_names(names: Names) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if names is None:
        return ()
    if not isinstance(names, Iterable):
        raise ArgumentError(f"argnames: names of arguments, not {in_words(type(names))}")
    return (names,) if isinstance(names, str) else tuple(names)


def positional_names(function: Callable[..., Any]) -> tuple[tuple[str, ...], str | None]:
    """The names of a function's positional parameters, and that of its ``*args``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return (), "args"
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    return tuple(names), rest[0] if rest else None


def _keywords(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names of a function's parameters, or None if it may take any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return frozenset(p.name for p in parameters)


class _Long:
    """What is shown in place of a default with a long repr."""

    def __repr__(self) -> str:
        return "..."


_LONG = _Long()


def shown_signature(function: Callable[..., Any]) -> str:
    """The parameters in parentheses, without annotations, long defaults cut; (...) if unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    bare = [
        p if p.default is p.empty or len(repr(p.default)) <= 20 else p.replace(default=_LONG)
        for p in parameters
    ]
    return str(inspect.Signature([p.replace(annotation=p.empty) for p in bare]))


P = ParamSpec("P")
R = TypeVar("R")


class Transformed(Generic[P, R]):
    """How type checkers know a transformed function: callable with the original's parameters.

    For annotations only, as which it infers the types of lambdas where `Callable` does not; the
    functions themselves are plain ones.
    """

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError


class Parameters:
    """The parameters of a function: positions to names and back."""

    def __init__(self, function: Callable[..., Any], title: str) -> None:
        self.title = title
        self.names, self.rest = positional_names(function)
        self.keywords = _keywords(function)

    def name_of(self, position: int) -> str:
        """What the argument at ``position`` is called."""
        if position < len(self.names):
            return self.names[position]
        return f"{self.rest or 'args'}[{position - len(self.names)}]"

    def static(
        self, what: str, argnums: Numbers, argnames: Names
    ) -> tuple[frozenset[int], frozenset[str]]:
        """Positions and names that ``argnums`` and ``argnames`` mean together.

        Raises `ArgumentError` for one that the function does not have.
        """
        numbers, names = as_numbers(argnums), set(as_names(argnames))
        unknown = sorted(names - self.keywords) if self.keywords is not None else []
        if unknown:
            raise ArgumentError(
                f"{what}: {self.title} has no argument named {unknown[0]}; it has "
                f"{', '.join(sorted(self.keywords or ()))}"
            )
        positions = set()
        for number in numbers:
            position = number + len(self.names) if number < 0 else number
            if position < 0 or (position >= len(self.names) and self.names and not self.rest):
                raise ArgumentError(
                    f"{what}_argnums: {self.title} has {len(self.names)} positional arguments, "
                    f"there is no number {number}"
                )
            positions.add(position)
        positions.update(self.names.index(name) for name in names if name in self.names)
        names.update(self.names[p] for p in positions if p < len(self.names))
        return frozenset(positions), frozenset(names)

    def describe(self, structure: Structure, leaf: int, positions: Sequence[int]) -> str:
        """The leaf of (args, kwargs) with this structure, in words: argument x['w'] of loss.

        ``positions`` are those of the positional arguments, which may have gaps.
        """
        return f"argument {self.paths(structure, positions)[leaf]} of {self.title}"

    def paths(self, structure: Structure, positions: Sequence[int]) -> list[str]:
        """How each leaf is reached from the arguments: x['w'], y[0]."""
        found = []
        for accessor in optree.treespec_accessors(structure):
            side, key = accessor.path[:2]
            name = str(key) if side else self.name_of(positions[key])
            found.append(accessor[2:].codify(name))
        return found


def title_of(function: Callable[..., Any]) -> str:
    """What a function is called in messages and in graphs.

    Raises `ArgumentError` for what cannot be called.
    """
    if not callable(function):
        raise ArgumentError(f"a function is needed, not {type(function).__name__}")
    inner = getattr(function, "func", function)
    name: str = getattr(inner, "__name__", type(inner).__name__)
    return name
