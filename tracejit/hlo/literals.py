"""Constants as HLO text writes them: ``{ {1, 2}, {3, 4} }``, ``-nan(0x5)``, ``(1, -2)``.

Constants that XLA prints are read back to the bit, and so are ours, by us and by XLA, except that
XLA reads a complex number whose real part is NaN as NaN in both parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tracejit.shapes import ElementType, Shape, element_type_of

_WORD = r"[+-]?[A-Za-z0-9.][A-Za-z0-9.+-]*(?:\(0x[0-9a-fA-F]+\))?"
_REAL = re.compile(_WORD)
_COMPLEX = re.compile(rf"\(\s*({_WORD})\s*,\s*({_WORD})\s*\)")
_IGNORED = re.compile(r"\s+|/\*.*?\*/")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NAN = re.compile(r"([+-]?)nan(?:\((0x[0-9a-fA-F]+)\))?")

# The width of the payload of NaN, by element type.
_MANTISSA_BITS = {
    t: t.float_format.mantissa_bits
    for t in ElementType
    if t.is_floating and t.float_format.has_infinity
}
_TRUTH = {"true": True, "false": False, "1": True, "0": False}


def write_literal(array: np.ndarray) -> str:
    """A constant's value: a scalar as it is, dimensions as nested braces."""
    element_type = element_type_of(array.dtype)
    words = _write_elements(array.reshape(-1), element_type)
    if array.ndim == 0:
        return words[0]
    for axis in range(array.ndim - 1, -1, -1):
        size, count = array.shape[axis], math.prod(array.shape[:axis])
        groups = (", ".join(words[i * size : (i + 1) * size]) for i in range(count))
        innermost = axis == array.ndim - 1 or size == 0
        words = ["{" + g + "}" if innermost else "{ " + g + " }" for g in groups]
    return words[0]


def _write_elements(flat: np.ndarray, element_type: ElementType) -> list[str]:
    if element_type is ElementType.PRED:
        return ["true" if value else "false" for value in flat.tolist()]
    if element_type.is_integral:
        return [str(int(value)) for value in flat.tolist()]
    if not element_type.is_complex:
        return _write_reals(flat, element_type)
    parts = zip(
        _write_reals(flat.real, element_type.real),
        _write_reals(flat.imag, element_type.real),
        strict=True,
    )
    return [f"({real}, {imag})" for real, imag in parts]


def _write_reals(values: np.ndarray, element_type: ElementType) -> list[str]:
    """Each value in the fewest digits that read back as it; XLA reads them as f64 and rounds.

    Powers of two are written exactly: above the least of f8e8m0fnu all numbers are rounded up.
    """
    with np.errstate(invalid="ignore"):  # signalling NaNs
        nan = np.isnan(values)
    if element_type is ElementType.F64 or not element_type.is_signed:
        values = values.astype(np.float64)
        words = [repr(value) for value in values.tolist()]
    else:
        single = values.astype(np.float32)
        words = [str(value) for value in single]
        read_back = np.array(words, dtype=np.float64).astype(values.dtype)
        with np.errstate(invalid="ignore"):
            wrong = read_back != values
        for i in np.flatnonzero(wrong & ~nan):
            words[i] = repr(float(values[i]))
    for i in np.flatnonzero(nan):
        words[i] = _write_nan(values[i], element_type)
    return words


def _write_nan(value: np.generic, element_type: ElementType) -> str:
    bits = int.from_bytes(np.asarray(value).tobytes(), "little")
    is_negative = bits >> (element_type.bits - 1) and element_type.float_format.has_negative_zero
    sign = "-" if is_negative else ""
    width = _MANTISSA_BITS.get(element_type)
    if width is None:
        return f"{sign}nan"
    payload = bits & ((1 << width) - 1)
    return f"{sign}nan" if payload == 1 << (width - 1) else f"{sign}nan({payload:#x})"


def read_literal(text: str, shape: Shape) -> np.ndarray:
    """The array written in ``text``. Raises `ValueError`, saying why, when it is not one."""
    element_type = shape.element_type
    pattern = _COMPLEX if element_type.is_complex else _REAL
    text = _IGNORED.sub(" ", text)
    words = pattern.findall(text)
    if len(words) != shape.size:
        raise ValueError(f"{shape} needs {shape.size} elements, the constant has {len(words)}")
    braces = pattern.sub("", text).replace(" ", "")
    if shape.size and braces != _braces(shape.dimensions):
        raise ValueError(f"the braces of the constant do not nest as {shape} does")
    if not shape.size and braces.strip("{},"):
        raise ValueError(f"an empty constant of shape {shape} holds {braces!r}")
    return _read_elements(words, element_type).reshape(shape.dimensions)


