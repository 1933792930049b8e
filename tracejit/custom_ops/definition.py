"""What a definition of an op says: its attributes, inputs and outputs. Frozen data.

definition.inferred            the attributes that inputs determine, so that calls do not give them
definition.flat_types(outputs, attrs)    the type of every array among the outputs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tracejit.custom_ops.types import STRING, type_name, type_named
from tracejit.errors import AttributeValueError

KINDS = ("string", "int", "float", "bool", "type", "shape", "tensor")
"""The types of attributes; each may also be in a list."""


class _Missing:
    def __repr__(self) -> str:
        return "<no default>"


MISSING: Any = _Missing()


@dataclass(frozen=True)
class Attr:
    """An attribute: ``kind`` is one of `KINDS`, ``allowed`` the values it is restricted to.

    ``minimum`` is the least integer, or the least length of a list.
    """

    name: str
    kind: str
    is_list: bool = False
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None
    default: Any = field(default=MISSING, compare=False)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    @property
    def type_text(self) -> str:
        """The type as definitions write it, without default: ``list(int) >= 2``."""
        text = self.kind
        if self.allowed is not None:
            shown = [type_name(v) if self.kind == "type" else repr(v) for v in self.allowed]
            text = "{" + ", ".join(shown) + "}"
        text = f"list({text})" if self.is_list else text
        return text if self.minimum is None else f"{text} >= {self.minimum}"


@dataclass(frozen=True)
class Argument:
    """An input or an output: ``type`` is the name of a type or of an attribute.

    ``number`` is the attribute that says how many arrays there are, where there is one.
    """

    name: str
    type: str
    number: str | None = None


@dataclass(frozen=True)
class Definition:
    """The interface of an op, whatever computes it.

    ``shape_function`` takes an `InferenceContext`. ``stateful`` says that a call does more than
    return values, so that none is left out or joined with an equal one.
    """

    name: str
    attrs: tuple[Attr, ...] = ()
    inputs: tuple[Argument, ...] = ()
    outputs: tuple[Argument, ...] = ()
    shape_function: Callable[..., Any] | None = field(default=None, compare=False)
    doc: str = field(default="", compare=False)
    stateful: bool = False

    def attr(self, name: str) -> Attr | None:
        """The attribute of that name, or None."""
        return next((attr for attr in self.attrs if attr.name == name), None)

    @property
    def names(self) -> list[str]:
        """The names of attributes, inputs and outputs."""
        arguments = (*self.inputs, *self.outputs)
        return [attr.name for attr in self.attrs] + [argument.name for argument in arguments]

    @property
    def function_name(self) -> str:
        """The name of the op's Python function: ``zero_out`` for ``ZeroOut``."""
        plain = re.sub(r"[^A-Za-z0-9]+", "_", self.name)
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", plain).lower()

    @property
    def inferred(self) -> frozenset[str]:
        """The attributes that the types and numbers of inputs determine."""
        names = {name for i in self.inputs for name in (i.type, i.number) if name}
        return frozenset(attr.name for attr in self.attrs if attr.name in names)

    @property
    def parameters(self) -> list[Attr]:
        """The attributes that calls give, those without a default first."""
        given = [attr for attr in self.attrs if attr.name not in self.inferred]
        return sorted(given, key=lambda attr: attr.has_default)

    def is_list(self, argument: Argument) -> bool:
        """Whether an input or output is a list of arrays."""
        attr = self.attr(argument.type)
        return argument.number is not None or (attr is not None and attr.is_list)

    def types(self, argument: Argument, attrs: Mapping[str, Any]) -> list[np.dtype]:
        """The type of each array of one input or output."""
        attr = self.attr(argument.type)
        if attr is not None and attr.is_list:
            return list(attrs[attr.name])
        one = attrs[attr.name] if attr is not None else self.fixed_type(argument)
        return [one] * (1 if argument.number is None else attrs[argument.number])

    def fixed_type(self, argument: Argument) -> np.dtype:
        """The type of an argument that no attribute determines."""
        found = type_named(argument.type)
        assert found is not None, f"{argument} was not checked"
        return found

    def flat_types(self, arguments: Sequence[Argument], attrs: Mapping[str, Any]) -> list[np.dtype]:
        """The types of all arrays of inputs or outputs, in order."""
        return [dtype for argument in arguments for dtype in self.types(argument, attrs)]

    def grouped(
        self, arguments: Sequence[Argument], attrs: Mapping[str, Any], values: Sequence[Any]
    ) -> list[Any]:
        """One value for each argument, a list where the argument is one, of all in order."""
        following = iter(values)
        grouped: list[Any] = []
        for argument in arguments:
            own = [next(following) for _ in self.types(argument, attrs)]
            grouped.append(own if self.is_list(argument) else own[0])
        return grouped

    def has_text(self, attrs: Mapping[str, Any]) -> bool:
        """Whether any input or output is an array of text."""
        types = self.flat_types((*self.inputs, *self.outputs), attrs)
        return STRING in types


_OP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[.>:/]+[A-Za-z0-9_]+)*")


def checked(definition: Definition) -> Definition:
    """The definition with the least lengths that lists have by default.

    Raises `AttributeValueError` for names that are taken twice or undefined.
    """
    op = definition.name
    if not _OP_NAME.fullmatch(op) or op.startswith("tracejit."):
        raise AttributeValueError(f"register_op: {op!r} is no name for an op")
    seen: set[str] = set()
    for name in definition.names:
        if name in seen:
            raise AttributeValueError(f"{op}: the name {name!r} is given twice")
        seen.add(name)
    lists: set[str] = set()
    for argument in (*definition.inputs, *definition.outputs):
        lists |= _lengths(definition, argument)
    attrs = tuple(
        replace(attr, minimum=1) if attr.name in lists and attr.minimum is None else attr
        for attr in definition.attrs
    )
    return replace(definition, attrs=attrs)


def _lengths(definition: Definition, argument: Argument) -> set[str]:
    """The attributes that say how many arrays an argument has."""
    op, attr = definition.name, definition.attr(argument.type)
    if attr is None and type_named(argument.type) is None:
        raise AttributeValueError(
            f"{op}: {argument.name!r} has the type {argument.type!r}, which is neither a type "
            "nor an attribute of the op"
        )
    if attr is not None and attr.kind != "type":
        raise AttributeValueError(
            f"{op}: {argument.name!r} has the type {argument.type!r}, an attribute of type "
            f"{attr.type_text}, not type"
        )
    if argument.number is None:
        return {attr.name} if attr is not None and attr.is_list else set()
    number = definition.attr(argument.number)
    if number is None or number.kind != "int" or number.is_list:
        raise AttributeValueError(
            f"{op}: {argument.name!r} has {argument.number!r} arrays, which is no attribute of "
            "type int"
        )
    if attr is not None and attr.is_list:
        raise AttributeValueError(
            f"{op}: {argument.name!r} cannot be {argument.number!r} lists of {argument.type!r}"
        )
    return {number.name}
