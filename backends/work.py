"""The arithmetic of single instructions: how many flops, how many transcendental functions."""

from __future__ import annotations

import math

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.convolution import CONV_GENERAL_DILATED
from tracejit.ops.indexing import SCATTER
from tracejit.ops.layout import RESHAPE
from tracejit.ops.linalg import CHOLESKY, TRIANGULAR_SOLVE
from tracejit.ops.reduction import REDUCE
from tracejit.ops.spectra import FFT
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER
from tracejit.shapes import Shape
from tracejit.traversal import instructions

FREE = frozenset({CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, RESHAPE, TUPLE})


def _size(instruction: Instruction) -> int:
    return sum(s.size for s in instruction.element_shapes if isinstance(s, Shape))


def work_of(instruction: Instruction) -> tuple[int, int]:
    """Flops and transcendental functions of one instruction."""
    op, size, given = instruction.op, _size(instruction), instruction.attributes
    if op.is_transcendental:
        return 0, size
    if op.is_arithmetic:
        return size, 0
    if op is DOT_GENERAL:
        lhs = instruction.operands[0].array_shape.dimensions
        return 2 * size * math.prod(lhs[d] for d in given["lhs_contracting_dims"]), 0
    if op is CONV_GENERAL_DILATED:
        kernel = instruction.operands[1].array_shape
        outputs = kernel.dimensions[given["dim_labels"].kernel_output_feature_dimension]
        return 2 * size * (kernel.size // max(outputs, 1)), 0
    if op is REDUCE:
        count = len(instruction.operands) // 2
        read = sum(o.array_shape.size for o in instruction.operands[:count])
        return _called(given["to_apply"], max(read - size, 0) // count)
    if op is REDUCE_WINDOW:
        window = math.prod(dimension.size for dimension in given["window"])
        return _called(given["to_apply"], size * max(window - 1, 0))
    if op is SELECT_AND_SCATTER:
        source = instruction.operands[1].array_shape.size
        window = math.prod(dimension.size for dimension in given["window"])
        return source * window, 0
    if op is SCATTER:
        updates = instruction.operands[-1].array_shape.size
        return _called(given["to_apply"], updates)
    if op is CHOLESKY:
        n = instruction.array_shape.dimensions[-1]
        return size * n // 3, 0
    if op is TRIANGULAR_SOLVE:
        return size * instruction.operands[0].array_shape.dimensions[-1], 0
    if op is FFT:
        points = math.prod(given["fft_length"])
        return 5 * size * max(points - 1, 0).bit_length(), 0
    return 0, 0


def _called(computation: Computation, times: int) -> tuple[int, int]:
    """Work of a computation of scalars, applied ``times`` times."""
    works = [work_of(i) for i in instructions(computation) if i.op not in FREE]
    return times * sum(w[0] for w in works), times * sum(w[1] for w in works)
