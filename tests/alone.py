"""Collective ops on one device, said with ops that XLA has code for on the CPU.

XLA parses these ops, but it has no code for some of them, and its way through StableHLO has no
words for others. `tests.replicas` judges them on several devices.
"""

from __future__ import annotations

from tracejit import ops
from tracejit.graph import Instruction
from tracejit.ops.channels import RECV
from tracejit.shapes import ElementType

STARTS = {"AllReduceStart", "AllGatherStart", "CollectivePermuteStart"}
SECONDS = {"AllGatherDone", "CollectivePermuteDone"}
ITSELF = {"AllReduce", "AllGather", "AllReduceStart", "AllGatherStart"}


class Alone:
    """The one device's side of what it sends to itself."""

    def __init__(self) -> None:
        self.sent: dict[int, Instruction] = {}

    def visit(
        self, instruction: Instruction, operands: tuple[Instruction, ...]
    ) -> Instruction | None:
        """What takes the place of an instruction; None: it stays."""
        name, attributes = instruction.op.name, instruction.attributes
        if name in ("CollectivePermute", "CollectivePermuteStart"):
            made = _permuted(instruction, operands)
        elif name == "RaggedAllToAll":
            return _ragged(operands)
        elif name == "CollectiveBroadcast":
            return ops.collective_permute(operands[0], [[0, 0]])
        elif name == "AllToAll" and attributes["dimensions"] is None:
            made = ops.tuple_(operands)
        elif name == "ReduceScatter" and operands[0].array_shape.element_type.bits <= 16:
            made = operands[0]
        elif name in ITSELF and _is_beyond_xla(instruction, operands):
            made = ops.tuple_(operands) if len(operands) > 1 else operands[0]
        else:
            return self._other(instruction, operands)
        if name in STARTS and name != "AllReduceStart":
            made = ops.tuple_([made, made])
        return made

    def _other(
        self, instruction: Instruction, operands: tuple[Instruction, ...]
    ) -> Instruction | None:
        name = instruction.op.name
        if name in SECONDS and operands[0].op.name not in STARTS:
            return ops.get_tuple_element(operands[0], 1)
        if name == "AllReduceDone" and operands[0].op.name not in STARTS:
            return operands[0]
        if name == "Send":
            self.sent[instruction.attributes["channel_id"]] = operands[0]
            return ops.tuple_([*operands[:1], ops.constant(0, ElementType.U32), operands[1]])
        if name == "SendDone":
            return ops.get_tuple_element(operands[0], 2)
        if name == "Recv":
            return None
        if name == "RecvDone":
            assert operands[0].op is RECV
            data = self.sent[instruction.attributes["channel_id"]]
            return ops.tuple_([data, operands[0].operands[0]])
        return None


def _is_beyond_xla(instruction: Instruction, operands: tuple[Instruction, ...]) -> bool:
    is_narrow = operands[0].array_shape.element_type.bits < 4
    return len(operands) > 1 or is_narrow or instruction.attributes["use_global_device_ids"]


def _permuted(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction:
    pairs = instruction.attributes["source_target_pairs"]
    slices = instruction.attributes["slice_sizes"]
    if not slices:
        results = [ops.collective_permute(operand, pairs) for operand in operands]
        return ops.tuple_(results) if len(results) > 1 else results[0]
    given, output, sources, targets = operands
    for i, sizes in enumerate(slices):
        there, here = (ops.elements_of(ops.get_tuple_element(s, i)) for s in (sources, targets))
        part = ops.dynamic_slice(given, there, sizes)
        output = ops.dynamic_update_slice(output, part, here)
    return output


def _ragged(operands: tuple[Instruction, ...]) -> Instruction:
    """Row by row."""
    given, output, *metadata = operands
    rows, *inner = given.array_shape.dimensions
    count = metadata[0].array_shape.size
    firsts, sizes, targets = (ops.reshape(array, (count,)) for array in metadata[:3])
    zero = ops.constant(0, firsts.array_shape.element_type)
    for update in range(count):
        first, size, target = (
            ops.reshape(ops.slice_in_dim(array, update, update + 1, 1, 0), ())
            for array in (firsts, sizes, targets)
        )
        for step in range(rows):
            ahead = ops.full_like(zero, step)
            source, place = ops.add(first, ahead), ops.add(target, ahead)
            row = ops.dynamic_slice(given, [source, *[zero] * len(inner)], [1, *inner])
            written = ops.dynamic_update_slice(output, row, [place, *[zero] * len(inner)])
            there = ops.and_(
                _within(source, rows), _within(place, output.array_shape.dimensions[0])
            )
            output = _either(ops.and_(ops.lt(ahead, size), there), written, output)
    return output


def _within(place: Instruction, size: int) -> Instruction:
    return ops.and_(
        ops.ge(place, ops.full_like(place, 0)), ops.lt(place, ops.full_like(place, size))
    )


def _either(condition: Instruction, yes: Instruction, no: Instruction) -> Instruction:
    return ops.select(ops.broadcast_in_dim(condition, yes.array_shape.dimensions, ()), yes, no)
