"""Finds chains of kernels that work row by row, to be run as one kernel while a row is in cache.

A row is what a Reduce combines: in softmax(x) of f32[64,1000] the rows are x's, in a batch
normalisation of f32[64,16,8,8] all elements of one feature. Kernels belong together when each
reads the others' results at its own row only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracejit.backends.tvm.accesses import Accesses
from tracejit.backends.tvm.affine import Affine, Index, split_row_major
from tracejit.backends.tvm.fused import Kernel, gathered, inputs_of, tuple_of
from tracejit.backends.tvm.reducers import monoid
from tracejit.backends.tvm.schedule.loops import Space, settle
from tracejit.graph import Instruction
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape

# Fewer rows than this leave threads idle, unless there is little to do at all.
LEAST_ROWS = 4
SMALL_WORK = 1 << 13
MOST_PHASES = 12


@dataclass
class Rows:
    """What the phases of a row kernel share: whole dimensions, and which ones number the rows."""

    dimensions: tuple[int, ...]
    outer: tuple[int, ...]

    @property
    def row_sizes(self) -> tuple[int, ...]:
        return tuple(self.dimensions[d] for d in self.outer)

    @property
    def inner(self) -> tuple[int, ...]:
        return tuple(d for d in range(len(self.dimensions)) if d not in self.outer)

    @property
    def inner_sizes(self) -> tuple[int, ...]:
        return tuple(self.dimensions[d] for d in self.inner)

    def spaces(self) -> tuple[Space, Space]:
        """Loop variables for the rows, and for the elements of a row."""
        return Space(self.row_sizes), Space(self.inner_sizes)

    def whole(self, rows: Space, inner: Space) -> list[Index]:
        """The index of an element in the whole dimensions."""
        at = dict(zip(self.outer, rows.indices, strict=True))
        at |= dict(zip(self.inner, inner.indices, strict=True))
        return [at[d] for d in range(len(self.dimensions))]

    def is_whole(self, dimensions: Sequence[int]) -> bool | None:
        """Whether a shape runs over all elements, or one per row; None if it is neither.

        Dimensions of size 1 do not matter.
        """
        wide = [d for d in dimensions if d != 1]
        if wide == [d for d in self.dimensions if d != 1]:
            return True
        return False if wide == [d for d in self.row_sizes if d != 1] else None

    def place(self, dimensions: Sequence[int], rows: Space, inner: Space) -> list[Index]:
        """The index of an element of a shape that is whole, or has one element per row."""
        sizes, indices = (self.dimensions, self.whole(rows, inner))
        if not self.is_whole(dimensions):
            sizes, indices = self.row_sizes, list(rows.indices)
        wide = iter(i for i, size in zip(indices, sizes, strict=True) if size != 1)
        return [Affine() if size == 1 else next(wide) for size in dimensions]


def rows_of(kernel: Kernel) -> Rows | None:
    """The rows that a kernel with a Reduce for its heart works on; None for any other."""
    heart = kernel.heart
    if heart is None or heart.op is not REDUCE or not isinstance(heart.shape, Shape):
        return None
    dimensions = heart.operands[0].array_shape.dimensions
    reduced = heart.attributes["dimensions"]
    if monoid(heart.attributes["to_apply"]) is None or list(reduced) != sorted(reduced):
        return None
    outer = tuple(d for d in range(len(dimensions)) if d not in reduced)
    rows = Rows(dimensions, outer)
    wide = [d for d, size in enumerate(dimensions) if size > 1]
    # Neighbours in memory must belong to one row, and rows must be told from whole arrays.
    if not wide or wide[-1] in outer or rows.is_whole(rows.row_sizes) is not False:
        return None
    count = math.prod(rows.row_sizes)
    size = heart.operands[0].array_shape.size
    return rows if size and (count >= LEAST_ROWS or size <= SMALL_WORK) else None


@dataclass
class RowKernel(Kernel):
    """Kernels that run one after the other over each row; results are those others read."""

    phases: list[Kernel] = field(default_factory=list)
    rows: Rows = field(default_factory=lambda: Rows((), ()))


def joined(
    kernels: Iterable[Kernel], memory: set[Instruction], needed: Iterable[Instruction]
) -> list[Kernel]:
    """``kernels`` with those that work on the same rows made one.

    ``needed`` are the results that must exist when all is done.
    """
    groups: list[Kernel] = []
    for kernel in kernels:
        position = _host(kernel, groups, memory)
        if position is None:
            groups.append(kernel)
            continue
        host = groups[position]
        if not isinstance(host, RowKernel):
            rows = rows_of(host)
            assert rows is not None
            host = RowKernel(list(host.results), phases=[host], rows=rows)
            groups[position] = host
        host.phases.append(kernel)
        host.results.extend(kernel.results)
    readers: dict[Instruction, set[int]] = {}
    for number, group in enumerate(groups):
        for instruction in inputs_of_all(group, memory):
            readers.setdefault(instruction, set()).add(number)
    wanted = set(needed)
    for number, group in enumerate(groups):
        if isinstance(group, RowKernel):
            kept = [r for r in group.results if r in wanted or readers.get(r, set()) - {number}]
            group.results = kept
    return groups


def _host(kernel: Kernel, earlier: Sequence[Kernel], memory: set[Instruction]) -> int | None:
    """The position of the earlier kernel that ``kernel`` can be a phase of."""
    wanted = inputs_of(kernel, memory)
    own = rows_of(kernel)
    if (kernel.heart is not None and own is None) or any(map(gathered, kernel.results)):
        return None
    for position in range(len(earlier) - 1, -1, -1):
        other = earlier[position]
        rows = other.rows if isinstance(other, RowKernel) else rows_of(other)
        made = set(other.results)
        reads = made & wanted
        if rows is not None and (own is None or own == rows):
            related = reads or (own is not None and wanted & inputs_of_all(other, memory))
            room = not isinstance(other, RowKernel) or len(other.phases) < MOST_PHASES
            if related and room and _row_local(kernel, rows, made, memory):
                return position
        if reads or any(tuple_of(i) in made for i in wanted):
            return None
    return None


def inputs_of_all(kernel: Kernel, memory: set[Instruction]) -> set[Instruction]:
    """What a kernel or the phases of one load."""
    phases = kernel.phases if isinstance(kernel, RowKernel) else [kernel]
    return {i for phase in phases for i in inputs_of(phase, memory)}


def _row_local(
    kernel: Kernel, rows: Rows, made: set[Instruction], memory: set[Instruction]
) -> bool:
    """Whether a kernel runs over these rows and reads ``made`` at its own row only."""
    if kernel.heart is None and rows.is_whole(kernel.dimensions) is None:
        return False
    row_space, inner_space = rows.spaces()
    own = set(kernel.results) | ({kernel.heart} if kernel.heart else set())
    accesses = settle(
        [row_space, inner_space],
        lambda scope: ask_phase(scope, kernel, rows, row_space, inner_space),
        lambda i: i in memory and i not in own,
    )
    for load in accesses.loads:
        if load.instruction not in made:
            continue
        dimensions = load.instruction.array_shape.dimensions
        parts = split_row_major(load.address, dimensions) if load.known else None
        if parts is None or not _same_row(parts, dimensions, rows, row_space):
            return False
    return True


def _same_row(
    parts: Sequence[Affine], dimensions: Sequence[int], rows: Rows, row_space: Space
) -> bool:
    whole = rows.is_whole(dimensions)
    if whole is None:
        return False
    sizes = rows.dimensions if whole else rows.row_sizes
    outer = rows.outer if whole else range(len(rows.row_sizes))
    wide = [d for d in range(len(sizes)) if sizes[d] != 1]
    row_index = dict(zip(outer, row_space.indices, strict=True))
    row_variables = set(row_space.variables)
    given = [part for part, size in zip(parts, dimensions, strict=True) if size != 1]
    for d, part in zip(wide, given, strict=True):
        if d in row_index:
            if (part + row_index[d] * -1) != Affine():
                return False
        elif part.variables & row_variables:
            return False
    return True


def ask_phase(
    scope: Accesses, kernel: Kernel, rows: Rows, row_space: Space, inner_space: Space
) -> None:
    """Follows everything that one phase reads."""
    if kernel.heart is not None:
        operand, initial = kernel.heart.operands
        scope.value(operand, rows.whole(row_space, inner_space))
        scope.value(initial, ())
        scope.known.add(kernel.heart)
    for result in kernel.results:
        if result not in scope.known:
            scope.result(result, rows.place(result.array_shape.dimensions, row_space, inner_space))
