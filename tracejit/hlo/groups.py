"""Groups of numbers as HLO text writes and reads them.

{{0,1},{2,3}}              each group in full
[2,4]<=[8]                 0 to 7 in order, as 2 groups of 4
[4,2]<=[2,4]T(1,0)         0 to 7 as 2 rows of 4, transposed, as 4 groups of 2
mesh['x'=4,'y'=2] {'x'}    0 to 7 as 4 rows of 2, a group for each column; see `meshes`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from tracejit.hlo.lexer import Lexer
from tracejit.hlo.meshes import MOST_NUMBERS, read_mesh_groups

Groups = tuple[tuple[int, ...], ...]
_T = TypeVar("_T")


def write_groups(groups: Sequence[Sequence[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def read_groups(lexer: Lexer) -> Groups:
    """Groups in full, or in a short form of those that follow a pattern."""
    if lexer.at("mesh"):
        return read_mesh_groups(lexer)
    return _read_pattern(lexer) if lexer.at("[") else read_lists(lexer)


def read_lists(lexer: Lexer) -> Groups:
    """Groups in full."""

    def group() -> tuple[int, ...]:
        return _read_list(lexer, "{", "}", lambda: lexer.integer("a number of the group"))

    return _read_list(lexer, "{", "}", group)


def _read_list(lexer: Lexer, opening: str, closing: str, item: Callable[[], _T]) -> tuple[_T, ...]:
    lexer.expect(opening)
    items: list[_T] = []
    while not lexer.accept(closing):
        if items:
            lexer.expect(",")
        items.append(item())
    return tuple(items)


def _read_pattern(lexer: Lexer) -> Groups:
    offset = lexer.token.offset
    shape = _read_sizes(lexer, "[", "]")
    lexer.expect("<")
    lexer.expect("=")
    sizes = _read_sizes(lexer, "[", "]")
    order = tuple(range(len(sizes)))
    if lexer.accept("T"):
        order = _read_sizes(lexer, "(", ")")
    count = math.prod(sizes)
    if len(shape) != 2 or min((*shape, *sizes)) < 1 or math.prod(shape) != count:
        raise lexer.error("the numbers do not make such groups", offset)
    if sorted(order) != list(range(len(sizes))):
        raise lexer.error(f"{order} does not reorder {len(sizes)} dimensions", offset)
    if count > MOST_NUMBERS:
        raise lexer.error(f"{count} numbers are too many", offset)
    numbers = np.arange(count).reshape(sizes).transpose(order).reshape(shape)
    return tuple(map(tuple, numbers.tolist()))


def _read_sizes(lexer: Lexer, opening: str, closing: str) -> tuple[int, ...]:
    return _read_list(lexer, opening, closing, lambda: lexer.integer("a size"))
