"""Row fusion: chains of kernels that work row by row run as one kernel while a row is in cache.

A row is the set of elements that one Reduce result combines: in softmax(x) of f32[64,1000] the
rows of x, in a batch normalisation of f32[64,16,8,8] all elements of one feature. Kernels are
fused if each reads the others' results only at its own row.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tracejit.affine import Affine
from tracejit.backends.tvm.codegen.access_analysis import Accesses
from tracejit.backends.tvm.codegen.loop_nest import Space, merge, settle
from tracejit.backends.tvm.fusion.kernel import Fusion, inputs_of, packed_scalars, tuple_of
from tracejit.backends.tvm.ir.affine import Index, split_row_major
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.graph import Instruction
from tracejit.ops.computations import monoid
from tracejit.ops.reduction import REDUCE
from tracejit.shapes import Shape


@dataclass(frozen=True)
class RowSpace:
    """The iteration space that the phases of a row kernel share, and which dimensions number the
    rows.
    """

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

    @property
    def length(self) -> int:
        """The number of elements in a row."""
        return math.prod(self.inner_sizes)

    @property
    def are_columns(self) -> bool:
        """Whether neighbours in memory belong to different rows."""
        wide = [d for d, size in enumerate(self.dimensions) if size > 1]
        return bool(wide) and wide[-1] in self.outer

    def spaces(self) -> tuple[Space, Space]:
        """Loop variables for the rows, and for the elements of a row."""
        return Space(self.row_sizes), Space(self.inner_sizes)

    def whole(self, rows: Space, inner: Space) -> list[Index]:
        """The index of an element in the whole space."""
        at = dict(zip(self.outer, rows.indices, strict=True))
        at |= dict(zip(self.inner, inner.indices, strict=True))
        return [at[d] for d in range(len(self.dimensions))]

    def is_whole(self, dimensions: Sequence[int]) -> bool | None:
        """Whether a shape covers all elements, or one per row; None if neither.

        Dimensions of size 1 do not matter.
        """
        wide = [d for d in dimensions if d != 1]
        if wide == [d for d in self.dimensions if d != 1]:
            return True
        return False if wide == [d for d in self.row_sizes if d != 1] else None

    def place(self, dimensions: Sequence[int], rows: Space, inner: Space) -> list[Index]:
        """The index of an element of a shape that covers all elements or one per row."""
        sizes, indices = (self.dimensions, self.whole(rows, inner))
        if not self.is_whole(dimensions):
            sizes, indices = self.row_sizes, list(rows.indices)
        wide = iter(i for i, size in zip(indices, sizes, strict=True) if size != 1)
        return [Affine() if size == 1 else next(wide) for size in dimensions]


def rows_of(kernel: Fusion, limits: Limits) -> RowSpace | None:
    """The row space of a kernel with a Reduce as its anchor; None for any other."""
    anchor = kernel.anchor
    if anchor is None or anchor.op is not REDUCE:
        return None
    dimensions = anchor.operands[0].array_shape.dimensions
    reduced = anchor.attributes["dimensions"]
    if not all(map(_is_simple, kernel.anchors)) or list(reduced) != sorted(reduced):
        return None
    outer = tuple(d for d in range(len(dimensions)) if d not in reduced)
    rows = RowSpace(dimensions, outer)
    size = anchor.operands[0].array_shape.size
    # Rows must be distinguishable from whole arrays.
    if not size or rows.is_whole(rows.row_sizes) is not False:
        return None
    least = limits.least_rows
    if rows.are_columns:
        columns = next(n for n in reversed(rows.row_sizes) if n > 1)
        if not limits.are_columns(columns) or rows.length > limits.longest_column:
            return None
        least *= limits.least_columns
    return rows if math.prod(rows.row_sizes) >= least or size <= limits.small_rows else None


def _is_simple(anchor: Instruction) -> bool:
    """Whether a Reduce has one operand and an associative combiner."""
    return isinstance(anchor.shape, Shape) and monoid(anchor.attributes["to_apply"]) is not None


@dataclass
class RowKernel(Fusion):
    """Kernels that run one after the other over each row; results are those that other kernels
    read.
    """

    phases: list[Fusion] = field(default_factory=list)
    rows: RowSpace = field(default_factory=lambda: RowSpace((), ()))


def fuse_rows(
    kernels: Iterable[Fusion],
    memory: set[Instruction],
    needed: Iterable[Instruction],
    limits: Limits,
) -> list[Fusion]:
    """``kernels`` with those over the same rows fused.

    ``needed`` are the results that must be materialised.
    """
    if not limits.row_bytes:
        return list(kernels)
    wanted = set(needed)
    found = _Groups(memory, wanted, limits)
    for kernel in kernels:
        found.take(kernel)
    groups = [kernel for group in found.kernels for kernel in _worthwhile(group)]
    readers: dict[Instruction, set[int]] = {}
    for number, group in enumerate(groups):
        for instruction in inputs_of_all(group, memory):
            readers.setdefault(instruction, set()).add(number)
    for number, group in enumerate(groups):
        if isinstance(group, RowKernel):
            kept = [r for r in group.results if r in wanted or readers.get(r, set()) - {number}]
            others = [r for r in group.results if r not in kept]
            local = set(_local(group.rows, others, limits.row_bytes))
            group.results = [r for r in group.results if r not in local]
    return groups


def _worthwhile(group: Fusion) -> Sequence[Fusion]:
    """A fused kernel, or its parts if they share only per-column values."""
    if not isinstance(group, RowKernel) or not group.rows.are_columns:
        return [group]
    shared = [p for p in group.phases if p.anchors or group.rows.is_whole(p.dimensions)]
    return [group] if len(shared) > 1 else group.phases


def _local(rows: RowSpace, results: Iterable[Instruction], room: int) -> Iterator[Instruction]:
    """The results that only their own kernel reads, as many as fit in local arrays."""
    for result in results:
        shape = result.array_shape
        size = rows.length * shape.dtype.itemsize if rows.is_whole(shape.dimensions) else 0
        if size <= room or rows.are_columns:
            room -= size
            yield result


class _Groups:
    """The kernels so far, indexed by the instructions they compute and read."""

    def __init__(self, memory: set[Instruction], needed: set[Instruction], limits: Limits) -> None:
        self.kernels: list[Fusion] = []
        self._memory = memory
        self._needed = needed
        self._limits = limits
        self._makers: dict[Instruction, int] = {}
        """The position of the kernel that computes an instruction."""
        self._readers: defaultdict[tuple[Instruction, RowSpace], set[int]] = defaultdict(set)
        """The positions of kernels that read an instruction row by row, and can take
        more phases.
        """

    def take(self, kernel: Fusion) -> None:
        """Adds a kernel, as a phase of an earlier one if possible."""
        wanted, rows = inputs_of(kernel, self._memory), rows_of(kernel, self._limits)
        position = self._host(kernel, wanted, rows)
        if position is None:
            position = len(self.kernels)
            self.kernels.append(kernel)
        else:
            host = self.kernels[position]
            if not isinstance(host, RowKernel):
                rows = rows_of(host, self._limits) or rows
                assert rows is not None
                wanted |= inputs_of(host, self._memory)
                host = RowKernel(list(host.results), phases=[host], rows=rows)
                self.kernels[position] = host
            host.phases.append(kernel)
            host.results.extend(kernel.results)
            rows = host.rows
            if len(host.phases) == self._limits.most_phases:
                for instruction in inputs_of_all(host, self._memory):
                    self._readers[instruction, rows].discard(position)
                wanted = set()
        self._makers.update(dict.fromkeys(kernel.results, position))
        if rows is not None:
            for instruction in wanted:
                self._readers[instruction, rows].add(position)

    def _host(self, kernel: Fusion, wanted: set[Instruction], own: RowSpace | None) -> int | None:
        """The position of the kernel that this one can be a phase of."""
        if (kernel.anchor is not None and own is None) or any(map(packed_scalars, kernel.results)):
            return None
        alike = {p for i in wanted for p in self._readers[i, own]} if own is not None else set()
        asked = {*wanted, *map(tuple_of, wanted)}
        makers = {self._makers[i] for i in asked if i in self._makers}
        for position in sorted(makers | alike, reverse=True):
            other = self.kernels[position]
            rows = other.rows if isinstance(other, RowKernel) else rows_of(other, self._limits)
            made = set(other.results)
            reads = made & wanted
            if rows is not None and (own is None or own == rows):
                related = reads or position in alike
                room = (
                    not isinstance(other, RowKernel) or len(other.phases) < self._limits.most_phases
                )
                if related and room and _row_local(kernel, rows, made, self._memory, self._limits):
                    return position
            if (
                reads
                and own is not None
                and _begins_rows(other, kernel, own, self._memory, self._limits)
            ):
                # A final result may be written over an argument, but not by phases.
                return None if made & self._needed else position
            if position in makers:
                return None
        return None


def _begins_rows(
    first: Fusion, kernel: Fusion, rows: RowSpace, memory: set[Instruction], limits: Limits
) -> bool:
    """Whether a pointwise kernel can be a phase of ``kernel``'s row kernel.

    Then a row is read once. Not for strided rows, for rows that are not whole vectors, which a
    loop over all elements handles better, and for rows that do not stay in cache.
    """
    if isinstance(first, RowKernel) or first.anchor is not None or rows.are_columns:
        return False
    multiple, least, most = limits.begun_rows
    if rows.length % multiple or not least <= rows.length <= most:
        return False
    if any(map(packed_scalars, first.results)) or not rows.is_whole(first.dimensions):
        return False
    return _row_local(kernel, rows, set(first.results), memory, limits)


def inputs_of_all(kernel: Fusion, memory: set[Instruction]) -> set[Instruction]:
    """The instructions that a kernel, or the phases of a row kernel, load."""
    phases = kernel.phases if isinstance(kernel, RowKernel) else [kernel]
    return {i for phase in phases for i in inputs_of(phase, memory)}


def _row_local(
    kernel: Fusion,
    rows: RowSpace,
    made: set[Instruction],
    memory: set[Instruction],
    limits: Limits,
) -> bool:
    """Whether a kernel runs over these rows and reads ``made`` only at its own row."""
    if kernel.anchor is None and rows.is_whole(kernel.dimensions) is None:
        return False
    row_space, inner_space = rows.spaces()
    own = {*kernel.results, *kernel.anchors}
    accesses = settle(
        [row_space, inner_space],
        lambda scope: ask_phase(scope, kernel, rows, row_space, inner_space),
        lambda i: i in memory and i not in own,
    )
    if rows.are_columns:
        addresses = [load.address for load in accesses.loads]
        # A broadcast or a tile that a reshape merged splits the columns, which makes panels
        # narrow.
        columns = merge(row_space.variables, addresses, accesses.opaque)[-1].extent
        if not limits.are_columns(columns):
            return False
    for load in accesses.loads:
        if load.instruction not in made:
            continue
        dimensions = load.instruction.array_shape.dimensions
        parts = split_row_major(load.address, dimensions) if load.known else None
        if parts is None or not _same_row(parts, dimensions, rows, row_space):
            return False
    return True


def _same_row(
    parts: Sequence[Affine], dimensions: Sequence[int], rows: RowSpace, row_space: Space
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
    scope: Accesses, kernel: Fusion, rows: RowSpace, row_space: Space, inner_space: Space
) -> None:
    """Runs access analysis over all reads of one phase."""
    for anchor in kernel.anchors:
        operand, initial = anchor.operands
        scope.value(operand, rows.whole(row_space, inner_space))
        scope.value(initial, ())
    scope.known.update(kernel.anchors)
    for result in kernel.results:
        if result not in scope.known:
            scope.result(result, rows.place(result.array_shape.dimensions, row_space, inner_space))
