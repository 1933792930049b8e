"""What a call of an op means: from Python's arguments to attributes and arrays of their types.

bound = bind(definition, signature(definition), args, kwargs)
bound.attrs, bound.values

Arrays have the types they have. Python numbers, and lists of them, take the type that the op
wants: ``zero_out([5, 4])`` is int32 for an op on int32.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.custom_ops.definition import Argument, Attr, Definition
from tracejit.custom_ops.types import STRING, is_text, type_name
from tracejit.custom_ops.values import checked_value
from tracejit.errors import ArgumentError, AttributeValueError, ElementTypeError, ValueRangeError
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, element_type_of
from tracejit.trace.convert import PYTHON_SCALARS, Operand, operand, plain_array
from tracejit.trace.table import find_traced

Value = np.ndarray | Instruction


def signature(definition: Definition) -> inspect.Signature:
    """The op's Python function: inputs, attributes that no input determines, a name."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(python_name(i.name), kind) for i in definition.inputs]
    for attr in definition.parameters:
        default = attr.default if attr.has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(python_name(attr.name), kind, default=default))
    parameters.append(inspect.Parameter("name", kind, default=None))
    return inspect.Signature(parameters)


def python_name(name: str) -> str:
    """``in_`` for ``in``, which Python keeps for itself."""
    return f"{name}_" if keyword.iskeyword(name) else name


@dataclass(frozen=True)
class Bound:
    """A call: every attribute's value, every array among the inputs in order."""

    attrs: dict[str, Any]
    values: list[Value]

    @property
    def is_known(self) -> bool:
        """Whether all arrays are there, none of them traced."""
        return all(isinstance(value, np.ndarray) for value in self.values)

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """The dimensions of the arrays."""
        return [
            v.shape if isinstance(v, np.ndarray) else v.array_shape.dimensions for v in self.values
        ]


@dataclass(frozen=True)
class _Given:
    """One array as it was passed; ``is_soft`` when it has no type of its own yet."""

    title: str
    value: np.ndarray | Operand
    dtype: np.dtype
    is_soft: bool

    def to(self, dtype: np.dtype) -> Value:
        """The array with this type. Raises `ElementTypeError` unless it has it, or is soft."""
        if dtype != self.dtype and not (self.is_soft and _castable(self.dtype, dtype)):
            raise ElementTypeError(
                f"{self.title} must have type {type_name(dtype)}, not {type_name(self.dtype)}"
            )
        if isinstance(self.value, Operand):
            return self.value.to(element_type_of(dtype))
        if dtype == STRING or dtype == self.value.dtype:
            return self.value
        made = self.value.astype(dtype)
        if element_type_of(dtype).is_integral and not np.array_equal(made, self.value):
            raise ValueRangeError(f"{self.title}: {self.value} does not fit into {dtype}")
        return made


def bind(
    definition: Definition,
    wanted: inspect.Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Bound:
    """The attributes and arrays of a call.

    Raises `ArgumentError` for missing or additional arguments and what is no array,
    `AttributeValueError` for an attribute, `ElementTypeError` for an array's type.
    """
    op = definition.name
    try:
        bound = wanted.bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"{definition.function_name}{wanted}: {error}") from None
    bound.apply_defaults()
    attrs: dict[str, Any] = {}
    for attr in definition.parameters:
        given = bound.arguments[python_name(attr.name)]
        if given is None and attr.has_default and attr.kind != "shape":
            given = attr.default
        attrs[attr.name] = checked_value(op, attr, given)
    inputs = {
        i.name: _arrays(definition, i, bound.arguments[python_name(i.name)])
        for i in definition.inputs
    }
    for attr in definition.attrs:
        if attr.name in definition.inferred:
            attrs[attr.name] = _inferred(definition, attr, inputs)
    types = [(i, definition.types(i, attrs)) for i in definition.inputs]
    values = [
        array.to(dtype)
        for i, own in types
        for array, dtype in zip(inputs[i.name], own, strict=True)
    ]
    return Bound({attr.name: attrs[attr.name] for attr in definition.attrs}, values)


def _arrays(definition: Definition, argument: Argument, value: Any) -> list[_Given]:
    title = f"{definition.name}: input {argument.name!r}"
    if not definition.is_list(argument):
        return [_array(title, value)]
    if not isinstance(value, list | tuple):
        raise ArgumentError(f"{title} must be a list of arrays, not {type(value).__name__}")
    return [_array(f"{title}, number {n},", element) for n, element in enumerate(value)]


