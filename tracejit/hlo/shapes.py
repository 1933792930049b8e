"""Shapes as HLO text writes them: ``f32[2,3]{0,1}``, ``(f32[2], s32[])``, ``token[]``.

A layout's order, tiles, alignment, element size and memory space are kept: ``{1,0:T(8,128)S(1)}``.
What only sparse arrays and schedulers have (levels ``D``, index types ``#`` and ``*``, prefixes
``M``, split points ``SC``, physical shapes ``P``) is read past.
"""

from __future__ import annotations

import re
from typing import Any

from tracejit.errors import TracejitError
from tracejit.hlo.lexer import Lexer
from tracejit.shapes import TOKEN, AnyShape, ElementType, Layout, Shape, TupleShape

_MOST_NESTED = 64
_ELEMENT_TYPES = {t.value: t for t in ElementType}
# XLA's type of values that only custom calls know.
_OPAQUE = "opaque"
BUFFER = "b"
"""What a buffer's shape begins with: ``b(f32[4])``, memory that a custom call pins."""
NO_BUFFERS = "buffers, written b(...), are not supported"
_PROPERTY = re.compile(r"(T|L|E|S|D|M|SC|P|#|\*)((?:\((?:[^()]|\([^()]*\))*\))+)")
# An array's shape as nearly all text writes it, which is looked up whole.
_PLAIN = re.compile(r"[a-z]+[0-9a-z]*\[[0-9,]*\](?:\{[0-9,]*\})?(?!\s*[{/])")
_MOST_KNOWN = 10_000
_known: dict[str, AnyShape] = {}
_texts: dict[tuple[object, ...], str] = {}
_NUMBERS = {"L": "tail_padding_alignment", "E": "element_size_in_bits", "S": "memory_space"}


def parse_shape(text: str) -> AnyShape:
    """The shape that ``text`` writes. Raises `HloParseError` when it is none."""
    lexer = Lexer(text)
    shape = read_shape(lexer)
    if lexer.token.kind != "end":
        raise lexer.error("expected the end of the shape")
    return shape


def shape_text(shape: AnyShape, layout: bool = True) -> str:
    """A shape as XLA prints it, by default with its layout: ``f32[2,3]{1,0}``."""
    if isinstance(shape, TupleShape):
        return "(" + ", ".join(shape_text(s, layout) for s in shape.elements) + ")"
    if not isinstance(shape, Shape):
        return str(shape)
    # Equal shapes may lie in memory differently: the layout is told apart by itself.
    own = shape.layout if layout else None
    parts = (shape.element_type, shape.dimensions, shape.dynamic_dimensions, own, layout)
    text = _texts.get(parts)
    if text is None:
        text = f"{shape.element_type}[{shape.dimensions_text}]"
        if layout and (own is not None or shape.rank):
            text += str(shape.explicit_layout)
        if len(_texts) < _MOST_KNOWN:
            _texts[parts] = text
    return text


def read_shape(lexer: Lexer) -> AnyShape:
    """The shape at the lexer; row-major layouts are None. Raises `HloParseError`."""
    open_tuples: list[list[AnyShape]] = []
    while True:
        if lexer.accept("("):
            open_tuples.append([])
            if len(open_tuples) > _MOST_NESTED:
                raise lexer.error(f"tuples are nested more than {_MOST_NESTED} deep")
            if not lexer.at(")"):
                continue
        else:
            shape = _read_array(lexer)
            if not open_tuples:
                return shape
            open_tuples[-1].append(shape)
        while not lexer.accept(","):
            lexer.expect(")")
            closed = TupleShape(tuple(open_tuples.pop()))
            if not open_tuples:
                return closed
            open_tuples[-1].append(closed)


def _read_array(lexer: Lexer) -> AnyShape:
    """One array or token, by its text where that was read before."""
    matched = _PLAIN.match(lexer.text, lexer.token.offset)
    if matched is None:
        return _read_any_array(lexer)
    shape = _known.get(matched[0])
    if shape is not None:
        lexer.jump(matched.end())
        return shape
    shape = _read_any_array(lexer)
    if len(_known) < _MOST_KNOWN:
        _known[matched[0]] = shape
    return shape


def _read_any_array(lexer: Lexer) -> AnyShape:
    offset = lexer.token.offset
    name = lexer.word("a shape")
    if name == BUFFER and lexer.at("("):
        raise lexer.error(NO_BUFFERS, offset)
    if name == _OPAQUE:
        raise lexer.error(f"element type {name} is not supported", offset)
    if name not in _ELEMENT_TYPES and name != "token":
        raise lexer.error(f"element type {name} is not known", offset)
    lexer.expect("[")
    sizes = []
    dynamic = []
    while not lexer.accept("]"):
        if lexer.at("?"):
            raise lexer.error("dimensions without a bound are not supported")
        dynamic.append(lexer.accept("<"))
        if dynamic[-1]:
            lexer.expect("=")
        sizes.append(lexer.integer("a size"))
        if sizes[-1] < 0:
            raise lexer.error(f"size {sizes[-1]} is negative")
        if not lexer.at("]"):
            lexer.expect(",")
    if name == "token":
        return TOKEN
    layout = _read_layout(lexer, len(sizes))
    try:
        return Shape(_ELEMENT_TYPES[name], tuple(sizes), layout, tuple(dynamic))
    except TracejitError as error:
        raise lexer.error(error.message, offset) from error


def _read_layout(lexer: Lexer, rank: int) -> Layout | None:
    # A brace may also open the body of a computation, which never starts with a number.
    after = lexer.peek().text
    if not lexer.at("{") or not (after.isdecimal() or after in ("}", ":")):
        return None
    offset = lexer.token.offset
    text = lexer.bracketed().replace(" ", "")
    order, _, properties = text.partition(":")
    numbers = order.split(",") if order else []
    if sorted(numbers) != sorted(map(str, range(rank))):
        raise lexer.error(f"layout {{{order}}} does not fit rank {rank}", offset)
    known = _properties(properties, lexer, offset)
    try:
        layout = Layout(tuple(map(int, numbers)), **known)
    except TracejitError as error:
        raise lexer.error(error.message, offset) from error
    return None if layout == Layout.row_major(rank) else layout


def _properties(text: str, lexer: Lexer, offset: int) -> dict[str, Any]:
    """What stands after the colon of a layout, as arguments of `Layout`."""
    found: dict[str, Any] = {}
    while text:
        matched = _PROPERTY.match(text)
        if matched is None:
            raise lexer.error(f"{text!r} is no property of a layout", offset)
        text = text[matched.end() :]
        name, values = matched[1], matched[2][1:-1]
        if name == "T" and "*" not in values:
            tiles = [tile.split(",") for tile in values.split(")(")]
            found["tiles"] = tuple(tuple(_sizes(tile, lexer, offset)) for tile in tiles)
        elif name in _NUMBERS:
            (found[_NUMBERS[name]],) = _sizes([values], lexer, offset)
    return found


def _sizes(words: list[str], lexer: Lexer, offset: int) -> list[int]:
    if any(not word.isdecimal() or len(word) > 18 for word in words):
        raise lexer.error(f"({','.join(words)}) must hold sizes", offset)
    return list(map(int, words))
