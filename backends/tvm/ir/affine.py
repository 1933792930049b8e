"""Index arithmetic over loop variables, kept symbolic until the loops are known.

An element of a value is named by one `Index` per dimension. As long as only slices, transposes,
broadcasts, reversals and the like lie between a loop nest and a buffer, an index stays affine in
the loop variables, so that loops can be merged and contiguous runs recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracejit.affine import Affine


@dataclass(frozen=True, eq=False, slots=True)
class LoopVariable:
    """A dimension of an iteration space; runs from 0 to ``extent`` - 1."""

    name: str
    extent: int
    low = 0

    @property
    def high(self) -> int:
        return self.extent - 1

    @property
    def index(self) -> Affine[LoopVariable]:
        """The variable as an index; the constant 0 if there is one iteration."""
        return Affine() if self.extent == 1 else Affine.of(self)


@dataclass(frozen=True, eq=False, slots=True)
class Opaque:
    """An index computed at run time: ``expression`` (None during analysis) of these variables.

    Its creator guarantees that it is within the dimension it indexes.
    """

    expression: Any
    variables: frozenset[LoopVariable] = field(default_factory=frozenset)


Index = Affine[LoopVariable] | Opaque


def moved(index: Index, factor: int = 1, offset: int = 0) -> Index:
    """``index * factor + offset``."""
    if isinstance(index, Affine):
        return index * factor + offset
    expression = index.expression
    if expression is None:
        return index
    return Opaque(expression * factor + offset, index.variables)


def index_variables(indices: Iterable[Index]) -> frozenset[LoopVariable]:
    """All loop variables that the indices depend on."""
    return frozenset(v for index in indices for v in index.variables)


def row_major_strides(dimensions: Sequence[int]) -> tuple[int, ...]:
    """The distance in elements between neighbours along each dimension."""
    strides = [1] * len(dimensions)
    for i in range(len(dimensions) - 2, -1, -1):
        strides[i] = strides[i + 1] * dimensions[i + 1]
    return tuple(strides)


def linear(indices: Sequence[Index], dimensions: Sequence[int]) -> tuple[Affine, list[Opaque]]:
    """The row-major offset of an element: an affine part, and opaque parts scaled by stride.

    The ``expression`` of an opaque part is already multiplied (or None).
    """
    address = Affine()
    opaque: list[Opaque] = []
    for index, stride, size in zip(indices, row_major_strides(dimensions), dimensions, strict=True):
        if size == 1:
            continue
        if isinstance(index, Affine):
            address = address + index * stride
        else:
            scaled = None if index.expression is None else index.expression * stride
            opaque.append(Opaque(scaled, index.variables))
    return address, opaque


def split_row_major(address: Affine, dimensions: Sequence[int]) -> tuple[Affine, ...] | None:
    """The indices whose `linear` is ``address``; None if they are not affine.

    Each variable must be, by its coefficient, in one dimension and stay within it. An empty array
    has no elements to address, and any indices do.
    """
    if 0 in dimensions:
        return (Affine(),) * len(dimensions)
    parts: list[Affine] = []
    rest = address
    for size, stride in zip(dimensions, row_major_strides(dimensions), strict=True):
        terms = {}
        kept = {}
        for variable, coefficient in rest.terms.items():
            if coefficient > 0 and coefficient >= stride and coefficient % stride == 0:
                terms[variable] = coefficient // stride
            else:
                kept[variable] = coefficient
        constant, remainder = divmod(rest.constant, stride)
        part = Affine(constant, terms)
        rest = Affine(remainder, kept)
        low, high = part.bounds()
        if low < 0 or high >= size:
            return None
        rest_low, rest_high = rest.bounds()
        if rest_low < 0 or rest_high >= stride:
            return None
        parts.append(part)
    return tuple(parts)
