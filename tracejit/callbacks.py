"""Python functions called by traced programs, wherever these run.

pure_callback(f, Shape(F64, (3,)), x)        what f(x) returns, an array of that shape and type
callback(f, x)                               calls f(x), once for each time this place is passed

Outside every trace the function is called at once. Arguments are trees; traced values arrive as
NumPy arrays, other things (text, None) as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.graph import Instruction
from tracejit.ops.constants import elements_of
from tracejit.ops.custom import custom_call
from tracejit.shapes import AnyShape, TupleShape, stated_shape
from tracejit.targets import call_target, hold
from tracejit.trace.context import current_trace, keep_effect
from tracejit.trace.convert import as_instruction, in_words
from tracejit.trace.table import find_traced
from tracejit.trace.tracer import Tracer, lift
from tracejit.tracebacks import api_boundary

Function = Callable[..., Any]


def _separated(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], Callable[..., Any]]:
    """The traced values among the arguments, and ``function`` of the arrays that they become."""
    leaves, structure = tree.flatten((args, kwargs))
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]

    def called(*arrays: np.ndarray) -> Any:
        filled = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            filled[place] = array
        given, named = tree.unflatten(structure, filled)
        return function(*given, **named)

    return [leaves[place] for place in places], called


def _call(
    title: str,
    function: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shape: AnyShape,
    has_side_effect: bool,
) -> Instruction:
    traced, called = _separated(function, args, kwargs)
    target = hold(called, title)
    operands = [as_instruction(value) for value in traced]
    return custom_call(
        target.name, operands, shape, has_side_effect=has_side_effect, callback=target
    )


@api_boundary
def pure_callback(callback: Function, result_shape_dtypes: Any, *args: Any, **kwargs: Any) -> Any:
    """``callback(*args, **kwargs)``, called with NumPy arrays while the program runs.

    ``result_shape_dtypes`` is what it returns: a tree of anything with a ``shape`` and a ``dtype``
    (or `Shape`). The function must have no side effects: it may be called more than once, or not
    at all, when its result is not needed. It has no derivative of its own (see `custom_vjp`).

    Raises, when called, `ShapeError`, `ElementTypeError` or `ArgumentError` for other results.

    >>> tj.jit(lambda x: tj.pure_callback(lambda x: x + 1, x, x))(np.array([1.0]))
    array([2.])
    """
    if not callable(callback):
        raise ArgumentError(f"pure_callback: calls a function, not {in_words(type(callback))}")
    wanted, structure = tree.flatten(result_shape_dtypes)
    shapes = [stated_shape(value) for value in wanted]
    shape = TupleShape(tuple(shapes))
    title = f"pure_callback: {getattr(callback, '__name__', callback)}"

    def flattened(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return tuple(tree.leaves(callback(*args, **kwargs)))

    if current_trace() is None and find_traced((args, kwargs)) is None:
        target = hold(lambda: flattened(*args, **kwargs), title)
        results = call_target(target.name, [], shape)
        return tree.unflatten(structure, [np.array(result) for result in results])
    made = _call(title, flattened, args, kwargs, shape, has_side_effect=False)
    return tree.unflatten(structure, [lift(element, False) for element in elements_of(made)])


def callback(callback: Function, *args: Any, **kwargs: Any) -> None:
    """Calls ``callback(*args, **kwargs)`` with NumPy arrays whenever the program comes here.

    Calls happen in the order of the program; what is returned is ignored. Differentiation
    ignores the call, `vmap` makes it once for each element of the batch.
    """
    if current_trace() is None and find_traced((args, kwargs)) is None:
        callback(*args, **kwargs)
        return

    def called(*args: Any, **kwargs: Any) -> None:
        callback(*args, **kwargs)

    keep_effect(_call("callback", called, args, kwargs, TupleShape(()), has_side_effect=True))
