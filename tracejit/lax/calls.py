"""Calls of functions outside the graph, and named composites.

custom_call("my_target", Shape(F64, (3,)), x)       the function registered for the target
composite(f, "my.op", x, version=1)                 f(x), as one op that a backend may know
optimization_barrier(tree)                          computed before anything that uses the result
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.attributes import OutputAlias
from tracejit.graph import Computation
from tracejit.ops import control, custom
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.shapes import Shape, TupleShape, element_type_of
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
) -> Any:
    """What the function registered for ``call_target_name`` makes of arrays.

    ``result_shape_dtypes`` is what it returns: a tree of anything with a ``shape`` and a ``dtype``
    (or `Shape`). ``backend_config`` is handed to the function. ``input_output_aliases`` says for
    operands which result, by its number, shares their memory. See `register_custom_call`.
    """
    wanted, structure = tree.flatten(result_shape_dtypes)
    shapes = tuple(
        v if isinstance(v, Shape) else Shape(element_type_of(v.dtype), tuple(v.shape))
        for v in wanted
    )
    made = custom.custom_call(
        call_target_name,
        [as_instruction(value) for value in args],
        shapes[0] if structure.is_leaf() else TupleShape(shapes),
        backend_config,
        has_side_effect,
        [
            OutputAlias(() if structure.is_leaf() else (result,), operand)
            for operand, result in (input_output_aliases or {}).items()
        ],
        api_version,
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
