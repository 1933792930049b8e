"""Traces: one recording of one function, and which of them is running in this thread.

    with Trace("loss") as trace:
        x = trace.argument(shape, "x")
        ...                                 what x takes part in is recorded

A graph needs no trace to be built; the trace says which values are still alive, the arrays behind
its arguments, and how a number that Python needs can be computed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tracejit.errors import ArgumentError, TracejitError, ValueRangeError, notice
from tracejit.graph import Instruction, mark
from tracejit.ops.base import Made, make_from
from tracejit.ops.constants import parameter
from tracejit.shapes import AnyShape
from tracejit.sources import Source
from tracejit.trace.hash_consing import Memory
from tracejit.trace.hidden_errors import require_seen

SETTLED = 512
"""Instructions after which values that are known while tracing are plain arrays."""


@dataclass(frozen=True, slots=True)
class Argument:
    """The origin of a parameter of a trace.

    ``describe`` names it for errors. ``value`` is its array, its value in an enclosing trace, or
    None when it is unknown until the graph runs. Where ``differentiated``, a value made from it
    must not leave the graph without its derivative.
    """

    describe: Callable[[], str]
    value: np.ndarray | Instruction | None = None
    differentiated: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """The inclusive range of a Python integer that an operation on a line requires."""

    least: int
    most: int
    source: Source | None = None

    def allow(self, value: int) -> bool:
        return self.least <= value <= self.most

    def require(self, value: int, name: str) -> None:
        """Raises `ValueRangeError` for a value that is beyond."""
        if not self.allow(value):
            raise ValueRangeError(
                f"{name}: {value} does not fit where it is used, between {self.least} and "
                f"{self.most}",
                self.source,
            )


class LongTraceError(BaseException):
    """A trace has recorded more instructions than it may.

    No `Exception`: what a traced function does about errors is not for this.
    """


@dataclass(frozen=True, slots=True)
class Limit:
    """After ``count`` instructions, ``more`` is called for the number of further ones.

    If that is 0, recording ends with `LongTraceError`; else it is called again after these.
    """

    count: int
    more: Callable[[], float]


class Trace:
    """One recording of one function; a context manager, alive inside the ``with`` block.

    ``eager`` says that every argument is known and that plain arrays count as arguments,
    ``record_numpy`` that functions called inside see recording namespaces. ``effects`` are the
    instructions that happen for their side effects, whatever becomes of their values. ``bounds``
    are those of arguments that are Python's integers. ``limit`` holds for inner traces as well;
    recording that reaches ``end`` asks it. ``asks_order``: what was recorded is right for
    arguments that lie in memory row by row. ``has_permuted``: an array was made that may lie in
    another order. ``has_gaps``: a branch or loop may give a view whose elements do not lie one
    behind the other. ``unknown`` values are known to depend on unknown arguments.
    A trace ``is_settled`` when it is so long that known values are plain arrays in it
    (`tracejit.trace.settled`), which are ``unrecorded``; ``literals`` are values that it has of
    others; ``inside`` counts the functions that are recording. ``hidden_writes`` are what
    statements, by their code, have been found to change beside their variables, ``twins`` are
    containers that may be one when the graph runs. ``memory`` has what earlier traces of the
    function made; inner traces make everything anew.
    """

    __slots__ = (
        "_before",
        "_checks",
        "_copies",
        "_errors",
        "_noticed",
        "alive",
        "arguments",
        "asks_order",
        "bounds",
        "channels",
        "eager",
        "effects",
        "end",
        "has_gaps",
        "has_permuted",
        "hidden_writes",
        "inside",
        "is_settled",
        "limit",
        "literals",
        "memory",
        "name",
        "parent",
        "partitions",
        "record_numpy",
        "settles",
        "start",
        "twins",
        "unknown",
        "unrecorded",
        "values",
        "warned",
    )

    def __init__(
        self,
        name: str,
        *,
        eager: bool = False,
        record_numpy: bool = True,
        limit: Limit | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.name = name
        self.eager = eager
        self.record_numpy = record_numpy
        self.alive = False
        self.parent: Trace | None = None
        self.arguments: dict[Instruction, Argument] = {}
        self.asks_order = self.has_permuted = self.has_gaps = False
        self._copies: list[Callable[[], bool]] = []
        self._checks: list[Callable[[], None]] = []
        self.twins: list[Any] = []
        self.bounds: dict[Instruction, Bounds] = {}
        self.channels = 0
        self.partitions = 1
        self.values: dict[Instruction, Any] = {}
        self.unknown: set[Instruction] = set()
        self.hidden_writes: dict[Any, dict[Any, Any]] = {}
        self.effects: list[Instruction] = []
        self.warned: set[object] = set()
        self.start = 0
        self.limit = limit
        self.end = math.inf
        self.memory = memory
        self._before: Made | None = None
        self._errors: list[TracejitError] = []
        self._noticed: list[TracejitError] | None = None
        self.settles = math.inf
        self.is_settled = False
        self.inside = 0
        self.literals: dict[Instruction, np.ndarray | None] = {}
        self.unrecorded: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def __enter__(self) -> Trace:
        assert not self.start, "a trace records once"
        traces = _running.traces
        self.parent = traces[-1] if traces else None
        self.record_numpy &= self.parent is None or self.parent.record_numpy
        self.alive = True
        self.has_permuted = self.parent is not None and self.parent.has_permuted
        self.has_gaps = self.parent is not None and self.parent.has_gaps
        self._before = make_from(None if self.memory is None else self.memory.begun())
        if self.parent is not None:
            self.parent.record_all()
        self.start = mark()
        if self.parent is None and not self.eager and self.memory is None:
            self.settles = self.start + SETTLED
        if self.limit is not None:
            self.end = self.start + self.limit.count
        elif self.parent is not None:
            self.limit, self.end = self.parent.limit, self.parent.end
        if self.parent is None:
            self._noticed = notice(self._errors)
        traces.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if any(was_written() for was_written in self._copies):
            ask_order()
        self._copies.clear()
        checks, self._checks = self._checks, []
        self.hidden_writes.clear()
        self.unknown.clear()
        self.literals.clear()
        self.alive = False
        make_from(self._before)
        assert _running.traces.pop() is self
        if self.parent is None:
            self.twins.clear()
            notice(self._noticed)
            errors, self._errors = self._errors, []
            require_seen(errors, error)
        if error is None:
            for check in checks:
                check()

    def at_end(self, check: Callable[[], None]) -> None:
        """Calls ``check`` when the trace has ended without an error."""
        self._checks.append(check)

    def reach_end(self) -> None:
        """Raises `LongTraceError` if the limit says so; else the end is farther from now on."""
        assert self.limit is not None, "a trace without a limit has no end"
        more = self.limit.more()
        if not more:
            raise LongTraceError
        for trace in _running.traces:
            trace.end += more

    def settle(self) -> None:
        """From now on known values are plain arrays, if no argument is known."""
        self.settles = math.inf
        self.is_settled = all(argument.value is None for argument in self.arguments.values())

    def record_all(self) -> None:
        """Records the arrays that are plain so far: a trace inside may see them."""
        for array in list(self.unrecorded.values()):
            array.record()
        self.unrecorded.clear()

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Records in a thread that was started inside the trace, or after its end in none."""
        before = make_from(None)
        _running.traces.append(self)
        try:
            yield
        finally:
            make_from(before)
            assert _running.traces.pop() is self

    def parameter(
        self,
        shape: AnyShape,
        describe: Callable[[], str],
        value: np.ndarray | Instruction | None = None,
        differentiated: bool = False,
    ) -> Instruction:
        """A new Parameter instruction that this trace knows as one of its arguments."""
        number = len(self.arguments)
        known = self.memory
        made = parameter(number, shape) if known is None else known.parameter(number, shape)
        self.arguments[made] = Argument(describe, value, differentiated)
        return made

    def owns(self, instruction: Instruction) -> bool:
        """Whether the instruction was made while this trace, or one inside it, was recording."""
        return instruction.serial > self.start


