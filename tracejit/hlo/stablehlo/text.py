"""The parts of StableHLO text: types, and attributes as MLIR writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tracejit.errors import UnsupportedError
from tracejit.shapes import (
    AnyShape,
    ElementType,
    Shape,
    TokenShape,
    TupleShape,
    element_type_of,
)

LeafShape = Shape | TokenShape

_TYPES = {
    ElementType.PRED: "i1",
    ElementType.BF16: "bf16",
    ElementType.C64: "complex<f32>",
    ElementType.C128: "complex<f64>",
}
# Above this many elements a constant is written as its bytes.
_READABLE = 32
_NUMBER = re.compile(r"(-?\d+)(\.\d+)?(e[+-]?\d+)?")


def leaves(shape: AnyShape) -> list[LeafShape]:
    """The arrays and tokens in ``shape``, tuples opened, in order."""
    found: list[LeafShape] = []
    stack: list[AnyShape] = [shape]
    while stack:
        top = stack.pop()
        if isinstance(top, TupleShape):
            stack.extend(reversed(top.elements))
        else:
            found.append(top)
    return found


def element_type_text(element_type: ElementType) -> str:
    """``i1``, ``ui8``, ``complex<f32>`` …"""
    known = _TYPES.get(element_type)
    if known is not None:
        return known
    name = str(element_type)
    if element_type.is_integral and element_type.bits == 1:
        raise UnsupportedError(f"to_stablehlo: the dialect has no {name}; its i1 is pred")
    if element_type.is_floating:
        return name[:2] + name[2:].upper()
    return {"s": "i", "u": "ui"}[name[0]] + name[1:]


def type_text(shape: LeafShape) -> str:
    """``tensor<2x3xf32>``, ``!stablehlo.token``, ``tensor<?xf32, #stablehlo.bounds<5>>``."""
    if isinstance(shape, TokenShape):
        return "!stablehlo.token"
    sizes = list(map(str, shape.dimensions))
    bounds = ""
    if shape.dynamic_dimensions:
        flags = list(zip(shape.dynamic_dimensions, sizes, strict=True))
        sizes = ["?" if dynamic else size for dynamic, size in flags]
        listed = ", ".join(size if dynamic else "?" for dynamic, size in flags)
        bounds = f", #stablehlo.bounds<{listed}>"
    text = "".join(f"{size}x" for size in sizes)
    return f"tensor<{text}{element_type_text(shape.element_type)}{bounds}>"


def integer(value: int, bits: int = 64) -> str:
    return f"{value} : i{bits}"


def boolean(value: bool) -> str:
    return "true" if value else "false"


def numbers(values: Sequence[int]) -> str:
    """``[1, 2]``, as the attributes of the dialect hold it."""
    return "[" + ", ".join(map(str, values)) + "]"


def integers(values: Sequence[int]) -> str:
    """``array<i64: 1, 2>``."""
    return "array<i64" + (": " + ", ".join(map(str, values)) if values else "") + ">"


def booleans(values: Sequence[bool]) -> str:
    """``array<i1: true, false>``."""
    return "array<i1" + (": " + ", ".join(map(boolean, values)) if values else "") + ">"


def pairs(values: Sequence[Sequence[int]]) -> str:
    """Padding, say: ``dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>``."""
    rows = "[" + ", ".join(map(numbers, values)) + "]" if values else ""
    return f"dense<{rows}> : tensor<{len(values)}x2xi64>"


def matrix(rows: Sequence[Sequence[int]], columns: int = 0) -> str:
    """Rows of numbers, shorter ones filled with -1: replica groups. At least ``columns`` wide."""
    width = max(map(len, rows), default=columns)
    filled = [[*row, *[-1] * (width - len(row))] for row in rows]
    text = "[" + ", ".join(map(numbers, filled)) + "]" if rows and width else ""
    return f"dense<{text}> : tensor<{len(rows)}x{width}xi64>"


def string(value: str) -> str:
    """A quoted string; what is not printable ASCII goes as hexadecimal bytes."""
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if " " <= c <= "~" else _bytes(c) for c in plain) + '"'


def _bytes(character: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in character.encode())


def dictionary(values: Mapping[str, str]) -> str:
    """``{a = 1 : i64, b}``: names with values that are text already."""
    return "{" + ", ".join(f"{name} = {value}" for name, value in values.items()) + "}"


def enumeration(kind: str, name: str) -> str:
    """``#stablehlo<comparison_direction EQ>``."""
    return f"#stablehlo<{kind} {name}>"


def literal(array: np.ndarray) -> str:
    """An array with its type, to the bit: ``dense<[1.5, 2.0]> : tensor<2xf32>``."""
    shape = Shape(element_type_of(array.dtype), tuple(array.shape))
    return f"dense<{_elements(array, shape)}> : {type_text(shape)}"


def _elements(array: np.ndarray, shape: Shape) -> str:
    flat = np.ascontiguousarray(array).reshape(-1)
    if not shape.size:
        return ""
    if shape.rank and shape.size > 1 and _all_the_same(flat):
        return _words(flat[:1], shape.element_type)[0]
    packed = shape.element_type.bits < 8 or shape.element_type is ElementType.PRED
    if shape.size > _READABLE and not packed:
        little = flat.astype(flat.dtype.newbyteorder("<"), copy=False)
        return f'"0x{little.tobytes().hex().upper()}"'
    words = _words(flat, shape.element_type)
    for size in reversed(shape.dimensions):
        words = ["[" + ", ".join(words[i : i + size]) + "]" for i in range(0, len(words), size)]
    return words[0]


def _all_the_same(flat: np.ndarray) -> bool:
    rows = flat.view(np.uint8).reshape(len(flat), -1)
    return bool((rows == rows[0]).all())


def _words(flat: np.ndarray, element_type: ElementType) -> list[str]:
    if element_type is ElementType.PRED:
        return [boolean(value) for value in flat.tolist()]
    if element_type.is_integral:
        return [str(int(value)) for value in flat.tolist()]
    if element_type.is_complex:
        parts = zip(_reals(flat.real), _reals(flat.imag), strict=True)
        return [f"({real}, {imag})" for real, imag in parts]
    return _reals(flat)


def _reals(values: np.ndarray) -> list[str]:
    """Decimals where they are short and read back to the bit, else the bits in hexadecimal."""
    words = []
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    for value, pattern in zip(values, bits.tolist(), strict=True):
        matched = _NUMBER.fullmatch(repr(float(value)))
        if matched is None or len(matched[0]) > 24:
            words.append(f"0x{pattern:0{2 * values.dtype.itemsize}X}")
        else:
            words.append(f"{matched[1]}{matched[2] or '.0'}{matched[3] or ''}")
    return words
