"""Loops over the slices of arrays: `scan` and `map`.

Recorded as one Scan, which has a derivative; what the function uses of the trace around it becomes
a carry that stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit import tree
from tracejit.errors import ArgumentError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.lax.control import as_carried, carried_body
from tracejit.ops import layout, scanning
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.shapes import Shape
from tracejit.trace.body import Abstract, Body, record_body, with_kinds
from tracejit.trace.context import keep_effect
from tracejit.trace.convert import operand
from tracejit.trace.convert import stacked as stack
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift
from tracejit.traversal import unreached

Function = Callable[..., Any]


@public
def scan(
    f: Function,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: bool | int = 1,
) -> Any:
    """(carry, ys): ``carry, y = f(carry, x)`` for every slice x of ``xs``, the ys stacked.

    ``xs`` is a tree of arrays with first dimensions of one length, or None with ``length``.
    ``unroll=True`` records every step by itself; a number is a hint. Raises `ShapeError` when
    lengths differ.
    """
    columns, spec = tree.flatten(xs)
    slices = [operand(column).natural for column in columns]
    count = _length(slices, length)
    if unroll is True or count == 0:
        return _unrolled(f, init, slices, spec, count, reverse)
    return _scanned(f, init, slices, spec, count, reverse)


def _length(slices: Sequence[Instruction], length: int | None) -> int:
    lengths = {s.array_shape.dimensions[0] if s.array_shape.rank else -1 for s in slices}
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1 or -1 in lengths:
        raise ShapeError(
            f"scan: xs must have first dimensions of one length, and length must be that; found "
            f"{sorted(lengths)}"
        )
    return lengths.pop()


def _unrolled(
    f: Function,
    init: Any,
    slices: Sequence[Instruction],
    spec: tree.Structure,
    count: int,
    reverse: bool,
) -> Any:
    carry, rows = init, []
    for i in reversed(range(count)) if reverse else range(count):
        x = tree.unflatten(spec, [lift(s, False)[i] for s in slices])
        carry, y = f(carry, x)
        rows.append(y)
    if not count:
        kinds = [Abstract.of(leaf) for leaf in tree.leaves(init)]
        kinds += [
            Abstract(Shape(s.array_shape.element_type, s.array_shape.dimensions[1:]))
            for s in slices
        ]
        body = _step(f, init, spec, kinds)
        _, ys = tree.unflatten(body.structure, body.abstract)
        return init, tree.map(lambda y: _buffer(y, 0), ys, is_leaf=_is_abstract)
    stacked = rows[::-1] if reverse else rows
    return carry, tree.map(lambda *ys: lift(stack(ys), False), *stacked)


def _is_abstract(value: Any) -> bool:
    return isinstance(value, Abstract)


def _buffer(kind: Abstract, count: int) -> Tracer:
    return lift(layout.full(_rows(kind, count), 0), False)


def _rows(kind: Abstract, count: int) -> Shape:
    return Shape(kind.shape.element_type, (count, *kind.shape.dimensions))


def _step(f: Function, init: Any, spec: tree.Structure, kinds: Sequence[Abstract]) -> Body:
    structure = tree.structure(init)
    width = structure.num_leaves

    def assemble(values: Sequence[Any]) -> tuple[Any, Any]:
        return tree.unflatten(structure, values[:width]), tree.unflatten(spec, values[width:])

    body = record_body(f, "body", kinds, assemble)
    children = body.structure.children()
    if body.structure.type is not tuple or len(children) != 2 or children[0] != structure:
        raise ArgumentError(f"scan: the body must return (carry, y) with a carry {structure}")
    return body


def _scanned(
    f: Function,
    init: Any,
    slices: Sequence[Instruction],
    spec: tree.Structure,
    count: int,
    reverse: bool,
) -> Any:
    leaves, structure = tree.flatten(init)
    rows = [Shape(s.array_shape.element_type, s.array_shape.dimensions[1:]) for s in slices]
    carry = [Abstract.of(leaf) for leaf in leaves]

    def only_carry(value: Any) -> Any:
        x = tree.unflatten(spec, [lift(layout.full(row, 0)) for row in rows])
        return _pair(f(value, x))[0]

    # Once for the carry's final types, once for the body itself.
    carried_body(only_carry, "body", carry, structure)
    body = _step(f, init, spec, [*carry, *(Abstract(row) for row in rows)])
    body = as_carried(body, [*carry, *body.abstract[len(carry) :]])
    captured = body.captured
    outputs = body.abstract[len(carry) :]
    values = [operand(v).to(kind.shape.element_type) for v, kind in zip(leaves, carry, strict=True)]
    scanned = scanning.scan(
        slices,
        [*values, *captured],
        _closed(body, len(values), captured),
        is_reverse=reverse,
        length=count,
    )
    made = elements_of(keep_effect(scanned))
    stacked = [lift(m, False) for m in made[: len(outputs)]]
    final = with_kinds(made[len(outputs) : len(outputs) + len(values)], carry)
    ys = body.structure.children()[1]
    return tree.unflatten(structure, final), tree.unflatten(ys, stacked)


def _closed(body: Body, carried: int, captured: Sequence[Instruction]) -> Computation:
    """From slices, carries and captured values to outputs, carries and the captured values."""
    carries, rows = body.parameters[:carried], body.parameters[carried:]
    given = [*rows, *carries, *captured]
    parameters = [parameter(i, value.shape) for i, value in enumerate(given)]
    results, effects = body.rebuilt(dict(zip(given, parameters, strict=True)))
    kept = parameters[len(rows) + carried :]
    root = tuple_([*results[carried:], *results[:carried], *kept])
    return Computation("body", tuple(parameters), root, unreached(root, effects))


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(f"scan: the body must return (carry, y), not {tree.structure(result)}")
    return result


@public
def map(f: Function, xs: Any) -> Any:
    """``f`` of every slice of ``xs`` along the first dimension, the results stacked."""
    _, ys = scan(lambda carry, x: (carry, f(x)), (), xs)
    return ys
