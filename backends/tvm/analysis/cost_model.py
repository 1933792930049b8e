"""A cost model of ops, in units of one addition per element, and the thresholds of fusion."""

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

# A value that overlapping slices read is stored only if it has more bytes than registers and cache
# lines nearby hold.
_LEAST_REPEATED = 1 << 10
# The most ops of a kernel: more take longer to compile than several smaller kernels.
SIZE_LIMIT = 400
# The deepest nesting of an expression: the emitter recurses as deeply.
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
    """Whether an op costs nothing next to its users."""
    return op.is_view or op in (CONSTANT, IOTA)


def longest_chain(size: int) -> int:
    """The longest dependence chain of a kernel of ``size`` ops.

    An op has a latency of about four cycles, in which a processor may execute eight others: of the
    same element, or of the next ones in its window of about 320 ops.
    """
    return max(40, size // 8)


def size_of(instruction: Instruction) -> int:
    """The approximate number of simple ops that one instruction is expanded to."""
    if _is_free(instruction.op):
        return 0
    element_type = instruction.array_shape.element_type
    return ROUNDING.get(element_type, 1) * (4 if element_type.is_complex else 1)


def cost_of(instruction: Instruction) -> int:
    """The cost of one element of one instruction, without its operands."""
    return _COSTS.get(instruction.op, 0 if _is_free(instruction.op) else 1)


def computed_again(instruction: Instruction, users: Sequence[Instruction]) -> float:
    """How often a value is computed again for overlapping slices among its users."""
    cuts = {_places(user): user.array_shape.size for user in users if user.op is SLICE}
    if not cuts or instruction.array_shape.nbytes <= _LEAST_REPEATED:
        return 0.0
    whole = any(user.op is not SLICE for user in users)
    return max(sum(cuts.values()) / instruction.array_shape.size + whole - 1, 0.0)


def _places(cut: Instruction) -> tuple[tuple[int, int, int], ...]:
    """The elements that a Slice reads, as (start, end, stride) per dimension."""
    return tuple((part.start, part.limit, part.stride) for part in cut.attributes["slice"])
