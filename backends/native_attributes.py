"""A call's typed attributes: from Python to the text of a graph, and from there to C.

text_of({"eps": 0.5, "mode": "max"})        '{eps = 0.5 : f64, mode = "max"}'
structures(parse('{n = 3 : i32}'))          an `abi.Attributes`, and what keeps its memory alive
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracejit.backends import native_abi as abi
from tracejit.errors import AttributeValueError
from tracejit.shapes import element_type_of

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf|nan))
      | (?P<name>[A-Za-z_][\w.$]*)
      | (?P<mark>[{}\[\]<>=,:])
    )""",
    re.VERBOSE,
)
_TYPES = {
    **{f"{sign}{bits}": f"{kind}{bits}" for sign, kind in (("i", "int"), ("si", "int"))
       for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "i1": "bool", "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _TYPES.items() if not name.startswith("si")}


def text_of(attributes: Mapping[str, Any]) -> str:
    """The attributes as MLIR writes a dictionary.

    Numbers are Python's (i64, f64), or NumPy's with their own type; lists, tuples and vectors are
    arrays. Raises `AttributeValueError` for a value that has no such type.
    """
    pairs = [f"{name} = {_text(name, value)}" for name, value in sorted(attributes.items())]
    return "{" + ", ".join(pairs) + "}"


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return text_of(value)
    array = np.asarray(value)
    dtype = _NAMES.get(array.dtype.name)
    if dtype is None or array.ndim > 1:
        raise AttributeValueError(
            f"ffi_call: attribute {name!r} must be a number, a vector of numbers, text, a boolean "
            f"or a dictionary of these, not {value!r}"
        )
    if array.ndim == 0:
        return f"{_number(array[()])} : {dtype}"
    return f"array<{dtype}: {', '.join(map(_number, array))}>" if array.size else f"array<{dtype}>"


def _number(value: Any) -> str:
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, np.integer) else repr(float(value))


def parse(text: str) -> dict[str, Any]:
    """The attributes by name: NumPy scalars and vectors, text, booleans, dictionaries.

    Raises `AttributeValueError` for text that is no dictionary of these.
    """
    reader = _Reader(text)
    found = reader.dictionary() if text.strip() else {}
    reader.end()
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def fail(self) -> AttributeValueError:
        return AttributeValueError(
            f"custom_call: backend_config is no dictionary of typed attributes at character "
            f"{self.position}: {self.text!r}"
        )

    def peek(self) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.position)
        return (match.lastgroup or "", match[match.lastgroup or 0]) if match else ("", "")

    def take(self, *wanted: str) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.position)
        if match is None or (wanted and match[match.lastgroup or 0] not in wanted):
            raise self.fail()
        self.position = match.end()
        return match.lastgroup or "", match[match.lastgroup or 0]

    def accept(self, mark: str) -> bool:
        if self.peek()[1] != mark:
            return False
        self.take()
        return True

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.fail()

    def dictionary(self) -> dict[str, Any]:
        self.take("{")
        found: dict[str, Any] = {}
        while not self.accept("}"):
            kind, name = self.take()
            if kind not in ("name", "string"):
                raise self.fail()
            self.take("=")
            found[json.loads(name) if kind == "string" else name] = self.value()
            if self.peek()[1] != "}":
                self.take(",")
        return found

    def value(self) -> Any:
        kind, token = self.peek()
        if token == "{":
            return self.dictionary()
        self.take()
        if kind == "string":
            return json.loads(token)
        if token in ("true", "false"):
            return np.bool_(token == "true")
        if token == "array":
            return self.array()
        if kind != "number":
            raise self.fail()
        dtype = self.dtype() if self.accept(":") else None
        is_float = dtype is None and not re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F]+|\d+)", token)
        return _scalar(token, np.dtype(dtype or ("float64" if is_float else "int64")))

    def array(self) -> np.ndarray:
        self.take("<")
        dtype = np.dtype(self.dtype())
        values: list[str] = []
        if self.accept(":"):
            values.append(self.take()[1])
            while self.accept(","):
                values.append(self.take()[1])
        self.take(">")
        return np.array([_scalar(value, dtype) for value in values], dtype)

    def dtype(self) -> str:
        name = self.take()[1]
        if name not in _TYPES:
            raise self.fail()
        return _TYPES[name]


def _scalar(token: str, dtype: np.dtype) -> Any:
    if dtype.kind == "b":
        return np.bool_(token in ("true", "1", "-1"))
    if dtype.kind == "f":
        if token.lower().startswith("0x"):  # the bits of infinities and NaN
            return np.array(int(token, 16), f"u{dtype.itemsize}").view(dtype)[()]
        return dtype.type(token)
    return np.array(int(token, 0)).astype(dtype)[()]


def structures(attributes: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The attributes, by name in order, as C reads them; and the objects that hold the memory."""
    held: list[Any] = []
    types, names, values = [], [], []
    for name, value in sorted(attributes.items()):
        kind, structure = _structure(value, held)
        types.append(kind)
        names.append(_address(_span(name, held), held))
        values.append(_address(structure, held))
    made = abi.made(
        abi.Attributes,
        size=len(types),
        types=_address((ctypes.c_int * len(types))(*types), held),
        names=_address((ctypes.c_void_p * len(types))(*names), held),
        values=_address((ctypes.c_void_p * len(types))(*values), held),
    )
    return made, held


def _structure(value: Any, held: list[Any]) -> tuple[int, Any]:
    if isinstance(value, str):
        return abi.AttributeType.STRING, _span(value, held)
    if isinstance(value, Mapping):
        inner, memory = structures(value)
        held += memory
        return abi.AttributeType.DICTIONARY, inner
    array = np.ascontiguousarray(value)
    held.append(array)
    dtype = abi.data_type(element_type_of(array.dtype))
    if np.ndim(value):
        return abi.AttributeType.ARRAY, abi.Array(dtype, array.size, array.ctypes.data)
    return abi.AttributeType.SCALAR, abi.Scalar(dtype, array.ctypes.data)


def _span(text: str, held: list[Any]) -> Any:
    data = ctypes.create_string_buffer(text.encode())
    return abi.ByteSpan(_address(data, held), len(data) - 1)


def _address(structure: Any, held: list[Any]) -> int:
    held.append(structure)
    return ctypes.addressof(structure)
