"""Loops over the slices of arrays: `scan`, `map`, and `associative_scan`.

The first two are recorded as one Scan, which has a derivative; what the function uses of the trace
around it becomes a carry that stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracejit import tree
from tracejit.errors import ArgumentError, AttributeValueError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.lax.control import as_carried, carried_body
from tracejit.loading import supplied
from tracejit.ops import layout, scanning
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.shapes import Shape, canonical_dimension
from tracejit.trace.body import Abstract, Body, record_body, with_kinds
from tracejit.trace.context import keep_effect
from tracejit.trace.convert import operand
from tracejit.trace.convert import stacked as stack
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift
from tracejit.traversal import unreached

Function = Callable[..., Any]
Slices = list[Instruction]


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

    >>> tj.lax.scan(lambda carry, x: (carry + x, carry), 0, np.array([1, 2, 3]))
    (np.int64(6), array([0, 1, 3]))
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


def repeated(f: Function, init: Any, count: int, title: str) -> Any:
    """``init`` replaced ``count`` times by ``f`` of it, as one Scan without slices.

    ``title`` names the function in errors. Carried Python numbers take the type that ``f`` gives
    them. Raises `ArgumentError`, `ShapeError` or `ElementTypeError` unless it returns what it
    takes.
    """
    leaves, structure = tree.flatten(init)
    carry = [Abstract.of(leaf) for leaf in leaves]
    body = as_carried(carried_body(f, title, carry, structure), carry)
    captured = body.captured
    values = [operand(v).to(kind.shape.element_type) for v, kind in zip(leaves, carry, strict=True)]
    made = scanning.scan(
        [], [*values, *captured], _closed(body, len(values), captured), length=count
    )
    final = elements_of(keep_effect(made))[: len(values)]
    return tree.unflatten(structure, with_kinds(final, carry))


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
def map(f: Function, xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of every slice of ``xs`` along the first dimension, the results stacked.

    With ``batch_size`` that number of slices is computed at once, by `vmap`, and the rest after
    them. Raises `ShapeError` when lengths differ, `AttributeValueError` for a batch size below 1.

    >>> tj.lax.map(lambda x: x * 2, np.array([1.0, 2.0]))
    array([2., 4.])
    """
    if batch_size is None:
        _, ys = scan(lambda carry, x: (carry, f(x)), (), xs)
        return ys
    if batch_size < 1:
        raise AttributeValueError(f"map: batch_size must be at least 1, not {batch_size}")
    columns, spec = tree.flatten(xs)
    slices = [lift(operand(column).natural, False) for column in columns]
    count = _length([s.instruction for s in slices], None)
    whole = count - count % batch_size
    batched = supplied("vectorization").vmap(f)
    parts = []
    if whole:
        rows = [s[:whole].reshape(-1, batch_size, *s.shape[1:]) for s in slices]
        _, ys = scan(lambda carry, x: (carry, batched(x)), (), tree.unflatten(spec, rows))
        parts.append(tree.map(lambda y: y.reshape(whole, *y.shape[2:]), ys))
    if whole < count:
        parts.append(batched(tree.unflatten(spec, [s[whole:] for s in slices])))
    if not parts:
        return map(f, xs)
    return tree.map(lambda *ys: _joined([y.instruction for y in ys], 0), *parts)


def _joined(parts: Sequence[Instruction], axis: int) -> Tracer:
    return lift(layout.concatenate(parts, axis) if len(parts) > 1 else parts[0], False)


