"""Indexing by integers, slices and new axes: what NumPy answers with a view.

An index is a tuple of parts, one for each dimension of the base and one for each new axis.
An integer known while tracing is a Fixed part, an unknown one a Moving part: read it clamps to
the array, written outside the array it is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops import comparison, elementwise, indexing, layout
from tracejit.ops.constants import constant
from tracejit.ops.element_types import convert_element_type
from tracejit.shapes import ElementType
from tracejit.trace.affine_bounds import are_apart, is_within
from tracejit.trace.views import Strides

INDEX_TYPE = ElementType.S64
FEW_WRITES = 8
"""The most writes through which the array before them is searched."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """One place of a dimension, which the result drops."""

    position: int


@dataclass(frozen=True, slots=True)
class Moving:
    """One place known when the graph runs: an integer scalar, negative from the back."""

    index: Instruction


@dataclass(frozen=True, slots=True)
class Run:
    """``size`` places of a dimension from ``start`` on, ``step`` (maybe negative) apart."""

    start: int
    step: int
    size: int

    @staticmethod
    def whole(size: int) -> Run:
        return Run(0, 1, size)

    @property
    def low(self) -> int:
        """The smallest place."""
        return self.start if self.step > 0 else self.start + self.step * (self.size - 1)

    @property
    def high(self) -> int:
        """The greatest place, plus one."""
        return self.low + abs(self.step) * (self.size - 1) + 1 if self.size else self.low


@dataclass(frozen=True, slots=True)
class Stretch:
    """``size`` places from ``start`` on, known when the graph runs and in range for certain."""

    start: Instruction
    size: int


@dataclass(frozen=True, slots=True)
class New:
    """A new axis of size 1."""


IndexPart = Fixed | Moving | Run | Stretch | New


@dataclass(frozen=True, slots=True)
class BasicIndex:
    """A path that cuts a view out of a base."""

    parts: tuple[IndexPart, ...]

    def read(self, base: Instruction) -> Instruction:
        region = _read_region(base, self._runs(base))
        moving = self._moving()
        if moving:
            dimensions = list(region.array_shape.dimensions)
            starts = [constant(0, INDEX_TYPE)] * len(dimensions)
            for dimension, part in moving.items():
                starts[dimension] = _start(part, dimensions[dimension])
                dimensions[dimension] = _size(part)
            region = layout.dynamic_slice(
                before_others(region, starts, dimensions), starts, dimensions
            )
        return layout.reshape(region, self._dimensions())

    def write(self, base: Instruction, value: Instruction) -> Instruction:
        runs = self._runs(base)
        moving = self._moving()
        sizes = [_size(moving[d]) if d in moving else run.size for d, run in enumerate(runs)]
        update = layout.reshape(value, sizes)
        if moving and self._is_block(base, runs, moving):
            starts = [
                _start(moving[d], size) if d in moving else constant(run.low, INDEX_TYPE)
                for d, (run, size) in enumerate(zip(runs, base.array_shape.dimensions, strict=True))
            ]
            return layout.dynamic_update_slice(base, _reversed(update, runs), starts)
        if moving and _are_together(runs):
            return _scatter_one(base, _reversed(update, runs), _numbers(moving), runs)
        if moving:
            region = _read_region(base, runs)
            whole = [Run.whole(size) for size in region.array_shape.dimensions]
            update = _scatter_one(region, update, _numbers(moving), whole)
        return _write_region(base, update, runs)

    @staticmethod
    def _is_block(base: Instruction, runs: list[Run], moving: dict[int, Moving | Stretch]) -> bool:
        """Whether what is written lies together, at places known to be in range."""
        sizes = base.array_shape.dimensions
        return _are_together(runs) and all(
            isinstance(part, Stretch) or is_within(part.index, sizes[d])
            for d, part in moving.items()
        )

    def strides(self, shape: tuple[int, ...], strides: Strides) -> Strides:
        made = []
        dimension = 0
        for part in self.parts:
            if isinstance(part, New):
                made.append(0)
                continue
            if isinstance(part, Run | Stretch):
                made.append(strides[dimension] * getattr(part, "step", 1))
            dimension += 1
        return tuple(made)

    def _runs(self, base: Instruction) -> list[Run]:
        """The places of each dimension of the base; all of them where the place is moving."""
        sizes = iter(base.array_shape.dimensions)
        runs = []
        for part in self.parts:
            if isinstance(part, New):
                continue
            size = next(sizes)
            if isinstance(part, Fixed):
                runs.append(Run(part.position, 1, 1))
            else:
                runs.append(part if isinstance(part, Run) else Run.whole(size))
        return runs

    @property
    def is_moving(self) -> bool:
        """Whether a place is known only when the graph runs."""
        return bool(self._moving())

    def _moving(self) -> dict[int, Moving | Stretch]:
        parts = [part for part in self.parts if not isinstance(part, New)]
        return {d: part for d, part in enumerate(parts) if isinstance(part, Moving | Stretch)}

    def _dimensions(self) -> list[int]:
        return [
            1 if isinstance(part, New) else part.size
            for part in self.parts
            if isinstance(part, Run | Stretch | New)
        ]


def before_others(
    array: Instruction, starts: Sequence[Instruction], sizes: Sequence[int]
) -> Instruction:
    """The array before the last writes to it, as far as they are known to be at other places."""
    for _ in range(FEW_WRITES):
        if array.op is not layout.DYNAMIC_UPDATE_SLICE:
            break
        before, update, *written = array.operands
        lengths = zip(sizes, update.array_shape.dimensions, strict=True)
        ends = zip(starts, written, lengths, strict=True)
        if not any(are_apart(one, other, *both) for one, other, both in ends):
            break
        array = before
    return array


def _start(part: Moving | Stretch, size: int) -> Instruction:
    return part.start if isinstance(part, Stretch) else normalised(part.index, size)


def _size(part: Moving | Stretch) -> int:
    return part.size if isinstance(part, Stretch) else 1


def _numbers(moving: dict[int, Moving | Stretch]) -> dict[int, Instruction]:
    """The places of single elements. Raises `UnsupportedError` beside a stretch of several."""
    numbers = {d: part.index for d, part in moving.items() if isinstance(part, Moving)}
    if len(numbers) < len(moving):
        raise UnsupportedError(
            "index: a slice between counters of loops cannot be written to beside an unknown index"
        )
    return numbers


def normalised(index: Instruction, size: int) -> Instruction:
    """Indices as s64, those below zero counted from the back of a dimension of ``size``."""
    element_type = index.array_shape.element_type
    wide = convert_element_type(index, INDEX_TYPE)
    if not element_type.is_signed or is_within(wide, size):
        return wide
    from_back = elementwise.add(wide, layout.full_like(wide, size))
    return elementwise.select(comparison.lt(wide, layout.full_like(wide, 0)), from_back, wide)


def _are_together(runs: list[Run]) -> bool:
    """Whether there are places in each dimension, and they follow each other."""
    return all(run.size and (abs(run.step) == 1 or run.size == 1) for run in runs)


def _read_region(base: Instruction, runs: list[Run]) -> Instruction:
    sizes = base.array_shape.dimensions
    if all(run == Run.whole(size) for run, size in zip(runs, sizes, strict=True)):
        return base
    region = layout.slice_(
        base, [r.low for r in runs], [r.high for r in runs], [abs(r.step) for r in runs]
    )
    return _reversed(region, runs)


def _reversed(region: Instruction, runs: list[Run]) -> Instruction:
    backwards = [d for d, run in enumerate(runs) if run.step < 0 and run.size > 1]
    return layout.rev(region, backwards) if backwards else region


def _write_region(base: Instruction, update: Instruction, runs: list[Run]) -> Instruction:
    shape = base.array_shape
    if math.prod(run.size for run in runs) == 0:
        return base
    update = _reversed(update, runs)
    if update.array_shape.dimensions == shape.dimensions:
        return update
    if all(abs(run.step) == 1 or run.size == 1 for run in runs):
        starts = [constant(run.low, INDEX_TYPE) for run in runs]
        return layout.dynamic_update_slice(base, update, starts)
    padding = [
        (run.low, size - run.high, abs(run.step) - 1)
        for run, size in zip(runs, shape.dimensions, strict=True)
    ]
    everywhere = layout.pad(update, constant(0, shape.element_type), padding)
    ones = layout.full(update.array_shape.with_element_type(ElementType.PRED), True)
    written = layout.pad(ones, constant(False, ElementType.PRED), padding)
    return elementwise.select(written, everywhere, base)


def _scatter_one(
    base: Instruction, update: Instruction, moving: dict[int, Instruction], runs: list[Run]
) -> Instruction:
    """``update``, of size 1 along the moving dimensions, written at one unknown place.

    In the other dimensions it takes up the ``runs``, of places that follow each other.
    """
    shape = base.array_shape
    parts = [d for d, run in enumerate(runs) if d not in moving and run.size < shape.dimensions[d]]
    single = [d for d in parts if runs[d].size == 1]
    window = [d for d in range(shape.rank) if d not in moving and d not in single]
    found = {d: normalised(index, shape.dimensions[d]) for d, index in moving.items()}
    found |= {d: constant(runs[d].low, INDEX_TYPE) for d in parts}
    starts = [layout.reshape(found[d], [1]) for d in sorted(found)]
    numbers = indexing.ScatterDimensionNumbers(
        update_window_dims=tuple(range(len(window))),
        inserted_window_dims=tuple(sorted([*moving, *single])),
        scatter_dims_to_operand_dims=tuple(sorted(found)),
        index_vector_dim=0,
    )
    return indexing.scatter(
        base,
        layout.concatenate(starts, 0) if len(starts) > 1 else starts[0],
        layout.reshape(update, [runs[d].size for d in window]),
        indexing.replace_computation(shape.element_type),
        numbers,
        indices_are_sorted=True,
        unique_indices=True,
    )
