"""Writes the records of calls of linked functions as static data in C; see native.c.

records_of(entry, {"rms_norm": "RmsNorm"})      lines of C: `model_record_0` and what it needs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit.backends import native_abi as abi
from tracejit.backends.native_attributes import parse
from tracejit.backends.tvm.export.entries import Entry
from tracejit.graph import Instruction
from tracejit.hlo import parse as parse_module
from tracejit.native_calls import Symbols
from tracejit.shapes import AnyShape, Shape, TupleShape, element_type_of

_INSTANTIATE = "instantiate"


def record_name(entry: str, constant: int) -> str:
    """The C variable that holds the record of a constant's number."""
    return f"{entry}_record_{constant}"


def records_of(entry: Entry, symbols: Mapping[str, Symbols]) -> Iterator[str]:
    """The records of a function's calls; ``symbols`` are the handlers' names in C, by target."""
    for number, call in _calls(entry):
        attributes = call.attributes
        name = record_name(entry.name, number)
        constraints = attributes["operand_layout_constraints"] or [o.shape for o in call.operands]
        operands = [shape for shape in constraints if isinstance(shape, Shape)]
        results = _arrays(call.shape)
        stages = symbols[attributes["custom_call_target"]].stages
        writer = _Data(name)
        given = writer.dictionary(parse(attributes["backend_config"]))
        yield from writer.lines
        yield from _frame(name, operands, results, given)
        yield from (f"extern TJ_Error *{symbol}(TJ_Call *);" for symbol in stages.values())
        in_runs = {stage: each for stage, each in stages.items() if stage != _INSTANTIATE}
        fields = "".join(f".{stage} = {each}, " for stage, each in in_runs.items())
        yield f"static Record {name} = {{{fields}.frame = &{name}_frame,"
        yield "  .settle = tracejit_ffi_settle, .end = tracejit_ffi_end, .host = &native_host};"
        if _INSTANTIATE in stages:
            yield f"static TJ_Call {name}_instantiation = {{{_call([], [], given, name)}}};"


def start_of(entries: Sequence[Entry], symbols: Mapping[str, Symbols]) -> Iterator[str]:
    """What runs before the first call of an entry, and at the end of the library."""
    types = dict.fromkeys(each for names in symbols.values() for each in names.types)
    rows = []
    for at, info in types:
        yield f"extern int64_t {at};"
        if info:
            yield f"extern const TypeInfo {info};"
        rows.append(f"{{&{at}, {f'&{info}' if info else 'NULL'}}}")
    instances = []
    for entry in entries:
        for number, call in _calls(entry):
            stages = symbols[call.attributes["custom_call_target"]].stages
            name = record_name(entry.name, number)
            if _INSTANTIATE in stages:
                instances.append(f"{{&{name}, {stages[_INSTANTIATE]}, &{name}_instantiation}}")
    count = len(instances)
    listed = ", ".join(instances or ["{NULL, NULL, NULL}"])
    yield f"static const Instance native_instances[] = {{{listed}}};"
    yield "static int native_is_ready(void) {"
    yield f"  static const StateType types[] = {{{', '.join(['{NULL, NULL}', *rows])}}};"
    yield f"  return start_native(types, {len(rows) + 1}, native_instances, {count});"
    yield "}"
    yield "__attribute__((destructor)) static void end_native_calls(void) {"
    yield f"  stop_native(native_instances, {count});"
    yield "}"


def _calls(entry: Entry) -> Iterator[tuple[int, Instruction]]:
    """The calls of a function, by the numbers of their records."""
    for number, text in entry.program.native_calls.items():
        yield number, parse_module(text).entry.root


