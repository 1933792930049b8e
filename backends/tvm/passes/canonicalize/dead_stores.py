"""Dead store elimination: drops updates that a later one overwrites before anything reads them.

    eliminate_dead_stores(roots)         update(update(x, a, i), b, i) -> update(x, b, i)

If something reads the earlier update, it stays: the array before both would need a second buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Instruction
from tracejit.ops.layout import DYNAMIC_UPDATE_SLICE, dynamic_update_slice
from tracejit.traversal import in_order, transform, user_counts


def eliminate_dead_stores(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots``; equal indices must be one instruction."""
    over = {i for i in in_order(roots) if _hides(i)}
    if not over:
        return list(roots)
    counts = user_counts(roots)

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        if instruction not in over or counts[instruction.operands[0]] > 1:
            return None
        (hidden, update, *starts) = operands
        return dynamic_update_slice(hidden.operands[0], update, starts)

    return transform(roots, visit)


def _hides(instruction: Instruction) -> bool:
    """Whether an update overwrites the whole region of the one before it."""
    if instruction.op is not DYNAMIC_UPDATE_SLICE:
        return False
    earlier, update, *starts = instruction.operands
    if earlier.op is not DYNAMIC_UPDATE_SLICE:
        return False
    _, hidden, *written = earlier.operands
    return written == starts and hidden.shape == update.shape
