"""Definitions of ops, written as a chain of calls.

define_op("ZeroOut").attr("T: {float, int32}").input("to_zero: T").output("zeroed: T").definition
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from typing_extensions import Self

from tracejit.custom_ops.definition import MISSING, Definition, checked
from tracejit.custom_ops.grammar import parse_argument, parse_attribute
from tracejit.custom_ops.values import checked_value
from tracejit.errors import ArgumentError


class DefinitionBuilder:
    """An interface that is being written; ``definition`` is the finished one.

    Every method adds to it and returns it. Texts that are wrong raise at once; undefined names
    raise when the definition is finished, since an attribute may follow its use.
    """

    def __init__(self, name: str) -> None:
        self._draft = checked(Definition(name))
        self._definition: Definition | None = None

    @property
    def definition(self) -> Definition:
        """The finished definition; nothing can be added afterwards.

        Raises `AttributeValueError` for names that are taken twice or undefined.
        """
        if self._definition is None:
            self._definition = checked(self._draft)
        return self._definition

    def _added(self, **parts: Any) -> Self:
        if self._definition is not None:
            raise ArgumentError(
                f"{self._draft.name}: is in use already, nothing can be added to its definition"
            )
        self._draft = replace(self._draft, **parts)
        return self

    def attr(self, text: str, *, default: Any = MISSING) -> Self:
        """Adds an attribute, ``"<name>: <type> [>= n] [= default]"``.

        The types are string, int, float, bool, type, shape, tensor, ``list(...)`` of one of them,
        a choice ``{'a', 'b'}`` of strings or ``{int32, float}`` of types, and numbertype and
        realnumbertype. ``default`` may be given as a Python value instead.
        """
        made = parse_attribute(self._draft.name, text)
        if made.name == "name":
            raise ArgumentError(
                f"{self._draft.name}: an attribute cannot be called 'name', which is an argument "
                "of every op"
            )
        if default is not MISSING:
            if made.has_default:
                raise ArgumentError(f"{self._draft.name}: {made.name!r} has two defaults")
            made = replace(made, default=default)
        if made.has_default:
            made = replace(made, default=checked_value(self._draft.name, made, made.default))
        return self._added(attrs=(*self._draft.attrs, made))

    def input(self, text: str) -> Self:
        """Adds an input, ``"<name>: <type>"``: a type, a type attribute, or ``N * <type>``."""
        made = parse_argument(self._draft.name, "input", text)
        return self._added(inputs=(*self._draft.inputs, made))

    def output(self, text: str) -> Self:
        """Adds an output, written as an input is."""
        made = parse_argument(self._draft.name, "output", text)
        return self._added(outputs=(*self._draft.outputs, made))

    def set_shape_fn(self, function: Callable[..., Any]) -> Self:
        """Sets the shape function, of an `InferenceContext`. Raises `ArgumentError` for another."""
        if not callable(function):
            raise ArgumentError(
                f"{self._draft.name}: the shape function {function!r} is no function"
            )
        return self._added(shape_function=function)

    def set_is_stateful(self) -> Self:
        """Says that a call does more than return values: every one happens, in order."""
        return self._added(stateful=True)

    def doc(self, text: str) -> Self:
        """Sets what the documentation says; lines ``name: …`` describe inputs, outputs, attrs."""
        return self._added(doc=text)


def define_op(name: str) -> DefinitionBuilder:
    """A definition that is not registered, to be compared with another."""
    return DefinitionBuilder(name)
