"""Keeps the components of a Gather's or Scatter's indices apart instead of storing them joined.

gather(x, concatenate(i, j))    gather(x, index_vector(i, j))
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tracejit.backends.tvm.ir.internal_ops import INDEX_VECTOR
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.indexing import GATHER, SCATTER
from tracejit.ops.layout import CONCATENATE
from tracejit.traversal import rebuild, transform


def split_index_vectors(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``: Gathers of single elements, and Scatters, without stored index vectors."""

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction.op not in (GATHER, SCATTER):
            return None
        place = 1 if instruction.op is GATHER else len(operands) // 2
        vector = _index_vector(instruction, operands[place])
        if vector is None:
            return None
        return rebuild(instruction, [*operands[:place], vector, *operands[place + 1 :]])

    return transform(roots, visit)


def _index_vector(user: Instruction, indices: Instruction) -> Instruction | None:
    dimension = user.attributes["index_vector_dim"]
    # The elements of a larger slice would recompute its index.
    if user.op is GATHER and math.prod(user.attributes["slice_sizes"]) != 1:
        return None
    if indices.op is not CONCATENATE or indices.attributes["dimensions"] != (dimension,):
        return None
    if any(part.array_shape.dimensions[dimension] != 1 for part in indices.operands):
        return None
    return make(INDEX_VECTOR, *indices.operands, dimension=dimension)
