"""XLA asked about a computation op by op: which op it computes otherwise, or none.

    asked = op_by_op(module.entry, given)
    asked.wrong          the first op that XLA, given its operands, computes otherwise; '' if none
    asked.results        the computation's results, each op from XLA's results of those before it

Each op is a module of its own, its operands parameters, so that XLA can neither fold nor rewrite
it together with others. An op that calls computations is run whole; if XLA then disagrees, again
with a barrier behind each op of those. Twice: on the interpreter's values, and on those that XLA
made. Where the two agree on every op, but not on the whole, XLA contradicts itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.errors import JaxRuntimeError

from tests.fuzz import refused
from tests.fuzz.comparing import leaves
from tests.fuzz.verdict import verdict
from tests.judge import run_xla
from tests.plain import plain
from tracejit import ops
from tracejit.backends.numpy import evaluate, evaluate_instruction
from tracejit.backends.numpy.extents import Dynamic
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.shapes import TOKEN, AnyShape, ElementType, Shape, TupleShape, shape_of
from tracejit.traversal import instructions, rebuild, transform

Value = Any

# What ops that compute nothing make.
_DEFINED: dict[str, Callable[..., Value]] = {
    "Constant": lambda instruction: np.asarray(instruction.attributes["literal"]),
    "Tuple": lambda instruction, *operands: operands,
    "GetTupleElement": lambda instruction, operand: operand[instruction.attributes["index"]],
    "AfterAll": lambda instruction, *tokens: TOKEN,
    "AddDependency": lambda instruction, operand, token: operand,
}
# Ops inside of whose computations XLA can be kept from rewriting.
_CONTROL = {"Call", "Conditional", "While"}


@dataclass(frozen=True)
class Asked:
    """``wrong`` names the first op that XLA disagrees on by itself, and says how."""

    wrong: str
    results: list[np.ndarray]


def op_by_op(entry: Computation, given: Sequence[np.ndarray]) -> Asked:
    """What XLA makes of each op of ``entry`` by itself, and of all of them one after the other.

    ``results`` are empty where an op is wrong.
    """
    entry = plain(entry)
    ours: dict[Instruction, Value] = dict(zip(entry.parameters, given, strict=True))
    theirs = dict(ours)
    for instruction in instructions(entry):
        if instruction.op is PARAMETER:
            continue
        operands = [ours[o] for o in instruction.operands]
        wrong, ours[instruction], made = _alone(instruction, operands)
        changed = [theirs[o] for o in instruction.operands]
        if not wrong and not all(map(_same, operands, changed)):
            wrong, _, made = _alone(instruction, changed)
        if wrong:
            return Asked(f"{instruction.op.name} alone: {wrong}", [])
        theirs[instruction] = made
    return Asked("", leaves(theirs[entry.root]))


def _alone(instruction: Instruction, operands: Sequence[Value]) -> tuple[str, Value, Value]:
    """What is wrong with the op by itself, the interpreter's value of it, and XLA's."""
    ours = evaluate_instruction(instruction, operands)
    if defined := _DEFINED.get(instruction.op.name):
        made = defined(instruction, *operands)
        return "" if _same(ours, made) else "the interpreter makes something else", ours, made
    parameters: list[Instruction] = []
    arrays: list[np.ndarray] = []
    # Only a constant, the whole of it, makes a dimension static again.
    is_fixed = instruction.op.name == "SetDimensionSize" and not _is_dynamic(instruction.shape)
    inputs = [
        operand
        if is_fixed and operand.op is CONSTANT
        else _input(value, operand, parameters, arrays)
        for value, operand in zip(operands, instruction.operands, strict=True)
    ]
    root = rebuild(instruction, inputs)
    made, wrong = _compared(root, parameters, arrays)
    if wrong and instruction.op.name in _CONTROL:
        (guarded,) = transform([root], _guarded)
        made, wrong = _compared(guarded, parameters, arrays)
    if _is_dynamic(instruction.shape):
        return wrong, ours, ours
    return wrong, ours, _nested(iter(made), instruction.shape)


def _compared(
    root: Instruction, parameters: Sequence[Instruction], arrays: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], str]:
    """What XLA makes of the op, or ours where it refuses, and what is wrong with it."""
    outputs = ops.tuple_(_arrays_of(root))
    whole = Computation("alone", tuple(parameters), outputs)
    ours = leaves(evaluate(whole, arrays))
    try:
        made = leaves(run_xla(Module("alone", whole), *arrays))
    except JaxRuntimeError as error:
        return ours, "" if refused.reason(error) else str(error)[:300]
    entry = Computation("alone", tuple(parameters), outputs if _is_dynamic(root.shape) else root)
    return made, verdict(entry, root.op.name, arrays, made, ours, True)


def _guarded(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
    """The instruction, in whose computations nothing can be folded or rewritten together."""
    if instruction.op.name not in _CONTROL:
        return None
    attributes = {name: _behind(value) for name, value in instruction.attributes.items()}
    return Instruction(instruction.op, operands, instruction.shape, attributes, instruction.source)


def _behind(value: Any) -> Any:
    """An attribute; of a computation, every array behind a barrier."""
    if isinstance(value, tuple):
        return tuple([_behind(element) for element in value])
    if not isinstance(value, Computation):
        return value

    def visit(instruction: Instruction, operands: tuple[Instruction, ...]) -> Instruction | None:
        shape = instruction.shape
        if instruction.op is PARAMETER or not isinstance(shape, Shape) or shape.is_dynamic:
            return _guarded(instruction, operands)
        made = _guarded(instruction, operands) or rebuild(instruction, operands)
        return ops.optimization_barrier(made)

    (root,) = transform([value.root], visit)
    return Computation(value.name, value.parameters, root)


def _input(
    value: Value, operand: Instruction, parameters: list[Instruction], arrays: list[np.ndarray]
) -> Instruction:
    """An operand of that value, made of new parameters, to which ``arrays`` are given."""
    shape = operand.shape
    if isinstance(shape, TupleShape):
        pairs = zip(value, ops.elements_of(operand), strict=True)
        return ops.tuple_([_input(v, element, parameters, arrays) for v, element in pairs])
    if not isinstance(shape, Shape):
        assert value is TOKEN
        return ops.after_all([])

    def given(array: np.ndarray) -> Instruction:
        parameters.append(ops.parameter(len(parameters), shape_of(array)))
        arrays.append(array)
        return parameters[-1]

    if not isinstance(value, Dynamic):
        return given(np.asarray(value))
    made = given(value.padded)
    for dimension in _dynamic_dimensions(shape):
        size = given(np.asarray(value.sizes[dimension], np.int32))
        made = ops.set_dimension_size(made, size, dimension)
    return made


def _arrays_of(made: Instruction) -> list[Instruction]:
    """The arrays that a value holds, tuples taken apart; of dynamic ones, what counts of them."""
    shape = made.shape
    if isinstance(shape, TupleShape):
        return [leaf for element in ops.elements_of(made) for leaf in _arrays_of(element)]
    assert isinstance(shape, Shape), "tokens are made by definition"
    sizes = [ops.get_dimension_size(made, d) for d in _dynamic_dimensions(shape)]
    for dimension, size in zip(_dynamic_dimensions(shape), sizes, strict=True):
        places = ops.iota(Shape(ElementType.S32, shape.dimensions), dimension)
        counts = ops.lt(places, ops.broadcast_in_dim(size, shape.dimensions, ()))
        bound = ops.constant(shape.dimensions[dimension], ElementType.S32)
        made = ops.set_dimension_size(made, bound, dimension)
        made = ops.select(counts, made, ops.full_like(made, 0))
    return [made, *sizes]


def _is_dynamic(shape: AnyShape) -> bool:
    return isinstance(shape, Shape) and shape.is_dynamic


def _dynamic_dimensions(shape: Shape) -> list[int]:
    return [d for d, is_dynamic in enumerate(shape.dynamic_dimensions) if is_dynamic]


def _nested(made: Any, shape: AnyShape) -> Value:
    """The next arrays of an iterator, nested as the shape says."""
    if isinstance(shape, TupleShape):
        return tuple([_nested(made, element) for element in shape.elements])
    return next(made)


def _same(left: Value, right: Value) -> bool:
    """Whether two values are the same, bit for bit."""
    if isinstance(left, tuple):
        return all(_same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, np.ndarray | np.generic):
        return bool(left.tobytes() == right.tobytes())
    return left is right
