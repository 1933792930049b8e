"""XLA asked about a computation op by op: which op it computes otherwise, or none.

    asked = op_by_op(module.entry, given)
    asked.wrong          the first op that XLA, given its operands, computes otherwise; '' if none
    asked.results        the computation's results, each op from XLA's results of those before it

Each op is a module of its own, its operands parameters, so that XLA can neither fold nor rewrite
it together with others. An op that calls computations is run whole; if XLA then disagrees, again
with a barrier behind each op of those. Twice: on the interpreter's
values, and on those that XLA made. Where the two agree on every op, but not on the whole, XLA
contradicts itself.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from tracejit.backends.numpy import evaluate_instruction
from tracejit.backends.numpy.extents import Dynamic
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.shapes import TOKEN, AnyShape, Shape, TupleShape, shape_of
from tracejit.traversal import instructions, rebuild, transform

# Ops that compute nothing: what they make is taken from the interpreter.
_STRUCTURE = {"Tuple", "GetTupleElement", "AfterAll", "AddDependency", "SetDimensionSize"}
# Ops inside of whose computations XLA can be kept from rewriting.
_CONTROL = {"Call", "Conditional", "While"}

Value = Any


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
    if instruction.op is CONSTANT or instruction.op.name in _STRUCTURE:
        return "", ours, ours
    parameters: list[Instruction] = []
    arrays: list[np.ndarray] = []
    inputs = [
        _input(value, operand.shape, parameters, arrays)
        for value, operand in zip(operands, instruction.operands, strict=True)
    ]
    root = rebuild(instruction, inputs)
    outputs = _arrays_of(root)
    if outputs is None:
        return "", ours, ours
    made, wrong = _compared(root, outputs, parameters, arrays, leaves(ours))
    if wrong and instruction.op.name in _CONTROL:
        (guarded,) = transform([root], _guarded)
        outputs = _arrays_of(guarded) or []
        made, wrong = _compared(guarded, outputs, parameters, arrays, leaves(ours))
    return wrong, ours, _nested(iter(made), instruction.shape)


def _compared(
    root: Instruction,
    outputs: Sequence[Instruction],
    parameters: Sequence[Instruction],
    arrays: Sequence[np.ndarray],
    ours: list[np.ndarray],
) -> tuple[list[np.ndarray], str]:
    """What XLA makes of the op, or ours where it refuses, and what is wrong with it."""
    whole = Computation("alone", tuple(parameters), ops.tuple_(outputs))
    try:
        made = leaves(run_xla(Module("alone", whole), *arrays))
    except JaxRuntimeError as error:
        return ours, "" if refused.reason(error) else str(error)[:300]
    entry = Computation("alone", tuple(parameters), root)
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
    value: Value, shape: AnyShape, parameters: list[Instruction], arrays: list[np.ndarray]
) -> Instruction:
    """An operand of that value, made of new parameters, to which ``arrays`` are given."""
    if isinstance(shape, TupleShape):
        pairs = zip(value, shape.elements, strict=True)
        return ops.tuple_([_input(v, s, parameters, arrays) for v, s in pairs])
    if not isinstance(shape, Shape):
        assert value is TOKEN
        return ops.after_all([])
    array = value.padded if isinstance(value, Dynamic) else np.asarray(value)
    made = ops.parameter(len(parameters), Shape(shape.element_type, shape.dimensions))
    parameters.append(made)
    arrays.append(array)
    if isinstance(value, Dynamic):
        for dimension, is_dynamic in enumerate(shape.dynamic_dimensions):
            if is_dynamic:
                size = np.asarray(value.sizes[dimension], np.int32)
                length = ops.parameter(len(parameters), shape_of(size))
                parameters.append(length)
                arrays.append(size)
                made = ops.set_dimension_size(made, length, dimension)
    return made


def _arrays_of(made: Instruction) -> list[Instruction] | None:
    """The arrays that a value holds, tuples taken apart; None where one is of a dynamic size."""
    if isinstance(made.shape, TupleShape):
        parts = [_arrays_of(element) for element in ops.elements_of(made)]
        if any(part is None for part in parts):
            return None
        return [leaf for part in parts for leaf in part or []]
    shape = made.shape
    return [made] if isinstance(shape, Shape) and not shape.is_dynamic else None


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
