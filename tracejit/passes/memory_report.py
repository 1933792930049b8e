"""How much memory a program needs, step by step, before it runs.

print(tj.jit(tj.grad(loss)).lower(w, x).memory_report())

The model: arguments, constants and results stay; every other value lives from the step that makes
it to the last step that reads it. Elementwise values read by one step only, broadcasts, reshapes
and tuples take no memory: they are fused into their readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracejit.graph import Computation, Instruction
from tracejit.loading import supplied
from tracejit.ops.constants import CONSTANT, GET_TUPLE_ELEMENT, IOTA, PARAMETER, TUPLE
from tracejit.ops.control import OPTIMIZATION_BARRIER
from tracejit.ops.layout import BROADCAST_IN_DIM, PAD, RESHAPE, REV, SLICE, TRANSPOSE
from tracejit.ops.reduction import REDUCE
from tracejit.passes.cost_analysis import size_in_bytes
from tracejit.shapes import Shape
from tracejit.sources import Source
from tracejit.traversal import instructions

_MOVING = (PAD, REV, SLICE, TRANSPOSE)
# The same memory under another name.
_VIEWS = (GET_TUPLE_ELEMENT, OPTIMIZATION_BARRIER, RESHAPE, TUPLE)


@dataclass(frozen=True)
class Value:
    """An array in memory between two steps: what makes it, on which line of the user."""

    nbytes: int
    shape: str
    op: str
    source: Source | None
    first: int
    last: int
    instruction: Instruction

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.nbytes:>14,} bytes  {self.shape} of {self.op}{where}"


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of arguments, constants, results, and of all that lives at once at most.

    ``timeline`` has for each step the bytes that are in memory with it; ``peak_step`` is the
    first that has the most, ``alive`` the values that live then beside arguments and constants.
    """

    argument_bytes: int
    constant_bytes: int
    output_bytes: int
    peak_bytes: int
    peak_step: int
    timeline: tuple[int, ...]
    alive: tuple[Value, ...]

    def __str__(self) -> str:
        lines = [
            f"peak      {self.peak_bytes:>14,} bytes, in step {self.peak_step} of "
            f"{len(self.timeline)}",
            f"arguments {self.argument_bytes:>14,} bytes",
            f"constants {self.constant_bytes:>14,} bytes",
            f"results   {self.output_bytes:>14,} bytes",
            "alive at the peak:",
            *(f"  {value}" for value in self.alive),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The memory over the steps as a picture, for notebooks."""
        html: str = supplied("display").html_of(self)
        return html


@dataclass(frozen=True)
class Lifetimes:
    """The steps of a computation in order, and when each of its values is in memory."""

    steps: list[Instruction]
    values: list[Value]
    inner: list[int]
    fixed: tuple[int, int, int]

    def timeline(self) -> list[int]:
        """Bytes in memory with each step."""
        changes = [0] * (len(self.steps) + 1)
        for value in self.values:
            changes[value.first] += value.nbytes
            changes[value.last + 1] -= value.nbytes
        arguments, constants, _ = self.fixed
        total, made = arguments + constants, []
        for change, inner in zip(changes, self.inner, strict=False):
            total += change
            made.append(total + inner)
        return made


def lifetimes(computation: Computation) -> Lifetimes:
    """When each value of a computation lives."""
    order = instructions(computation)
    results = _results(computation.root)
    readers: dict[Instruction, list[Instruction]] = {i: [] for i in order}
    for instruction in order:
        for operand in instruction.operands:
            readers[operand].append(instruction)
    joined = {i for i in order if i not in results and _is_joined(i, readers[i])}
    given = {i for i in order if i.op in (PARAMETER, CONSTANT)}
    steps = [i for i in order if i not in joined and i not in given and i.op not in _VIEWS]
    number = {step: n for n, step in enumerate(steps)}
    last: dict[Instruction, int] = {}
    # When the step happens that a value becomes part of, or its last one.
    for instruction in reversed(order):
        ends = [
            last[r] if r in joined or r.op in _VIEWS else number[r] for r in readers[instruction]
        ]
        if instruction in results:
            ends.append(len(steps) - 1)
        last[instruction] = max([*ends, number.get(instruction, 0)])
    values = [
        Value(size_in_bytes(s.shape), str(s.shape), s.op.function, s.source, n, last[s], s)
        for n, s in enumerate(steps)
    ]
    inner = [_inner(step) for step in steps]
    arguments = sum(size_in_bytes(i.shape) for i in given if i.op is PARAMETER)
    constants = sum(size_in_bytes(i.shape) for i in given if i.op is CONSTANT)
    return Lifetimes(
        steps, values, inner, (arguments, constants, size_in_bytes(computation.root.shape))
    )


def memory_report(computation: Computation) -> MemoryReport:
    """The report of one computation."""
    lives = lifetimes(computation)
    timeline = lives.timeline()
    peak = max(timeline, default=sum(lives.fixed[:2]))
    step = timeline.index(peak) if timeline else 0
    alive = [v for v in lives.values if v.first <= step <= v.last and v.nbytes]
    alive.sort(key=lambda value: -value.nbytes)
    return MemoryReport(*lives.fixed, peak, step, tuple(timeline), tuple(alive))


def _results(root: Instruction) -> set[Instruction]:
    """The arrays of the root, through tuples and views."""
    found: set[Instruction] = set()
    stack = [root]
    while stack:
        at = stack.pop()
        found.add(at)
        if at.op in _VIEWS:
            stack.extend(at.operands)
    return found


def _is_joined(instruction: Instruction, readers: Sequence[Instruction]) -> bool:
    if instruction.op in (BROADCAST_IN_DIM, IOTA):
        return True
    if len(set(readers)) != 1:
        return False
    if not instruction.op.is_elementwise and instruction.op not in _MOVING:
        return False
    return readers[0].op is REDUCE or readers[0].op.is_elementwise


def _inner(instruction: Instruction) -> int:
    """Bytes that the computations of a loop or a branch need beside what is given to them."""
    peaks = [0]
    if instruction.op.family in ("control", "scanning"):
        for computation in instruction.computations:
            if isinstance(computation.root.shape, Shape) and not computation.root.shape.rank:
                continue
            report = memory_report(computation)
            peaks.append(max(report.peak_bytes - report.argument_bytes, 0))
    return max(peaks)
