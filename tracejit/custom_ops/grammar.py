"""The texts that define attributes, inputs and outputs.

parse_attribute("ZeroOut", "T: {float, int32} = DT_INT32")
parse_attribute("ZeroOut", "preserve_index: int >= 0 = 0")
parse_argument("Sum", "values: N * T")
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

import numpy as np

from tracejit.custom_ops.definition import KINDS, MISSING, Argument, Attr
from tracejit.custom_ops.types import SETS, STRING, UNSUPPORTED, type_named
from tracejit.errors import AttributeValueError, UnsupportedError

_NAME = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*:(?!:)")
_TOKEN = re.compile(
    r"\s*(?:(?P<string>[bB]?'(?:[^'\\]|\\.)*'|[bB]?\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf\b|nan\b))"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>>=|[{}\[\]()<>=,:*]))",
    re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str


class _Reader:
    """The tokens of one text, read from left to right."""

    def __init__(self, title: str, text: str, start: int) -> None:
        self.title = title
        self.tokens: list[_Token] = []
        self.place = 0
        rest = text[start:].rstrip()
        position = 0
        while position < len(rest):
            match = _TOKEN.match(rest, position)
            if match is None:
                raise self.error(f"{rest[position:].strip()[:20]!r} is not understood")
            kind = match.lastgroup
            assert kind is not None
            self.tokens.append(_Token(kind, match.group(kind)))
            position = match.end()

    def error(self, sentence: str) -> AttributeValueError:
        return AttributeValueError(f"{self.title}: {sentence}")

    @property
    def next(self) -> _Token:
        return self.tokens[self.place] if self.place < len(self.tokens) else _Token("end", "")

    def take(self) -> _Token:
        token = self.next
        self.place += 1
        return token

    def accept(self, *texts: str) -> bool:
        found = self.next.kind in ("word", "sign") and self.next.text in texts
        self.place += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.next.text or 'the end'!r}")

    def word(self, what: str) -> str:
        if self.next.kind != "word":
            raise self.error(f"expected {what}, found {self.next.text or 'the end'!r}")
        return self.take().text

    def integer(self) -> int:
        token = self.take()
        if token.kind != "number" or not re.fullmatch(r"[-+]?\d+", token.text):
            raise self.error(f"expected an integer, found {token.text or 'the end'!r}")
        return int(token.text)

    def end(self) -> None:
        if self.next.kind != "end":
            raise self.error(f"{self.next.text!r} is too much")


def _opened(title: str, what: str, text: str) -> tuple[str, _Reader]:
    title = f"{title}: {what} {text.strip()!r}"
    named = _NAME.match(text)
    if named is None:
        raise AttributeValueError(
            f"{title}: must be '<name>: <type>', the name a letter first, then letters, digits "
            "and underscores"
        )
    return named.group(1), _Reader(title, text, named.end())


def parse_attribute(title: str, text: str) -> Attr:
    """The attribute that a text defines; ``title`` is the op's name, for errors.

    Raises `AttributeValueError` for a text outside the grammar.
    """
    name, reader = _opened(title, "attribute", text)
    is_list = reader.accept("list")
    if is_list:
        reader.expect("(")
        if reader.next.text == "list":
            raise reader.error("a list of lists is no type of an attribute")
    kind, allowed = _kind(reader)
    if is_list:
        reader.expect(")")
    minimum = None
    if reader.accept(">="):
        if kind != "int" and not is_list:
            raise reader.error(f"'>=' is for integers and lists, not for {kind}")
        minimum = reader.integer()
        if is_list and minimum < 0:
            raise reader.error(f"a list has no {minimum} elements")
    default: Any = MISSING
    if reader.accept("="):
        default = _list(reader, kind) if is_list else _value(reader, kind)
    reader.end()
    return Attr(name, kind, is_list, allowed, minimum, default)


def _kind(reader: _Reader) -> tuple[str, tuple[Any, ...] | None]:
    """A type of attributes, and the values that it is restricted to."""
    if reader.next.text == "{" and reader.next.kind == "sign":
        return _choice(reader)
    word = reader.word("the type of an attribute")
    if word in KINDS:
        return word, None
    if word in UNSUPPORTED:
        raise reader.error(f"{word}: {UNSUPPORTED[word]}")
    if word in SETS:
        return "type", SETS[word]
    raise reader.error(
        f"{word!r} is no type of an attribute; those are {', '.join((*KINDS, *SETS))}, "
        "list(...) and {...}"
    )


def _choice(reader: _Reader) -> tuple[str, tuple[Any, ...] | None]:
    """``{'a', 'b'}`` or ``{int32, numbertype}``."""
    reader.expect("{")
    values: list[Any] = []
    are_texts: set[bool] = set()
    is_any = False
    while not reader.accept("}"):
        token = reader.take()
        if token.kind not in ("string", "word"):
            raise reader.error(f"expected a type or a string, found {token.text or 'the end'!r}")
        are_texts.add(token.kind == "string")
        if token.kind == "string":
            values.append(ast.literal_eval(token.text))
        elif token.text in SETS:
            members = SETS[token.text]
            is_any |= members is None
            values += members or ()
        else:
            values.append(_type(reader, token.text))
        if not reader.accept(","):
            reader.expect("}")
            break
    if len(are_texts) != 1:
        raise reader.error("a choice is between strings or between types, of at least one")
    kind = "string" if are_texts == {True} else "type"
    return kind, None if is_any else tuple(dict.fromkeys(values))


def _type(reader: _Reader, name: str) -> np.dtype:
    found = type_named(name)
    if found is None:
        raise reader.error(UNSUPPORTED.get(name) or f"{name!r} is no type of arrays")
    return found


def _list(reader: _Reader, kind: str) -> tuple[Any, ...]:
    values = []
    reader.expect("[")
    while not reader.accept("]"):
        values.append(_value(reader, kind))
        if not reader.accept(","):
            reader.expect("]")
            break
    return tuple(values)


def _value(reader: _Reader, kind: str) -> Any:
    """A default value, as definitions and protocol buffers write it."""
    if kind == "shape":
        return _shape(reader)
    if kind == "tensor":
        return _tensor(reader)
    if kind == "int":
        return reader.integer()
    token = reader.take()
    if kind == "string" and token.kind == "string":
        return ast.literal_eval(token.text)
    if kind == "float" and token.text in ("inf", "nan"):
        return float(token.text)
    if kind == "float" and token.kind == "number":
        return float(token.text)
    if kind == "bool" and token.text.lower() in ("true", "false"):
        return token.text.lower() == "true"
    if kind == "type" and token.kind == "word":
        return _type(reader, token.text)
    raise reader.error(f"{token.text or 'the end'!r} is no value of type {kind}")


def _shape(reader: _Reader) -> tuple[int | None, ...] | None:
    """``{ dim { size: 1 } dim { size: 2 } }``, ``{ unknown_rank: true }`` or ``[1, 2]``."""
    if reader.next.text == "[":
        return tuple(None if size < 0 else size for size in _list(reader, "int"))
    reader.expect("{")
    sizes: list[int | None] = []
    unknown = False
    while not reader.accept("}"):
        if reader.accept("unknown_rank"):
            reader.expect(":")
            unknown = reader.word("true or false") == "true"
            continue
        reader.expect("dim")
        reader.accept(":")
        reader.expect("{")
        size = 0
        while not reader.accept("}"):
            field = reader.word("'size' or 'name'")
            reader.expect(":")
            if field == "size":
                size = reader.integer()
            else:
                reader.take()
        sizes.append(None if size < 0 else size)
        reader.accept(",")
    return None if unknown else tuple(sizes)


_FIELDS = re.compile(
    r"(half|float|double|int|int64|uint32|uint64|bool|string|scomplex|dcomplex)_val"
)


def _tensor(reader: _Reader) -> np.ndarray:
    """``{ dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 5 }``."""
    reader.expect("{")
    dtype, dimensions = None, None
    values: list[Any] = []
    while not reader.accept("}"):
        field = reader.word("a field of a tensor")
        if field == "tensor_shape":
            reader.accept(":")
            dimensions = _shape(reader)
            continue
        reader.expect(":")
        if field == "dtype":
            dtype = _type(reader, reader.word("a type"))
        elif _FIELDS.fullmatch(field):
            kind = "bool" if field == "bool_val" else "float"
            several = reader.next.text == "["
            values += _list(reader, kind) if several else [_value(reader, kind)]
        else:
            raise reader.error(f"{field!r} is no field of a tensor that is understood")
    if dtype is None or dtype == STRING:
        raise reader.error("a tensor needs a dtype of numbers")
    sizes = tuple(size or 0 for size in dimensions or ())
    count = int(np.prod(sizes, dtype=np.int64))
    if len(values) > count:
        raise reader.error(f"{len(values)} values are too many for a tensor of {list(sizes)}")
    # As in protocol buffers, the last value applies to all that follow; none means zero.
    filled = [*values, *[values[-1] if values else 0] * (count - len(values))]
    return np.array(filled[:count]).astype(dtype).reshape(sizes)


def parse_argument(title: str, what: str, text: str) -> Argument:
    """The input or output (``what``) that a text defines: ``x: T``, ``x: N * T``, ``x: float``.

    Raises `AttributeValueError` for a text outside the grammar, `UnsupportedError` for references.
    """
    name, reader = _opened(title, what, text)
    number = None
    word = reader.word("a type or an attribute")
    if word == "Ref":
        raise UnsupportedError(
            f"{reader.title}: arrays are values, there are no references to them; return the new "
            "value as an output"
        )
    if reader.accept("*"):
        number, word = word, reader.word("a type or an attribute")
    reader.accept(">")
    reader.end()
    if word in UNSUPPORTED:
        raise reader.error(f"{word}: {UNSUPPORTED[word]}")
    return Argument(name, word, number)
