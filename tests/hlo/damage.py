"""HLO text damaged in ways that a grammar alone would not think of.

damaged(text, data)        the text after one to four changes
"""

from __future__ import annotations

import re

from hypothesis import strategies as st

_WORD = re.compile(r"%?[A-Za-z_][\w.-]*")
_NUMBER = re.compile(r"\d+")
_BRACKETS = re.compile(r"[(){}\[\]<>]")
_TOKENS = (
    "{", "}", "(", ")", "[", "]", ",", "=", "->", "ROOT", "ENTRY", "HloModule", "%x", "-1", "nan",
    '"', "/*", "*/", "//", "\\", "f32[2]", "token[]", "()", "constant({...})", "to_apply=%main",
    "99999999999999999999999", "s4[<=3]", "metadata={", "}}", "\x00", "é", "0x1p-3", ":", "?",
)  # fmt: skip
_OPCODES = ("add", "while", "tuple", "parameter", "constant", "fusion", "bitcast", "frobnicate")


def damaged(text: str, data: st.DataObject) -> str:
    """``text`` after one to four changes."""
    for _ in range(data.draw(st.integers(1, 4))):
        text = data.draw(st.sampled_from(CHANGES))(text, data)
    return text


def _place(text: str, data: st.DataObject) -> int:
    return data.draw(st.integers(0, len(text)))


def _cut(text: str, data: st.DataObject) -> str:
    start = _place(text, data)
    return text[:start] + text[start + data.draw(st.integers(1, 40)) :]


def _truncate(text: str, data: st.DataObject) -> str:
    return text[: _place(text, data)]


def _insert(text: str, data: st.DataObject) -> str:
    place = _place(text, data)
    piece = data.draw(st.sampled_from(_TOKENS) | st.text(max_size=3))
    return text[:place] + piece + text[place:]


def _nest(text: str, data: st.DataObject) -> str:
    """One bracket, a great many times."""
    found = list(_BRACKETS.finditer(text))
    if not found:
        return text
    bracket = data.draw(st.sampled_from(found))
    count = data.draw(st.sampled_from([2, 100, 20_000]))
    return text[: bracket.start()] + bracket[0] * count + text[bracket.end() :]


def _lines(text: str, data: st.DataObject) -> str:
    """A line moved, doubled or left out."""
    lines = text.split("\n")
    line = lines.pop(data.draw(st.integers(0, len(lines) - 1)))
    for _ in range(data.draw(st.integers(0, 2))):
        lines.insert(data.draw(st.integers(0, len(lines))), line)
    return "\n".join(lines)


def _swap_words(text: str, data: st.DataObject) -> str:
    """A name in another's place: wrong operands, opcodes, computations, doubled names."""
    found = list(_WORD.finditer(text))
    if not found:
        return text
    one, other = data.draw(st.sampled_from(found)), data.draw(st.sampled_from(found))
    word = other[0] if data.draw(st.booleans()) else data.draw(st.sampled_from(_OPCODES))
    return text[: one.start()] + word + text[one.end() :]


def _change_number(text: str, data: st.DataObject) -> str:
    """Another size, index, or number of anything; a huge one."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    number = data.draw(st.sampled_from(found))
    new = data.draw(st.sampled_from(["0", "1", "7", "-3", "4294967296", "9" * 18, "9" * 40, "1.5"]))
    return text[: number.start()] + new + text[number.end() :]


CHANGES = (_cut, _truncate, _insert, _nest, _lines, _swap_words, _change_number)
