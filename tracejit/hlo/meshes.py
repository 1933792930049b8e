"""Groups of devices written as axes of a mesh, as newer HLO text has them.

mesh['x'=2,'y'=2] {'x'}                            {{0,2},{1,3}}
mesh['x'=2,'y'=2], device_ids=(3,1,0,2) {'x'}      {{3,0},{1,2}}
mesh['x'=8], device_ids=([2,4]T(1,0)) {'x':(4)2}   the axis as 4 times 2, groups along the 2

The devices lie in the mesh in row-major order; ``(4)2`` is the part of an axis that has size 2 and
4 times as much in front of it. A group runs over the axes named, the last one fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tracejit.hlo.lexer import Lexer

# More devices than any machine has; a text cannot ask for more memory than this takes.
MOST_NUMBERS = 1 << 20


class _Part(NamedTuple):
    """The part of an axis with ``size`` indices, ``before`` times as many in front of it."""

    axis: str
    before: int
    size: int


def read_mesh_groups(lexer: Lexer) -> tuple[tuple[int, ...], ...]:
    """The groups at the lexer. Raises `HloParseError`."""
    start = lexer.token.offset
    axes = _read_axes(lexer)
    count = math.prod(axes.values())
    if not axes or min(axes.values()) < 1 or count > MOST_NUMBERS:
        raise lexer.error(f"the sizes {tuple(axes.values())} make no mesh", start)
    devices = np.arange(count)
    if lexer.accept(","):
        devices = _read_devices(lexer, count)
    parts = _read_parts(lexer, axes)
    dimensions = [d for axis, size in axes.items() for d in _cut(axis, size, parts)]
    if not set(parts) <= set(dimensions):
        raise lexer.error("the axes of the groups overlap, or do not divide the mesh", start)
    rest = [i for i, dimension in enumerate(dimensions) if dimension not in parts]
    order = [*rest, *[dimensions.index(part) for part in parts]]
    mesh = devices.reshape([dimension.size for dimension in dimensions])
    within = math.prod(part.size for part in parts)
    return tuple(map(tuple, mesh.transpose(order).reshape(-1, within).tolist()))


def _cut(axis: str, size: int, parts: Sequence[_Part]) -> list[_Part]:
    """The axis as dimensions of its own, one for each part that is named and each that is not."""
    edges = {1, size}
    for part in parts:
        if part.axis == axis:
            edges |= {part.before, part.before * part.size}
    places = sorted(edges)
    pairs = list(itertools.pairwise(places)) or [(1, 1)]
    return [_Part(axis, before, after // before) for before, after in pairs]


def _read_axes(lexer: Lexer) -> dict[str, int]:
    """The sizes of the axes by name: ``mesh['x'=2,'y'=2]``."""
    lexer.expect("mesh")
    lexer.expect("[")
    axes: dict[str, int] = {}
    while not lexer.accept("]"):
        if axes:
            lexer.expect(",")
        offset = lexer.token.offset
        name = lexer.single_quoted("the name of an axis")
        if name in axes:
            raise lexer.error(f"there are two axes {name!r}", offset)
        lexer.expect("=")
        axes[name] = lexer.integer("a size")
    return axes


def _read_devices(lexer: Lexer, count: int) -> np.ndarray:
    """``device_ids=(3,1,0,2)`` or ``device_ids=([2,4]T(1,0))``."""
    offset = lexer.token.offset
    lexer.expect("device_ids")
    lexer.expect("=")
    lexer.expect("(")
    if not lexer.at("["):
        given = np.array(_read_numbers(lexer, ")"))
        if sorted(given.tolist()) != list(range(count)):
            raise lexer.error(f"device_ids must number each of {count} devices once", offset)
        return given
    lexer.expect("[")
    sizes = _read_numbers(lexer, "]")
    order = list(range(len(sizes)))
    if lexer.accept("T"):
        lexer.expect("(")
        order = _read_numbers(lexer, ")")
    lexer.expect(")")
    if math.prod(sizes) != count or sorted(order) != list(range(len(sizes))):
        raise lexer.error(f"device_ids must number each of {count} devices once", offset)
    transposed = np.arange(count).reshape(sizes).transpose(order)
    return np.asarray(transposed).reshape(-1)


def _read_numbers(lexer: Lexer, closing: str) -> list[int]:
    numbers = [lexer.integer("a number")]
    while not lexer.accept(closing):
        lexer.expect(",")
        numbers.append(lexer.integer("a number"))
    return numbers


def _read_parts(lexer: Lexer, axes: dict[str, int]) -> list[_Part]:
    """The axes that a group runs over: ``{'x', 'y':(2)4}``."""
    lexer.expect("{")
    parts: list[_Part] = []
    while not lexer.accept("}"):
        if parts:
            lexer.expect(",")
        offset = lexer.token.offset
        name = lexer.single_quoted("the name of an axis")
        if name not in axes:
            raise lexer.error(f"the mesh has no axis {name!r}", offset)
        before, size = 1, axes[name]
        if lexer.accept(":"):
            lexer.expect("(")
            before = lexer.integer("what comes before the part of the axis")
            lexer.expect(")")
            size = lexer.integer("a size")
        part = _Part(name, before, size)
        if min(before, size) < 1 or axes[name] % (before * size) or part in parts:
            raise lexer.error(f"{name!r}:({before}){size} is no part of the axis", offset)
        parts.append(part)
    return parts
