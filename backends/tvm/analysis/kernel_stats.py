"""Statistics of a kernel, counted on its graph: bytes, flops, and the ops it fuses."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tracejit.backends.explanation import Change
from tracejit.backends.tvm.analysis.cost_model import cost_of
from tracejit.backends.tvm.ir.internal_ops import (
    BOUNDED_DOT,
    FOURIER,
    FOURIER_HALVES,
    THREEFRY,
)
from tracejit.backends.work import work_of
from tracejit.graph import Instruction, Op
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import OPTIMIZATION_BARRIER
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.ops.elementwise import ADD, DIV, MUL, SUB
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import (
    CONCATENATE,
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
)
from tracejit.ops.linalg import CHOLESKY
from tracejit.ops.reduction import REDUCE, TOP_K, extreme
from tracejit.ops.windows import REDUCE_WINDOW, running_axis
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.sources import Source

# Real operations per operation on complex numbers.
_COMPLEX = {
    ADD: 2,
    SUB: 2,
    MUL: 6,
    DIV: 11,
    DOT_GENERAL: 4,
    BOUNDED_DOT: 4,
    CONV_GENERAL_DILATED: 4,
}
_WIDE = frozenset({ElementType.F64, ElementType.C128})


# Ops whose kernels are vectorised when they are written, if values have one part.
_IN_VECTORS = {
    BOUNDED_DOT,
    CHOLESKY,
    CONCATENATE,
    CONV_GENERAL_DILATED,
    DOT_GENERAL,
    GATHER,
    IOTA,
    REDUCE,
    REDUCE_WINDOW,
    TOP_K,
}
_IN_LANES = frozenset(
    t for t in ElementType if not (t.is_complex or t.is_small_float or t.bits < 8)
)
# Vectors along kept axes.
COLUMNS = "column reduction"


@dataclass(frozen=True)
class KernelStats:
    """The statistics of one kernel: see `tracejit.backends.explanation.KernelFacts`.

    ``in_vectors``: its code is vectorised throughout; ``sources`` are the user's lines that its
    instructions come from. What is counted of a loop in registers is one iteration; ``repeated`` is
    how many there are, with those of the loops inside it, if that is known.
    """

    ops: tuple[str, ...] = ()
    schedule: str = ""
    bytes_read: int = 0
    bytes_written: int = 0
    flops: int = 0
    transcendentals: int = 0
    wide: bool = False
    in_vectors: bool = False
    changes: tuple[Change, ...] = ()
    gain: tuple[float, float] | None = None
    sources: tuple[Source, ...] = ()
    repeated: int | None = 1

    @property
    def source(self) -> Source | None:
        """The line of a result, or the first that is known."""
        return self.sources[0] if self.sources else None


NOTHING = KernelStats()


def together(counted: Sequence[KernelStats], schedule: str) -> KernelStats:
    """The statistics of several kernels merged into one, where each runs once."""
    return KernelStats(
        tuple(op for each in counted for op in each.ops),
        schedule,
        sum(each.bytes_read for each in counted),
        sum(each.bytes_written for each in counted),
        sum(each.flops for each in counted),
        sum(each.transcendentals for each in counted),
        any(each.wide for each in counted),
        sources=tuple(dict.fromkeys(line for each in counted for line in each.sources)),
    )


def _name(instruction: Instruction) -> str:
    """The user's name for an op: the opcode, or linalg.svd for one of the library's own calls."""
    if instruction.op is CUSTOM_CALL:
        target: str = instruction.attributes["custom_call_target"]
        if target.startswith(LINEAR_ALGEBRA):
            return target.removeprefix("tracejit.")
    return instruction.op.opcode


def kernel_stats(
    inside: Iterable[Instruction],
    results: Sequence[Instruction],
    schedule: str,
    in_place: Collection[Instruction] = (),
) -> KernelStats:
    """The statistics of a kernel that computes ``inside``, in order, and stores ``results``.

    ``in_place`` are the results of updates that share their operand's memory.
    """
    members = {i: None for i in inside}
    needed: dict[Instruction, int] = dict.fromkeys(members, 0)
    needed.update({r: r.array_shape.size for r in results if isinstance(r.shape, Shape)})
    flops = transcendentals = written = 0
    wide = False
    stored = set(results)
    for instruction in sorted({*members, *results}, key=lambda i: -i.serial):
        if instruction not in members and instruction.op is not GET_TUPLE_ELEMENT:
            continue
        count = _whole(instruction) if _is_whole(instruction) else needed[instruction]
        for operand, elements in _wanted(instruction, count, instruction in in_place):
            most = _whole(operand)
            needed[operand] = min(needed.get(operand, 0) + elements, most)
        work = _work(instruction, count)
        flops += work[0]
        transcendentals += work[1]
        wide = wide or (bool(sum(work)) and _is_wide(instruction))
    for result in stored:
        written += _nbytes(result, _stored(result, result in in_place))
    read = 0
    for instruction, elements in needed.items():
        loaded = instruction not in members and instruction not in stored
        if loaded and not _is_literal(instruction) and isinstance(instruction.shape, Shape):
            read += _nbytes(instruction, elements)
        elif instruction in in_place and instruction.op is SCATTER:
            read += _nbytes(instruction, _stored(instruction, True))
    ops = tuple(_name(i) for i in members if i.op not in (CONSTANT, PARAMETER, TUPLE))
    in_vectors = all(_is_in_vectors(i) for i in members)
    costs = ops, schedule, read, written, flops, transcendentals, wide, in_vectors
    lines = dict.fromkeys(i.source for i in [*results, *members] if i.source is not None)
    return KernelStats(*costs, sources=tuple(lines))


def _is_in_vectors(instruction: Instruction) -> bool:
    op = instruction.op
    if op in (CONSTANT, PARAMETER, FOURIER, FOURIER_HALVES, OPTIMIZATION_BARRIER):
        return True
    if not (op.is_elementwise or _moves(op) or op in _IN_VECTORS):
        return False
    if op is REDUCE and isinstance(instruction.shape, TupleShape):
        # argmin and argmax; other combiners are unknown
        if extreme(instruction.attributes["to_apply"]) is None:
            return False
    elif op is not TOP_K and not isinstance(instruction.shape, Shape):
        return False
    shapes = [s for each in (instruction, *instruction.operands) for s in each.element_shapes]
    return all(isinstance(s, Shape) and s.element_type in _IN_LANES for s in shapes)


def copy_stats(shape: Shape) -> KernelStats:
    """The statistics of a copy of an array."""
    return KernelStats(("copy",), "copy", shape.nbytes, shape.nbytes)


def _wanted(
    instruction: Instruction, count: int, in_place: bool
) -> Iterable[tuple[Instruction, int]]:
    """The number of elements of each operand that ``count`` elements of an instruction need."""
    operands, op = instruction.operands, instruction.op
    if op in (PARAMETER, CONSTANT) or not count:
        return []
    if op.is_elementwise or _moves(op):
        return [(operand, min(count, _whole(operand))) for operand in operands]
    if op is CONCATENATE:
        whole = max(_whole(instruction), 1)
        return [(operand, -(-count * _whole(operand) // whole)) for operand in operands]
    if op in (DYNAMIC_SLICE, GATHER):
        first, *rest = operands
        return [(first, min(count, _whole(first))), *((o, _whole(o)) for o in rest)]
    if op in (DYNAMIC_UPDATE_SLICE, SCATTER) and in_place:
        return [(operand, _whole(operand)) for operand in operands[_updated(instruction) :]]
    if op is DYNAMIC_UPDATE_SLICE:
        first, update, *starts = operands
        kept = max(count - _whole(update), 0)
        pairs = [(first, kept), (update, min(count, _whole(update)))]
        return [*pairs, *((start, 1) for start in starts)]
    return [(operand, _whole(operand)) for operand in operands]


def _updated(instruction: Instruction) -> int:
    """The number of operands that an update writes to."""
    return len(instruction.operands) // 2 if instruction.op is SCATTER else 1


def _is_whole(instruction: Instruction) -> bool:
    by_element = instruction.op.is_elementwise or instruction.op.family in (
        "constants",
        "indexing",
        "layout",
    )
    return isinstance(instruction.shape, TupleShape) or not by_element


def _moves(op: Op) -> bool:
    """Whether an op has one operand, and only rearranges its elements."""
    return op.is_movement and op is not CONCATENATE


def _whole(instruction: Instruction) -> int:
    shapes = instruction.element_shapes if instruction.op is not TUPLE else ()
    return sum(shape.size for shape in shapes if isinstance(shape, Shape)) or int(
        instruction.op is TUPLE
    )


def _stored(result: Instruction, in_place: bool) -> int:
    if not in_place or result.op not in (DYNAMIC_UPDATE_SLICE, SCATTER):
        return _whole(result)
    update = result.operands[1 if result.op is DYNAMIC_UPDATE_SLICE else -1]
    return min(_whole(update), _whole(result))


def _nbytes(instruction: Instruction, elements: int) -> int:
    shape = instruction.array_shape
    return shape.nbytes if elements >= shape.size else elements * shape.dtype.itemsize


def _work(instruction: Instruction, count: int) -> tuple[int, int]:
    """Flops and transcendental functions of ``count`` elements of an instruction."""
    op = instruction.op
    if op.is_transcendental:
        return 0, count
    if op is THREEFRY:
        return count * cost_of(instruction), 0
    if op is FOURIER_HALVES:
        return 10 * count, 0
    if op is FOURIER:
        radices = instruction.attributes["radices"] + instruction.attributes["more_radices"]
        return 5 * count * (math.prod(radices).bit_length() - 1), 0
    flops, transcendentals = work_of(instruction)
    if op is BOUNDED_DOT:
        # An upper bound: all terms count as in bounds.
        (summed,) = instruction.attributes["lhs_contracting_dims"]
        flops = 2 * count * instruction.operands[0].array_shape.dimensions[summed]
    if op is REDUCE_WINDOW:
        operand = instruction.operands[0].array_shape
        if running_axis(instruction.attributes["window"], operand.dimensions) is not None:
            flops = operand.size
    shapes = [shape for shape in instruction.element_shapes if isinstance(shape, Shape)]
    if any(shape.element_type.is_complex for shape in shapes):
        flops *= _COMPLEX.get(op, 1)
    whole = _whole(instruction)
    if count >= whole:
        return flops, transcendentals
    return flops * count // whole, transcendentals * count // whole


def _is_wide(instruction: Instruction) -> bool:
    shapes = [s for s in instruction.element_shapes if isinstance(s, Shape)]
    return any(shape.element_type in _WIDE for shape in shapes)


def _is_literal(instruction: Instruction) -> bool:
    """Whether a value is a literal in the code."""
    return instruction.op is CONSTANT and instruction.array_shape.rank == 0
