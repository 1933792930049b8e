"""Control flow that depends on values: `cond`, `switch`, `while_loop`, `fori_loop`, `scan`, `map`.

Bodies are functions of trees of arrays; they may use values of the trace around them. A loop's
carried values keep their shapes and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tracejit import tree
from tracejit.errors import ArgumentError, ElementTypeError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops import comparison, control, elementwise, layout
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.shapes import ElementType, Shape
from tracejit.trace.body import Abstract, Body, record_body
from tracejit.trace.convert import converted, operand
from tracejit.trace.convert import stacked as stack
from tracejit.trace.index_basic import INDEX_TYPE
from tracejit.trace.promotion import Promotable, common_element_type, weak_type
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift

Function = Callable[..., Any]


def _merged(captured: Sequence[Instruction]) -> list[Instruction]:
    """Each captured instruction once, in order of creation."""
    return sorted(set(captured), key=lambda instruction: instruction.serial)


def _closed(
    body: Body, name: str, captured: Sequence[Instruction], keep_captured: bool
) -> Computation:
    """The body as a computation of one tuple: its arguments, then ``captured``.

    With ``keep_captured`` it returns these too, as the body of a loop does.
    """
    given = [*body.parameters, *captured]
    argument = parameter(0, tuple_(given).shape)
    elements = elements_of(argument)
    results = body.rebuilt(dict(zip(given, elements, strict=True)))
    kept = elements[len(body.parameters) :] if keep_captured else ()
    return Computation(name, (argument,), tuple_([*results, *kept]))


def _tracers(values: Sequence[Instruction], abstract: Sequence[Abstract]) -> list[Tracer]:
    made = []
    for value, kind in zip(values, abstract, strict=True):
        tracer = lift(value, kind.is_scalar)
        tracer.is_weak = kind.is_weak
        made.append(tracer)
    return made


def _branches(
    names: Sequence[str], functions: Sequence[Function], operands_: tuple[Any, ...]
) -> tuple[list[Body], list[Instruction], tree.Structure]:
    leaves, structure = tree.flatten(operands_)
    arguments = [Abstract.of(leaf) for leaf in leaves]
    bodies = [
        record_body(f, name, arguments, lambda xs: tree.unflatten(structure, xs))
        for f, name in zip(functions, names, strict=True)
    ]
    first = bodies[0]
    for body, name in zip(bodies[1:], names[1:], strict=True):
        if body.structure != first.structure:
            raise ArgumentError(
                f"{names[0]} and {name} must return equal trees, not {first.structure} and "
                f"{body.structure}"
            )
        pairs = zip(body.abstract, first.abstract, tree.paths(first.structure), strict=True)
        for mine, theirs, path in pairs:
            if mine.shape != theirs.shape:
                raise ShapeError(
                    f"{names[0]} and {name} must return equal shapes; result{path} is "
                    f"{theirs.shape} and {mine.shape}"
                )
    return bodies, [operand(leaf).natural for leaf in leaves], structure


@public
def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """``true_fun(*operands)`` if ``pred`` holds, else ``false_fun(*operands)``; one runs."""
    selector = converted(operand(pred).natural, ElementType.PRED)
    names = ["true_fun", "false_fun"]
    bodies, values, _ = _branches(names, [true_fun, false_fun], operands)
    captured = _merged([c for body in bodies for c in body.captured])
    given = tuple_([*values, *captured])
    computations = [
        _closed(body, name, captured, False) for body, name in zip(bodies, names, strict=True)
    ]
    made = control.conditional(selector, given, computations[0], given, computations[1])
    return _results(made, bodies[0])


@public
def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """The branch that ``index``, clamped to their number, names, on ``operands``."""
    if not branches:
        raise ArgumentError("switch: needs at least one branch")
    number = converted(operand(index).natural, ElementType.S32)
    names = [f"branch_{i}" for i in range(len(branches))]
    bodies, values, _ = _branches(names, branches, operands)
    captured = _merged([c for body in bodies for c in body.captured])
    given = tuple_([*values, *captured])
    computations = [
        _closed(body, name, captured, False) for body, name in zip(bodies, names, strict=True)
    ]
    last = constant(len(branches) - 1, ElementType.S32)
    chosen = elementwise.clamp(constant(0, ElementType.S32), number, last)
    made = control.conditional_indexed(chosen, computations, [given] * len(computations))
    return _results(made, bodies[0])


def _results(made: Instruction, body: Body) -> Any:
    return tree.unflatten(body.structure, _tracers(elements_of(made), body.abstract))


def _carried(
    function: Function, title: str, carry: list[Abstract], structure: tree.Structure
) -> Body:
    """The body of a loop; carried Python numbers take the type that the body gives them.

    Raises `ArgumentError`, `ShapeError` or `ElementTypeError` unless it returns what it takes.
    """
    body = record_body(function, title, carry, lambda xs: (tree.unflatten(structure, xs),))
    if body.structure != structure:
        raise ArgumentError(
            f"{title}: must return the tree that it takes, {structure}, not {body.structure}"
        )
    widened = False
    for n, path in enumerate(tree.paths(structure)):
        before, after = carry[n], body.abstract[n]
        if before.shape.dimensions != after.shape.dimensions:
            raise ShapeError(
                f"{title}: carried value{path} enters as {before.shape} and leaves as {after.shape}"
            )
        if before.is_weak and not after.is_weak:
            carry[n] = after._replace(is_scalar=before.is_scalar)
            widened = True
        elif before.shape != after.shape:
            wide = common_element_type([_promotable(before), _promotable(after)])
            if not before.is_weak and wide is not before.shape.element_type:
                raise ElementTypeError(
                    f"{title}: carried value{path} enters as {before.shape} and leaves as "
                    f"{after.shape}; convert one of them"
                )
            if before.is_weak:
                carry[n] = before._replace(shape=Shape(wide))
                widened = True
    return _carried(function, title, carry, structure) if widened else body


def _promotable(abstract: Abstract) -> Promotable:
    dtype = abstract.shape.dtype
    return weak_type(dtype) if abstract.is_weak else dtype


@public
def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """``init_val`` replaced by ``body_fun`` of it while ``cond_fun`` of it holds.

    It has no derivative: how often it runs is known only while running.
    """
    return _while(cond_fun, body_fun, init_val)


def _while(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    leaves, structure = tree.flatten(init_val)
    carry = [Abstract.of(leaf) for leaf in leaves]
    body = _carried(body_fun, "body_fun", carry, structure)
    condition = record_body(
        cond_fun, "cond_fun", carry, lambda xs: (tree.unflatten(structure, xs),)
    )
    if [a.shape.dimensions for a in condition.abstract] != [()]:
        raise ShapeError("cond_fun: must return one truth value")
    captured = _merged([*body.captured, *condition.captured])
    values = [
        operand(leaf).to(kind.shape.element_type) for leaf, kind in zip(leaves, carry, strict=True)
    ]
    made = control.while_(
        _predicate(condition, captured),
        _closed(_converted(body, carry), "body_fun", captured, True),
        tuple_([*values, *captured]),
    )
    return tree.unflatten(structure, _tracers(elements_of(made)[: len(values)], carry))


def _converted(body: Body, carry: Sequence[Abstract]) -> Body:
    """The body with results of exactly the carried element types."""
    results = tuple(
        converted(result, kind.shape.element_type)
        for result, kind in zip(body.results, carry, strict=True)
    )
    return replace(body, results=results)


def _predicate(condition: Body, captured: Sequence[Instruction]) -> Computation:
    given = [*condition.parameters, *captured]
    argument = parameter(0, tuple_(given).shape)
    results = condition.rebuilt(dict(zip(given, elements_of(argument), strict=True)))
    return Computation("cond_fun", (argument,), converted(results[0], ElementType.PRED))


@public
def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: bool = False
) -> Any:
    """``init_val`` replaced by ``body_fun(i, it)`` for i from ``lower`` up to, not with, ``upper``.

    With ``unroll`` every step is recorded by itself: both limits must be known, and the result
    has a derivative, which the loop has not.
    """
    if unroll:
        value = init_val
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value
    limit = upper if isinstance(upper, int) else lift(operand(upper).natural)
    _, final = _while(
        lambda carry: carry[0] < limit,
        lambda carry: (carry[0] + 1, body_fun(carry[0], carry[1])),
        (lower, init_val),
    )
    return final


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
        return f(value, x)[0]

    # Once for the carry's final types, once for the body itself.
    _carried(only_carry, "body", carry, structure)
    body = _step(f, init, spec, [*carry, *(Abstract(row) for row in rows)])
    body = _converted(body, [*carry, *body.abstract[len(carry) :]])
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
    final = _tracers(made[1 : 1 + len(values)], carry)
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
