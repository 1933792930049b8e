"""Induction variables of a program's loops, and the rows that kernels store at them.

    made = Induction(program, footprints)
    made.trips(loop)        # a lower bound on its number of iterations, 0 if nothing is known
    made.runs(loop)         # whether its body certainly runs
    made.miscounted(loop)   # a trip count that is not the one that the program states, or None
    made.stores(loop)       # what its kernels have certainly stored when it ends

Follows integers of one element through the calls of a program. One that is a before a loop, and
that an iteration adds b to, is a + b * t at the beginning of iteration t: the kernels of the body
are analysed again with it.

    i = 0; while i < 7: rows[i] = kernel(); i += 1      # stores rows[0] to rows[6]

The claim is checked for all iterations at once; where that fails, for all but the last and for the
last, which may take another branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tracejit.backends.tvm.ir.tir import Buffer, nbytes
from tracejit.backends.tvm.program.program import (
    Argument,
    Branch,
    Call,
    Code,
    Kernel,
    Loop,
    Memory,
    Node,
    Program,
    code_of,
    walk,
)
from tracejit.backends.tvm.verification import accesses
from tracejit.backends.tvm.verification.accesses import KernelBuffer
from tracejit.backends.tvm.verification.constraints import Condition, of_type
from tracejit.backends.tvm.verification.enumeration import UnknownNumbersError, is_enumerable
from tracejit.backends.tvm.verification.expressions import NotModelledError
from tracejit.backends.tvm.verification.footprints import Elements, Footprint, footprint
from tracejit.backends.tvm.verification.kernel_analysis import analysed
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number
from tracejit.backends.tvm.verification.order import ordered

_MOST_ANALYSES = 400
"""The most analyses of kernels with known integers, in one program."""
_MOST_STEPS = 20_000
"""The most steps of each."""
_MOST_ROUNDS = 4
"""How many times integers that are no induction variables are left out."""

Location = tuple[Memory, int, int, str]
"""A kind of memory, the number of the array, the offset in bytes, and the element type."""
Integers = dict[Location, Linear]


@dataclass(frozen=True)
class Stored:
    """The elements that a call has certainly stored to parameters, by number, when a loop ends."""

    call: Call
    elements: Mapping[int, Elements]


@dataclass(frozen=True)
class _Around:
    """A loop around a call, and its iterations: all of them, unless it ``is_split``."""

    loop: Loop
    symbol: Symbol
    is_split: bool


@dataclass(frozen=True)
class _Counted:
    """A trip count, and the increments per iteration of integers; with ``is_split`` these are
    checked for all iterations but the last.
    """

    trips: int
    steps: Mapping[Location, int]
    is_split: bool

    def at(self, start: Integers, iteration: Linear) -> Integers:
        """The integers at the beginning of an iteration."""
        return {place: start[place].add(iteration, step) for place, step in self.steps.items()}


class Induction:
    """Runs a program's calls on its known integers."""

    def __init__(
        self, program: Program, footprints: Mapping[Code, Sequence[Footprint | None]]
    ) -> None:
        self._program = program
        self._kernels = {kernel.name: kernel for kernel in program.kernels}
        self._footprints = footprints
        self._stores: dict[int, list[Stored]] = {}
        self._trips: dict[int, int] = {}
        self._enters: dict[int, bool] = {}
        self._miscounted: dict[int, int] = {}
        self._symbols: set[Symbol] = set()
        self._left = _MOST_ANALYSES
        loops = [node for node in walk(program.calls) if isinstance(node, Loop)]
        inside = (node for loop in loops for node in walk(loop.body) if isinstance(node, Call))
        is_stated = any(loop.steps is not None for loop in loops)
        if is_stated or any(self._partial(self._kernels[call.kernel]) for call in inside):
            self._run(program.calls, {}, ())

    def trips(self, loop: Loop) -> int:
        return self._trips.get(id(loop), 0)

    def runs(self, loop: Loop) -> bool:
        return self._enters.get(id(loop), False)

    def miscounted(self, loop: Loop) -> int | None:
        return self._miscounted.get(id(loop))

    def stores(self, loop: Loop) -> Sequence[Stored]:
        return self._stores.get(id(loop), ())

    def _partial(self, kernel: Kernel) -> list[int]:
        """The parameters that a kernel may write in part only."""
        known = self._footprints.get(code_of(kernel), ())
        return [
            n
            for n, made in enumerate(known)
            if n >= kernel.reads and made is not None and not made.written.all()
        ]

    def _run(
        self, nodes: Sequence[Node], integers: Integers, around: tuple[_Around, ...] | None
    ) -> None:
        """Change ``integers`` as the nodes do.

        The nodes run in each iteration of the loops ``around``; with None nothing is recorded.
        """
        for node in nodes:
            if isinstance(node, Call):
                self._call(node, integers, around)
            elif isinstance(node, Loop):
                self._loop(node, integers, around)
            else:
                self._branch(node, integers, around)

    # Calls

    def _call(self, call: Call, integers: Integers, around: tuple[_Around, ...] | None) -> None:
        kernel = self._kernels[call.kernel]
        given = {}
        for n, (parameter, argument) in enumerate(
            zip(kernel.parameters, call.arguments, strict=True)
        ):
            value = self._value(parameter, argument, integers)
            if value is not None:
                given[n] = value
        if around:
            self._record(call, kernel, given, around)
        made = self._results(kernel, given)
        _forget(integers, call, kernel)
        for n, value in made.items():
            argument = call.arguments[n]
            if argument.memory is Memory.WORKSPACE or (
                argument.memory is Memory.OUTPUT and argument.index not in self._program.aliases
            ):
                integers[_location(argument, kernel.parameters[n])] = value

    def _value(self, parameter: Buffer, argument: Argument, integers: Integers) -> Linear | None:
        if not _is_integer(parameter):
            return None
        if argument.memory is not Memory.CONSTANT:
            return integers.get(_location(argument, parameter))
        array = self._program.constants[argument.index].reshape(-1).view(np.uint8)
        item = array[argument.offset : argument.offset + nbytes(parameter)]
        return number(int(item.view(str(parameter.dtype))[0]))

    def _results(self, kernel: Kernel, given: Mapping[int, Linear]) -> dict[int, Linear]:
        """The integers that a kernel stores, by parameter."""
        written = range(kernel.reads, len(kernel.parameters))
        places = [n for n in written if _is_integer(kernel.parameters[n])]
        if not places or not self._left:
            return {}
        self._left -= 1
        try:
            analysis = analysed(kernel, given, most=_MOST_STEPS)
        except NotModelledError:
            return {}
        if analysis.calls:
            return {}
        values = {n: analysis.integer_in(kernel.parameters[n]) for n in places}
        return {n: value for n, value in values.items() if self._is_followed(value)}

    def _is_followed(self, value: Linear) -> bool:
        """Whether a value depends on iterations only."""
        return value.terms.keys() <= self._symbols or self._decided(value) is not None

    def _decided(self, value: Linear) -> Linear | None:
        """The expression that is >= 0 exactly if a value is 1 and not 0."""
        if value.constant or len(value.terms) != 1:
            return None
        ((symbol, coefficient),) = value.terms.items()
        if coefficient != 1 or symbol.kind != "choice":
            return None
        condition, one, zero = symbol.operands
        if not isinstance(condition, Condition) or not condition.is_exact:
            return None
        if one.key != number(1).key or zero.key != number(0).key or len(condition.facts) != 1:
            return None
        (fact,) = condition.facts
        return fact if fact.terms.keys() <= self._symbols else None

    def _record(
        self,
        call: Call,
        kernel: Kernel,
        given: Mapping[int, Linear],
        around: tuple[_Around, ...],
    ) -> None:
        """The elements that a call in loops stores, of parameters that it may not fill at once."""
        partial = self._partial(kernel)
        followed = {n: v for n, v in given.items() if v.terms.keys() <= self._symbols}
        used = {symbol for value in followed.values() for symbol in value.terms}
        if not partial or not followed or not used <= {each.symbol for each in around}:
            return
        # The outermost loop that they depend on. What holds in a part of a loop's iterations holds
        # after all of them.
        level = next(
            n
            for n, a in enumerate(around)
            if a.is_split or a.symbol in used or n + 1 == len(around)
        )
        if not self._left:
            return
        self._left -= 1
        loops = [
            accesses.EnclosingLoop(
                a.symbol, number(a.symbol.high - a.symbol.low + 1), is_parallel=False
            )
            for a in around[level:]
            if a.symbol in used
        ]
        try:
            analysis = analysed(kernel, followed, loops, _MOST_STEPS)
        except NotModelledError:
            return
        moments = ordered(analysis.accesses)
        made = {}
        for place in partial:
            memory: KernelBuffer = analysis.memory(kernel.parameters[place])
            own = [
                (access, moment)
                for access, moment in zip(analysis.accesses, moments, strict=True)
                if access.is_store and access.memory is memory
            ]
            try:
                made[place] = footprint(memory, own, lambda fact: is_enumerable([fact])).written
            except UnknownNumbersError:
                continue
        self._stores.setdefault(id(around[level].loop), []).append(Stored(call, made))

    # Loops and branches

    def _loop(self, loop: Loop, integers: Integers, around: tuple[_Around, ...] | None) -> None:
        is_entered, counted = self._counted(loop, integers)
        known = self._trips.get(id(loop))
        trips = 0 if counted is None else counted.trips
        self._trips[id(loop)] = trips if known is None else min(known, trips)
        if around is not None:
            self._enters[id(loop)] = self._enters.get(id(loop), True) and is_entered
            if counted is not None and loop.steps not in (None, trips):
                self._miscounted[id(loop)] = trips
        nodes = [*loop.condition, *loop.body]
        if counted is None:
            for node in walk(nodes):
                if isinstance(node, Call):
                    _forget(integers, node, self._kernels[node.kernel])
            self._run(nodes, dict(integers), None if around is None else ())
            return
        end = integers
        parts = [(0, trips - 2), (trips - 1, trips - 1)] if counted.is_split else [(0, trips - 1)]
        for low, high in parts:
            if low > high:
                continue
            symbol = self._symbol(low, high)
            now = counted.at(integers, Linear.of(symbol))
            each = _Around(loop, symbol, counted.is_split)
            self._run(nodes, now, None if around is None else (*around, each))
            if counted.is_split:
                end = now
        if not counted.is_split:
            end = counted.at(integers, number(trips))
        else:
            end = {p: v.replace(symbol, number(high)) for p, v in end.items()}
        integers.clear()
        integers.update(end)
        self._run(loop.condition, integers, None)

    def _symbol(self, low: int, high: int) -> Symbol:
        made = Symbol("loop", low, high)
        self._symbols.add(made)
        return made

    def _counted(self, loop: Loop, start: Integers) -> tuple[bool, _Counted | None]:
        """Whether a loop's body certainly runs, and its trip count, if an induction variable
        decides it.
        """
        after = dict(start)
        self._run(loop.condition, after, None)
        first = after.get(_of_predicate(loop))
        if first is None or first.terms:
            return False, None
        if not first.constant:
            return False, _Counted(0, {place: 0 for place in start}, False)
        self._run(loop.body, after, None)
        steps = {}
        for place, value in start.items():
            step = after[place].add(value, -1) if place in after else Linear.of(_ANY)
            if not step.terms:
                steps[place] = step.constant
        for is_split in (False, True):
            counted = self._checked(loop, start, steps, is_split)
            if counted is not None:
                return True, counted
        return True, None

    def _checked(
        self, loop: Loop, start: Integers, steps: Mapping[Location, int], is_split: bool
    ) -> _Counted | None:
        """The trip count, and those of the ``steps`` that are the same in all iterations."""
        for _ in range(_MOST_ROUNDS):
            trips = self._trip_count(loop, start, steps)
            if trips is None:
                return None
            counted = _Counted(trips, steps, is_split)
            last = trips - 1 - is_split
            if last < 0:
                return counted
            iteration = Linear.of(self._symbol(0, last))
            now = counted.at(start, iteration)
            following = counted.at(start, iteration.plus(1))
            self._run([*loop.condition, *loop.body], now, None)
            kept = {p: s for p, s in steps.items() if p in now and now[p].key == following[p].key}
            if len(kept) == len(steps):
                return counted
            steps = kept
        return None

    def _trip_count(self, loop: Loop, start: Integers, steps: Mapping[Location, int]) -> int | None:
        """The first iteration before which the predicate is 0."""
        most = 1 << 62
        for place, step in steps.items():
            least, greatest = of_type(place[3])
            low, high = start[place].bounds()
            if step:
                most = min(most, (greatest - high if step > 0 else low - least) // abs(step))
        symbol = self._symbol(0, max(most, 0))
        now = _Counted(0, steps, False).at(start, Linear.of(symbol))
        self._run(loop.condition, now, None)
        predicate = now.get(_of_predicate(loop))
        fact = None if predicate is None else self._decided(predicate)
        if fact is None or fact.terms.keys() != {symbol} or fact.terms[symbol] >= 0:
            return None
        return max(fact.constant // -fact.terms[symbol] + 1, 0)

    def _branch(
        self, branch: Branch, integers: Integers, around: tuple[_Around, ...] | None
    ) -> None:
        selector = branch.selector
        value = integers.get((selector.memory, selector.index, selector.offset, "int32"))
        if value is not None and value.bounds()[0] == value.bounds()[1]:
            last = len(branch.branches) - 1
            chosen = value.bounds()[0]
            case = branch.branches[chosen if 0 <= chosen <= last else last]
            self._run(case, integers, around)
            return
        if around is not None and not any(each.is_split for each in around):
            inside: tuple[_Around, ...] | None = ()
        else:
            inside = None
        ends = []
        for each in branch.branches:
            end = dict(integers)
            self._run(each, end, inside)
            ends.append(end)
        integers.clear()
        for place, value in ends[0].items():
            if all(place in end and end[place].key == value.key for end in ends[1:]):
                integers[place] = value


_ANY = Symbol("data", *of_type("int64"))


def _of_predicate(loop: Loop) -> Location:
    predicate = loop.predicate
    return predicate.memory, predicate.index, predicate.offset, "uint8"


def _location(argument: Argument, parameter: Buffer) -> Location:
    return argument.memory, argument.index, argument.offset, str(parameter.dtype)


def _is_integer(parameter: Buffer) -> bool:
    """Whether a parameter is a single integer."""
    if not str(parameter.dtype).startswith(("int", "uint")):
        return False
    return all(int(extent) == 1 for extent in parameter.shape)


def _forget(integers: Integers, call: Call, kernel: Kernel) -> None:
    """Drop the integers in memory that a call may write."""
    for argument, parameter in zip(
        call.arguments[kernel.reads :], kernel.parameters[kernel.reads :], strict=True
    ):
        end = argument.offset + nbytes(parameter)
        for place in [*integers]:
            memory, index, offset, dtype = place
            size = np.dtype(dtype).itemsize
            if (memory, index) == (argument.memory, argument.index):
                if offset < end and argument.offset < offset + size:
                    del integers[place]