def _array(title: str, value: Any) -> _Given:
    try:
        if find_traced([value]) is not None:
            traced = operand(value)
            return _Given(title, traced, traced.element_type.dtype, traced.is_weak)
        array = np.asarray(value) if _holds_text(value) else plain_array(value)
    except ArgumentError as error:
        raise ArgumentError(f"{title}: {error.message}") from None
    if is_text(array.dtype):
        return _Given(title, array, STRING, False)
    dtype = element_type_of(array.dtype).dtype
    is_soft = isinstance(value, (*PYTHON_SCALARS, list, tuple)) and all(
        type(leaf) in PYTHON_SCALARS for leaf in _leaves(value)
    )
    return _Given(title, array.astype(dtype, copy=False), dtype, is_soft)


def _leaves(value: Any) -> Iterator[Any]:
    if not isinstance(value, list | tuple):
        yield value
        return
    for element in value:
        yield from _leaves(element)


def _holds_text(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return is_text(value.dtype)
    return any(isinstance(leaf, str | bytes) for leaf in _leaves(value))


def _inferred(definition: Definition, attr: Attr, inputs: Mapping[str, list[_Given]]) -> Any:
    """The value that the inputs give an attribute."""
    op = definition.name
    users = [i for i in definition.inputs if attr.name in (i.type, i.number)]
    if attr.kind == "int":
        counts = {i.name: len(inputs[i.name]) for i in users if i.number == attr.name}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name!r} has {count}" for name, count in counts.items())
            raise AttributeValueError(
                f"{op}: attribute {attr.name!r} must be one number of arrays; {listed}"
            )
        return checked_value(op, attr, next(iter(counts.values())))
    if attr.is_list:
        return _type_list(definition, attr, [inputs[i.name] for i in users])
    arrays = [array for i in users for array in inputs[i.name]]
    own = [array for array in arrays if not array.is_soft]
    for array in own[1:]:
        if array.dtype != own[0].dtype:
            raise ElementTypeError(
                f"{array.title} must have the type of attribute {attr.name!r}, "
                f"{type_name(own[0].dtype)}, not {type_name(array.dtype)}"
            )
    if own:
        return _allowed(own[0], attr)
    if arrays:
        natural = np.result_type(*(array.dtype for array in arrays))
        return _soft_type(arrays[0], attr, natural)
    if attr.has_default:
        return checked_value(op, attr, attr.default)
    raise AttributeValueError(f"{op}: attribute {attr.name!r} cannot be told from empty lists")


def _type_list(definition: Definition, attr: Attr, lists: Sequence[list[_Given]]) -> Any:
    lengths = {len(arrays) for arrays in lists}
    if len(lengths) > 1:
        raise AttributeValueError(
            f"{definition.name}: attribute {attr.name!r} must be one list of types; its inputs "
            f"have {' and '.join(map(str, sorted(lengths)))} arrays"
        )
    types = []
    for together in zip(*lists, strict=True):
        own = next((array for array in together if not array.is_soft), None)
        first = together[0]
        types.append(_soft_type(first, attr, first.dtype) if own is None else _allowed(own, attr))
    return checked_value(definition.name, attr, types)


def _allowed(array: _Given, attr: Attr) -> np.dtype:
    if attr.allowed is not None and array.dtype not in attr.allowed:
        choice = ", ".join(map(type_name, attr.allowed))
        raise ElementTypeError(
            f"{array.title} must have a type of attribute {attr.name!r}, one of {choice}, not "
            f"{type_name(array.dtype)}"
        )
    return array.dtype


def _soft_type(array: _Given, attr: Attr, natural: np.dtype) -> np.dtype:
    """The type for Python numbers: their own, the default, the first of their kind, a wider one."""
    if attr.allowed is None or natural in attr.allowed:
        return natural
    default = [attr.default] if attr.has_default and not attr.is_list else []
    same = [t for t in attr.allowed if t != STRING and _rank(t) == _rank(natural)]
    candidates: list[np.dtype] = [*default, *same, *attr.allowed]
    for dtype in candidates:
        if _castable(natural, dtype):
            return dtype
    return _allowed(array, attr)


def _castable(natural: np.dtype, dtype: np.dtype) -> bool:
    """Whether Python numbers of a kind may become a type: integers floating, but not back."""
    return STRING not in (natural, dtype) and _rank(natural) <= _rank(dtype)


def _rank(dtype: np.dtype) -> int:
    element_type = element_type_of(dtype)
    if element_type is ElementType.PRED:
        return 0
    return 1 if element_type.is_integral else 3 if element_type.is_complex else 2