@public
def associative_scan(fn: Function, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All partial results of an associative function: the tree of x0, fn(x0, x1), ...

    ``fn(a, b)`` takes and returns trees like ``elems``, whose arrays have many elements along
    ``axis``, one row of ``a`` for each of ``b``. It is recorded about 2 log2(n) times. With
    ``reverse`` the partial results begin at the end.

    Raises `ShapeError` when lengths differ, `DimensionError` for an axis that is none, and
    `ArgumentError` when ``fn`` returns another tree.

    >>> tj.lax.associative_scan(np.add, np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    columns, spec = tree.flatten(elems)
    arrays = [operand(column).natural for column in columns]
    axes = [canonical_dimension(axis, a.array_shape.rank, "associative_scan") for a in arrays]
    lengths = {a.array_shape.dimensions[k] for a, k in zip(arrays, axes, strict=True)}
    if len(lengths) != 1:
        raise ShapeError(
            f"associative_scan: elems must have one length along axis {axis}; found "
            f"{sorted(lengths)}"
        )
    turned = [layout.rev(a, [k]) if reverse else a for a, k in zip(arrays, axes, strict=True)]

    def combine(left: Slices, right: Slices) -> Slices:
        given = (tree.unflatten(spec, [lift(x, False) for x in side]) for side in (left, right))
        made, structure = tree.flatten(fn(*given))
        if structure != spec:
            raise ArgumentError(
                f"associative_scan: fn must return the tree that it takes, {spec}, not {structure}"
            )
        results = [operand(value).natural for value in made]
        for before, after in zip(right, results, strict=True):
            if before.shape != after.shape:
                raise ShapeError(
                    f"associative_scan: fn must return the shapes that it takes; {before.shape} "
                    f"became {after.shape}"
                )
        return results

    partial = _partial_results(combine, turned, axes)
    placed = [layout.rev(p, [k]) if reverse else p for p, k in zip(partial, axes, strict=True)]
    return tree.unflatten(spec, [lift(p, False) for p in placed])


def _partial_results(
    combine: Callable[[Slices, Slices], Slices], arrays: Slices, axes: Sequence[int]
) -> Slices:
    """Pairs of neighbours are combined; their partial results are the odd ones of the whole."""
    count = arrays[0].array_shape.dimensions[axes[0]] if arrays else 0
    if count < 2:
        return arrays
    firsts, seconds = _every_other(arrays, axes, 0, count - 1), _every_other(arrays, axes, 1, count)
    odd = _partial_results(combine, combine(firsts, seconds), axes)
    # Before each later even element stands the odd partial result in front of it.
    later = _every_other(arrays, axes, 2, count)
    if count > 2:
        before = [_strided(o, k, 0, (count - 1) // 2, 1) for o, k in zip(odd, axes, strict=True)]
        later = combine(before, later)
    start = [_strided(a, k, 0, 1, 1) for a, k in zip(arrays, axes, strict=True)]
    even = [layout.concatenate([s, rest], k) for s, rest, k in zip(start, later, axes, strict=True)]
    return [_interleaved(e, o, k) for e, o, k in zip(even, odd, axes, strict=True)]


def _every_other(arrays: Slices, axes: Sequence[int], start: int, limit: int) -> Slices:
    return [_strided(a, k, start, limit, 2) for a, k in zip(arrays, axes, strict=True)]


def _strided(array: Instruction, axis: int, start: int, limit: int, stride: int) -> Instruction:
    return layout.slice_in_dim(array, min(start, limit), limit, stride, axis)


def _interleaved(even: Instruction, odd: Instruction, axis: int) -> Instruction:
    """even[0], odd[0], even[1], ...; there are as many of both, or one more of the first."""
    sizes = odd.array_shape.dimensions
    pairs = sizes[axis]
    paired = (*sizes[: axis + 1], 1, *sizes[axis + 1 :])
    both = [layout.reshape(_strided(x, axis, 0, pairs, 1), paired) for x in (even, odd)]
    flat = (*sizes[:axis], 2 * pairs, *sizes[axis + 1 :])
    made = layout.reshape(layout.concatenate(both, axis + 1), flat)
    count = even.array_shape.dimensions[axis]
    if count == pairs:
        return made
    return layout.concatenate([made, _strided(even, axis, pairs, count, 1)], axis)
