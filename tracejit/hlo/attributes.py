"""How each kind of attribute is written in HLO text, and read from it.

Computations are written by name; what is read is the name, as a `ComputationName`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.attributes import (
    ConvDimensionNumbers,
    Kind,
    PaddingDimension,
    ResultAccuracy,
    SliceDimension,
    Window,
    WindowDimension,
)
from tracejit.graph import Computation
from tracejit.hlo import calls, groups
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.shapes import read_shape, shape_text


class ComputationName(str):
    """The name of a computation, in an attribute that has just been read."""

    __slots__ = ()


def write_attribute(kind: Kind, value: Any, names: Mapping[Computation, str]) -> str:
    """``value`` as HLO text; ``names`` has the names of the computations it may hold."""
    if kind is Kind.COMPUTATION:
        return f"%{names[value]}"
    if kind is Kind.COMPUTATIONS:
        return "{" + ", ".join(f"%{names[c]}" for c in value) + "}"
    return _WRITE[kind](value)


def read_attribute(kind: Kind, lexer: Lexer) -> Any:
    """The value that stands at the lexer. Raises `HloParseError`."""
    return _READ[kind](lexer)


def _braced(items: Sequence[object]) -> str:
    return "{" + ",".join(map(str, items)) + "}"


def _write_bool(value: bool) -> str:
    return "true" if value else "false"


def _write_window(window: Window) -> str:
    fields: dict[str, list[Any]] = {
        "size": [d.size for d in window],
        "stride": [d.stride for d in window],
        "pad": [f"{d.padding_low}_{d.padding_high}" for d in window],
        "lhs_dilate": [d.base_dilation for d in window],
        "rhs_dilate": [d.window_dilation for d in window],
        "rhs_reversal": [int(d.reversal) for d in window],
    }
    usual: dict[str, Any] = {
        "stride": 1,
        "pad": "0_0",
        "lhs_dilate": 1,
        "rhs_dilate": 1,
        "rhs_reversal": 0,
    }
    written = [
        f"{name}={'x'.join(map(str, values))}"
        for name, values in fields.items()
        if any(value != usual.get(name) for value in values)
    ]
    return "{" + " ".join(written) + "}"


def _write_dim_labels(numbers: ConvDimensionNumbers) -> str:
    lhs = {numbers.input_batch_dimension: "b", numbers.input_feature_dimension: "f"}
    rhs = {
        numbers.kernel_input_feature_dimension: "i",
        numbers.kernel_output_feature_dimension: "o",
    }
    out = {numbers.output_batch_dimension: "b", numbers.output_feature_dimension: "f"}
    for labels, spatial in (
        (lhs, numbers.input_spatial_dimensions),
        (rhs, numbers.kernel_spatial_dimensions),
        (out, numbers.output_spatial_dimensions),
    ):
        labels.update({dimension: str(i) for i, dimension in enumerate(spatial)})
    left, right, result = ("".join(part[d] for d in sorted(part)) for part in (lhs, rhs, out))
    return f"{left}_{right}->{result}"


def _write_padding(padding: Sequence[PaddingDimension]) -> str:
    return "x".join(
        f"{d.low}_{d.high}_{d.interior}" if d.interior else f"{d.low}_{d.high}" for d in padding
    )


def _write_slice(dimensions: Sequence[SliceDimension]) -> str:
    parts = [
        f"[{d.start}:{d.limit}]" if d.stride == 1 else f"[{d.start}:{d.limit}:{d.stride}]"
        for d in dimensions
    ]
    return "{" + ", ".join(parts) + "}"


def _write_result_accuracy(accuracy: ResultAccuracy) -> str:
    if accuracy.mode != "tolerance":
        return "{mode=" + accuracy.mode + "}"
    bounds = f"atol={accuracy.atol!r},rtol={accuracy.rtol!r},ulps={accuracy.ulps}"
    return "{tolerance={" + bounds + "}}"


_WRITE: dict[Kind, Callable[[Any], str]] = {
    Kind.ALIASING: calls.write_aliasing,
    Kind.BOOL: _write_bool,
    Kind.BRACED: str,
    Kind.CONFIG: calls.write_config,
    Kind.DIM_LABELS: _write_dim_labels,
    Kind.FLOAT: lambda value: str(np.float32(value)),  # XLA holds it as f32
    Kind.INT: str,
    Kind.INTS: _braced,
    Kind.INT_LISTS: groups.write_groups,
    Kind.LITERAL_TEXT: str,
    Kind.NAME: str,
    Kind.PADDING: _write_padding,
    Kind.PRECISIONS: _braced,
    Kind.REPLICA_GROUPS: groups.write_groups,
    Kind.RESULT_ACCURACY: _write_result_accuracy,
    Kind.SHAPES: calls.write_shapes,
    Kind.SHAPE_VALUE: shape_text,
    Kind.SLICE: _write_slice,
    Kind.STRING: calls.quoted,
    Kind.STRINGS: calls.write_strings,
    Kind.WINDOW: _write_window,
}


def _read_braced(lexer: Lexer, item: Callable[[], Any]) -> tuple[Any, ...]:
    """What stands between braces, separated by commas or spaces."""
    lexer.expect("{")
    items = []
    while not lexer.accept("}"):
        items.append(item())
        lexer.accept(",")
    return tuple(items)


def _read_ints(lexer: Lexer) -> tuple[int, ...]:
    return _read_braced(lexer, lambda: lexer.integer("a number of the list"))


def _read_bool(lexer: Lexer) -> bool:
    if not (lexer.at("true") or lexer.at("false")):
        raise lexer.error("expected true or false")
    return lexer.advance().text == "true"


def _read_float(lexer: Lexer) -> float:
    offset = lexer.token.offset
    word = lexer.word("a number")
    try:
        return float(word)
    except ValueError as error:
        raise lexer.error(f"expected a number, found {word!r}", offset) from error


def _read_window(lexer: Lexer) -> Window:
    fields: dict[str, list[str]] = {}
    known = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    lexer.expect("{")
    while not lexer.accept("}"):
        offset = lexer.token.offset
        name = lexer.word("a field of the window")
        lexer.expect("=")
        values = lexer.word("its values").split("x")
        number = r"-?\d{1,18}_-?\d{1,18}" if name == "pad" else r"\d{1,18}"
        if name not in known or any(re.fullmatch(number, v) is None for v in values):
            raise lexer.error(f"{name}={'x'.join(values)} is no field of a window", offset)
        fields[name] = values
        if len(values) != len(fields.get("size", values)):
            raise lexer.error(f"{name} must have as many dimensions as size", offset)
    rank = max(map(len, fields.values()), default=0)

    def numbers(name: str, usual: int) -> list[int]:
        return [int(value) for value in fields.get(name, [str(usual)] * rank)]

    pads = [pad.split("_") for pad in fields.get("pad", ["0_0"] * rank)]
    columns = zip(
        numbers("size", 1),
        numbers("stride", 1),
        pads,
        numbers("rhs_dilate", 1),
        numbers("lhs_dilate", 1),
        numbers("rhs_reversal", 0),
        strict=True,
    )
    return tuple(
        WindowDimension(size, stride, int(pad[0]), int(pad[1]), window, base, bool(reversal))
        for size, stride, pad, window, base, reversal in columns
    )


def _read_dim_labels(lexer: Lexer) -> ConvDimensionNumbers:
    offset = lexer.token.offset
    lhs, _, rhs = lexer.word("dimension labels").partition("_")
    if lexer.token.kind != "arrow":
        raise lexer.error("expected -> in the dimension labels")
    lexer.advance()
    out = lexer.word("dimension labels")
    spatial = [str(i) for i in range(len(lhs) - 2)]
    for labels, letters in ((lhs, "bf"), (rhs, "io"), (out, "bf")):
        if sorted(labels) != sorted([*letters, *spatial]) or len(spatial) > 10:
            raise lexer.error(f"{lhs}_{rhs}->{out} does not label every dimension once", offset)
    return ConvDimensionNumbers(
        lhs.index("b"),
        lhs.index("f"),
        tuple(map(lhs.index, spatial)),
        rhs.index("i"),
        rhs.index("o"),
        tuple(map(rhs.index, spatial)),
        out.index("b"),
        out.index("f"),
        tuple(map(out.index, spatial)),
    )


def _read_padding(lexer: Lexer) -> tuple[PaddingDimension, ...]:
    offset = lexer.token.offset
    text = lexer.word("the padding")
    dimension = r"-?\d{1,18}_-?\d{1,18}(_\d{1,18})?"
    if re.fullmatch(f"{dimension}(x{dimension})*", text) is None:
        raise lexer.error(f"{text!r} is not a padding such as 0_1x2_0_1", offset)
    return tuple(PaddingDimension(*map(int, part.split("_"))) for part in text.split("x"))


def _read_slice(lexer: Lexer) -> tuple[SliceDimension, ...]:
    def dimension() -> SliceDimension:
        lexer.expect("[")
        numbers = [lexer.integer("a start")]
        lexer.expect(":")
        numbers.append(lexer.integer("a limit"))
        if lexer.accept(":"):
            numbers.append(lexer.integer("a stride"))
        lexer.expect("]")
        return SliceDimension(*numbers)

    return _read_braced(lexer, dimension)


def _read_result_accuracy(lexer: Lexer) -> ResultAccuracy | None:
    mode = "tolerance"
    bounds: dict[str, Any] = {}
    lexer.expect("{")
    if lexer.accept("mode"):
        lexer.expect("=")
        mode = lexer.word("a mode")
    else:
        lexer.expect("tolerance")
        lexer.expect("=")
        lexer.expect("{")
        while not lexer.accept("}"):
            offset = lexer.token.offset
            name = lexer.word("a bound")
            if name not in ("atol", "rtol", "ulps"):
                raise lexer.error(f"{name!r} is none of atol, rtol, ulps", offset)
            lexer.expect("=")
            bounds[name] = lexer.integer(name) if name == "ulps" else _read_float(lexer)
            lexer.accept(",")
    lexer.expect("}")
    return None if mode == "default" else ResultAccuracy(mode, **bounds)


def _read_computation(lexer: Lexer) -> ComputationName:
    return ComputationName(lexer.word("the name of a computation"))


_READ: dict[Kind, Callable[[Lexer], Any]] = {
    Kind.ALIASING: calls.read_aliasing,
    Kind.BOOL: _read_bool,
    Kind.BRACED: calls.read_braced_text,
    Kind.COMPUTATION: _read_computation,
    Kind.COMPUTATIONS: lambda lexer: _read_braced(lexer, lambda: _read_computation(lexer)),
    Kind.CONFIG: calls.read_config,
    Kind.DIM_LABELS: _read_dim_labels,
    Kind.FLOAT: lambda lexer: float(np.float32(_read_float(lexer))),
    Kind.INT: lambda lexer: lexer.integer("a number"),
    Kind.INTS: _read_ints,
    Kind.INT_LISTS: groups.read_lists,
    Kind.LITERAL_TEXT: calls.read_literal_text,
    Kind.NAME: lambda lexer: lexer.word("a name"),
    Kind.PADDING: _read_padding,
    Kind.PRECISIONS: lambda lexer: _read_braced(lexer, lambda: lexer.word("a precision").lower()),
    Kind.REPLICA_GROUPS: groups.read_groups,
    Kind.RESULT_ACCURACY: _read_result_accuracy,
    Kind.SHAPES: calls.read_shapes,
    Kind.SHAPE_VALUE: read_shape,
    Kind.SLICE: _read_slice,
    Kind.STRINGS: calls.read_strings,
    Kind.STRING: lambda lexer: lexer.string("the text"),
    Kind.WINDOW: _read_window,
}

ELSEWHERE = frozenset(
    {Kind.LITERAL, Kind.OPERAND_LAYOUT, Kind.PARAMETER_NUMBER, Kind.SHAPE, Kind.UNWRITTEN}
)
"""What is not written as ``name=value``: it stands before the opcode, in the parentheses, where
the operand is made, or nowhere."""
WRITABLE = ELSEWHERE | {Kind.COMPUTATION, Kind.COMPUTATIONS} | _WRITE.keys()
READABLE = ELSEWHERE | _READ.keys()