def _frame(
    name: str, operands: Sequence[Shape], results: Sequence[Shape], attributes: str
) -> Iterator[str]:
    """The memory of the call's frame, in the order of `abi.FrameLayout`."""
    buffers = []
    for number, shape in enumerate([*operands, *results]):
        yield _dimensions(f"{name}_dims_{number}", shape)
        kind = abi.data_type(shape.element_type)
        dims = f"{name}_dims_{number}"
        buffers.append(f"{{sizeof(TJ_Buffer), NULL, {kind}, NULL, {shape.rank}, {dims}}}")
    count = len(buffers)
    types = ", ".join(["1"] * count) or "0"
    yield f"static int {name}_types[] = {{{types}}};"
    call = _call(operands, results, attributes, name)
    yield f"static struct {{ TJ_Call call; void *pointers[{count}]; TJ_Buffer buffers[{count}]; }}"
    yield f"{name}_frame = {{.call = {{{call}}}, .buffers = {{{', '.join(buffers)}}}}};"


def _call(operands: Sequence[Shape], results: Sequence[Shape], attributes: str, name: str) -> str:
    """The initializer of a TJ_Call; the code that calls the handler sets its stage."""
    lists = [
        f"{{sizeof(TJ_Buffers), NULL, {len(each)}, {name}_types, NULL}}"
        for each in (operands, results)
    ]
    fields = [
        "offsetof(TJ_Call, future)",
        "NULL",
        "(const TJ_Api *)&native_api",
        "NULL",
        "TJ_INSTANTIATE",
        *lists,
        attributes,
        "NULL",
    ]
    return ", ".join(fields)


def _dimensions(name: str, shape: Shape) -> str:
    sizes = ", ".join(map(str, shape.dimensions)) or "0"
    return f"static int64_t {name}[] = {{{sizes}}};"


class _Data:
    """Attributes as static data; ``lines`` define what expressions refer to."""

    def __init__(self, prefix: str) -> None:
        self.lines: list[str] = []
        self._prefix = prefix

    def dictionary(self, attributes: Mapping[str, Any]) -> str:
        """The initializer of a TJ_Attributes."""
        pairs = [(self._text(name), *self._value(v)) for name, v in sorted(attributes.items())]
        names = self._array("TJ_Text *", [f"&{name}" for name, _, _ in pairs])
        types = self._array("int ", [str(int(kind)) for _, kind, _ in pairs])
        values = self._array("void *", [f"&{value}" for _, _, value in pairs])
        size = len(pairs)
        return f"{{sizeof(TJ_Attributes), NULL, {size}, {types}, {names}, {values}}}"

    def _define(self, kind: str, initializer: str, extent: str = "") -> str:
        name = f"{self._prefix}_data_{len(self.lines)}"
        self.lines.append(f"static {kind} {name}{extent} = {initializer};")
        return name

    def _array(self, kind: str, elements: Sequence[str]) -> str:
        return self._define(kind, f"{{{', '.join(elements) or '0'}}}", "[]")

    def _bytes(self, data: bytes) -> str:
        listed = ", ".join(map(str, data)) or "0"
        return self._define("_Alignas(16) unsigned char", f"{{{listed}}}", "[]")

    def _text(self, text: str) -> str:
        data = text.encode()
        return self._define("TJ_Text", f"{{(const char *){self._bytes(data)}, {len(data)}}}")

    def _value(self, value: Any) -> tuple[int, str]:
        """The kind of an attribute, and the name of its structure."""
        if isinstance(value, str):
            return abi.AttributeType.STRING, self._text(value)
        if isinstance(value, Mapping):
            inner = self.dictionary(value)
            return abi.AttributeType.DICTIONARY, self._define("TJ_Attributes", inner)
        array = np.ascontiguousarray(value)
        kind = abi.data_type(element_type_of(array.dtype))
        data = self._bytes(array.tobytes())
        if np.ndim(value):
            made = self._define("TJ_Array", f"{{{kind}, {array.size}, {data}}}")
            return abi.AttributeType.ARRAY, made
        return abi.AttributeType.SCALAR, self._define("TJ_Scalar", f"{{{kind}, {data}}}")


def _arrays(shape: AnyShape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [array for element in shape.elements for array in _arrays(element)]
    return [shape] if isinstance(shape, Shape) else []
