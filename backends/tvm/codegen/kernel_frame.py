"""A kernel under construction: the buffers it takes, and the machine it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tracejit.backends.tvm.codegen.work import Work
from tracejit.backends.tvm.ir.dtypes import memory_dtype, words
from tracejit.backends.tvm.ir.machine import Machine
from tracejit.backends.tvm.ir.routine_call import RoutineCall
from tracejit.backends.tvm.ir.tir import AllocBuffer, Buffer, Stmt, buffer, nbytes, seq
from tracejit.backends.tvm.tune.knobs import MODEL, Knobs, either
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

# Elements times cost per element from which a second thread pays for being woken, which takes up to
# 7 us: 10,000 sines, at 5 us, do not.
PARALLEL_WORK = 1 << 17
# Pieces of work for each thread: the last ones even out what the others took longer.
PIECES = 4
# No vector has more lanes.
MOST_LANES = 64

# Bytes up to which a kernel keeps a buffer of its own on the stack.
STACKED = 8 << 10


class Inputs(Mapping[Instruction, Buffer]):
    """The buffers of instructions that have memory, made into parameters when first asked for."""

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
        """Reads an instruction's value where a result is going to be."""
        self._buffers[instruction] = memory

    def without(self, hidden: set[Instruction]) -> Visible:
        """The same buffers, but ``hidden`` instructions are to be computed, not loaded."""
        return Visible(self, hidden)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._buffers)

    def __len__(self) -> int:
        return len(self._buffers)


class Visible(Mapping[Instruction, Buffer]):
    """`Inputs` with some instructions hidden: those that the nest at hand computes itself."""

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
    """Collects a kernel's parameters while its body is written.

    ``uses`` counts how often each instruction is needed; ``cost`` is that of one element. With
    ``in_place`` the result's memory holds already what the kernel updates. ``shared`` are inputs
    whose memory is that of the result of the given number: no element may be computed twice.
    ``beside`` are the Reduces that are combined together with the kernel's anchor. ``schedule`` is
    the name of the way that was chosen, for those who ask, and ``choices`` decides what can be done
    in more than one way. ``direct`` is the call of a routine that does all of it.
    """

    def __init__(
        self,
        has_memory: Callable[[Instruction], bool],
        outputs: list[Shape],
        machine: Machine,
        uses: Mapping[Instruction, int],
        index_dtype: str,
        cost: int,
        in_place: bool = False,
        shared: Mapping[Instruction, int] | None = None,
        choices: Knobs = MODEL,
        beside: Sequence[Instruction] = (),
    ) -> None:
        self.choices = choices
        self.beside = beside
        self.in_place = in_place
        self.inputs = Inputs(has_memory)
        self.outputs = [memory_buffer(shape, "out") for shape in outputs]
        self.shared = dict(shared or {})
        for instruction, number in self.shared.items():
            self.inputs.share(instruction, self.outputs[number])
        self.machine = machine
        self.uses = uses
        self.index_dtype = index_dtype
        self.cost = cost
        self.scratch: list[Buffer] = []
        self.schedule = ""
        self.direct: RoutineCall | None = None

    @property
    def apart(self) -> bool:
        """Whether no element may be computed twice."""
        return bool(self.shared)

    def allocate(self, buffers: Iterable[Buffer]) -> list[Stmt]:
        """Makes room for buffers that live as long as the kernel runs.

        Small ones go on the stack, by the statements returned; large ones become parameters.
        """
        stacked = []
        for each in buffers:
            if nbytes(each) > STACKED:
                self.scratch.append(each)
            else:
                stacked.append(AllocBuffer(each))
        return stacked

    def written(self, work: Work) -> Stmt:
        """What a kernel writer hands back, with its memory; the whole kernel does nothing else.

        A routine that is called in its place takes all of that memory as parameters.
        """
        self.schedule, self.direct = work.schedule, work.direct
        if work.direct is None:
            return seq(*self.allocate(work.scratch), work.statement)
        self.scratch.extend(work.scratch)
        return work.statement

    def lanes(self, element_type: ElementType, extent: int) -> int:
        """How many elements of a loop of ``extent`` go into one vector step; a power of two."""
        width = max(element_type.dtype.itemsize, 2)
        lanes = min(max(2 * self.machine.vector_bytes // width, 4), 32)
        while lanes > extent:
            lanes //= 2
        return self.choices.of("vectors", _widths(max(lanes, 1), extent))

    def pieces(self, work: int) -> int:
        """Into how many pieces a loop is cut that threads share; 1 where they do not.

        ``work`` is the number of elements times the cost of each.
        """
        threads = self.machine.threads
        is_shared = work >= PARALLEL_WORK
        if threads == 1:
            return PIECES if is_shared else 1
        shared = [(f"{n} pieces for each", n * threads) for n in (PIECES, 1)]
        alone = [("1", 1)]
        return self.choices.of("threads", shared + alone if is_shared else alone + shared)

    def is_shared(self, work: int) -> bool:
        """Whether threads share a loop of so much work."""
        if self.machine.threads == 1:
            return work >= PARALLEL_WORK
        return self.choices.of("threads", either(work >= PARALLEL_WORK, "all", "1"))


def _widths(lanes: int, extent: int) -> Iterator[tuple[str, int]]:
    yield "as wide as two registers", lanes
    if 2 * lanes <= min(extent, MOST_LANES):
        yield "twice as wide", 2 * lanes
    if lanes > 1:
        yield "half as wide", lanes // 2
