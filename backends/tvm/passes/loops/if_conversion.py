"""If-conversion: computes both sides of a branch, and selects one result.

    convert_ifs(roots)

    conditional(p, f, g)        select(p, f(), g())

Then all iterations of a loop can run together. A write in only one branch becomes a write of a
selected value, so that it stays a write to one slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    CONSTANT,
    GET_TUPLE_ELEMENT,
    PARAMETER,
    TUPLE,
    elements_of,
    tuple_,
)
from tracejit.ops.control import CONDITIONAL, WHILE
from tracejit.ops.elementwise import SELECT, select
from tracejit.ops.layout import (
    DYNAMIC_SLICE,
    DYNAMIC_UPDATE_SLICE,
    RESHAPE,
    SLICE,
    broadcast_in_dim,
    dynamic_slice,
    dynamic_update_slice,
)
from tracejit.shapes import Shape
from tracejit.traversal import in_order, inline, transform

FEW = 8
"""The most operations on scalars in branches that are cheaper than a jump, ..."""
FEW_AROUND_WRITES = 16
"""... and the most where arrays pass through the branches: with two versions they
would be copied.
"""

_FREE = frozenset({PARAMETER, GET_TUPLE_ELEMENT, TUPLE, CONSTANT, RESHAPE})
_CHEAP = frozenset({"comparison", "constants", "element_types"})


def convert_ifs(roots: Sequence[Instruction]) -> list[Instruction]:
    """Equal ``roots`` without branches on booleans, unless these contain loops or effects."""
    if not any(instruction.op is CONDITIONAL for instruction in in_order(roots)):
        return list(roots)

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        return choice(instruction, operands) if instruction.op is CONDITIONAL else None

    return transform(roots, visit)


def choice(conditional: Instruction, operands: Sequence[Instruction]) -> Instruction | None:
    """The value of a Conditional without it; None if it selects by number, or contains a loop."""
    branches = conditional.computations
    inside = [inner for branch in branches for inner in in_order([branch.root])]
    if conditional.has_effect or conditional.attributes["branch_computations"]:
        return None
    if any(inner.op is WHILE for inner in inside):
        return None
    predicate, *arguments = operands
    values = [inline(b, [a]) for b, a in zip(branches, arguments, strict=True)]
    return _chosen(predicate, *convert_ifs([_flat(value) for value in values]))


def convert_cheap_if(
    conditional: Instruction, operands: Sequence[Instruction]
) -> Instruction | None:
    """The value of a Conditional without it, if the branches cost less than a jump.

    Their ops are on a few scalars, read elements of arrays and write one.
    """
    if not all(map(_is_trifling, conditional.computations)):
        return None
    made = choice(conditional, operands)
    if made is None or any(e.op is SELECT and e.array_shape.size > 1 for e in elements_of(made)):
        return None
    return made


def _is_trifling(branch: Computation) -> bool:
    results = elements_of(branch.root)
    if not all(isinstance(result.shape, Shape) for result in results):
        return False
    made = [i for i in in_order([branch.root]) if i.op not in _FREE]
    arrays = [result for result in results if result.array_shape.size > 1]
    if not all(a.op in (DYNAMIC_UPDATE_SLICE, GET_TUPLE_ELEMENT, PARAMETER) for a in arrays):
        return False
    return len(made) <= (FEW_AROUND_WRITES if arrays else FEW) and all(map(_is_cheap, made))


def _is_cheap(instruction: Instruction) -> bool:
    """Whether an operation is on scalars, or reads or writes one element."""
    made = instruction
    if instruction.op is DYNAMIC_UPDATE_SLICE:
        made = instruction.operands[1]
    elif instruction.op not in (DYNAMIC_SLICE, SLICE):
        if not instruction.op.is_cheap and instruction.op.family not in _CHEAP:
            return False
    return isinstance(made.shape, Shape) and made.shape.size == 1


def _flat(value: Instruction) -> Instruction:
    """A value with GetTupleElements of Tuple instructions resolved."""
    (made,) = transform(
        [value],
        lambda i, operands: (
            operands[0].operands[i.attributes["index"]]
            if i.op is GET_TUPLE_ELEMENT and operands[0].op is TUPLE
            else None
        ),
    )
    return made


def _chosen(predicate: Instruction, first: Instruction, second: Instruction) -> Instruction:
    """The first value if a scalar is true, else the second; tuples element by element."""
    if first is second or not isinstance(first.shape, Shape):
        if first is second:
            return first
        pairs = zip(elements_of(first), elements_of(second), strict=True)
        return tuple_([_chosen(predicate, a, b) for a, b in pairs])
    for written, other in ((first, second), (second, first)):
        writes = _writes(written, other)
        if writes:
            return _written(predicate, writes, other, where=written is first)
    if first.op is second.op is DYNAMIC_UPDATE_SLICE:
        base, update, *starts = first.operands
        same, another, *places = second.operands
        is_one = all(map(_are_equal, starts, places)) and update.shape == another.shape
        if base is same and is_one:
            return dynamic_update_slice(base, _selected(predicate, update, another), starts)
    return _selected(predicate, first, second)


def _writes(array: Instruction, base: Instruction) -> list[Instruction]:
    """The updates, in order, from ``base`` to an array; none if there are others."""
    found = []
    while array.op is DYNAMIC_UPDATE_SLICE and array is not base:
        found.append(array)
        array = array.operands[0]
    return found[::-1] if array is base else []


def _written(
    predicate: Instruction, writes: Sequence[Instruction], base: Instruction, where: bool
) -> Instruction:
    """``base`` with the updates applied where the predicate equals ``where``."""
    for write in writes:
        _, update, *starts = write.operands
        old = dynamic_slice(base, starts, update.array_shape.dimensions)
        values = (update, old) if where else (old, update)
        base = dynamic_update_slice(base, _selected(predicate, *values), starts)
    return base


def _are_equal(one: Instruction, other: Instruction) -> bool:
    """Whether two indices are provably equal."""
    if one.op is CONSTANT and other.op is CONSTANT:
        return bool(one.attributes["literal"] == other.attributes["literal"])
    return one is other


def _selected(predicate: Instruction, first: Instruction, second: Instruction) -> Instruction:
    sizes = first.array_shape.dimensions
    return select(broadcast_in_dim(predicate, sizes, ()), first, second)
