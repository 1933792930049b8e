"""Constants in text are exact: special values, every bit pattern, empty ones, every type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.judge import parse_xla
from tests.samples.values import special_values
from tracejit.hlo import parse
from tracejit.hlo.literals import read_literal, write_literal
from tracejit.ops.constants import CONSTANT
from tracejit.shapes import ElementType, Shape, element_type_of, shape_of

SIZES = [(), (3,), (2, 3), (2, 1, 4), (0,), (2, 0), (0, 2), (3, 0, 2), (2, 3, 0)]


def read_back(array: np.ndarray) -> np.ndarray:
    return read_literal(write_literal(array), shape_of(array))


def read_by_xla(array: np.ndarray) -> np.ndarray:
    """The constant as XLA holds it after reading our text: what it prints, read by us."""
    text = f"HloModule m\n\nENTRY e {{\n  ROOT c = {shape_of(array)} constant({{}})\n}}"
    printed = parse_xla(text.replace("({})", f"({write_literal(array)})"))
    root = parse(printed).entry.root
    assert root.op is CONSTANT
    literal: np.ndarray = root.attributes["literal"]
    return literal


def random_bits(element_type: ElementType, sizes: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(sum(sizes))
    if element_type is ElementType.PRED:
        return rng.integers(0, 2, sizes).astype(bool)
    if element_type.bits < 8:
        return rng.integers(0, 1 << element_type.bits, sizes, np.uint8).view(element_type.dtype)
    count = int(np.prod(sizes, dtype=int))
    flat = np.frombuffer(rng.bytes(count * element_type.dtype.itemsize), element_type.dtype)
    return flat.reshape(sizes)


@pytest.mark.parametrize("element_type", ElementType, ids=str)
def test_random_bits_of_every_shape(element_type: ElementType) -> None:
    for sizes in SIZES:
        array = random_bits(element_type, sizes)
        assert read_back(array).tobytes() == array.tobytes(), (sizes, write_literal(array))
        by_xla = read_by_xla(array)
        if element_type.is_complex:
            # XLA reads a complex number whose real part is NaN as NaN in both parts.
            nan = np.isnan(array.real)
            array, by_xla = array[~nan], by_xla[~nan]
        assert by_xla.tobytes() == array.tobytes(), (sizes, write_literal(array))


@pytest.mark.parametrize("element_type", ElementType, ids=str)
def test_special_values(element_type: ElementType) -> None:
    array = special_values(element_type)
    assert read_back(array).tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "element_type",
    [t for t in ElementType if t.bits <= 16 and t is not ElementType.PRED],
    ids=str,
)
def test_every_value_of_a_narrow_type(element_type: ElementType) -> None:
    codes = np.arange(2**element_type.bits, dtype=f"u{element_type.dtype.itemsize}")
    array = codes.view(element_type.dtype)
    assert read_back(array).tobytes() == array.tobytes()
    assert read_by_xla(array).tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hard_decimals(dtype: type[np.floating]) -> None:
    info = np.finfo(dtype)
    edges = np.array([info.max, info.tiny, info.smallest_subnormal, 0.1, 1 / 3, 16777217], dtype)
    array = np.concatenate([edges, np.nextafter(edges, dtype(0)), -edges])
    assert read_back(array).tobytes() == array.tobytes()
    assert read_by_xla(array).tobytes() == array.tobytes()


def test_how_it_looks() -> None:
    assert write_literal(np.array([[1, 2], [3, 4]], np.float32)) == "{ {1.0, 2.0}, {3.0, 4.0} }"
    assert write_literal(np.array([True, False])) == "{true, false}"
    assert write_literal(np.array(-0.0)) == "-0.0"
    assert write_literal(np.array(1 - 2j, np.complex64)) == "(1.0, -2.0)"
    assert write_literal(np.zeros((2, 0))) == "{ {}, {} }"
    assert write_literal(np.zeros((0, 2))) == "{}"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{1, 0}", np.array([True, False])),
        ("{ /*i0=0*/ {1, 2}, /*i0=1*/ {3, 4} }", np.array([[1, 2], [3, 4]], np.int32)),
        ("{-0, 0}", np.array([-0.0, 0.0])),
        ("{1e+300, -inf}", np.array([1e300, -np.inf])),
        ("{\n{(1, -2)},\n{(inf, 0)}\n}", np.array([[1 - 2j], [complex(np.inf, 0)]])),
        ("{  }", np.zeros((0, 2))),
    ],
)
def test_what_xla_prints_is_read(text: str, values: np.ndarray) -> None:
    read = read_literal(text, Shape(element_type_of(values.dtype), values.shape))
    assert read.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("text", "shape", "reason"),
    [
        ("{1, 2}", "f32[3]", "needs 3 elements, the constant has 2"),
        ("{1, 2}", "f32[2,1]", "braces of the constant do not nest"),
        ("{ {1}, {2} }", "f32[2]", "braces of the constant do not nest"),
        ("1", "f32[1]", "braces of the constant do not nest"),
        ("1e39", "f32[]", "1e39 is out of the range of f32"),
        ("{1, 65520}", "f16[2]", "65520 is out of the range of f16"),
        ("-1e3", "f8e4m3fn[]", "-1e3 is out of the range of f8e4m3fn"),
        ("{1, x}", "f32[2]", "x"),
        ("{1.5}", "s32[1]", "1.5"),
        ("300", "u8[]", "out of the range of u8"),
        ("-9223372036854775809", "u64[]", "out of the range of u64"),
        ("18446744073709551616", "u64[]", "out of the range of u64"),
        ("1e400", "f64[]", "1e400 is out of the range of f64"),
        ("2", "pred[]", "'2' is not a value of pred"),
        ("1.5", "s32[]", "'1.5' is not a value of s32"),
        ("{1, x}", "u8[2]", "'x' is not a value of u8"),
        ("1", "c64[]", "needs 1 elements"),
        ("nan(0x0)", "f32[]", "is not a value of f32"),
        ("nan(0x800000)", "f32[]", "is not a value of f32"),
        ("nan(0x1)", "f8e4m3fn[]", "is not a value of f8e4m3fn"),
        ("{x}", "f32[0]", "needs 0 elements"),
        ("", "f32[]", "needs 1 elements"),
    ],
)
def test_what_is_not_a_constant(text: str, shape: str, reason: str) -> None:
    element_type, _, sizes = shape.rstrip("]").partition("[")
    dimensions = tuple(int(size) for size in sizes.split(",") if size)
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        read_literal(text, Shape(ElementType(element_type), dimensions))


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [("-1", "u64", (1 << 64) - 1), ("9223372036854775808", "s64", -1 << 63)],
)
def test_numbers_of_64_bits_wrap(number: str, name: str, value: int) -> None:
    text = f"HloModule m\n\nENTRY e {{\n  ROOT c = {name}[] constant({number})\n}}"
    for module in (parse(text), parse(parse_xla(text))):
        assert int(module.entry.root.attributes["literal"]) == value


def test_hexadecimal_numbers() -> None:
    read = read_literal("{0x1.8p1, -0x1p-3, 0x10}", Shape(ElementType.F32, (3,)))
    assert list(read) == [3.0, -0.125, 16.0]
    with pytest.raises(ValueError, match="is no number"):
        read_literal("0x1p99999", Shape(ElementType.F64))
