"""Loop re-rolling: equal iterations that Python unrolled become one While.

    x1 = step(x0); x2 = step(x1); …       while i < 1000: x = step(x)

`tandem_repeats` finds the iterations. They may differ in constants: indices that grow by the same
number (``x[i] = x[i - 1]``) become affine in the counter; other constants go into tables, from
which each iteration reads a row. Tables, constants and the trip count are state of the loop, so
that equal loops elsewhere have equal computations, and an iteration may contain a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracejit.attributes import attribute_key
from tracejit.backends.tvm.passes.reroll.mask_ragged_slices import mask_ragged_slices
from tracejit.backends.tvm.passes.reroll.roll_step import UnrolledIteration
from tracejit.backends.tvm.passes.reroll.static_to_dynamic_slices import make_slices_dynamic
from tracejit.backends.tvm.passes.reroll.tandem_repeats import IterationRun, Sequenced
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import PARAMETER
from tracejit.traversal import in_order, instructions, rebuild

# The least iterations and instructions of a loop: straight code runs faster.
LEAST_STEPS = 16
LEAST_INSTRUCTIONS = 512
# The size of a graph that takes so long to compile that shorter loops pay.
LARGE_GRAPH = 4096
SHORT_STEPS = 4
SHORT_INSTRUCTIONS = 32
# The least factor by which masked slices, which read more elements, must shorten the graph.
WORTH = 2


Prepare = Callable[[Sequence[Instruction]], list[Instruction]]


def reroll(roots: Sequence[Instruction], prepared: Prepare) -> list[Instruction]:
    """Equal ``roots`` in which long runs of equal iterations are loops.

    ``prepared`` gives equal iterations equal forms.
    """
    if len(in_order(roots)) < LEAST_INSTRUCTIONS:
        return list(roots)
    simple = prepared(roots)
    masked = mask_ragged_slices(simple)
    if masked is not None:
        made = _all_rolled(masked)
        if made is not None and WORTH * len(in_order(made)) <= len(in_order(simple)):
            return made
    return _all_rolled(simple) or simple


def _all_rolled(roots: Sequence[Instruction]) -> list[Instruction] | None:
    """The roots with all loops that can be found, if there are any."""
    roller = _Roller()
    found = None
    made = roller.once(make_slices_dynamic(roots))
    while made is not None:
        found, made = made, roller.once(made)
    return found


class _Roller:
    """Rolls runs, innermost first, and shares equal computations among loops."""

    def __init__(self) -> None:
        self._known: dict[object, Computation] = {}

    def once(self, roots: Sequence[Instruction]) -> list[Instruction] | None:
        """Equal roots with all long runs of one length rolled, if there are any."""
        graph = Sequenced(roots)
        if len(graph.order) + len(graph.forms) < LEAST_INSTRUCTIONS:
            return None
        for length in graph.lengths():
            steps = self._steps(graph, length)
            if steps:
                return self._rebuilt(graph, roots, steps)
        return None

    def _steps(self, graph: Sequenced, length: int) -> dict[int, UnrolledIteration]:
        """The iterations that can be rolled, by position, if rolling all of them pays."""
        is_large = len(graph.order) >= LARGE_GRAPH
        found: dict[int, UnrolledIteration] = {}
        taken: list[IterationRun] = []
        for run in graph.runs(length):
            if not _is_long(run, is_large):
                continue
            if any(run.start < other.end and other.start < run.end for other in taken):
                continue
            part = graph.without_kept_steps(run)
            if not _is_long(part, is_large):
                continue
            step = UnrolledIteration(graph, part)
            if step.is_possible:
                found[part.start] = step
                taken.append(part)
        total = sum(run.end - run.start for run in taken)
        return found if total >= LEAST_INSTRUCTIONS else {}

    def _rebuilt(
        self, graph: Sequenced, roots: Sequence[Instruction], steps: dict[int, UnrolledIteration]
    ) -> list[Instruction]:
        """The roots with loops in place of the runs; everything is rebuilt, in order."""
        new: dict[Instruction, Instruction] = {}
        position = 0
        while position < len(graph.order):
            step = steps.get(position)
            if step is not None:
                new |= step.as_loop(new, self._shared)
                position = step.run.end
                continue
            instruction = graph.order[position]
            if instruction.op is not PARAMETER:
                operands = [new.get(o, o) for o in instruction.operands]
                new[instruction] = rebuild(instruction, operands)
            position += 1
        return [new.get(root, root) for root in roots]

    def _shared(self, computation: Computation) -> Computation:
        """The first computation equal to this one."""
        order = instructions(computation)
        numbers = {instruction: n for n, instruction in enumerate(order)}
        key = tuple(
            (
                i.op,
                tuple([numbers[o] for o in i.operands]),
                tuple(map(attribute_key, i.attributes.values())),
                i.shape,
            )
            for i in order
        )
        return self._known.setdefault((key, numbers[computation.root]), computation)


def _is_long(run: IterationRun, is_large: bool) -> bool:
    size = run.end - run.start
    if run.steps >= LEAST_STEPS and size >= LEAST_INSTRUCTIONS:
        return True
    return is_large and run.steps >= SHORT_STEPS and size >= SHORT_INSTRUCTIONS
