"""Calls of functions outside the graph, and named composites.

custom_call("my_target", Shape(F64, (3,)), x)       the function registered for the target
composite(f, "my.op", x, version=1)                 f(x), as one op that a backend may know
optimization_barrier(tree)                          computed before anything that uses the result
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.attributes import OutputAlias
from tracejit.graph import Computation
from tracejit.layouts import Layout
from tracejit.ops import control, custom
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.shapes import TupleShape, stated_shape
from tracejit.trace.body import Abstract, record_body, with_kinds
from tracejit.trace.context import keep_effect
from tracejit.trace.convert import as_instruction, operand
from tracejit.trace.public import public
from tracejit.trace.tracer import Tracer, lift
from tracejit.traversal import unreached


@public
def custom_call(
    call_target_name: str,
    result_shape_dtypes: Any,
    *args: Any,
    backend_config: str = "",
    has_side_effect: bool = False,
    input_output_aliases: Mapping[int, int] | None = None,
    api_version: str = "API_VERSION_ORIGINAL",
    operand_layouts: Sequence[Layout | None] = (),
    vmap_method: str | None = "sequential",
) -> Any:
    """What the function registered for ``call_target_name`` makes of arrays.

    ``result_shape_dtypes`` is what it returns: a tree of anything with a ``shape`` and a ``dtype``
    (or `Shape`). ``backend_config`` is handed to the function. ``input_output_aliases`` says for
    operands which result, by its number, shares their memory; ``operand_layouts`` how each of them
    lies in memory, None for row-major. ``vmap_method`` is that of `tj.ffi.ffi_call`. See
    `register_custom_call`.

    Raises `ArgumentError` for what is no array of numbers, `ShapeError` for shapes that do not
    fit and `UnknownTargetError` for a target that is not registered.

    >>> _ = tj.register_custom_call("twice", lambda x: 2 * x, replace=True)
    >>> tj.lax.custom_call("twice", np.ones(2), np.array([1.0, 2.0]))
    array([2., 4.])
    """
    wanted, structure = tree.flatten(result_shape_dtypes)
    shapes = tuple(map(stated_shape, wanted))
    operands = [as_instruction(value) for value in args]
    pairs = zip(operands, operand_layouts, strict=True) if operand_layouts else ()
    constraints = [operand.array_shape.with_layout(layout) for operand, layout in pairs]
    made = custom.custom_call(
        call_target_name,
        operands,
        shapes[0] if structure.is_leaf() else TupleShape(shapes),
        backend_config,
        has_side_effect,
        [
            OutputAlias(() if structure.is_leaf() else (result,), operand)
            for operand, result in (input_output_aliases or {}).items()
        ],
        api_version,
        operand_layout_constraints=constraints or None,
        vmap_method=vmap_method,
    )
    keep_effect(made)
    results = [lift(element, False) for element in elements_of(made)]
    return tree.unflatten(structure, results)


@public
def composite(
    decomposition: Callable[..., Any], name: str, *args: Any, version: int = 0, **attributes: Any
) -> Any:
    """``decomposition(*args)``, which a backend may know as the op ``name``.

    Arguments and results are trees of arrays; ``attributes`` are numbers, booleans and text. The
    derivative is the decomposition's.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.composite(lambda x: x * 2, "example.twice", np.array([1.0]))
    array([2.])
    """
    leaves, structure = tree.flatten(args)
    body = record_body(
        decomposition,
        name,
        [Abstract.of(leaf) for leaf in leaves],
        lambda values: tree.unflatten(structure, values),
    )
    given = [*(operand(leaf).natural for leaf in leaves), *body.captured]
    parameters = tuple(parameter(n, value.shape) for n, value in enumerate(given))
    results, effects = body.rebuilt(
        dict(zip([*body.parameters, *body.captured], parameters, strict=True))
    )
    root = tuple_(results)
    called = Computation(name, parameters, root, unreached(root, effects))
    texts = [f"{key} = {_attribute(value)}" for key, value in sorted(attributes.items())]
    text = "{" + ", ".join(texts) + "}" if texts else None
    made = keep_effect(control.composite_call(called, given, name, text, version))
    return tree.unflatten(body.structure, with_kinds(elements_of(made), body.abstract))


def _attribute(value: Any) -> str:
    """An attribute as MLIR writes it."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return f"{value} : i64"
    return f"{float(value)!r} : f64" if isinstance(value, float) else json.dumps(str(value))


@public
def optimization_barrier(operand: Any) -> Any:
    """A tree of arrays as it is, all of it computed before anything that uses the result.

    Nothing is moved across, joined with an equal value or folded.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.lax.optimization_barrier(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    leaves, structure = tree.flatten(operand)
    if not leaves:
        return operand
    made = control.optimization_barrier(tuple_([as_instruction(leaf) for leaf in leaves]))
    results = [
        lift(element, leaf.is_scalar if isinstance(leaf, Tracer) else None)
        for element, leaf in zip(elements_of(made), leaves, strict=True)
    ]
    return tree.unflatten(structure, results)