class _Running(threading.local):
    def __init__(self) -> None:
        self.traces: list[Trace] = []


_running = _Running()


def current_trace() -> Trace | None:
    """The innermost trace that records in this thread."""
    traces = _running.traces
    return traces[-1] if traces else None


def memory_now() -> Memory | None:
    """What the trace that records in this thread remembers."""
    traces = _running.traces
    return traces[-1].memory if traces else None


def keep_effect(instruction: Instruction) -> Instruction:
    """``instruction``, which the running trace keeps if it has a side effect."""
    trace = current_trace()
    if instruction.has_effect and trace is not None:
        trace.effects.append(instruction)
    return instruction


def ask_order() -> None:
    """Marks the recorded graph as dependent on the memory order of arguments."""
    for trace in _running.traces:
        trace.asks_order = True
        if trace.memory is not None:
            trace.memory.asked += 1


def ask_order_if(was_written: Callable[[], bool]) -> None:
    """Says that it does where ``was_written()`` holds at the end of the trace.

    A copy would be a view if the arguments lay in another order.
    """
    if _running.traces:
        _running.traces[-1]._copies.append(was_written)


def note_permuted() -> None:
    """Says that an array was made that may not lie in memory row by row."""
    for trace in _running.traces:
        trace.has_permuted = True


def note_gaps() -> None:
    """Says that a view whose elements do not lie one behind the other goes in or out of a body."""
    for trace in _running.traces:
        trace.has_gaps = True


def run_on(partitions: int) -> None:
    """Declare that ``partitions`` devices run the recorded program, one partition each.

    Raises `ArgumentError` where it is recorded for another number already.
    """
    for trace in _running.traces:
        if trace.partitions not in (1, partitions):
            raise ArgumentError(
                f"{trace.name}: meshes of {trace.partitions} and of {partitions} devices do not go "
                "together in one program"
            )
        trace.partitions = partitions


def next_channel() -> int:
    """The number of a new channel between devices, the same in every recording."""
    outermost = _running.traces[0]
    outermost.channels += 1
    return outermost.channels


def running_traces() -> list[Trace]:
    """All traces that record in this thread, the outermost first."""
    return _running.traces


def are_differentiated() -> bool:
    """Whether the recorded graph will be differentiated."""
    return any(
        argument.differentiated
        for trace in _running.traces
        for argument in trace.arguments.values()
    )


def find_argument(instruction: Instruction) -> tuple[Trace, Argument] | None:
    """The running trace whose argument a Parameter is, with what stands behind it."""
    for trace in reversed(_running.traces):
        argument = trace.arguments.get(instruction)
        if argument is not None:
            return trace, argument
    return None
