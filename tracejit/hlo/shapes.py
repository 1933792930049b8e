"""Shapes as HLO text writes them: ``f32[2,3]{1,0}``, ``(f32[2], s32[])``, ``token[]``.

Values do not depend on layouts, so they are read past.
"""

from __future__ import annotations

from tracejit.hlo.lexer import Lexer
from tracejit.shapes import TOKEN, AnyShape, ElementType, Layout, Shape, TupleShape

_MOST_NESTED = 64
_ELEMENT_TYPES = {t.value: t for t in ElementType}


def shape_text(shape: AnyShape, layout: bool = True) -> str:
    """A shape as XLA prints it, by default with its layout: ``f32[2,3]{1,0}``."""
    if isinstance(shape, TupleShape):
        return "(" + ", ".join(shape_text(s, layout) for s in shape.elements) + ")"
    if not isinstance(shape, Shape):
        return str(shape)
    plain = str(shape.with_dimensions(shape.dimensions))
    if not layout or shape.rank == 0:
        return plain
    return f"{plain}{shape.layout or Layout.row_major(shape.rank)}"


def read_shape(lexer: Lexer) -> AnyShape:
    """The shape at the lexer, without its layout. Raises `HloParseError`."""
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
    offset = lexer.token.offset
    name = lexer.word("a shape")
    if name not in _ELEMENT_TYPES and name != "token":
        raise lexer.error(f"element type {name} is not known", offset)
    lexer.expect("[")
    sizes = []
    while not lexer.accept("]"):
        if lexer.at("<") or lexer.at("?"):
            raise lexer.error("dimensions that are known only at run time are not supported")
        sizes.append(lexer.integer("a size"))
        if sizes[-1] < 0:
            raise lexer.error(f"size {sizes[-1]} is negative")
        if not lexer.at("]"):
            lexer.expect(",")
    if name == "token":
        return TOKEN
    _skip_layout(lexer, len(sizes))
    return Shape(_ELEMENT_TYPES[name], tuple(sizes))


def _skip_layout(lexer: Lexer, rank: int) -> None:
    # A brace may also open the body of a computation, which never starts with a number.
    after = lexer.peek().text
    if not lexer.at("{") or not (after.isdecimal() or after in ("}", ":")):
        return
    offset = lexer.token.offset
    order = lexer.bracketed().partition(":")[0].replace(" ", "")
    if sorted(order.split(",") if order else []) != sorted(map(str, range(rank))):
        raise lexer.error(f"layout {{{order}}} does not fit rank {rank}", offset)
