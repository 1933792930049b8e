"""Maps of any computation as ordinary graph: one element of the operands is one of a batch.

map_as_batch(map_([x, y], computation))     the same array, without a Map
"""

from __future__ import annotations

from tracejit.batching.batch import Batched, batch
from tracejit.errors import UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.layout import full, reshape
from tracejit.ops.lifting import lift
from tracejit.traversal import inline


def map_as_batch(instruction: Instruction) -> Instruction:
    """What a Map computes: elementwise ops where that is possible, else its computation batched.

    Raises `UnsupportedError` for an op that cannot be batched, naming the user's line.
    """
    computation, operands = instruction.attributes["to_apply"], instruction.operands
    try:
        return lift(computation, operands)
    except UnsupportedError:
        pass
    shape = instruction.array_shape
    if not shape.size:
        return full(shape, 0)
    if shape.size == 1:
        return reshape(inline(computation, [reshape(o, ()) for o in operands]), shape.dimensions)
    flat = [Batched(reshape(o, (shape.size,)), True) for o in operands]
    known = dict(zip(computation.parameters, flat, strict=True))
    (made,) = batch([computation.root], known, shape.size)
    return reshape(made.stretched(shape.size), shape.dimensions)
