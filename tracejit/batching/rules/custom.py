"""CustomCall: the function is called for each element of the batch.

The library's own linear algebra takes batches of matrices as they are. An op that is defined by
other ops, with no derivative of its own, is batched like these; another op by its rule, if it has
one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.batching.batch import Batched, batch, batched_shape, batching, uniform
from tracejit.batching.sequential import one_by_one
from tracejit.errors import ShapeError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.base import make
from tracejit.ops.constants import tuple_
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.ops.layout import reshape
from tracejit.shapes import AnyShape, Layout, Shape, TupleShape
from tracejit.targets import Function, batching_for, differentiable_expansion_for
from tracejit.trace.body import Abstract, record_body


@batching.attach(CUSTOM_CALL)
def custom_call_rule(
    instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction | Batched:
    attributes = instruction.attributes
    if not attributes["custom_call_target"].startswith(LINEAR_ALGEBRA):
        rule = batching_for(instruction)
        if rule is not None:
            return _ruled(rule, instruction, operands, size)
        expansion = differentiable_expansion_for(instruction)
        if expansion is None and attributes["vmap_method"] == "sequential":
            return one_by_one(instruction, operands, size)
        if expansion is None:
            return _at_once(instruction, operands, size)
        known = dict(zip(expansion.parameters, operands, strict=True))
        return batch([expansion.root], known, size)[0]
    shape = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    values = [operand.stretched(size) for operand in operands]
    own = {"shape": shape, "operand_layout_constraints": None}
    return make(CUSTOM_CALL, *values, **{**attributes, **own})


def _at_once(instruction: Instruction, operands: Sequence[Batched], size: int) -> Instruction:
    """One call on arrays with the batch in front, as the call's ``vmap_method`` says."""
    attributes = instruction.attributes
    method, name = attributes["vmap_method"], attributes["custom_call_target"]
    if method is None:
        raise UnsupportedError(
            f"vmap: the call of {name!r} has vmap_method=None; give ffi_call another one",
            instruction.source,
        )
    aliased = {alias.operand for alias in attributes["output_to_operand_aliasing"]}
    values = []
    for number, operand in enumerate(operands):
        if operand.is_batched or method == "broadcast_all" or number in aliased:
            values.append(operand.stretched(size))
        elif method == "expand_dims":
            shape = operand.value.array_shape
            values.append(reshape(operand.value, (1, *shape.dimensions)))
        else:
            values.append(operand.value)
    constraints = attributes["operand_layout_constraints"]
    if constraints is not None:
        constraints = tuple(
            value.array_shape.with_layout(_with_batch(wanted, value.array_shape.rank))
            for value, wanted in zip(values, constraints, strict=True)
        )
    batched = batched_shape(instruction.shape, uniform(instruction.shape, True), size)
    own = {
        "shape": _laid_out(batched, instruction.shape),
        "operand_layout_constraints": constraints,
    }
    return make(CUSTOM_CALL, *values, **{**attributes, **own})


def _laid_out(shape: AnyShape, of_one: AnyShape) -> AnyShape:
    """The shape of a batch, laid out as one element's is, the batch varying slowest."""
    if isinstance(shape, TupleShape) and isinstance(of_one, TupleShape):
        return TupleShape(tuple(map(_laid_out, shape.elements, of_one.elements)))
    if not isinstance(shape, Shape):
        return shape
    return shape.with_layout(_with_batch(of_one, shape.rank))


def _with_batch(of_one: AnyShape, rank: int) -> Layout | None:
    layout = of_one.layout if isinstance(of_one, Shape) else None
    if layout is None or len(layout.minor_to_major) == rank:
        return layout
    return Layout((*(dimension + 1 for dimension in layout.minor_to_major), 0))


def _ruled(
    rule: Function, instruction: Instruction, operands: Sequence[Batched], size: int
) -> Instruction:
    """What the user's rule makes of the operands, all batched."""
    name = instruction.attributes["custom_call_target"]
    values = [operand.stretched(size) for operand in operands]
    body = record_body(
        lambda *arrays: tuple(rule(size, *arrays)),
        f"the batching rule of {name}",
        [Abstract(value.array_shape) for value in values],
    )
    replacements = dict(zip(body.parameters, values, strict=True))
    made, _ = body.rebuilt(replacements | {c: c for c in body.captured})
    wanted = [batched_shape(shape, True, size) for shape in instruction.element_shapes]
    if [result.shape for result in made] != wanted:
        raise ShapeError(
            f"{name}: the batching rule must return {', '.join(map(str, wanted))}, not "
            f"{', '.join(str(result.shape) for result in made)}",
            instruction.source,
        )
    return tuple_(made) if isinstance(instruction.shape, TupleShape) else made[0]
