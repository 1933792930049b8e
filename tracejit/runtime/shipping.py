"""Graphs and other values as bytes for another process of this program.

unpacked(packed((module, {"fast_math": True})))

Rows of instructions take the place of nested ones, so depth is no limit, and arrays are copied.
`pickle.dumps(module)`, for files, is the module's text.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

from tracejit.attributes import Kind
from tracejit.graph import OPS, Computation, Instruction, Module, Op
from tracejit.traversal import called_computations, instructions


class _Callee(NamedTuple):
    """A computation by its number, in an attribute of an instruction that calls it."""

    number: int


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Module):
            fields = (value.name, value.replica_count, value.num_partitions)
            return _module, (*fields, value.input_output_alias, _rows(value))
        if isinstance(value, Op):
            return _op, (value.name,)
        return NotImplemented


def packed(value: Any) -> bytes:
    """The value's bytes. Raises pickling's errors for values that are meaningful only in this
    process.
    """
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def unpacked(data: bytes) -> Any:
    """The value that `packed` serialised in a process of this program."""
    return pickle.loads(data)


def _rows(module: Module) -> list[Any]:
    computations = called_computations(module)
    numbers = {id(computation): number for number, computation in enumerate(computations)}
    return [_computation_rows(computation, numbers) for computation in computations]


def _computation_rows(computation: Computation, numbers: dict[int, int]) -> Any:
    order = instructions(computation)
    places = {instruction.serial: place for place, instruction in enumerate(order)}

    def at(several: Sequence[Instruction]) -> list[int]:
        return [places[instruction.serial] for instruction in several]

    def called(value: Any) -> Any:
        if isinstance(value, Computation):
            return _Callee(numbers[id(value)])
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return [_Callee(numbers[id(each)]) for each in value]
        return value

    kept_here = {i.op.name: _kept_here(i.op) for i in order}
    rows = [
        (
            i.op,
            at(i.operands),
            i.shape,
            {
                name: called(value)
                for name, value in i.attributes.items()
                if name not in kept_here[i.op.name]
            }
            if i.computations or kept_here[i.op.name]
            else i.attributes,
            i.source,
        )
        for i in order
    ]
    root, *effects = at([computation.root, *computation.effects])
    return computation.name, at(computation.parameters), root, effects, rows


def _kept_here(op: Op) -> dict[str, Any]:
    """The attributes, with their defaults, that hold functions of this process: no code depends on
    them."""
    return {a.name: a.default for a in op.attributes if a.kind is Kind.UNWRITTEN}


def _op(name: str) -> Op:
    return OPS[name]


def _module(name: str, replicas: int, partitions: int, aliases: Any, given: list[Any]) -> Module:
    made: list[Computation] = []

    def called(value: Any) -> Any:
        if isinstance(value, _Callee):
            return made[value.number]
        if isinstance(value, list) and value and isinstance(value[0], _Callee):
            return tuple(made[each.number] for each in value)
        return value

    for title, parameters, root, effects, rows in given:
        order: list[Instruction] = []
        for op, operands, shape, attributes, source in rows:
            own = _kept_here(op) | {name: called(value) for name, value in attributes.items()}
            order.append(Instruction(op, tuple(order[o] for o in operands), shape, own, source))
        inputs = tuple(order[place] for place in parameters)
        made.append(Computation(title, inputs, order[root], tuple(order[e] for e in effects)))
    return Module(name, made[-1], replicas, partitions, aliases)
