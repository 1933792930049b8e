"""A function recorded as one Call with a derivative of its own.

call_with(f, args, kwargs, derivative_of)      what f returns; inside a trace, one Call
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of, parameter, tuple_
from tracejit.ops.control import Derivative, call
from tracejit.trace.body import Abstract, Body, with_kinds
from tracejit.trace.context import Trace, current_trace, running_traces
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer
from tracejit.transforms.jit.signature import Parameters
from tracejit.transforms.jit.staging import Output, outputs_of
from tracejit.transforms.jit.trace_limit import as_recorded
from tracejit.transforms.recorded import run
from tracejit.traversal import substitute

Function = Callable[..., Any]


@dataclass(frozen=True)
class Signature:
    """What a recorded function took and gave: trees of arrays.

    The arguments' arrays are the Call's first operands; what the function captured of the traces
    around it follows.
    """

    title: str
    arguments: tuple[Abstract, ...]
    arguments_of: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]
    results: tuple[Abstract, ...]
    results_structure: tree.Structure

    def result_of(self, leaves: Sequence[Any]) -> Any:
        """The tree of results with these leaves."""
        return tree.unflatten(self.results_structure, leaves)


def call_with(
    function: Function,
    parameters: Parameters,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    derivative_of: Callable[[Signature], Derivative],
) -> Any:
    """What ``function`` returns; in a trace it is recorded as a Call with a derivative.

    Outside every trace the function is simply called.
    """
    traces = running_traces()
    if not traces:
        return function(*args, **kwargs)
    ran = run(
        function,
        parameters,
        args,
        kwargs,
        range(len(args)),
        lambda result: outputs_of(result, parameters.title),
        differentiated=False,
    )
    outputs, results_structure = ran.result
    inputs = list(ran.inputs.values())
    leaves, structure = tree.flatten((args, kwargs))
    places = list(ran.inputs)

    def arguments_of(values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        filled = list(leaves)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        made: tuple[tuple[Any, ...], dict[str, Any]] = tree.unflatten(structure, filled)
        return made

    kinds = tuple(Abstract(o.instruction.array_shape, o.is_weak, o.is_scalar) for o in outputs)
    body = Body(
        tuple(one.parameter for one in inputs),
        tuple(output.instruction for output in outputs),
        kinds,
        results_structure,
        ran.trace,
    )
    captured = body.captured
    given = [*body.parameters, *captured]
    own = tuple(parameter(number, one.shape) for number, one in enumerate(given))
    # Side effects stay outside: they belong to the trace around the call.
    results, _ = body.rebuilt(dict(zip(given, own, strict=True)))
    signature = Signature(
        parameters.title,
        tuple(one.abstract for one in inputs),
        arguments_of,
        kinds,
        results_structure,
    )
    made = call(
        Computation(parameters.title, own, tuple_(results)),
        [*(one.value for one in inputs), *captured],
        derivative_of(signature),
    )
    return signature.result_of(with_kinds(elements_of(made), kinds))


def record_on(
    function: Function,
    title: str,
    values: Sequence[Instruction],
    kinds: Sequence[Abstract],
    assemble: Callable[[Sequence[Any]], tuple[Any, ...]],
    wanted: Callable[[Any], Sequence[Output]],
) -> list[Instruction]:
    """``function`` recorded on ``values``: the instructions of the results that ``wanted`` picks.

    ``assemble`` makes its positional arguments of one tracer per value.
    """
    with Trace(title) as trace:
        given = [
            trace.parameter(value.shape, lambda: f"an argument of {title}", value)
            for value in values
        ]
        tracers = [
            Tracer(p, trace, is_weak=kind.is_weak, is_scalar=kind.is_scalar)
            for p, kind in zip(given, kinds, strict=True)
        ]
        for tracer in tracers:
            tracer.lay_unknown()
        recorded = recording(function) if trace.record_numpy else function
        outputs = wanted(recorded(*assemble(tracers)))
    replacements = dict(zip(given, values, strict=True))
    return substitute([output.instruction for output in outputs], replacements)


def users(function: Function) -> Function:
    """A function of the user's as the running trace sees it, with recording namespaces."""
    trace = current_trace()
    function = as_recorded(function)
    return recording(function) if trace is not None and trace.record_numpy else function


def leaves_like(result: Any, signature: Sequence[Abstract], what: str, title: str) -> list[Output]:
    """The leaves of ``result``, which must have the shapes and types of ``signature``.

    Raises `ArgumentError` otherwise.
    """
    outputs, structure = outputs_of(result, title)
    if len(outputs) != len(signature):
        raise ArgumentError(f"{title}: {what} must have {len(signature)} arrays, not {structure}")
    for output, kind in zip(outputs, signature, strict=True):
        if output.instruction.shape != kind.shape:
            raise ArgumentError(
                f"{title}: {what} must have the shape {kind.shape}, not {output.instruction.shape}"
            )
    return list(outputs)
