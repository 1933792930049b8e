"""Buffer assignment: the memory of each array (argument, result, constant, or workspace)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.analysis.alias_roots import origins
from tracejit.backends.tvm.buffers.allocator import Lifetime, pack
from tracejit.backends.tvm.buffers.in_place import BufferReuse, LoopState
from tracejit.backends.tvm.fusion.kernel import Fusion, is_given
from tracejit.backends.tvm.ir.graph import flattened_graph
from tracejit.backends.tvm.ir.reshapes import base_buffer, stored_as
from tracejit.backends.tvm.ir.tuples import Leaves, arrays_of
from tracejit.backends.tvm.program.program import Argument
from tracejit.backends.tvm.program.thunks import AddressOf, Owner, Scratch, Step
from tracejit.graph import Instruction
from tracejit.ops.constants import CONSTANT
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.custom import is_native_call

APART = 1 << 10
"""The most bytes of arrays that do not share memory, so that loop temporaries can be registers."""


class BufferAssignment:
    """The memory of each array.

    ``owners`` are the instructions that are computed directly into an output, ``copies`` those to
    be copied to one. ``root_buffers`` maps a result that reuses a buffer to the array that the
    buffer was allocated for; ``shared`` maps results to operands that they overwrite while
    reading. ``replaced`` and ``donated`` map parameters to the outputs that replace them, as in
    `lower_fragment`; ``constants`` numbers the constants met so far.
    """

    def __init__(
        self,
        parameters: Sequence[Instruction],
        outputs: Sequence[Instruction],
        kernels: Sequence[Fusion],
        leaves: Leaves,
        memory: set[Instruction],
        constants: dict[Instruction, int],
        replaced: Mapping[Instruction, int],
        donated: Mapping[Instruction, int],
    ) -> None:
        self._parameters = {p: i for i, p in enumerate(parameters)}
        self._outputs = outputs
        self._constants = constants
        self._donated = donated
        self._memory = memory
        self.owners, self.copies = self._output_owners()
        taken = self._taken_over(kernels, leaves, memory, {**replaced, **donated})
        self.root_buffers, self.shared = taken.root_buffers, taken.shared
        self.copies += self._stored_late()
        # An output that reuses a buffer is computed there from the first update on.
        for result, root_buffer in self.root_buffers.items():
            if result in self.owners and not is_given(root_buffer):
                self.owners[root_buffer] = self.owners[result]

    def _output_owners(self) -> tuple[dict[Instruction, int], list[tuple[Instruction, int]]]:
        """The instructions that are computed directly into outputs, and the copies of the other
        outputs.
        """
        owners: dict[Instruction, int] = {}
        copies = []
        for index, output in enumerate(self._outputs):
            if output.array_shape.size == 0:
                continue
            source = base_buffer(output)
            if self._donated.get(source) == index:
                continue
            if is_given(source) or source in owners:
                copies.append((source, index))
            else:
                owners[source] = index
        return owners, copies

    def _taken_over(
        self,
        kernels: Sequence[Fusion],
        leaves: Leaves,
        memory: set[Instruction],
        replaced: Mapping[Instruction, int],
    ) -> BufferReuse:
        kept = [source for source, _ in self.copies]
        kept += [
            p for p, number in self._donated.items() if base_buffer(self._outputs[number]) is p
        ]
        found = BufferReuse(kernels, memory, self.owners, replaced, kept)
        for number, kernel in enumerate(kernels):
            anchor = kernel.anchor
            if anchor is not None and anchor.op is CONDITIONAL:
                found.add_branches(number, [(r, origins(r)) for r in leaves.of(anchor)])
            if anchor is not None and is_native_call(anchor):
                found.add_native_call(number, anchor, leaves.of(anchor))
            if anchor is None or anchor.op is not WHILE:
                found.add_kernel(number, kernel)
                if replaced:
                    found.add_results(number, kernel)
                continue
            body = flattened_graph(anchor.attributes["body"])
            states = zip(
                arrays_of(anchor.operands[0]),
                leaves.of(anchor),
                body.parameters,
                body.outputs,
                strict=True,
            )
            found.add_loop(number, [LoopState(a, r, p is not f) for a, r, p, f in states])
        return found

    def _stored_late(self) -> list[tuple[Instruction, int]]:
        """Results that replace a parameter which is read until later, with their output numbers.

        They are computed in a temporary, and copied at the end.
        """
        late = []
        sources = {number: source for source, number in self.owners.items()}
        for given, number in self._donated.items():
            source = sources.get(number)
            if source is not None and self.root_buffers.get(source) is not given:
                del self.owners[source]
                late.append((source, number))
        return late

    def root_buffer(self, owner: Owner) -> Owner:
        """A representative of all owners that share one buffer."""
        if isinstance(owner, Instruction):
            owner = self.root_buffers.get(owner, owner)
            return self.owners.get(owner, owner)
        return owner

    def shares_buffer(self, source: Instruction, target: Instruction) -> bool:
        """Whether both share one buffer, so that a copy is unnecessary."""
        source = stored_as(source, self._memory.__contains__)
        return target in self.root_buffers and self.root_buffers[target] == self.root_buffers.get(
            source, source
        )

    def is_update(self, result: Instruction) -> bool:
        """Whether a result shares its first operand's buffer, so that its kernel need not copy
        that.

        It may also share the buffer of a parameter that its kernel does not read.
        """
        return bool(result.operands) and self.shares_buffer(result.operands[0], result)

    def settled(self, steps: Sequence[Step]) -> tuple[AddressOf, int]:
        """The addresses of all memory that the steps use, and the size of the workspace."""
        places, workspace = self._workspace(steps)

        def place(owner: Owner) -> Argument:
            if isinstance(owner, int):
                return Argument.output(owner)
            if isinstance(owner, Scratch):
                return Argument.workspace(places[owner])
            owner = self.root_buffers.get(owner, owner)
            if owner in self.owners:
                return Argument.output(self.owners[owner])
            if owner in self._parameters:
                return Argument.input(self._parameters[owner])
            if owner.op is CONSTANT:
                return Argument.constant(self._constants.setdefault(owner, len(self._constants)))
            return Argument.workspace(places[owner])

        return place, workspace

    @property
    def constants(self) -> list[Instruction]:
        """The constants that have an address, by number."""
        return [*self._constants]

    @property
    def in_place(self) -> frozenset[int]:
        """The outputs that share the buffer of the parameter that they replace."""
        return frozenset(
            number
            for result, number in self.owners.items()
            if self.root_buffers.get(result) in self._parameters
        )

    @property
    def aliases(self) -> dict[int, int]:
        """Maps outputs to the parameters whose memory they share, both by number."""
        return {number: self._parameters[given] for given, number in self._donated.items()}

    def _workspace(self, steps: Sequence[Step]) -> tuple[dict[Instruction | Scratch, int], int]:
        first: dict[Instruction | Scratch, int] = {}
        last: dict[Instruction | Scratch, int] = {}
        for number, step in enumerate(steps):
            for owner in step.owners:
                if isinstance(owner, Instruction):
                    owner = self.root_buffers.get(owner, owner)
                if isinstance(owner, int) or owner in self.owners:
                    continue
                if isinstance(owner, Instruction) and is_given(owner):
                    continue
                first.setdefault(owner, number)
                last[owner] = number
        if sum(map(_nbytes, first)) <= APART:
            first, last = dict.fromkeys(first, 0), dict.fromkeys(last, len(steps))
        lifetimes = [Lifetime(_nbytes(m), first[m], last[m]) for m in first]
        offsets, total = pack(lifetimes)
        # Even an empty array needs an address.
        return dict(zip(first, offsets, strict=True)), max(total, min(len(lifetimes), 1))


def _nbytes(memory: Instruction | Scratch) -> int:
    return memory.nbytes if isinstance(memory, Scratch) else memory.array_shape.nbytes
