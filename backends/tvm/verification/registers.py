"""The known integers in a kernel's memory, at one point of the analysis.

A cell is the value last stored to, or loaded from, an index, or the values that a finished loop
left at all of its indices. A span is the bounds of all integers stored to a local buffer: its
loads see stored values only, which `initialisation` proves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracejit.backends.tvm.verification.constraints import Condition, Constraints, of_type
from tracejit.backends.tvm.verification.expressions import Indices, Value
from tracejit.backends.tvm.verification.linear import Linear, Symbol, depends_on

_MOST_CELLS = 64
_HALVED = {"uint64": "uint32"}
"""Of words that sorts make of a key and a position the spans are those of the positions."""
_HALF = 1 << 32

Bounds = tuple[int, int]
RegisterElements = tuple[int, Any, str]
"""A buffer's hash, constant indices or None for all of them, and the buffer's element type."""


@dataclass(frozen=True)
class Cell:
    """The value at ``indices``; for each value of ``free``, if that is a symbol."""

    indices: Indices
    value: Linear | Condition
    dtype: str
    free: Symbol | None = None


@dataclass(frozen=True)
class State:
    """The contents of memory, by buffer hash. A span of None contains no numbers."""

    cells: Mapping[int, tuple[Cell, ...]]
    spans: Mapping[int, tuple[str, Bounds | None]]


class Registers:
    """The current contents of memory; the newest cells come first.

    Spans are kept only ``with_spans``.
    """

    def __init__(self, known: Constraints, with_spans: bool) -> None:
        self._known = known
        self._with_spans = with_spans
        self._cells: dict[int, tuple[Cell, ...]] = {}
        self._spans: dict[int, tuple[str, Bounds | None]] = {}

    def allocate(self, memory: int, dtype: str) -> None:
        """Add a local buffer without stores."""
        self._cells.pop(memory, None)
        if self._with_spans:
            self._spans[memory] = (_HALVED.get(dtype, dtype), None)

    def load(self, memory: int, indices: Indices, dtype: str) -> Linear | Condition:
        """The value at an index, the same symbol until the next store."""
        cells = self._cells.get(memory, ())
        for cell in cells:
            if cell.free is None:
                if _is_same_place(cell.indices, indices):
                    return cell.value
            else:
                value = self._of_run(cell, indices)
                if value is not None:
                    return value
        bounds = (self._spans.get(memory) or ("", None))[1]
        value = Linear.of(Symbol("data", *(bounds or of_type(_HALVED.get(dtype, dtype)))))
        if dtype in _HALVED:
            upper = Symbol("data", *of_type(_HALVED[dtype]))
            value = value.add(Linear.of(upper), _HALF)
        self._cells[memory] = (Cell(indices, value, dtype), *cells[: _MOST_CELLS - 1])
        return value

    def _of_run(self, run: Cell, indices: Indices) -> Linear | Condition | None:
        """The value at an index that certainly belongs to a run of indices."""
        symbol = run.free
        assert symbol is not None
        (place,), (index,) = run.indices, indices
        coefficient = place.terms[symbol]
        iteration = index.add(place.replace(symbol, Linear(0, {})), -1).times(coefficient)
        low, high = self._known.bounds(iteration)
        if low < symbol.low or high > symbol.high or isinstance(run.value, Condition):
            return None
        own = run.value.terms.get(symbol, 0)
        if not own:
            return run.value
        return run.value.replace(symbol, iteration)

    def store(self, memory: int, indices: Indices, value: Value, dtype: str) -> None:
        if value is None:
            value = Linear.of(Symbol("data", *of_type(dtype)))
        kept = [c for c in self._cells.get(memory, ()) if _is_elsewhere(c.indices, indices)]
        self._cells[memory] = (Cell(indices, value, dtype), *kept[: _MOST_CELLS - 1])
        span = self._spans.get(memory)
        if span is not None:
            bounds = (0, 1)
            if isinstance(value, Linear):
                if dtype in _HALVED:
                    value = self._known.remainder(value, _HALF)
                bounds = self._known.tight(value)
            self._spans[memory] = (span[0], hull([span[1], bounds]))

    def forget(self, memories: Iterable[int]) -> None:
        """Mark memory as unknown."""
        for memory in memories:
            self._cells.pop(memory, None)
            if memory in self._spans:
                dtype, _ = self._spans[memory]
                self._spans[memory] = (dtype, of_type(dtype))

    def overwrite(self, memories: Iterable[int], sources: Iterable[int] | None) -> None:
        """Memory that holds anything, or if there are ``sources`` what it or they held before."""
        for memory in memories:
            self._cells.pop(memory, None)
            dtype, own = self._spans.get(memory, ("", None))
            if not dtype:
                continue
            found: list[Bounds | None] = [of_type(dtype)]
            if sources is not None:
                found = [own, *(self._spans.get(s, (dtype, of_type(dtype)))[1] for s in sources)]
            self._spans[memory] = (dtype, hull(found))

    def forget_all(self) -> None:
        self.forget([*{**self._cells, **self._spans}])

    # Joining

    def state(self) -> State:
        return State(dict(self._cells), dict(self._spans))

    def reset(self, state: State) -> None:
        self._cells, self._spans = dict(state.cells), dict(state.spans)

    def summary(self, before: State) -> State:
        """The current state, with new values replaced by their bounds in this scope."""
        cells = {
            memory: cells if before.cells.get(memory) is cells else tuple(map(self._bounded, cells))
            for memory, cells in self._cells.items()
        }
        return State(cells, dict(self._spans))

    def _bounded(self, cell: Cell) -> Cell:
        if isinstance(cell.value, Condition) or not cell.value.terms:
            return cell
        return replace(cell, value=_Bounded(cell.value, *self._known.tight(cell.value)))

    def join(self, before: State, ends: Sequence[State]) -> None:
        """The state that holds at the join of several paths."""
        self._cells, self._spans = {}, {}
        if not ends:
            return
        for memory, cells in ends[0].cells.items():
            others = [end.cells.get(memory, ()) for end in ends[1:]]
            if before.cells.get(memory) is cells and all(other is cells for other in others):
                self._cells[memory] = cells
                continue
            common = [_common(each, others) for each in cells]
            self._cells[memory] = tuple(each for each in common if each is not None)
        for memory, (dtype, _) in ends[0].spans.items():
            found = [end.spans.get(memory, (dtype, of_type(dtype)))[1] for end in ends]
            self._spans[memory] = (dtype, hull(found))

    # Loops

    def numbers(self, memories: Collection[int]) -> dict[RegisterElements, Linear]:
        """The integers at constant indices of some buffers."""
        return {
            (memory, tuple(i.constant for i in each.indices), each.dtype): each.value
            for memory in memories
            for each in self._cells.get(memory, ())
            if each.free is None
            and isinstance(each.value, Linear)
            and not any(i.terms for i in each.indices)
        }

    def spans(self, memories: Collection[int]) -> dict[RegisterElements, Bounds | None]:
        found = {memory: self._spans[memory] for memory in memories if memory in self._spans}
        return {(memory, None, dtype): bounds for memory, (dtype, bounds) in found.items()}

    def suppose(
        self,
        values: Mapping[RegisterElements, Linear],
        spans: Mapping[RegisterElements, Bounds | None],
    ) -> None:
        """Set the contents of some buffers."""
        for (memory, place, dtype), value in values.items():
            indices = tuple(Linear(i, {}) for i in place)
            self._cells[memory] = (Cell(indices, value, dtype), *self._cells.get(memory, ()))
        for (memory, _, dtype), bounds in spans.items():
            self._spans[memory] = (dtype, bounds)

    def number_at(self, place: RegisterElements) -> Linear:
        """The current value at constant indices."""
        memory, indices, dtype = place
        for each in self._cells.get(memory, ()):
            is_constant = each.free is None and all(not i.terms for i in each.indices)
            if is_constant and tuple(i.constant for i in each.indices) == indices:
                if isinstance(each.value, Linear):
                    return each.value
                break
        return Linear.of(Symbol("data", *of_type(dtype)))

    def leave(
        self, before: State, ends: Sequence[State], symbol: Symbol, filled: Collection[int]
    ) -> None:
        """The state after a loop over ``symbol``, which may have run zero times.

        Exactly one statement of its body stores to each of the ``filled`` buffers.
        """
        self.join(before, ends)
        for memory, cells in [*self._cells.items()]:
            if cells and before.cells.get(memory) is not cells:
                made = [_left(each, symbol, memory in filled) for each in cells]
                self._cells[memory] = tuple(each for each in made if each is not None)


class _Bounded(Linear):
    """A value with bounds that are narrower than those of its terms: of a scope that has ended, or
    one of several.
    """

    __slots__ = ("_bounds",)

    def __init__(self, value: Linear, low: int, high: int) -> None:
        super().__init__(value.constant, value.terms)
        self._bounds = (low, high)

    def bounds(self) -> Bounds:
        return self._bounds


def _plain(cell: Cell) -> Cell:
    """A value that outlives its scope: with its bounds, if they were narrower there."""
    value = cell.value
    if not isinstance(value, _Bounded):
        return cell
    whole = Linear(value.constant, value.terms)
    if whole.bounds() != value.bounds():
        whole = Linear.of(Symbol("data", *value.bounds()))
    return replace(cell, value=whole)


def _common(cell: Cell, others: Sequence[Sequence[Cell]]) -> Cell | None:
    """The contents of a cell that hold in all of some states."""
    values = [cell.value]
    for other in others:
        same = (
            each.value
            for each in other
            if each.free is cell.free and _is_same_place(each.indices, cell.indices)
        )
        value = next(same, None)
        if value is None:
            return None
        values.append(value)
    if all(value is cell.value or _is_same(value, cell.value) for value in values):
        return _plain(cell)
    numbers = [value for value in values if isinstance(value, Linear)]
    if len(numbers) < len(values):
        return None
    return replace(cell, value=_one_of(numbers))


def _one_of(values: Sequence[Linear]) -> Linear:
    """One of several values: the first plus a bounded difference, or a symbol within bounds."""
    first = values[0]
    bounds = [value.bounds() for value in values]
    low, high = min(b[0] for b in bounds), max(b[1] for b in bounds)
    more = [value.add(first, -1).bounds() for value in values[1:]]
    least, most = min(0, *(m[0] for m in more)), max(0, *(m[1] for m in more))
    if most - least <= high - low:
        whole = Linear(first.constant, first.terms)
        return _Bounded(whole.add(Linear.of(Symbol("data", least, most))), low, high)
    return Linear.of(Symbol("data", low, high))


def _left(cell: Cell, symbol: Symbol, is_filled: bool) -> Cell | None:
    """The contents of one cell after the loop over ``symbol``."""
    serial, value = symbol.serial, cell.value
    is_own = any(depends_on(index, serial) for index in cell.indices)
    if isinstance(value, Condition):
        inside = any(depends_on(f, serial) for f in (*value.facts, *value.contrary))
        return None if inside or is_own else cell
    fresh = Linear.of(Symbol("data", *value.bounds()))
    if not is_own:
        return replace(cell, value=fresh) if depends_on(value, serial) else _plain(cell)
    if cell.free is not None or len(cell.indices) != 1 or not is_filled:
        return None
    (place,) = cell.indices
    others = place.without(symbol)
    if abs(place.terms.get(symbol, 0)) != 1 or depends_on(others, serial):
        return None
    rest = value.without(symbol)
    if depends_on(rest, serial):
        value = fresh
    return Cell(cell.indices, value, cell.dtype, symbol)


def hull(bounds: Iterable[Bounds | None]) -> Bounds | None:
    known = [each for each in bounds if each is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _is_same(a: Linear | Condition, b: Linear | Condition) -> bool:
    if isinstance(a, Condition) or isinstance(b, Condition):
        return type(a) is type(b) and bool(a.key == b.key)
    return bool(a.key == b.key) and a.bounds() == b.bounds()


def _is_same_place(a: Indices, b: Indices) -> bool:
    return all(x.key == y.key for x, y in zip(a, b, strict=True))


def _is_elsewhere(a: Indices, b: Indices) -> bool:
    for x, y in zip(a, b, strict=True):
        low, high = x.add(y, -1).bounds()
        if low > 0 or high < 0:
            return True
    return False
