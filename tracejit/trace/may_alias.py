"""Arrays that may alias: after a branch a variable is one array or another.

After ``b = x if c else y`` a write to ``b`` is seen in ``x`` where ``c`` holds, and a write to
``x`` in ``b``. Each array has a value of its own, which is complete when it is written to; one
that is read takes over the writes to the others since, in order.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.ops import elementwise, layout
from tracejit.shapes import Shape
from tracejit.sources import user_source
from tracejit.trace.context import Trace, current_trace, running_traces
from tracejit.trace.index_basic import BasicIndex, Run
from tracejit.trace.views import Path, Permute, Reshape, row_major_strides

if TYPE_CHECKING:
    from tracejit.trace.tracer import Tracer

Way = tuple[Path, ...]

_clock = itertools.count(1)


def tick() -> int:
    """The next number of a clock that orders writes."""
    return next(_clock)


class Share(NamedTuple):
    """That an array and ``other`` are parts of one memory of a ``shape`` where ``condition`` holds.

    If the condition is unknown, it is None, and written elements cannot be read any more. The same
    holds after the trace that it was ``recorded_in`` has ended. ``mine`` and ``theirs`` are the
    ways to them from there. ``is_foreign``: the other was of a trace further out.
    """

    condition: Instruction | None
    other: Shares
    shape: Shape
    mine: Way
    theirs: Way
    is_foreign: bool = False
    recorded_in: Trace | None = None

    @property
    def is_known(self) -> bool:
        """Whether the condition is one that the running trace can use."""
        trace = self.recorded_in
        return self.condition is not None and (trace is None or trace.alive)

    def carried(self, old: Instruction) -> Instruction:
        """The array's value, which was ``old``, after what was written to the other."""
        value = self.other.value
        if not self.theirs:
            return read_along(self.mine, value)
        if not self.mine:
            return _written(self.theirs, old, value)
        memory = _written(self.mine, layout.full(self.shape, 0), old)
        return read_along(self.mine, _written(self.theirs, memory, value))


class Shares:
    """All that one ``array`` shares, and the array's own ``value``.

    ``written`` is when it was last written to, ``seen`` up to when writes to others are in it.
    ``lost``: what it holds is not known. ``doubted`` says why it is
    unknown what is shared. ``read`` is when it was last read.
    """

    __slots__ = (
        "array",
        "doubted",
        "entries",
        "lost",
        "owner",
        "read",
        "seen",
        "value",
        "written",
    )

    def __init__(self, array: Tracer) -> None:
        self.array = weakref.ref(array)
        self.entries: list[Share] = []
        self.value, self.owner = array.last, array.owner
        self.written, self.seen, self.read = 0, tick(), 0
        self.lost = False
        self.doubted = ""

    def newest(self) -> int:
        """When one of the others was last written to, if that is not yet in the value; else 0."""
        seen = self.seen
        times = [o.written for _, o, *_ in self.entries if o.written > seen and o.owner.alive]
        return max(times, default=0)

    def add(self, new: Share) -> None:
        """One more; under either condition, if there is one along the same ways."""
        for number, one in enumerate(self.entries):
            if one.other is new.other and one.mine == new.mine:
                same_trace = one.recorded_in is new.recorded_in
                if one.theirs == new.theirs and one.is_foreign == new.is_foreign and same_trace:
                    both = _combined(elementwise.or_, one.condition, new.condition)
                    self.entries[number] = one._replace(condition=both)
                    return
        self.entries.append(new)

    def forget(self) -> None:
        """Drops arrays that are fully known and that nobody can write to any more."""
        self.entries = [
            one
            for one in self.entries
            if one.other.owner.alive
            and (one.other.array() is not None or one.other.written > self.seen)
        ]


