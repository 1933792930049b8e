"""Attributes of ops that call something outside the graph, as HLO text writes and reads them.

write_config('{"a": 1}')        {"a": 1}        what looks like a dictionary stands without quotes
write_aliasing(...)             {{0}: (1, {})}
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.attributes import OutputAlias
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.literals import read_literal, write_literal
from tracejit.hlo.shapes import read_shape, shape_text
from tracejit.shapes import AnyShape, Shape


def quoted(text: str) -> str:
    """``text`` as a string of HLO text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def write_config(text: str) -> str:
    return text if _is_braced(text) else quoted(text)


def _is_braced(text: str) -> bool:
    """Whether a text is one pair of braces that closes at its end, as a reader sees it."""
    if not text.startswith("{") or not text.endswith("}"):
        return False
    depth, in_string, escaped = 0, False, False
    for position, character in enumerate(text):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0 and position + 1 < len(text):
                return False
    return depth == 0 and not in_string


def read_config(lexer: Lexer) -> str:
    if lexer.at("{"):
        return read_braced_text(lexer)
    return lexer.string("a configuration")


def read_braced_text(lexer: Lexer) -> str:
    """What stands between braces, with them, as it is written."""
    if not lexer.at("{"):
        raise lexer.error("expected '{'")
    return "{" + lexer.bracketed() + "}"


def write_strings(pairs: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}={write_config(text)}" for name, text in pairs) + "}"


def read_strings(lexer: Lexer) -> tuple[tuple[str, str], ...]:
    """Names and texts, in order of the names."""
    pairs: dict[str, str] = {}
    lexer.expect("{")
    while not lexer.accept("}"):
        quoted_name = lexer.token.kind == "string"
        name = lexer.string("a name") if quoted_name else lexer.word("a name")
        lexer.expect("=")
        pairs[name] = read_config(lexer)
        lexer.accept(",")
    return tuple(sorted(pairs.items()))


def write_shapes(shapes: Sequence[AnyShape]) -> str:
    return "{" + ", ".join(map(shape_text, shapes)) + "}"


def read_shapes(lexer: Lexer) -> tuple[AnyShape, ...]:
    shapes = []
    lexer.expect("{")
    while not lexer.accept("}"):
        shapes.append(read_shape(lexer))
        lexer.accept(",")
    return tuple(shapes)


def read_literal_text(lexer: Lexer) -> str:
    """An array's shape and its value, or several in parentheses, as they are printed."""
    if not lexer.accept("("):
        return _read_array(lexer)
    arrays = []
    while not lexer.accept(")"):
        arrays.append(_read_array(lexer))
        lexer.accept(",")
    return f"( {', '.join(arrays)} )"


def _read_array(lexer: Lexer) -> str:
    offset = lexer.token.offset
    shape = read_shape(lexer)
    if not isinstance(shape, Shape):
        raise lexer.error(f"a literal of shape {shape} is not supported", offset)
    offset = lexer.token.offset
    if lexer.at("{"):
        text = read_braced_text(lexer)
    else:
        text = f"({lexer.parenthesised()})" if lexer.at("(") else lexer.word("a literal")
    try:
        return f"{shape_text(shape)} {write_literal(read_literal(text, shape))}"
    except ValueError as error:
        raise lexer.error(str(error), offset) from error


def write_aliasing(aliases: Sequence[OutputAlias]) -> str:
    def index(numbers: Sequence[int]) -> str:
        return "{" + ", ".join(map(str, numbers)) + "}"

    return (
        "{"
        + ", ".join(
            f"{index(alias.output_index)}: ({alias.operand}, {index(alias.operand_index)}"
            f"{f', {alias.kind}' if alias.kind else ''})"
            for alias in aliases
        )
        + "}"
    )


def read_aliasing(lexer: Lexer) -> tuple[OutputAlias, ...]:
    def index() -> tuple[int, ...]:
        numbers = []
        lexer.expect("{")
        while not lexer.accept("}"):
            numbers.append(lexer.integer("a number of an index"))
            lexer.accept(",")
        return tuple(numbers)

    aliases = []
    lexer.expect("{")
    while not lexer.accept("}"):
        output_index = index()
        lexer.expect(":")
        lexer.expect("(")
        operand = lexer.integer("the number of an operand")
        lexer.expect(",")
        operand_index = index()
        kind = lexer.word("a kind of alias") if lexer.accept(",") else ""
        lexer.expect(")")
        aliases.append(OutputAlias(output_index, operand, operand_index, kind))
        lexer.accept(",")
    return tuple(aliases)
