"""Loops over the slices of arrays: `scan` and `map`.

Recorded as one While, whose body takes a slice, applies the function, and writes a row of the
results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit import tree
from tracejit.errors import ArgumentError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.lax.control import as_carried, carried_body
from tracejit.ops import comparison, control, elementwise, layout
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.shapes import Shape
from tracejit.trace.body import Abstract, Body, record_body, with_kinds
from tracejit.trace.convert import operand
from tracejit.trace.convert import stacked as stack
from tracejit.trace.index_basic import INDEX_TYPE
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift

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
    ``unroll=True`` records every step by itself, which gives the result a derivative; a number
    is a hint. Raises `ShapeError` when lengths differ.
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
    buffers = [layout.full(_rows(kind, count), 0) for kind in outputs]
    given = tuple_([constant(0, INDEX_TYPE), *values, *buffers, *slices, *captured])
    made = elements_of(
        control.while_(
            _counts_to(count, given),
            _scan_body(body, len(values), len(buffers), captured, given, count, reverse),
            given,
        )
    )
    final = with_kinds(made[1 : 1 + len(values)], carry)
    stacked = [lift(m, False) for m in made[1 + len(values) : 1 + len(values) + len(buffers)]]
    ys = body.structure.children()[1]
    return tree.unflatten(structure, final), tree.unflatten(ys, stacked)


def _counts_to(count: int, given: Instruction) -> Computation:
    argument = parameter(0, given.shape)
    counter = elements_of(argument)[0]
    return Computation(
        "condition", (argument,), comparison.lt(counter, constant(count, INDEX_TYPE))
    )


def _scan_body(
    body: Body,
    carried: int,
    stacked: int,
    captured: Sequence[Instruction],
    given: Instruction,
    count: int,
    reverse: bool,
) -> Computation:
    """(counter, carry, buffers, xs, captured) after one step."""
    argument = parameter(0, given.shape)
    counter, *elements = elements_of(argument)
    carry, buffers = elements[:carried], elements[carried : carried + stacked]
    width = len(body.parameters) - carried
    slices = elements[carried + stacked : carried + stacked + width]
    kept = elements[carried + stacked + width :]
    last = constant(count - 1, INDEX_TYPE)
    place = elementwise.sub(last, counter) if reverse else counter
    rows = [_row(s, place) for s in slices]
    replaced = dict(zip([*body.parameters, *captured], [*carry, *rows, *kept], strict=True))
    results = body.rebuilt(replaced)
    written = [
        _written(buffer, y, place) for buffer, y in zip(buffers, results[carried:], strict=True)
    ]
    following = elementwise.add(counter, constant(1, INDEX_TYPE))
    root = tuple_([following, *results[:carried], *written, *slices, *kept])
    return Computation("body", (argument,), root)


def _pair(result: Any) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(f"scan: the body must return (carry, y), not {tree.structure(result)}")
    return result


def _starts(array: Instruction, place: Instruction) -> list[Instruction]:
    return [place] + [constant(0, INDEX_TYPE)] * (array.array_shape.rank - 1)


def _row(array: Instruction, place: Instruction) -> Instruction:
    sizes = array.array_shape.dimensions
    made = layout.dynamic_slice(array, _starts(array, place), (1, *sizes[1:]))
    return layout.reshape(made, sizes[1:])


def _written(buffer: Instruction, value: Instruction, place: Instruction) -> Instruction:
    update = layout.reshape(value, (1, *value.array_shape.dimensions))
    return layout.dynamic_update_slice(buffer, update, _starts(buffer, place))


@public
def map(f: Function, xs: Any) -> Any:
    """``f`` of every slice of ``xs`` along the first dimension, the results stacked."""
    _, ys = scan(lambda carry, x: (carry, f(x)), (), xs)
    return ys