def share_parts(
    one: Tracer,
    mine: Way,
    other: Tracer,
    theirs: Way,
    shape: Shape,
    condition: Instruction | None,
    but: Sequence[Shares] = (),
    reason: str = "",
) -> None:
    """Makes two arrays parts of one memory where ``condition`` holds, and of all that one shares.

    Both have their present values from there. Nothing follows for those of ``but``. ``reason`` says
    why the condition is not known, for the error; a loop makes it unknown else.
    """
    first, second = shares_of(one), shares_of(other)
    first.forget()
    second.forget()
    if condition is None:
        first.doubted = second.doubted = reason or _of_loop()
    shape, theirs, mine = _shortened(shape, theirs, mine)
    found = [(second, shape, mine, theirs, condition)]
    for entry in second.entries:
        if entry.other is not first and not any(entry.other is each for each in but):
            if not theirs:
                known = entry.condition if entry.is_known else None
                both = _combined(elementwise.and_, condition, known)
                found.append((entry.other, entry.shape, entry.mine + mine, entry.theirs, both))
    for peer, memory, here, there, holds in found:
        memory, here, there = _shortened(memory, here, there)
        is_foreign = peer.owner is not first.owner
        peer.doubted = peer.doubted or first.doubted
        first.doubted = first.doubted or peer.doubted
        owner = None if holds is None else _owner(holds)
        first.add(Share(holds, peer, memory, here, there, is_foreign, owner))
        peer.add(Share(holds, first, memory, there, here, recorded_in=owner))


def _owner(value: Instruction) -> Trace | None:
    """The innermost trace that has made a value."""
    return next((trace for trace in reversed(running_traces()) if trace.owns(value)), None)


def written(array: Tracer) -> None:
    """Says that the value of an array is still to be seen in the others."""
    mine = shares_of(array)
    mine.written = mine.seen = tick()


def shares_of(array: Tracer) -> Shares:
    """What an array shares; made for one that shares nothing yet."""
    if array.shares is None:
        array.shares = Shares(array)
    return array.shares


def foreign(shares: Shares, running: object) -> Tracer | None:
    """An array, no view, of a trace further out that a write in ``running`` would have to reach."""
    for one in shares.entries:
        if one.is_foreign and one.other.owner is not running and one.other.owner.alive:
            array = one.other.array()
            if array is not None:
                return array.root
    return None


def note_read(shares: Shares | None) -> None:
    """Says that an array is read, through a view that is as it was."""
    if shares is not None:
        shares.read = tick()


def refreshed(array: Tracer, shares: Shares) -> Instruction:
    """The array's value after what was written to the others, kept but in a trace further in."""
    shares.read = tick()
    if shares.lost:
        _refuse(shares)
    value = array.last
    seen = shares.seen
    written = [one for one in shares.entries if one.other.written > seen and one.other.owner.alive]
    if not written:
        return value
    written.sort(key=_time)
    for one in written:
        if one.condition is None or not one.is_known:
            _refuse(shares)
        value = elementwise.select(one.condition, one.carried(value), value)
    if current_trace() in (None, array.owner):
        array.assign(value)
        shares.seen = written[-1].other.written
    return value


def lose(array: Tracer, but: Sequence[Shares] = (), reason: str = "") -> None:
    """Marks the values of an array and of its possible aliases, except ``but``, as unknown.

    ``reason`` says why, for the error.
    """
    mine = shares_of(array)
    for shares in (mine, *(one.other for one in mine.entries)):
        if not any(shares is each for each in but):
            shares.lost, shares.doubted = True, reason or _of_loop()


def is_written(array: Tracer) -> bool:
    """Whether a copy that a statement's part works with was written to in it."""
    return array.version > 0 or (array.shares is not None and array.shares.lost)


def aliases_of(array: Tracer) -> list[Shares]:
    """What the possible aliases of an array share, as long as they can be read."""
    entries = [] if array.shares is None else array.shares.entries
    return [one.other for one in entries if one.other.owner.alive]


def are_dense(one: Share) -> bool:
    """Whether an array lies in memory row by row if it is what ``one`` says."""
    if not one.mine:
        # It counts as the memory; where the other begins with a turn, it may be the one that turns.
        return not one.theirs or one.theirs[0] not in _turning(one.shape)
    return _is_dense(one.shape, one.mine)


