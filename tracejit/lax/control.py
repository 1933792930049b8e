"""Control flow that depends on values: `cond`, `switch`, `while_loop`, `fori_loop`.

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
from tracejit.ops import control, elementwise
from tracejit.ops.constants import constant, elements_of, parameter, tuple_
from tracejit.shapes import ElementType, Shape
from tracejit.trace.body import Abstract, Body, record_body, with_kinds
from tracejit.trace.context import keep_effect
from tracejit.trace.convert import converted, operand
from tracejit.trace.promotion import Promotable, common_element_type, weak_type
from tracejit.trace.public import public
from tracejit.trace.tracer import lift
from tracejit.traversal import unreached

Function = Callable[..., Any]
_NOT_GIVEN = object()


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
    results, effects = body.rebuilt(dict(zip(given, elements, strict=True)))
    kept = elements[len(body.parameters) :] if keep_captured else ()
    root = tuple_([*results, *kept])
    return Computation(name, (argument,), root, unreached(root, effects))


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


def _chosen(
    selector: Instruction,
    names: Sequence[str],
    functions: Sequence[Function],
    operands: tuple[Any, ...],
) -> Any:
    """What the function that ``selector``, a truth value or a number, chooses returns."""
    bodies, values, _ = _branches(names, functions, operands)
    return chosen_body(selector, names, bodies, values)


def chosen_body(
    selector: Instruction,
    names: Sequence[str],
    bodies: Sequence[Body],
    values: Sequence[Instruction],
) -> Any:
    """The result of one of the ``bodies``, of equal trees and shapes, applied to ``values``.

    ``selector`` is a truth value, which chooses the first of two, or a number in range.
    """
    captured = _merged([c for body in bodies for c in body.captured])
    given = tuple_([*values, *captured])
    computations = [
        _closed(body, name, captured, False) for body, name in zip(bodies, names, strict=True)
    ]
    if selector.array_shape.element_type is ElementType.PRED:
        made = control.conditional(selector, given, computations[0], given, computations[1])
    else:
        made = control.conditional_indexed(selector, computations, [given] * len(computations))
    keep_effect(made)
    return _results(made, bodies[0])


@public
def cond(
    pred: Any,
    true_fun: Function,
    false_fun: Function,
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> Any:
    """``true_fun(*operands)`` if ``pred`` holds, else ``false_fun(*operands)``; one runs.

    ``operand=x`` is one operand by its name. ``pred`` is one truth value or number. Raises
    `ArgumentError` or `ShapeError` unless both return equal trees of equal shapes.

    >>> tj.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 5.0)
    6.0
    """
    selector = _one_number(pred, "cond: pred", "truth value")
    given = operands if operand is _NOT_GIVEN else (*operands, operand)
    names = ["true_fun", "false_fun"]
    return _chosen(converted(selector, ElementType.PRED), names, [true_fun, false_fun], given)


@public
def switch(
    index: Any, branches: Sequence[Function], *operands: Any, operand: Any = _NOT_GIVEN
) -> Any:
    """The branch that ``index``, clamped to their number, names, on ``operands``.

    Raises `ElementTypeError` for an index that is no integer.

    >>> tj.lax.switch(1, [lambda x: x + 1, lambda x: x * 10], 5.0)
    50.0
    """
    if not branches:
        raise ArgumentError("switch: needs at least one branch")
    number = _one_number(index, "switch: index", "integer")
    element_type = number.array_shape.element_type
    if not element_type.is_integral:
        raise ElementTypeError(f"switch: index must be an integer, not {element_type}")
    given = operands if operand is _NOT_GIVEN else (*operands, operand)
    names = [f"branch_{i}" for i in range(len(branches))]
    # In its own type: numbers beyond the range of s32 are clamped, too.
    first, last = constant(0, element_type), constant(len(branches) - 1, element_type)
    chosen = converted(elementwise.clamp(first, number, last), ElementType.S32)
    return _chosen(chosen, names, list(branches), given)


def _one_number(value: Any, what: str, kind: str) -> Instruction:
    number = operand(value).natural
    if number.array_shape.rank:
        raise ShapeError(f"{what} must be one {kind}, not {number.shape}")
    return number


def _results(made: Instruction, body: Body) -> Any:
    return tree.unflatten(body.structure, with_kinds(elements_of(made), body.abstract))


def carried_body(
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
    return carried_body(function, title, carry, structure) if widened else body


def _promotable(abstract: Abstract) -> Promotable:
    dtype = abstract.shape.dtype
    return weak_type(dtype) if abstract.is_weak else dtype


@public
def while_loop(cond_fun: Function, body_fun: Function, init_val: Any) -> Any:
    """``init_val`` replaced by ``body_fun`` of it while ``cond_fun`` of it holds.

    It has no derivative: how often it runs is known only while running.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    128
    """
    return loop(cond_fun, body_fun, init_val)


def loop(
    cond_fun: Function,
    body_fun: Function,
    init_val: Any,
    condition_title: str = "cond_fun",
    title: str = "body_fun",
) -> Any:
    """`while_loop` inside a trace; the titles name the two functions in errors."""
    leaves, structure = tree.flatten(init_val)
    carry = [Abstract.of(leaf) for leaf in leaves]
    body = carried_body(body_fun, title, carry, structure)
    condition = record_body(
        cond_fun, condition_title, carry, lambda xs: (tree.unflatten(structure, xs),)
    )
    if [a.shape.dimensions for a in condition.abstract] != [()]:
        raise ShapeError(f"{condition_title}: must return one truth value")
    captured = _merged([*body.captured, *condition.captured])
    values = [
        operand(leaf).to(kind.shape.element_type) for leaf, kind in zip(leaves, carry, strict=True)
    ]
    made = control.while_(
        _predicate(condition, captured),
        _closed(as_carried(body, carry), "body_fun", captured, True),
        tuple_([*values, *captured]),
    )
    keep_effect(made)
    return tree.unflatten(structure, with_kinds(elements_of(made)[: len(values)], carry))


def as_carried(body: Body, carry: Sequence[Abstract]) -> Body:
    """The body with results of exactly the carried element types."""
    results = tuple(
        converted(result, kind.shape.element_type)
        for result, kind in zip(body.results, carry, strict=True)
    )
    return replace(body, results=results)


def _predicate(condition: Body, captured: Sequence[Instruction]) -> Computation:
    given = [*condition.parameters, *captured]
    argument = parameter(0, tuple_(given).shape)
    results, effects = condition.rebuilt(dict(zip(given, elements_of(argument), strict=True)))
    root = converted(results[0], ElementType.PRED)
    return Computation("cond_fun", (argument,), root, unreached(root, effects))


@public
def fori_loop(
    lower: Any, upper: Any, body_fun: Function, init_val: Any, *, unroll: bool = False
) -> Any:
    """``init_val`` replaced by ``body_fun(i, it)`` for i from ``lower`` up to, not with, ``upper``.

    With ``unroll`` every step is recorded by itself: both limits must be known, and the result
    has a derivative, which the loop has not.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    10
    """
    if unroll:
        value = init_val
        for i in range(lower, upper):
            value = body_fun(i, value)
        return value
    limit = upper if isinstance(upper, int) else lift(operand(upper).natural)
    _, final = loop(
        lambda carry: carry[0] < limit,
        lambda carry: (carry[0] + 1, body_fun(carry[0], carry[1])),
        (lower, init_val),
    )
    return final
