"""Local buffers of a row kernel: per-row intermediate results that no other kernel reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tracejit.affine import Affine
from tracejit.backends.tvm.analysis.element_rules import Value
from tracejit.backends.tvm.codegen.access_analysis import Accesses, Load
from tracejit.backends.tvm.codegen.emitter import Emitter
from tracejit.backends.tvm.codegen.kernel_frame import memory_buffer
from tracejit.backends.tvm.fusion.row_fusion import RowKernel
from tracejit.backends.tvm.ir.affine import Index, Opaque, linear, split_row_major
from tracejit.backends.tvm.ir.tir import Buffer, Expr
from tracejit.graph import Instruction
from tracejit.shapes import Shape


class LocalBuffers:
    """The local buffers of results that only the kernel itself reads.

    They hold ``width`` adjacent rows, interleaved. ``whole`` buffers hold an array per row,
    ``copies`` times; the others a value per row.
    """

    def __init__(
        self,
        kernel: RowKernel,
        stored: Mapping[Instruction, Buffer],
        width: int = 1,
        copies: int = 1,
    ) -> None:
        self.rows = kernel.rows
        self.width = width
        self.values: dict[Instruction, Buffer] = {}
        self.whole: dict[Instruction, Buffer] = {}
        for phase in kernel.phases:
            for result in phase.results:
                element_type, dimensions = (
                    result.array_shape.element_type,
                    result.array_shape.dimensions,
                )
                if not self.rows.is_whole(dimensions):
                    self.values[result] = memory_buffer(Shape(element_type, (width,)), "row")
                elif result not in stored:
                    shape = Shape(element_type, (copies * width * self.rows.length,))
                    self.whole[result] = memory_buffer(shape, "row")
        self.buffers = {**self.values, **self.whole}

    def address(self, instruction: Instruction, affine: Affine, opaque: Sequence[Opaque]) -> Affine:
        """The offset in its local buffer of the element with this row-major address, for the first
        row.
        """
        if instruction not in self.whole:
            return Affine()
        dimensions = instruction.array_shape.dimensions
        parts = None if opaque else split_row_major(affine, dimensions)
        assert parts is not None, "a row kernel reads across rows"
        wide = iter(p for p, size in zip(parts, dimensions, strict=True) if size != 1)
        whole: list[Index] = [
            Affine() if size == 1 else next(wide) for size in self.rows.dimensions
        ]
        inner = [whole[d] for d in self.rows.inner]
        return linear(inner, self.rows.inner_sizes)[0] * self.width


class RowAccesses(Accesses):
    """Accesses that count local buffers by their offset in the row."""

    def __init__(self, is_input: Callable[[Instruction], bool], local: LocalBuffers) -> None:
        super().__init__(is_input)
        self._local = local

    def load(self, instruction: Instruction, address: Affine, opaque: list[Opaque]) -> None:
        if instruction in self._local.buffers:
            address = self._local.address(instruction, address, opaque)
            self.loads.append(Load(instruction, address, True))
            return
        super().load(instruction, address, opaque)


class RowEmitter(Emitter):
    """An emitter that loads earlier phases' results from local buffers.

    ``row`` is the index of its row in value buffers; in array buffers its copy begins at ``base``.
    """

    local: LocalBuffers
    row: Expr | None = None
    base: Expr | None = None

    def place(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Expr:
        """The index of an element in its local buffer."""
        at = self.expression(self.local.address(instruction, *linear(indices, dimensions)))
        at = at if self.row is None else at + self.row
        return at if self.base is None or instruction in self.local.values else at + self.base

    def fetch(
        self, instruction: Instruction, indices: Sequence[Index], dimensions: Sequence[int]
    ) -> Value:
        if instruction not in self.local.buffers:
            return super().fetch(instruction, indices, dimensions)
        at = self.place(instruction, indices, dimensions)
        return self.load(self.local.buffers[instruction], at, instruction.array_shape.element_type)


class VisibleBuffers(Mapping[Instruction, Buffer]):
    """The buffers that a phase may load from: earlier phases' results, then memory.

    A phase's own results are hidden.
    """

    def __init__(
        self,
        made: Mapping[Instruction, Buffer],
        memory: Mapping[Instruction, Buffer],
        hidden: set[Instruction],
    ) -> None:
        self._made = made
        self._memory = memory
        self._hidden = hidden

    def __contains__(self, instruction: object) -> bool:
        known = instruction in self._made or instruction in self._memory
        return known and instruction not in self._hidden

    def __getitem__(self, instruction: Instruction) -> Buffer:
        if instruction in self._hidden:
            raise KeyError(instruction)
        if instruction in self._made:
            return self._made[instruction]
        return self._memory[instruction]

    def __iter__(self) -> Iterator[Instruction]:
        return iter((*self._made, *self._memory))

    def __len__(self) -> int:
        return len(self._made) + len(self._memory)
