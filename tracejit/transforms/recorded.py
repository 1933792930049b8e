"""One run of a function with fresh parameters for its arrays, as the transformations need it.

The parameters are bound to the arrays' values, so that outside jit Python can read them;
afterwards results of the run are evaluated, or put into the enclosing trace.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import TracerLeakError, UnsupportedError
from tracejit.graph import Instruction
from tracejit.ops.constants import constant
from tracejit.trace.body import Abstract
from tracejit.trace.context import Trace, current_trace
from tracejit.trace.evaluation import evaluate
from tracejit.trace.hash_consing import Memory
from tracejit.trace.memory_order import UNKNOWN, given_layout
from tracejit.trace.recording import recording
from tracejit.trace.tracer import Tracer
from tracejit.transforms.derived_cache import DerivedGraph
from tracejit.transforms.jit.aliasing import require_apart
from tracejit.transforms.jit.arguments import abstract_of, normalised
from tracejit.transforms.jit.signature import Parameters
from tracejit.transforms.jit.staging import Output
from tracejit.transforms.jit.trace_limit import as_recorded
from tracejit.traversal import substitute

Known = np.ndarray | Instruction


class Input(NamedTuple):
    """An array argument of the run: its parameter, and what it stood for.

    ``element`` is what the function saw of it: the parameter, or for an argument that is mapped
    over one of its dimensions, ``axis``, a parameter without it.
    """

    parameter: Instruction
    abstract: Abstract
    known: Known
    element: Instruction
    axis: int | None = None

    @property
    def value(self) -> Instruction:
        """What it stood for, as an instruction."""
        return self.known if isinstance(self.known, Instruction) else constant(self.known)

    @property
    def asked_of(self) -> Hashable:
        """Cache key of graphs derived from this input: parameter and weak/scalar flags, not
        values.
        """
        return self.parameter, self.abstract.is_weak, self.abstract.is_scalar


class Run:
    """What a function returned for ``inputs``, by number of the leaf; ``trace`` has ended.

    ``owners`` has the position of the argument that each leaf of the positional ones is in,
    ``done`` what became of the run's side effects, so that they happen once.
    """

    def __init__(
        self,
        title: str,
        inputs: dict[int, Input],
        owners: Sequence[int],
        result: Any,
        trace: Trace,
    ) -> None:
        self.title = title
        self.inputs = inputs
        self.owners = owners
        self.result = result
        self.trace = trace
        self.done: dict[Instruction, Any] = {}

    def finish(self, outputs: Sequence[Output]) -> list[Any]:
        """Values of the run: arrays, or values of the trace that is running now."""
        instructions = [output.instruction for output in outputs]
        running = current_trace()
        if self.trace.parent is not None and not self.trace.parent.alive:
            raise TracerLeakError(
                f"the pullback of {self.title} is used after the trace {self.trace.parent.name}, "
                f"in which it was made, has ended"
            )
        if running is None:
            known = self._known() | self.done
            if self.trace.partitions > 1:
                return DerivedGraph(self.title, outputs, self.trace.partitions).of(known)
            values = evaluate(instructions, known)
            return [o.handed_out(np.array(v)) for o, v in zip(outputs, values, strict=True)]
        replacements = {i.parameter: i.value for i in self.inputs.values()}
        moved = substitute(instructions, replacements | self.done)
        return [
            Tracer(instruction, running, is_weak=o.is_weak, is_scalar=o.is_scalar)
            for o, instruction in zip(outputs, moved, strict=True)
        ]

    def answer(
        self, key: Hashable, roots: Sequence[Output], make: Callable[[], Sequence[Output]]
    ) -> list[Any]:
        """The values of ``make()``, the outputs that ``key`` names, of a graph with these roots.

        It is made anew where the run has no memory of it.
        """
        memory = self.trace.memory
        if memory is None or current_trace() is not None or self.trace.effects:
            return self.finish(make())
        whole = (key, *roots)
        known = memory.answers.get(whole)
        if known is None:
            outputs = make()
            if any(output.instruction.reaches_effect for output in outputs):
                return self.finish(outputs)
            known = DerivedGraph(self.title, outputs, self.trace.partitions)
            memory.keep_answer(whole, known)
        values: list[Any] = known(self.trace)
        return values

    def perform(self, effects: Sequence[Instruction]) -> None:
        """Does side effects of the run now, or in the trace that is running."""
        running = current_trace()
        if not effects:
            return
        values: Sequence[Any]
        if running is None:
            if self.trace.partitions > 1:
                raise UnsupportedError(
                    f"{effects[0].op.function}: {self.title} runs on {self.trace.partitions} "
                    "devices and has side effects; write jit(f) to transform it",
                    effects[0].source,
                )
            values = evaluate(effects, self._known())
        else:
            replacements = {i.parameter: i.value for i in self.inputs.values()}
            values = substitute(effects, replacements)
            running.effects += values
        self.done.update(zip(effects, values, strict=True))

    def _known(self) -> dict[Instruction, Any]:
        """What stands behind the parameters: arguments, and arrays met on the way."""
        arrays = {i.parameter: i.known for i in self.inputs.values()}
        met = self.trace.arguments.items()
        return {p: a.value for p, a in met if isinstance(a.value, np.ndarray)} | arrays

    def inputs_of(self, position: int) -> list[Input]:
        """The arrays of one positional argument, in the order of its leaves."""
        return [self.inputs[n] for n, owner in enumerate(self.owners) if owner == position]


def run(
    function: Callable[..., Any],
    parameters: Parameters,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wanted: Sequence[int],
    finish: Callable[[Any], Any],
    axes: Sequence[int | None] | None = None,
    differentiated: bool = True,
    memory: Memory | None = None,
) -> Run:
    """Runs ``function``; every array among its arguments is a parameter, other things stay.

    The positional arguments ``wanted`` are parameters even where they are Python numbers.
    ``finish`` is applied to the result while the trace is running. ``axes`` has for each leaf the
    dimension that the function is mapped over and does not see, or None. ``differentiated`` says
    that the arguments ``wanted`` are, so that conversions of them to Python's numbers are refused.
    ``memory`` is of earlier runs, and only for a run outside of every trace.
    """
    leaves, structure = tree.flatten((args, kwargs))
    owners = [p for p, argument in enumerate(args) for _ in tree.leaves(argument)]
    inputs: dict[int, Input] = {}
    with Trace(parameters.title, memory=memory) as trace:
        for number, leaf in enumerate(leaves):
            owner = owners[number] if number < len(owners) else None
            axis = None if axes is None else axes[number]
            is_array = isinstance(leaf, np.ndarray | Tracer)
            if owner not in wanted and not is_array and axis is None:
                continue

            def describe(number: int = number) -> str:
                return parameters.describe(structure, number, range(len(args)))

            known: Known
            if isinstance(leaf, Tracer):
                known = leaf.instruction
                abstract = Abstract(known.array_shape, leaf.is_weak, leaf.is_scalar)
            else:
                leaf = normalised(leaf, describe)
                abstract = abstract_of(leaf)
                known = np.asarray(leaf, abstract.shape.dtype)
            marked = differentiated and owner in wanted
            made = trace.parameter(abstract.shape, describe, known, marked)
            seen, element = abstract, made
            if axis is not None:
                seen = _without(abstract, axis)
                element = trace.parameter(seen.shape, describe)
            inputs[number] = Input(made, abstract, known, element, axis)
            tracer = Tracer(element, trace, is_weak=seen.is_weak, is_scalar=seen.is_scalar)
            layout = leaf.own_layout if isinstance(leaf, Tracer) else given_layout(np.asarray(leaf))
            tracer.lay(layout if axis is None or layout is None else UNKNOWN)
            leaves[number] = tracer
        given = tree.leaves((args, kwargs))
        new_args, new_kwargs = tree.unflatten(structure, leaves)
        function = as_recorded(function)
        recorded = recording(function) if trace.record_numpy else function
        result = recorded(*new_args, **new_kwargs)
        written = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tracer) and leaf.version]
        if written:
            require_apart(
                given, written, lambda n: parameters.describe(structure, n, range(len(args)))
            )
        result = finish(result)
    ran = Run(parameters.title, inputs, owners, result, trace)
    if axes is None:
        ran.perform(trace.effects)
    return ran


def _without(abstract: Abstract, axis: int) -> Abstract:
    """One element of an array along a dimension; of a vector, a NumPy scalar."""
    sizes = abstract.shape.dimensions
    shape = abstract.shape.with_dimensions((*sizes[:axis], *sizes[axis + 1 :]))
    return Abstract(shape, is_scalar=not shape.rank)
