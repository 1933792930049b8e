"""HLO text cut into tokens, one at a time, with the place of each."""

from __future__ import annotations

import re
from typing import NamedTuple

from tracejit.errors import HloParseError

_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|//[^\n]*|/\*.*?\*/)+)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<word>%?(?:[A-Za-z0-9_.+]|-(?!>))+)
    |(?P<arrow>->)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPENING = {"(": ")", "{": "}", "[": "]"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def _unescaped(matched: re.Match[str]) -> str:
    return _ESCAPED.get(matched[1], matched[1])


class Token(NamedTuple):
    """``kind`` is word (a name or a number), string, mark (one character), arrow or end."""

    kind: str
    text: str
    offset: int


class Lexer:
    """A place in a text; ``token`` is the token there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self._read(0)

    def _read(self, offset: int) -> Token:
        matched = _TOKEN.match(self.text, offset)
        if matched is not None and matched.lastgroup == "space":
            offset = matched.end()
            matched = _TOKEN.match(self.text, offset)
        if matched is None:
            return Token("end", "", offset)
        return Token(str(matched.lastgroup), matched.group(), offset)

    def advance(self) -> Token:
        """The token here; the lexer moves past it."""
        token = self.token
        self.token = self._read(token.offset + len(token.text))
        return token

    def peek(self) -> Token:
        """The token after the one here."""
        return self._read(self.token.offset + len(self.token.text))

    def jump(self, offset: int) -> None:
        """Moves to the token at or after ``offset``."""
        self.token = self._read(offset)

    def at(self, text: str) -> bool:
        return self.token.text == text and self.token.kind != "string"

    def accept(self, text: str) -> bool:
        """Moves past ``text`` if it stands here."""
        if not self.at(text):
            return False
        self.advance()
        return True

    def expect(self, text: str) -> Token:
        """Moves past ``text``; raises `HloParseError` if something else stands here."""
        if not self.at(text):
            raise self.error(f"expected {text!r}, found {self._found()}")
        return self.advance()

    def word(self, what: str) -> str:
        """The word here, without a leading %; ``what`` names the expected word in errors."""
        if self.token.kind != "word":
            raise self.error(f"expected {what}, found {self._found()}")
        return self.advance().text.lstrip("%")

    def integer(self, what: str) -> int:
        """The integer here."""
        token = self.token
        digits = token.text.removeprefix("-")
        if not (token.kind == "word" and digits.isdecimal() and len(digits) < 20):
            raise self.error(f"expected {what}, an integer, found {self._found()}")
        return int(self.advance().text)

    def string(self, what: str) -> str:
        """The string here, its escapes resolved."""
        if self.token.kind != "string":
            raise self.error(f"expected {what}, a string, found {self._found()}")
        return _ESCAPE.sub(_unescaped, self.advance().text[1:-1])

    def single_quoted(self, what: str) -> str:
        """What stands between single quotes here, without tokens."""
        end = self.text.find("'", self.token.offset + 1)
        if not self.at("'") or end < 0:
            raise self.error(f"expected {what} in single quotes, found {self._found()}")
        text = self.text[self.token.offset + 1 : end]
        self.jump(end + 1)
        return text

    def skip_value(self) -> None:
        """Moves past one attribute value of any form."""
        while True:
            if self.token.kind == "mark" and self.token.text in _OPENING:
                self.bracketed()
            elif self.token.kind == "end" or self.at(",") or self.at("}"):
                raise self.error(f"expected a value, found {self._found()}")
            else:
                self.advance()
            if self.token.kind != "arrow" and self.token.text not in ("<", "=", "[", "{"):
                return

    def bracketed(self) -> str:
        """The text between the bracket here and the one that closes it; moves past both."""
        start = self.token
        expected = []
        while True:
            token = self.token
            if token.kind == "end":
                raise self.error(f"{start.text!r} is never closed", start.offset)
            if token.kind == "mark" and token.text in _OPENING:
                expected.append(_OPENING[token.text])
            elif token.kind == "mark" and token.text in ")}]" and token.text != expected.pop():
                raise self.error(f"{token.text!r} closes nothing")
            self.advance()
            if not expected:
                return self.text[start.offset + 1 : token.offset]

    def parenthesised(self) -> str:
        """The text between the parenthesis here and the one that closes it, without tokens."""
        start = self.expect("(").offset
        end, depth = start + 1, 1
        while depth:
            close = self.text.find(")", end)
            if close < 0:
                raise self.error("'(' is never closed", start)
            depth += self.text.count("(", end, close) - 1
            end = close + 1
        self.jump(end)
        return self.text[start + 1 : end - 1]

    def _found(self) -> str:
        return "the end" if self.token.kind == "end" else repr(self.token.text[:40])

    def error(self, message: str, offset: int | None = None) -> HloParseError:
        """The error to raise, at the token here or at ``offset``."""
        place = self.token.offset if offset is None else offset
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        return HloParseError(message, line, column)
