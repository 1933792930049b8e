"""From a Python function and what its arguments look like to a module."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.constants import elements_of, tuple_
from tracejit.ops.control import CALL
from tracejit.passes.input_layouts import Order
from tracejit.system.garbage import collecting_garbage_later
from tracejit.targets import calls_back
from tracejit.trace.body import Abstract, require_own
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import Bounds, Limit, LongTraceError, Trace
from tracejit.trace.convert import PYTHON_SCALARS, as_instruction
from tracejit.trace.memory_order import Layout
from tracejit.trace.object_state import snapshot, warn_of_moves
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer
from tracejit.traversal import called_computations, in_order, instructions, unreached
from tracejit.tree import Structure

Finish = Callable[[Sequence[np.ndarray]], Any]


@dataclass(frozen=True)
class Output:
    """One result of a traced function and how it is handed out.

    As a Python number when it ``is_weak``, as a NumPy scalar when it ``is_scalar``, else as an
    array.
    """

    instruction: Instruction
    is_weak: bool
    is_scalar: bool

    def handed_out(self, value: np.ndarray) -> Any:
        """The array that was computed, in the form that the function would have returned."""
        if self.is_weak:
            return value.item()
        return value[()] if self.is_scalar else value


@dataclass(frozen=True)
class Staged:
    """A traced function: a module of flat arrays, and the tree that its results make.

    ``bounds`` are those of the arguments, by number, that are Python's integers and must be within.
    ``has_lost_derivatives`` says that it was pickled without derivatives of the user's own.
    ``written`` are the arguments, by number, that the function writes to. ``asks_order``: it is
    right for arguments that lie in memory row by row.
    """

    module: Module
    outputs: tuple[Output, ...]
    structure: Structure
    bounds: Mapping[int, Bounds] = field(default_factory=dict)
    has_lost_derivatives: bool = False
    written: tuple[int, ...] = ()
    asks_order: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled with the module's text; what it calls back into is known to this process alone.

        Raises `TypeError` for a module that does.
        """
        if calls_back(self.module):
            raise TypeError(
                f"{self.module.name} calls functions of this process (pure_callback, "
                f"debug.callback …) and cannot be pickled; pickle the Python function, and compile "
                f"it in the process that is to run it"
            )
        kinds = [(output.is_weak, output.is_scalar) for output in self.outputs]
        lost = self.has_lost_derivatives or has_own_derivatives(self.module)
        return _staged_again, (self.module, kinds, self.structure, self.bounds, lost, self.written)

    @property
    def paths(self) -> list[str]:
        """What each array of the result is called: result, result[0], result['loss']."""
        return tree.paths(self.structure, "result")

    def finisher(self) -> Finish:
        """A function from the module's results to what the traced function would have returned."""
        structure = self.structure
        numbers = [(i, o) for i, o in enumerate(self.outputs) if o.is_scalar or o.is_weak]
        if not structure.is_leaf():
            return functools.partial(_assembled, structure, numbers)
        if not numbers:
            return operator.itemgetter(0)
        only = self.outputs[0]
        return (lambda values: values[0].item()) if only.is_weak else lambda values: values[0][()]


def _staged_again(
    module: Module,
    kinds: Sequence[tuple[bool, bool]],
    structure: Structure,
    bounds: Mapping[int, Bounds],
    has_lost_derivatives: bool,
    written: tuple[int, ...],
) -> Staged:
    """What `Staged.__reduce__` has taken apart."""
    results = elements_of(module.entry.root)
    outputs = [Output(result, *kind) for result, kind in zip(results, kinds, strict=True)]
    return Staged(module, tuple(outputs), structure, bounds, has_lost_derivatives, written)


def has_own_derivatives(module: Module) -> bool:
    """Whether there are calls with derivatives of their own, which text does not hold."""
    return any(
        instruction.op is CALL and instruction.attributes["derivative"] is not None
        for computation in called_computations(module)
        for instruction in instructions(computation)
    )