def split_tuple(text: str, count: int) -> list[str]:
    """The texts of a tuple's elements: ``({1, 2}, 3)``. Raises `ValueError` for other counts."""
    text = _IGNORED.sub(" ", text).strip()
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError("the constant of a tuple needs parentheses of its own")
    parts, depth, start = [], 0, 1
    for i, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if (depth == 1 and character == ",") or (depth == 0 and i + 1 == len(text)):
            parts.append(text[start:i].strip())
            start = i + 1
    parts = [] if parts == [""] else parts
    if len(parts) != count or depth:
        raise ValueError(f"a tuple of {count} elements is not {text[:80]}")
    return parts


def _braces(dimensions: Sequence[int]) -> str:
    """The text of a constant without its elements: braces and commas."""
    text = ""
    for size in reversed(dimensions):
        text = "{" + ",".join([text] * size) + "}"
    return text


def _read_elements(words: list[str], element_type: ElementType) -> np.ndarray:
    if element_type.is_complex:
        whole = np.empty(len(words), element_type.dtype)
        whole.real = _read_reals([word[0] for word in words], element_type.real)
        whole.imag = _read_reals([word[1] for word in words], element_type.real)
        return whole
    if element_type is ElementType.PRED:
        unknown = set(words) - _TRUTH.keys()
        if unknown:
            raise ValueError(f"{min(unknown)!r} is not a value of pred")
        return np.array([_TRUTH[word] for word in words], bool)
    if element_type.is_floating:
        return _read_reals(words, element_type)
    wrong = next((word for word in words if not _INTEGER.fullmatch(word)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not a value of {element_type}")
    numbers = [int(word) for word in words]
    least, most = _range(element_type)
    if numbers and not least <= min(numbers) <= max(numbers) <= most:
        raise ValueError(f"a number is out of the range of {element_type}")
    wide = np.array([number % (1 << 64) for number in numbers], np.uint64)
    return wide.view(np.int64).astype(element_type.dtype)


def _range(element_type: ElementType) -> tuple[int, int]:
    """The least and the greatest integer that text may hold; 64 bits count for either type."""
    if element_type.bits == 64:
        return -(1 << 63), (1 << 64) - 1
    least = -(1 << (element_type.bits - 1)) if element_type.is_signed else 0
    return least, least + (1 << element_type.bits) - 1


def _read_reals(words: list[str], element_type: ElementType) -> np.ndarray:
    plain = ["nan" if "nan" in word else _decimal(word) for word in words]
    wide = np.array(plain, dtype=np.float64)
    for i in np.flatnonzero(np.isinf(wide)):
        if words[i].lstrip("+-") != "inf":
            raise ValueError(f"{words[i]} is out of the range of f64")
    if not element_type.is_signed:
        # XLA prints few digits, and a conversion takes all above the least power to the next one.
        least = element_type.float_format.lowest
        wide = np.where(abs(wide - least) < least / 2, least, wide)
    with np.errstate(over="ignore"):
        values = wide.astype(element_type.dtype)
    outside = ~np.isfinite(values.astype(np.float64))
    if not element_type.float_format.has_nan:
        outside = abs(wide) > element_type.float_format.highest
    for i in np.flatnonzero(np.isfinite(wide) & outside):
        raise ValueError(f"{words[i]} is out of the range of {element_type}")
    for i in np.flatnonzero(np.isnan(wide)):
        values[i] = _read_nan(words[i], element_type)
    return values


def _decimal(word: str) -> str:
    """``word`` without hexadecimal digits: ``0x1.8p1`` is 3.0."""
    if "x" not in word:
        return word
    try:
        return repr(float.fromhex(word))
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{word!r} is no number") from error


def _read_nan(word: str, element_type: ElementType) -> np.ndarray:
    matched = _NAN.fullmatch(word)
    width = _MANTISSA_BITS.get(element_type, 0)
    is_payload = matched and (not matched[2] or 0 < int(matched[2], 16) < 1 << width)
    if matched is None or not is_payload or not element_type.float_format.has_nan:
        raise ValueError(f"{word!r} is not a value of {element_type}")
    nan = np.array(np.nan, element_type.dtype)
    bits = int.from_bytes(np.abs(nan).tobytes(), "little")
    if matched[2]:
        bits = bits >> width << width | int(matched[2], 16)
    if matched[1] == "-" and element_type.float_format.has_negative_zero:
        bits |= 1 << (element_type.bits - 1)
    return np.frombuffer(bits.to_bytes(nan.itemsize, "little"), element_type.dtype).reshape(())
