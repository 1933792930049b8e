"""`Frame`: a kernel under construction: its buffers, its limits and its knobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tracejit.backends.tvm.codegen.kernel_body import KernelBody
from tracejit.backends.tvm.codegen.stores import Store
from tracejit.backends.tvm.ir.dtypes import memory_dtype, words
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Stmt, buffer, nbytes, seq
from tracejit.backends.tvm.program.program import LibraryCall
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, either
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

Pointwise = Callable[["Frame", Sequence[int], Sequence[Store], int], Stmt]
"""How a target makes stores for each element; see `target.schedules.Schedules`."""


class Inputs(Mapping[Instruction, Buffer]):
    """The buffers of instructions with memory; each becomes a parameter when it is first used."""

    def __init__(self, has_memory: Callable[[Instruction], bool]) -> None:
        self._has_memory = has_memory
        self._buffers: dict[Instruction, Buffer] = {}

    def __contains__(self, instruction: object) -> bool:
        return isinstance(instruction, Instruction) and self._has_memory(instruction)

    def __getitem__(self, instruction: Instruction) -> Buffer:
        if instruction not in self._buffers:
            if not self._has_memory(instruction):
                raise KeyError(instruction)
            self._buffers[instruction] = memory_buffer(instruction.array_shape)
        return self._buffers[instruction]

    def share(self, instruction: Instruction, memory: Buffer) -> None:
        """Load an instruction's value from the buffer of a result."""
        self._buffers[instruction] = memory

    def without(self, hidden: set[Instruction]) -> Visible:
        """The same buffers, except ``hidden`` instructions, which are computed instead
        of loaded.
        """
        return Visible(self, hidden)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)


class Visible(Mapping[Instruction, Buffer]):
    """`Inputs` without the instructions that the current nest computes itself."""

    def __init__(self, inputs: Inputs, hidden: set[Instruction]) -> None:
        self._inputs = inputs
        self._hidden = hidden

    def __contains__(self, instruction: object) -> bool:
        return instruction not in self._hidden and instruction in self._inputs

    def __getitem__(self, instruction: Instruction) -> Buffer:
        if instruction in self._hidden:
            raise KeyError(instruction)
        return self._inputs[instruction]

    def __iter__(self) -> Iterator[Instruction]:
        return (i for i in self._inputs if i not in self._hidden)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def memory_buffer(shape: Shape, name: str = "b") -> Buffer:
    """A flat buffer for an array; complex elements take two items."""
    items = shape.size * words(shape.element_type)
    return buffer(name, (items,), memory_dtype(shape.element_type))


class Frame:
    """Collects a kernel's parameters while its body is emitted.

    ``uses`` counts the uses of each instruction; ``cost`` is that of one element. With
    ``in_place`` the result's memory initially holds the operand of the update. ``shared`` maps
    inputs to the results whose memory they share, by number: no element may be computed twice.
    ``siblings`` are the sibling Reduces of the kernel's anchor. ``schedule`` is the name of the
    chosen schedule, and ``choices`` decides between alternatives. ``direct`` is a call of a
    routine that does the same, ``library`` one that the target's runtime may make instead.
    ``pointwise`` is how the target writes elementwise nests.
    """

    def __init__(
        self,
        has_memory: Callable[[Instruction], bool],
        outputs: list[Shape],
        limits: Limits,
        uses: Mapping[Instruction, int],
        index_dtype: str,
        cost: int,
        in_place: bool = False,
        shared: Mapping[Instruction, int] | None = None,
        choices: Knobs = MODEL,
        siblings: Sequence[Instruction] = (),
        pointwise: Pointwise | None = None,
    ) -> None:
        self.choices = choices
        self.siblings = siblings
        self.in_place = in_place
        self.inputs = Inputs(has_memory)
        self.outputs = [memory_buffer(shape, "out") for shape in outputs]
        self.shared = dict(shared or {})
        for instruction, number in self.shared.items():
            self.inputs.share(instruction, self.outputs[number])
        self.limits = limits
        self._pointwise = pointwise
        self.uses = uses
        self.index_dtype = index_dtype
        self.cost = cost
        self.scratch: list[Buffer] = []
        self.schedule = ""
        self.library: LibraryCall | None = None

    def pointwise(self, dimensions: Sequence[int], stores: Sequence[Store], cost: int) -> Stmt:
        """A nest over ``dimensions`` that makes all ``stores``, as the target writes it."""
        assert self._pointwise is not None
        return self._pointwise(self, dimensions, stores, cost)

    @property
    def apart(self) -> bool:
        """Whether no element may be computed twice."""
        return bool(self.shared)

    def allocate(self, buffers: Iterable[Buffer]) -> list[Stmt]:
        """Allocate buffers that live as long as the kernel runs.

        Small ones are on the stack, allocated by the returned statements; large ones become
        parameters.
        """
        stacked = []
        for each in buffers:
            if nbytes(each) > self.limits.stack_bytes:
                self.scratch.append(each)
            else:
                stacked.append(AllocBuffer(each))
        return stacked

    def written(self, work: KernelBody) -> Stmt:
        """The statement of a kernel writer, with its memory; it must be the whole kernel."""
        self.schedule = work.schedule
        return seq(*self.allocate(work.scratch), work.statement)

    def lanes(self, element_type: ElementType, extent: int) -> int:
        """The number of elements of a loop of ``extent`` in one vector; a power of two."""
        width = max(element_type.dtype.itemsize, 2)
        lanes = min(max(2 * self.limits.vector_bytes // width, 4), 32)
        while lanes > extent:
            lanes //= 2
        return self.choices.of(
            "vectors", _widths(max(lanes, 1), min(extent, self.limits.most_lanes))
        )

    def pieces(self, work: int) -> int:
        """The number of pieces of a loop that threads share; 1 if they do not.

        ``work`` is the number of elements times the cost of each.
        """
        threads, pieces = self.limits.threads, self.limits.pieces
        is_shared = work >= self.limits.parallel_work
        if threads == 1:
            return pieces if is_shared else 1
        shared = [(f"{n} pieces for each", n * threads) for n in (pieces, 1)]
        alone = [("1", 1)]
        return self.choices.of("threads", shared + alone if is_shared else alone + shared)

    def is_shared(self, work: int) -> bool:
        """Whether threads share a loop with this amount of work."""
        pays = work >= self.limits.parallel_work
        if self.limits.threads == 1:
            return pays
        return self.choices.of("threads", either(pays, "all", "1"))


def _widths(lanes: int, most: int) -> Iterator[tuple[str, int]]:
    yield "as wide as two registers", lanes
    if 2 * lanes <= most:
        yield "twice as wide", 2 * lanes
    if lanes > 1:
        yield "half as wide", lanes // 2
