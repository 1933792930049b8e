"""How a builder function becomes a method, with its signature: ``add = Method(ops.add)``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.tracebacks import api_boundary

P = ParamSpec("P")
R = TypeVar("R")

_OPERANDS = {
    "Instruction",
    "Sequence[Instruction]",
    "Instruction | Sequence[Instruction]",
    "Sequence[Instruction] | Instruction",
}


class Remembering(Protocol):
    """What the methods belong to."""

    def remember(self, made: R) -> R:
        """``made``, noted as what was made last."""


class Method(Generic[P, R]):
    """A builder function as a method: checks that operands are ops, and remembers the result.

    On the class it is the function itself. ``also`` are other names of arguments, which the page
    of operations prints: ``Method(ops.constant, literal="value")``.
    """

    def __init__(self, function: Callable[P, R], **also: str) -> None:
        self.function = function
        self.also = also
        self.name = function.__name__.rstrip("_")

    @functools.cached_property
    def operands(self) -> list[tuple[int, str, bool, bool]]:
        """Place and name of each argument that is an op: whether several may, or must, be given."""
        parameters = inspect.signature(self.function).parameters.values()
        return [
            (place, p.name, "Sequence" in p.annotation, p.annotation == "Sequence[Instruction]")
            for place, p in enumerate(parameters)
            if p.annotation in _OPERANDS
        ]

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, builder: Remembering, owner: type) -> Callable[P, R]: ...

    def __get__(self, builder: Remembering | None, owner: type) -> Callable[P, R]:
        if builder is None:
            return self.function

        @api_boundary
        @functools.wraps(self.function)
        def method(*args: P.args, **kwargs: P.kwargs) -> R:
            for other, own in self.also.items():
                if other in kwargs and own not in kwargs:
                    kwargs[own] = kwargs.pop(other)
            self._require_ops(args, kwargs)
            return builder.remember(self.function(*args, **kwargs))

        return method

    def _require_ops(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        for place, name, many, never_one in self.operands:
            if place < len(args):
                value = args[place]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            if isinstance(value, Instruction) and not never_one:
                continue
            if not many:
                require_op(self.name, name, value)
            if not isinstance(value, list | tuple):
                kind = "a sequence of ops" if never_one else "an op or several"
                raise ArgumentError(f"{self.name}: {name} must be {kind}, not {described(value)}")
            for i, item in enumerate(value):
                require_op(self.name, f"{name}[{i}]", item)


def require_op(function: str, argument: str, value: object) -> None:
    """Raises `ArgumentError` for what is no op: a number, an array, a shape."""
    if not isinstance(value, Instruction):
        raise ArgumentError(
            f"{function}: {argument} must be an op of this builder, not {described(value)}"
        )


def described(value: Any) -> str:
    """What was given in an op's place, for an error."""
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    text = f"{kind} {value.dtype}{list(shape)}" if isinstance(shape, tuple) else kind
    return f"{text}; make one with constant"
