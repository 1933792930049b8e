"""Abstract interpretation of a kernel: runs it on symbolic integers, and collects its accesses.

    analysis = Analysis(kernel.parameters)
    analysis.run(kernel.body)
    analysis.accesses

Integers in local buffers are followed from store to load; a value that a loop changes becomes a
number within bounds that are invariant over the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tvm import tirx

from tracejit.backends.tvm.ir.contracts import FILLS
from tracejit.backends.tvm.ir.tir import (
    PARALLEL,
    VECTORIZED,
    AllocBuffer,
    Buffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    Expr,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
)
from tracejit.backends.tvm.verification.accesses import Access, EnclosingLoop, KernelBuffer, flat
from tracejit.backends.tvm.verification.constraints import Condition, of_type
from tracejit.backends.tvm.verification.enumeration import outside
from tracejit.backends.tvm.verification.expressions import (
    Expressions,
    Indices,
    NotModelledError,
    Value,
)
from tracejit.backends.tvm.verification.invariants import (
    Repeated,
    Supposed,
    dropped,
    includes,
    is_part,
    joined,
    moving,
    widened,
    within,
)
from tracejit.backends.tvm.verification.linear import Linear, Symbol, number
from tracejit.backends.tvm.verification.registers import Bounds, RegisterElements, Registers, State
from tracejit.backends.tvm.verification.routines import (
    ROUTINES,
    Elements,
    StoredTo,
    Touched,
    touched,
)
from tracejit.backends.tvm.verification.trip_counts import ENDLESS, Counted, TripCounts

MOST_STEPS = 1 << 19
"""The most statements and expressions of one analysis."""
_MOST_OF_A_STEP = 1 << 30
_MOST_DROPPED = 4
"""How many times an invariant is weakened before all of it is given up."""


class Analysis(Expressions):
    """The analysis of one kernel; after ``most`` statements and expressions it raises
    `NotModelledError`.

    The last ``scratch`` parameters are uninitialised temporaries, and the first ``reads`` are
    never written. A loop's body is run several times to find invariants of the integers in the
    ``followed`` buffers; see `relevant`. The kernel is called in each iteration of ``loops``.
    """

    def __init__(
        self,
        parameters: Sequence[Buffer],
        scratch: int = 0,
        followed: frozenset[int] = frozenset(),
        most: int = MOST_STEPS,
        reads: int = 0,
        loops: Sequence[EnclosingLoop] = (),
    ) -> None:
        super().__init__(most)
        self._reads = {hash(parameter) for parameter in parameters[:reads]}
        self.accesses: list[Access] = []
        self.calls: list[tuple[str, Any]] = []
        self._memories: dict[int, KernelBuffer] = {}
        self._followed = followed
        self._registers = Registers(self.known, bool(followed))
        self._storing: int | None = None
        self._deciding = 0
        self._calling: Any = None
        self._deciders: set[int] = set()
        self._sources: dict[int, set[int]] = {}
        self._end: State | None = None
        self._guesses: dict[Any, Mapping[RegisterElements, Bounds | None]] = {}
        self._loops: tuple[EnclosingLoop, ...] = ()
        self._quiet = 0
        self._certain: dict[int, Linear] = {}
        """Facts that hold unconditionally."""
        self._touched: dict[int, Touched | None] = {}
        self._written = StoredTo(self._memories, self._effects)
        self._kinds: dict[type, Callable[[Any], None]] = {
            SeqStmt: self._sequence,
            For: self._for,
            While: self._while,
            IfThenElse: self._if,
            BufferStore: self._store,
            AllocBuffer: self._allocate,
            DeclBuffer: lambda s: None,
            Evaluate: self._evaluate,
            tirx.Bind: self._bind,
            tirx.AttrStmt: self._attribute,
        }
        first = len(parameters) - scratch
        for place, parameter in enumerate(parameters):
            made = self._remember(parameter, own=place >= first)
            if made.own:
                self._registers.allocate(hash(parameter), made.dtype)
        self._loops = tuple(loops)

    def suppose(self, parameter: Buffer, value: Linear) -> None:
        """Set the integer that a parameter of one element holds."""
        self._registers.suppose({_element(parameter): value}, {})

    def integer_in(self, parameter: Buffer) -> Linear:
        """The integer that a parameter of one element holds."""
        return self._registers.number_at(_element(parameter))

    def run(self, statement: Stmt) -> None:
        """Raises `NotModelledError`."""
        self.nodes += 1
        method = self._kinds.get(type(statement))
        if method is None:
            raise NotModelledError(f"statement {type(statement).__name__}")
        method(statement)

    def relevant(self) -> frozenset[int]:
        """The buffers whose integers affect indices or conditions of accesses."""
        found: set[int] = set()
        left = [*self._deciders]
        while left:
            memory = left.pop()
            if memory not in found:
                found.add(memory)
                left += self._sources.get(memory, ())
        return frozenset(found)

    def places(self, indices: Sequence[Expr]) -> Indices:
        self._deciding += 1
        made = super().places(indices)
        self._deciding -= 1
        return made

    def condition(self, e: Expr) -> Condition:
        self._deciding += 1
        made = super().condition(e)
        self._deciding -= 1
        return made

    # KernelBuffer

    def _remember(self, buffer: Buffer, own: bool) -> KernelBuffer:
        shape = tuple(int(extent) for extent in buffer.shape)
        depth = len(self._loops)
        made = KernelBuffer(buffer, str(buffer.name), str(buffer.dtype), shape, own, depth)
        self._memories[hash(buffer)] = made
        return made

    def memory(self, buffer: Buffer) -> KernelBuffer:
        found = self._memories.get(hash(buffer))
        if found is None:
            raise NotModelledError(
                f"buffer {buffer.name} that is neither a parameter nor allocated"
            )
        return found

    def load(self, memory: Buffer, indices: Indices, node: Any) -> Value:
        found = self.memory(memory)
        self._access(found, indices, False, node)
        kind = found.dtype
        if kind not in _TRACKED:
            return None
        if self._deciding:
            self._deciders.add(hash(memory))
        elif self._storing is not None:
            self._sources.setdefault(self._storing, set()).add(hash(memory))
        return self._registers.load(hash(memory), indices, kind)

    def _store(self, statement: Any) -> None:
        found = self.memory(statement.buffer)
        around, self._storing = self._storing, hash(statement.buffer)
        value = self.value(statement.value)
        self._storing = around
        indices = self.places(statement.indices)
        self._access(found, indices, True, statement)
        if found.dtype in _TRACKED:
            self._registers.store(hash(statement.buffer), indices, value, found.dtype)

    def _access(self, memory: KernelBuffer, indices: Indices, is_store: bool, node: Any) -> None:
        if self._quiet:
            return
        if len(indices) != len(memory.shape):
            raise NotModelledError(f"{len(indices)} indices into {len(memory.shape)} dimensions")
        problem = outside(self.known, indices, memory.shape)
        if problem is not None and len(indices) > 1:
            # A vector may continue in the next row.
            problem = outside(self.known, (flat(indices, memory.shape),), (memory.size,))
        self.accesses.append(
            Access(
                memory,
                indices,
                is_store,
                self._loops,
                tuple(fact for fact in self.known.facts if id(fact) not in self._certain),
                self.known.unknown_guards,
                problem,
                node if self._calling is None else self._calling,
            )
        )

    def _always(self, facts: Sequence[Linear]) -> Sequence[Linear]:
        self._certain.update((id(fact), fact) for fact in facts)
        return facts

    def _allocate(self, statement: Any) -> None:
        self._remember(statement.buffer, own=True)
        self._registers.allocate(hash(statement.buffer), str(statement.buffer.dtype))

    # Control

    def _sequence(self, statement: Any) -> None:
        for each in statement:
            self.run(each)

    def _attribute(self, statement: Any) -> None:
        self.run(statement.body)
        if statement.attr_key == FILLS:
            memory, first, count = statement.node
            self._region(Elements(memory, ((first, 1),), ((count, 1),)), is_store=True)

    def _bind(self, statement: Any) -> None:
        self._deciding += 1
        value = self.value(statement.value)
        self._deciding -= 1
        if isinstance(value, Linear):
            self.variables[hash(statement.var)] = value
        elif str(statement.var.ty).startswith(("int", "uint")):
            self.variables[hash(statement.var)] = self.integer(statement.value)

    def _evaluate(self, statement: Any) -> None:
        self.value(statement.value)

    def call(self, node: Any, name: str) -> Value:
        if name in ROUTINES:
            for each in node.args[1:]:
                self.value(each)
            self._calling = node
            self._routine(node)
            self._calling = None
            return None
        for each in node.args:
            self.value(each)
        return None

    def _effects(self, node: Any) -> Touched | None:
        """The effects of a routine call, the same object each time."""
        if hash(node) not in self._touched:
            self._touched[hash(node)] = touched(node, self._reads)
        return self._touched[hash(node)]

    def _routine(self, node: Any) -> None:
        known = self._effects(node)
        if known is None:
            if not self._quiet:
                self.calls.append((str(node.args[0].value), node))
            self._registers.forget_all()
            return
        if known.accesses is not None:
            self.run(known.accesses)
            return
        for each in known.reads:
            self._region(each, is_store=False)
        for each in known.writes:
            self._region(each, is_store=True)
        with self.known.scope():
            self.known.guard()
            for each in known.scratch:
                self._region(each, is_store=True)
        sources = {hash(each.buffer) for each in known.reads}
        self._registers.overwrite(known.stored, sources if known.permutes else None)
        for target in known.stored:
            self._sources.setdefault(target, set()).update(sources)
        for count, most in known.counts:
            self._count(count, self.integer(most))

    def _count(self, place: Elements, most: Linear) -> None:
        """An element that a routine has set to a number between 0 and ``most``."""
        made = Linear.of(Symbol("data", 0, max(self.known.bounds(most)[1], 0)))
        self.known.assume(self._always([most.add(made, -1)]))
        dtype = str(place.buffer.dtype)
        self._registers.store(hash(place.buffer), (self._sum(place.first),), made, dtype)

    def _region(self, region: Elements, is_store: bool) -> None:
        """The accesses of a routine to elements of one memory, as if by loops."""
        around, facts = self._loops, []
        index = self._sum(region.first)
        with self.known.scope():
            for extent, step in region.dimensions:
                count = self.integer(extent)
                symbol = Symbol("loop", 0, self.known.bounds(count)[1] - 1)
                if symbol.high < 0:
                    break
                self._loops = (*self._loops, EnclosingLoop(symbol, count, is_parallel=False))
                index = index.add(Linear.of(symbol), step)
                if count.terms:
                    facts.append(count.add(Linear.of(symbol), -1).plus(-1))
            else:
                if self.known.assume(facts):
                    self._access(self.memory(region.buffer), (index,), is_store, None)
        self._loops = around

    def _sum(self, terms: Sequence[tuple[Expr, int]]) -> Linear:
        total = number(0)
        for term, factor in terms:
            total = total.add(self.integer(term), factor)
        return total

    def _if(self, statement: Any) -> None:
        condition = self.condition(statement.condition)
        before = self._registers.state()
        ends = []
        for facts, part in (
            (condition.facts, statement.then_case),
            (condition.contrary, statement.else_case),
        ):
            self._registers.reset(before)
            with self._assuming(condition, facts) as possible:
                if possible:
                    if part is not None:
                        self.run(part)
                    ends.append(self._registers.summary(before))
        self._registers.join(before, ends)

    @contextmanager
    def _assuming(self, condition: Condition, facts: tuple[Linear, ...]) -> Iterator[bool]:
        with self.known.scope():
            is_exact = condition.is_exact and (facts is condition.facts or len(facts) == 1)
            if not is_exact:
                self.known.guard()
            yield self.known.assume(facts)

    def _for(self, statement: Any) -> None:
        self._deciding += 1
        extent, start = self.integer(statement.extent), self.integer(statement.min)
        self._deciding -= 1
        low, high = self.known.tight(extent) if extent.terms else extent.bounds()
        if high <= 0:
            return
        symbol = Symbol("loop", 0, high - 1)
        kind = int(statement.kind)
        loop = EnclosingLoop(symbol, extent, kind == int(PARALLEL), kind == int(VECTORIZED))
        self.variables[hash(statement.loop_var)] = start.add(Linear.of(symbol))
        facts = [extent.add(Linear.of(symbol), -1).plus(-1)] if extent.terms else []

        def body() -> None:
            around, self._loops = self._loops, (*self._loops, loop)
            self.run(statement.body)
            self._loops = around

        self._repeat(Repeated(statement.body, symbol, facts, body, low > 0, not extent.terms))

    def _while(self, statement: Any) -> None:
        counted = self._counted(statement)
        around = self._loops
        if counted is None:
            self._endless(statement)
        else:
            self._counted_while(statement, counted)
        self._loops = around
        # The condition reads at the end the same values as after the last iteration.
        self._quiet += 1
        condition = self.condition(statement.condition)
        self._quiet -= 1
        self.known.assume(self._always(condition.contrary))

    def _counted(self, statement: Any) -> Counted | None:
        self._quiet += 1
        counts = TripCounts(self.known, self._registers, self.run, self.condition)
        made = counts.of(statement, self._written.within(statement.body))
        self._quiet -= 1
        return made

    def _counted_while(self, statement: Any, counted: Counted) -> None:
        """A while loop of known trip count: its condition holds in every iteration."""

        def body() -> None:
            condition = self.condition(statement.condition)
            with self.known.scope():
                self.known.assume(self._always(condition.facts))
                before = self._registers.state()
                self.run(statement.body)
                self._registers.reset(self._registers.summary(before))

        symbol, counters = counted.symbol, counted.counters
        self._loops = (
            *self._loops,
            EnclosingLoop(symbol, number(counted.trips), is_parallel=False),
        )
        self._repeat(Repeated(statement.body, symbol, [], body, True, True, counters))

    def _endless(self, statement: Any) -> None:
        def body() -> None:
            condition = self.condition(statement.condition)
            with self._assuming(condition, condition.facts) as possible:
                self.known.guard()
                if possible:
                    before = self._registers.state()
                    self.run(statement.body)
                    self._registers.reset(self._registers.summary(before))

        symbol = Symbol("loop", 0, ENDLESS)
        self._loops = (*self._loops, EnclosingLoop(symbol, number(ENDLESS), is_parallel=False))
        self._repeat(Repeated(statement.body, symbol, [], body, runs=False, is_fixed=False))

    def _repeat(self, loop: Repeated) -> None:
        """Run a loop's body once, with the values it changes replaced by numbers within bounds."""
        counts = self._written.within(loop.statement)
        registers = self._registers
        before = registers.state()
        followed = [memory for memory in counts if memory in self._followed]
        supposed = Supposed({}, {}, ())
        ends: list[State] = []
        if followed:
            self._end = None
            supposed = self._invariant(loop, followed, counts)
            if self._quiet and self._end is not None:
                # The body has just been run with this state, and nothing is to be collected.
                ends.append(self._end)
        registers.reset(before)
        registers.forget(counts)
        registers.suppose({**supposed.values, **loop.counters}, supposed.spans)
        with self.known.scope():
            if not ends and self.known.assume([*loop.facts, *self._always(supposed.facts)]):
                loop.body()
                ends.append(registers.summary(before))
        if not loop.runs or not ends:
            ends.append(before)
        filled = {memory for memory, count in counts.items() if count == 1 and loop.is_fixed}
        registers.leave(before, ends, loop.symbol, filled)

    def _invariant(
        self, loop: Repeated, followed: Collection[int], written: Collection[int]
    ) -> Supposed:
        """The invariant of a loop over the kernel's local integers."""
        numbers, spans = self._registers.numbers(followed), self._registers.spans(followed)
        values = {place: value for place, value in numbers.items() if place not in loop.counters}
        if not values and not spans:
            return Supposed({}, {}, ())
        first: dict[RegisterElements, Bounds | None] = {
            p: self.known.bounds(v) for p, v in values.items()
        }
        first |= spans
        key = hash(loop.statement), frozenset(first.items())
        guess = self._guesses.get(key)
        if guess is not None:
            # The invariant that was found for the same initial state, in a previous run of an
            # outer loop.
            supposed = within(guess)
            if includes(guess, self._after(loop, supposed, written)[1]):
                return supposed
        self._end = None
        found_invariant = self._searched(loop, values, first, written)
        self._end = None
        if all(place in found_invariant.within for place in first):
            self._guesses[key] = found_invariant.within
        return found_invariant

    def _searched(
        self,
        loop: Repeated,
        values: Mapping[RegisterElements, Linear],
        first: Mapping[RegisterElements, Bounds | None],
        written: Collection[int],
    ) -> Supposed:
        _, found = self._after(loop, within(first), written)
        if includes(first, found):
            return within(first)
        grown = joined(first, found)
        _, found = self._after(loop, within(grown), written)
        if includes(grown, found):
            return within(grown)
        wider = {place: widened(place[2], bounds, found[place]) for place, bounds in first.items()}
        supposed = within(wider)
        steps, found = self._after(loop, supposed, written)
        if loop.symbol.high < ENDLESS:
            steady_steps = moving(loop.symbol, values, first, steps, within(joined(first, found)))
            # It holds for the next iteration because of the bounds of one step.
            again, after = self._after(loop, steady_steps, written)
            moved = [p for p in values if p in steady_steps.values and p not in steady_steps.within]
            steady = includes(steady_steps.within, after)
            if steady and all(is_part(again[place], steps[place]) for place in moved):
                return steady_steps
        narrowed = within(joined(first, found))
        if includes(narrowed.within, self._after(loop, narrowed, written)[1]):
            return narrowed
        if includes(wider, found):
            return supposed
        # Integers that leave their bounds are unknown from now on; the others keep theirs.
        for _ in range(_MOST_DROPPED):
            _, found = self._after(loop, within(grown), written)
            if includes(grown, found):
                return within(grown)
            grown = dropped(grown, found)
        return within({place: of_type(place[2]) for place in first})

    def _after(
        self, loop: Repeated, supposed: Supposed, written: Collection[int]
    ) -> tuple[dict[RegisterElements, Bounds | None], dict[RegisterElements, Bounds | None]]:
        """The bounds of an iteration's increment of each integer, if known, and bounds
        afterwards.
        """
        registers = self._registers
        before = registers.state()
        end: State | None = None
        registers.forget(written)
        registers.suppose({**supposed.values, **loop.counters}, supposed.spans)
        self._quiet += 1
        steps: dict[RegisterElements, Bounds | None] = {}
        found: dict[RegisterElements, Bounds | None] = {
            p: v.bounds() for p, v in supposed.values.items()
        }
        found |= supposed.spans
        with self.known.scope():
            if self.known.assume([*loop.facts, *supposed.facts]):
                loop.body()
                for place, value in supposed.values.items():
                    last = registers.number_at(place)
                    found[place] = self.known.bounds(last)
                    low, high = self.known.bounds(last.add(value, -1))
                    steps[place] = (low, high) if high - low < _MOST_OF_A_STEP else None
                memories = {memory for memory, _, _ in supposed.spans}
                found |= registers.spans(memories)
                end = registers.summary(before)
            else:
                steps |= dict.fromkeys(supposed.values, (0, 0))
        self._quiet -= 1
        registers.reset(before)
        self._end = end
        return steps, found


_TRACKED = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
_TRACKED |= {"bool"}


def _element(parameter: Buffer) -> RegisterElements:
    """The only element of a parameter."""
    return hash(parameter), (0,) * len(parameter.shape), str(parameter.dtype)
