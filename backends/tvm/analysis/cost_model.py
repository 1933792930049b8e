"""What ops cost, roughly, in units of one addition per element."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.duplication import ROUNDING
from tracejit.backends.tvm.ir.internal_ops import ERF_INV, EXP2, LOG2, LOG10, THREEFRY
from tracejit.graph import Instruction, Op
from tracejit.ops import elementwise as binary
from tracejit.ops import elementwise_unary as unary
from tracejit.ops.constants import CONSTANT, IOTA
from tracejit.ops.indexing import GATHER
from tracejit.ops.layout import SLICE

# From here on a value needed by several kernels is stored instead of computed again in each.
SHARED_COST = 4
# From here on, copies counted, a value that a broadcast repeats is stored once instead of computed
# for each copy.
AMPLIFIED_COST = 8
# The same for a value that slices read which lie over each other, as in stencils of stencils, of
# more bytes than registers and their neighbours hold.
REPEATED_COST = 20
_LEAST_REPEATED = 1 << 10
# An epilogue of a contraction costs at most this.
EPILOGUE_COST = 6
# The same for how large its expression grows, in which rounding is written out.
EPILOGUE_SIZE = 32
# What a cumulative op walks along is computed on its way if it costs at most this: for a vector of
# columns, for a number of a row.
COLUMNS_COST = 16
ROWS_COST = 1
# A kernel of more ops takes longer to compile than several that have as many.
SIZE_LIMIT = 400
# How deeply ops are written inside each other: as deeply, the writer recurses.
NESTED = 96

_COSTS = {
    binary.DIV: 4,
    binary.REM: 20,
    binary.POW: 40,
    binary.ATAN2: 30,
    unary.SQRT: 4,
    unary.RSQRT: 6,
    unary.EXP: 12,
    unary.EXPM1: 16,
    unary.LOG: 14,
    unary.LOG1P: 18,
    unary.LOGISTIC: 16,
    unary.TANH: 20,
    unary.SIN: 20,
    unary.COS: 20,
    unary.TAN: 30,
    unary.SINH: 25,
    unary.COSH: 20,
    unary.ASIN: 20,
    unary.ACOS: 20,
    unary.ASINH: 25,
    unary.ACOSH: 25,
    unary.ATANH: 25,
    unary.ERF: 25,
    unary.CBRT: 20,
    GATHER: 4,
    THREEFRY: 100,
    ERF_INV: 40,
    EXP2: 12,
    LOG2: 16,
    LOG10: 16,
}


def _is_free(op: Op) -> bool:
    """Whether an op costs nothing beside what reads its result."""
    return op.is_view or op in (CONSTANT, IOTA)


def longest_chain(size: int) -> int:
    """How many ops of a kernel of ``size`` ops may wait for each other.

    An op waits for some four cycles, in which a processor may do eight others: of this element, or
    of the next ones, as far as it sees, which is about 320 ops.
    """
    return max(40, size // 8)


def size_of(instruction: Instruction) -> int:
    """How many simple ops one instruction is made of, roughly."""
    if _is_free(instruction.op):
        return 0
    element_type = instruction.array_shape.element_type
    return ROUNDING.get(element_type, 1) * (4 if element_type.is_complex else 1)


def cost_of(instruction: Instruction) -> int:
    """The cost of one element of one instruction, its operands not counted."""
    return _COSTS.get(instruction.op, 0 if _is_free(instruction.op) else 1)


def computed_again(instruction: Instruction, users: Sequence[Instruction]) -> float:
    """How often a value is computed, beyond once, for slices among its users that overlap."""
    cuts = {_places(user): user.array_shape.size for user in users if user.op is SLICE}
    if not cuts or instruction.array_shape.nbytes <= _LEAST_REPEATED:
        return 0.0
    whole = any(user.op is not SLICE for user in users)
    return max(sum(cuts.values()) / instruction.array_shape.size + whole - 1, 0.0)


def _places(cut: Instruction) -> tuple[tuple[int, int, int], ...]:
    """Which elements a Slice takes."""
    return tuple((part.start, part.limit, part.stride) for part in cut.attributes["slice"])