def _is_dense(shape: Shape, way: Way) -> bool:
    strides: Sequence[int] | None = row_major_strides(shape.dimensions)
    for path in way:
        assert strides is not None, "strides are known up to here"
        strides = path.strides(shape.dimensions, tuple(strides))
        shape = _shape_after(path, shape)
        if strides is None:
            return False
    wanted = row_major_strides(shape.dimensions)
    return all(
        size == 1 or one == other
        for size, one, other in zip(shape.dimensions, strides or (), wanted, strict=True)
    )


def _of_loop() -> str:
    return (
        f"the loop at {user_source()} binds names anew and writes to their arrays, and which array "
        f"a name then is cannot be known; copy it before, x = x.copy(), or bind it again behind "
        f"the loop"
    )


def _refuse(shares: Shares) -> NoReturn:
    reason = shares.doubted or _of_loop()
    raise ConcretizationError(
        f"an array is read that may have been written to under another name: {reason}"
    )


def _combined(
    function: Callable[[Instruction, Instruction], Instruction],
    one: Instruction | None,
    other: Instruction | None,
) -> Instruction | None:
    """Both conditions as one, which is not known if one of them is not."""
    if one is None or other is None or one is other:
        return None if other is None else one
    return function(one, other)


def _shortened(shape: Shape, mine: Way, theirs: Way) -> tuple[Shape, Way, Way]:
    """The same ways from as small a memory, without steps that lead to where they began."""
    mine, theirs = _straight(shape, mine), _straight(shape, theirs)
    while mine and theirs and mine[0] == theirs[0]:
        shape = _shape_after(mine[0], shape)
        mine, theirs = mine[1:], theirs[1:]
    while mine and mine[0] in _turning(shape):
        # What is seen behind a turn may count as the memory.
        turn, mine = mine[0], mine[1:]
        shape = _shape_after(turn, shape)
        theirs = _straight(shape, (turn, *theirs))
    return shape, mine, theirs


def _straight(shape: Shape, way: Way) -> Way:
    """A way without steps that change nothing, or that the next one takes back."""
    made: list[tuple[Path, Shape]] = []
    for path in way:
        if path in _staying(shape):
            continue
        if made and made[-1][0] == path and path in _turning(made[-1][1]):
            shape = made.pop()[1]
            continue
        made.append((path, shape))
        shape = _shape_after(path, shape)
    return tuple(path for path, _ in made)


def _staying(shape: Shape) -> list[Path]:
    whole = BasicIndex(tuple(map(Run.whole, shape.dimensions)))
    return [Reshape(shape.dimensions), Permute(tuple(range(shape.rank))), whole]


def _turning(shape: Shape) -> list[Path]:
    """Steps that lead back when taken twice."""
    backwards = BasicIndex(tuple(Run(size - 1, -1, size) for size in shape.dimensions))
    return [backwards, Permute(tuple(reversed(range(shape.rank))))]


def _shape_after(path: Path, shape: Shape) -> Shape:
    if isinstance(path, BasicIndex) and path.is_moving:
        return path.read(layout.full(shape, 0)).array_shape
    return _known_shape_after(path, shape)


@functools.lru_cache(maxsize=1024)
def _known_shape_after(path: Path, shape: Shape) -> Shape:
    return path.read(layout.full(shape, 0)).array_shape


def _time(one: Share) -> int:
    return one.other.written


def read_along(way: Way, value: Instruction) -> Instruction:
    """What is seen of a memory's value along a way."""
    for path in way:
        value = path.read(value)
    return value


def _written(way: Way, old: Instruction, value: Instruction) -> Instruction:
    """What ``old`` is after ``value`` was written to its view along a way."""
    bases = [old]
    for path in way[:-1]:
        bases.append(path.read(bases[-1]))
    for path, base in zip(reversed(way), reversed(bases), strict=False):
        value = path.write(base, value)
    return value
