"""Loop-invariant code motion of products: one matrix product before a counted loop.

    hoist_contractions(loop, instruction, lanes)

    for i in range(n): c[i] = x[:, i] @ a       p = x.T @ a;  for i in range(n): c[i] = p[i]

The products may depend on the counter and on loop-invariant values. One product of matrices reads
the matrix once for a whole tile of results, where each iteration would read all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejit.backends.tvm.analysis.contiguous_access import (
    IterationBatch,
    RefusedError,
    SideBySide,
)
from tracejit.backends.tvm.analysis.induction import CountedLoop
from tracejit.backends.tvm.ir.limits import Limits
from tracejit.batching.batch import Batched, applied, uniform
from tracejit.errors import UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import (
    CONSTANT,
    PARAMETER,
    constant,
    elements_of,
    iota,
    parameter,
    tuple_,
)
from tracejit.ops.contraction import DOT_GENERAL
from tracejit.ops.control import while_
from tracejit.ops.elementwise import add, sub
from tracejit.ops.layout import broadcast_in_dim, dynamic_slice, reshape
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.traversal import in_order, substitute


def hoist_contractions(
    loop: CountedLoop, instruction: Instruction, lanes: IterationBatch, limits: Limits
) -> Instruction | None:
    """The final state of a loop with its products hoisted; None if there are none.

    ``instruction`` is the loop, ``lanes`` are all of its iterations, without a mask.
    """
    if lanes.mask is not None or not limits.hoists(lanes.count) or lanes.first.terms:
        return None
    order = in_order([loop.body.root])
    values = _values(loop, lanes, order, limits)
    products = {
        dot: values[dot].value
        for dot in order
        if dot.op is DOT_GENERAL and dot in values and _is_worth_it(dot, values)
    }
    return _shorter(loop, instruction, lanes, products) if products else None


def _values(
    loop: CountedLoop, lanes: IterationBatch, order: Sequence[Instruction], limits: Limits
) -> dict[Instruction, Batched]:
    """The values of all iterations that can be computed before the loop."""
    first = broadcast_in_dim(constant(lanes.first.constant, ElementType.S64), (lanes.count,), ())
    numbers = add(iota(Shape(ElementType.S64, (lanes.count,)), 0), first)
    values = {
        part: Batched(loop.init[n], uniform(part.shape, False))
        for n, part in enumerate(loop.parts)
        if loop.is_kept(n)
    }
    values[loop.number] = Batched(numbers, True)
    beside = SideBySide(loop, lanes)
    wanted = {i for dot in order if dot.op is DOT_GENERAL for i in in_order([dot])}
    for instruction in order:
        known = [values.get(operand) for operand in instruction.operands]
        operands = [value for value in known if value is not None]
        if instruction in values or instruction.op is PARAMETER or len(operands) < len(known):
            continue
        if instruction not in wanted or instruction.has_effect:
            continue
        shape = instruction.shape
        if not isinstance(shape, Shape) or not limits.hoists(lanes.count, shape.nbytes):
            continue
        if not operands and instruction.op is not CONSTANT and instruction.computations:
            continue
        try:
            made = beside.read(instruction, operands)
            values[instruction] = made or applied(instruction, operands, lanes.count)
        except (RefusedError, UnsupportedError):
            continue
    return values


def _is_worth_it(dot: Instruction, values: Mapping[Instruction, Batched]) -> bool:
    """Whether the product is of a vector per iteration and a loop-invariant matrix."""
    sides = [values[operand] for operand in dot.operands]
    if dot.attributes["lhs_batch_dims"] or sides[0].is_batched is sides[1].is_batched:
        return False
    fixed = 0 if sides[1].is_batched else 1
    return dot.operands[fixed].array_shape.size >= 4 * dot.operands[1 - fixed].array_shape.size


def _shorter(
    loop: CountedLoop,
    instruction: Instruction,
    lanes: IterationBatch,
    products: Mapping[Instruction, Instruction],
) -> Instruction:
    """The loop with the stacked products as state elements."""
    count = len(loop.init)
    shapes = [*(value.shape for value in loop.init), *(made.shape for made in products.values())]

    def longer(computation: Computation, is_body: bool) -> Computation:
        (old,) = computation.parameters
        new = parameter(0, TupleShape(tuple(shapes)))
        parts = elements_of(new)
        replaced = {
            element: parts[element.attributes["index"]]
            for element in in_order([computation.root])
            if element.operands == (old,)
        }
        if not is_body:
            (root,) = substitute([computation.root], replaced)
            return Computation(computation.name, (new,), root)
        zero = constant(0, ElementType.S64)
        number = sub(parts[loop.counter], constant(lanes.first.constant, ElementType.S64))
        for (dot, made), stacked in zip(products.items(), parts[count:], strict=True):
            sizes = made.array_shape.dimensions
            starts = [number, *[zero] * (len(sizes) - 1)]
            row = dynamic_slice(stacked, starts, (1, *sizes[1:]))
            replaced[dot] = reshape(row, sizes[1:])
        root = tuple_([*substitute(loop.made, replaced), *parts[count:]])
        return Computation(computation.name, (new,), root)

    condition = longer(instruction.attributes["condition"], False)
    state = tuple_([*loop.init, *products.values()])
    final = while_(condition, longer(loop.body, True), state)
    return tuple_(elements_of(final)[:count])
