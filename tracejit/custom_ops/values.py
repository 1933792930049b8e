"""Values of attributes: what may be given, and how a graph holds them.

checked_value("MinInt", attr, 3)              the value, or an error that names op, attribute, value
encode(definition, {"T": dtype, "i": 3})      {"T":"float32","i":3}, the configuration of a call
decode(definition, text)                      the values again
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tracejit.custom_ops.definition import Attr, Definition
from tracejit.custom_ops.kernels import LABEL
from tracejit.custom_ops.types import as_type, type_name
from tracejit.errors import ArgumentError, AttributeValueError, ConcretizationError
from tracejit.shapes import element_type_of


def checked_value(op: str, attr: Attr, value: Any) -> Any:
    """``value`` as the attribute holds it: types as dtypes, lists and shapes as tuples.

    Raises `AttributeValueError` for a value of another type or outside the restrictions.
    """
    title = f"{op}: attribute {attr.name!r}"
    if not attr.is_list:
        made = _one(title, attr, value)
        if attr.kind == "int" and attr.minimum is not None and made < attr.minimum:
            raise AttributeValueError(f"{title} must be at least {attr.minimum}, not {made}")
        return made
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise AttributeValueError(f"{title} must have type {attr.type_text}, not {value!r}")
    made = tuple(_one(title, attr, element) for element in value)
    if attr.minimum is not None and len(made) < attr.minimum:
        raise AttributeValueError(
            f"{title} must have at least {attr.minimum} elements, not {len(made)}: {value!r}"
        )
    return made


def _one(title: str, attr: Attr, value: Any) -> Any:
    try:
        made = _CONVERSIONS[attr.kind](value)
    except ConcretizationError as error:
        raise ConcretizationError(f"{title}: {error.message}") from None
    if made is _WRONG:
        raise AttributeValueError(f"{title} must have type {attr.type_text}, not {value!r}")
    if attr.allowed is not None and made not in attr.allowed:
        is_type = attr.kind == "type"
        choice = ", ".join(type_name(v) if is_type else repr(v) for v in attr.allowed)
        shown = type_name(made) if is_type else repr(made)
        raise AttributeValueError(f"{title} must be one of {choice}, not {shown}")
    return made


_WRONG: Any = object()


def _string(value: Any) -> Any:
    return value if isinstance(value, str | bytes) else _WRONG


def _integer(value: Any) -> Any:
    if isinstance(value, bool | np.bool_) or not hasattr(type(value), "__index__"):
        return _WRONG
    made = operator.index(value)
    return made if -(2**63) <= made < 2**63 else _WRONG


def _float(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return _WRONG
    return float(value) if isinstance(value, int | float | np.integer | np.floating) else _WRONG


def _bool(value: Any) -> Any:
    return bool(value) if isinstance(value, bool | np.bool_) else _WRONG


def _type(value: Any) -> Any:
    try:
        return as_type(value)
    except ArgumentError:
        return _WRONG


def _shape(value: Any) -> Any:
    """A tuple of sizes, None for one that is unknown; None for a rank that is unknown."""
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return _WRONG
    sizes = [None if size is None or size == -1 else _integer(size) for size in value]
    if any(size is _WRONG or (size is not None and size < 0) for size in sizes):
        return _WRONG
    return tuple(sizes)


def _tensor(value: Any) -> Any:
    try:
        array = np.array(value)
        element_type_of(array.dtype)
    except (ValueError, TypeError):
        return _WRONG
    array.flags.writeable = False
    return array


_CONVERSIONS = {
    "string": _string,
    "int": _integer,
    "float": _float,
    "bool": _bool,
    "type": _type,
    "shape": _shape,
    "tensor": _tensor,
}


def encode(definition: Definition, values: Mapping[str, Any]) -> str:
    """The values as the text that a call in a graph holds; empty for an op without attributes."""
    label = values.get(LABEL)
    if not definition.attrs and not label:
        return ""
    made = {
        attr.name: [_encoded(attr, v) for v in values[attr.name]]
        if attr.is_list
        else _encoded(attr, values[attr.name])
        for attr in definition.attrs
    }
    return json.dumps(made | ({LABEL: label} if label else {}), separators=(",", ":"))


def decode(definition: Definition, text: str) -> dict[str, Any]:
    """The values of a call's text; attributes that it lacks have their defaults.

    Raises `AttributeValueError` for a text that does not fit the definition.
    """
    op = definition.name
    try:
        given = json.loads(text) if text else {}
    except json.JSONDecodeError as error:
        raise AttributeValueError(f"{op}: {text!r} holds no attributes: {error}") from error
    if not isinstance(given, dict):
        raise AttributeValueError(f"{op}: {text!r} holds no attributes")
    unknown = given.keys() - {attr.name for attr in definition.attrs} - {LABEL}
    if unknown:
        raise AttributeValueError(f"{op}: has no attribute {', '.join(map(repr, sorted(unknown)))}")
    values = {LABEL: str(given[LABEL])} if LABEL in given else {}
    for attr in definition.attrs:
        if attr.name not in given:
            if not attr.has_default:
                raise AttributeValueError(f"{op}: attribute {attr.name!r} is missing in {text!r}")
            values[attr.name] = attr.default
            continue
        found = given[attr.name]
        is_list = attr.is_list and isinstance(found, list)
        decoded = [_decoded(attr, v) for v in found] if is_list else _decoded(attr, found)
        values[attr.name] = checked_value(op, attr, decoded)
    return values


def _encoded(attr: Attr, value: Any) -> Any:
    if attr.kind == "type":
        return type_name(value)
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if attr.kind == "float" and not math.isfinite(value):
        return str(value)
    if attr.kind == "tensor":
        return {
            "dtype": type_name(value.dtype),
            "shape": list(value.shape),
            "bytes": value.tobytes().hex(),
        }
    return list(value) if isinstance(value, tuple) else value


def _decoded(attr: Attr, value: Any) -> Any:
    if attr.kind == "float" and value in ("inf", "-inf", "nan"):
        return float(value)
    if attr.kind == "string" and isinstance(value, dict):
        return bytes.fromhex(value.get("bytes", ""))
    if attr.kind == "tensor" and isinstance(value, dict) and value.keys() >= {"dtype", "bytes"}:
        data = np.frombuffer(bytes.fromhex(value["bytes"]), as_type(value["dtype"]))
        return data.reshape(value.get("shape", ()))
    return value
