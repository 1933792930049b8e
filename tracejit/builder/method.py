"""How a builder function becomes a method, with its signature: ``add = Method(ops.add)``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from tracejit.errors import ArgumentError
from tracejit.graph import Instruction

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

    On the class it is the function itself.
    """

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        self.name = function.__name__.rstrip("_")
        self.parameters = [
            (p.name, "Sequence" in p.annotation, p.annotation != "Sequence[Instruction]")
            if p.annotation in _OPERANDS
            else None
            for p in inspect.signature(function).parameters.values()
        ]

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[P, R]: ...

    @overload
    def __get__(self, builder: Remembering, owner: type) -> Callable[P, R]: ...

    def __get__(self, builder: Remembering | None, owner: type) -> Callable[P, R]:
        if builder is None:
            return self.function

        @functools.wraps(self.function)
        def method(*args: P.args, **kwargs: P.kwargs) -> R:
            self._require_ops(args, kwargs)
            return builder.remember(self.function(*args, **kwargs))

        return method

    def _require_ops(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        for number, parameter in enumerate(self.parameters):
            if parameter is None:
                continue
            name, many, one = parameter
            if number < len(args):
                value = args[number]
            elif name in kwargs:
                value = kwargs[name]
            else:
                continue
            if one and isinstance(value, Instruction):
                continue
            if not many:
                require_op(self.name, name, value)
            if not isinstance(value, list | tuple):
                kind = "an op or several" if one else "a sequence of ops"
                raise ArgumentError(f"{self.name}: {name} must be {kind}, not {described(value)}")
            for i, item in enumerate(value):
                require_op(self.name, f"{name}[{i}]", item)


def require_op(function: str, argument: str, value: object) -> None:
    if not isinstance(value, Instruction):
        raise ArgumentError(
            f"{function}: {argument} must be an op of this builder, not {described(value)}"
        )


def described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    text = f"{kind} {value.dtype}{list(shape)}" if isinstance(shape, tuple) else kind
    return f"{text}; make one with constant"