def _assembled(
    structure: Structure, numbers: Sequence[tuple[int, Output]], values: Sequence[Any]
) -> Any:
    leaves = list(values)
    for place, output in numbers:
        leaves[place] = output.handed_out(leaves[place])
    return tree.unflatten(structure, leaves)


def _is_masked(value: Any) -> bool:
    return isinstance(value, Masked)


def outputs_of(result: Any, title: str) -> tuple[tuple[Output, ...], Structure]:
    """The results of a function that is being traced. Raises `ArgumentError` for other things."""
    for leaf in tree.leaves(result, is_leaf=_is_masked):
        if _is_masked(leaf):
            leaf.__array__()  # which says that it is none
    leaves, structure = tree.flatten(result)
    outputs = []
    for number, leaf in enumerate(leaves):
        if isinstance(leaf, Tracer):
            outputs.append(Output(leaf.instruction, leaf.is_weak, leaf.is_scalar))
            continue
        try:
            made = as_instruction(leaf)
        except ArgumentError as error:
            path = tree.paths(structure)[number]
            raise ArgumentError(
                f"{title}: its result{path} is not an array: {error.message}"
            ) from None
        is_weak = type(leaf) in PYTHON_SCALARS
        outputs.append(Output(made, is_weak, isinstance(leaf, np.generic)))
    return tuple(outputs), structure


def stage(
    function: Callable[..., Any],
    title: str,
    arguments: Sequence[Abstract],
    assemble: Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]],
    describe: Callable[[int], str],
    record_numpy: bool = True,
    limit: Limit | None = None,
    orders: Sequence[Order] = (),
) -> Staged:
    """Runs ``function`` once on abstract arrays.

    The arguments lie in memory in these ``orders``, if there are any; else row by row, as far as is
    known.

    ``assemble`` makes its positional and keyword arguments from one value per entry of
    ``arguments``; ``describe`` names an entry for errors. Writes of the function to its arguments
    stay inside; one that writes to them and returns nothing raises `ArgumentError`.
    Recording that reaches ``limit`` raises `LongTraceError`.
    """
    recorder = Trace(title, record_numpy=record_numpy, limit=limit)
    with collecting_garbage_later(), recorder as trace:
        tracers = []
        for number, argument in enumerate(arguments):
            made = trace.parameter(argument.shape, functools.partial(describe, number))
            tracers.append(
                Tracer(made, trace, is_weak=argument.is_weak, is_scalar=argument.is_scalar)
            )
        for tracer, order in zip(tracers, orders, strict=False):
            if not tracer.is_scalar:
                tracer.lay(Layout(tuple(range(tracer.ndim)) if order is None else order, True))
        args, kwargs = assemble(tracers)
        recorded = recording(function) if record_numpy else function
        before = snapshot(function, only_moving=True)
        try:
            outputs, structure = outputs_of(recorded(*args, **kwargs), title)
        except LongTraceError:
            warn_of_moves(before, title)  # it is recorded again, from there on
            raise
        warn_of_moves(before, title)
        written = [number for number, tracer in enumerate(tracers) if tracer.version]
        if written and not outputs:
            raise ArgumentError(
                f"{title}: writes to {describe(written[0])} and returns nothing; the caller's "
                f"array is never written to, so return the new value, or write "
                f"jit(f, mutates=...)"
            )
    results = [output.instruction for output in outputs]
    root = results[0] if len(results) == 1 else tuple_(results)
    effects = unreached(root, trace.effects)
    for needed in in_order((root, *effects)):
        require_own(needed, trace)
    entry = Computation(title, tuple(trace.arguments), root, effects)
    numbers = {parameter: number for number, parameter in enumerate(trace.arguments)}
    bounds = {numbers[parameter]: known for parameter, known in trace.bounds.items()}
    return Staged(
        Module(title, entry, num_partitions=trace.partitions),
        outputs,
        structure,
        bounds,
        written=tuple(written),
        asks_order=trace.asks_order,
    )
