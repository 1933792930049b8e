"""Arrays that the parts of a statement write to: lent to each part while that is recorded.

A part may write to an array that the statement does not assign: through another name, in a
function that it calls, in an attribute of an object. While the part is recorded the array itself
holds the part's own value of it, so that every name and every view sees the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tracejit import tree
from tracejit.errors import ConcretizationError, dismiss
from tracejit.trace.context import Trace, current_trace
from tracejit.trace.may_alias import is_written
from tracejit.trace.tracer import ForeignWriteError, Tracer, lift
from tracejit.transforms.autograph.parts import Get, Put
from tracejit.transforms.autograph.values import Detached, attached, is_kept, refilled


def _value_of(array: Tracer) -> Tracer:
    made = lift(array.instruction, False)
    made.lay_like(array)
    return made


def require_lent(owner: Trace | None, pairs: Iterable[tuple[Any, Any]]) -> None:
    """Raises `ForeignWriteError` where a part has written to the copy of an array of a trace
    further out than ``owner``, the statement's: other names there see the write, too.

    ``pairs`` are copies and originals. The statement around this one lends the array.
    """
    running = current_trace()
    for copy, original in pairs:
        if not isinstance(copy, Tracer) or not isinstance(original, Tracer):
            continue
        root = original.root
        if is_written(copy) and not original.is_scalar and root.owner not in (owner, running):
            raise ForeignWriteError(
                f"an array of {root.owner.name} is written to inside "
                f"{owner.name if owner else 'a statement'}; return the new value instead",
                root,
            )


class _Lent:
    """The variables of a statement without those that hold a lent array, and the lent arrays."""

    def __init__(
        self,
        get: Get,
        put: Put,
        names: tuple[str, ...],
        kept: set[int],
        arrays: list[Tracer],
        all_held: bool,
    ) -> None:
        self._get, self._put, self._arrays = get, put, arrays
        self._before = get()
        roots = {id(array) for array in arrays}
        self._seen = [
            value if all_held and is_kept(value) else _detached(roots, value)
            for value in self._before
        ]
        self._entered: Sequence[Any] = self._before
        self._shown = [n for n in range(len(names)) if n not in kept]
        self._owned = [array.state for array in arrays]
        self._given = [_value_of(array) for array in arrays]
        self._versions = [array.version for array in arrays]
        lent = (f"autograph_array_{n}" for n in range(len(arrays)))
        self.names = (*(names[n] for n in self._shown), *lent)

    def get(self) -> tuple[Any, ...]:
        """The values of the variables, and of the arrays as arrays of their own."""
        mine = zip(self._get(), self._before, self._entered, self._seen, strict=True)
        # A step enters with copies: what is the array itself again has been bound to it.
        values = [
            seen if value is before and entered is before else value
            for value, before, entered, seen in mine
        ]
        states = zip(self._arrays, self._given, self._versions, strict=True)
        arrays = (
            given if array.version == version else _value_of(array)
            for array, given, version in states
        )
        return (*(values[n] for n in self._shown), *arrays)

    def put(self, values: Sequence[Any]) -> None:
        """Gives variables and arrays their values in the trace that is running."""
        count = len(self._shown)
        whole = list(self._before)
        for number, value in zip(self._shown, values[:count], strict=True):
            if value is not self._seen[number]:
                whole[number] = attached(value)
            elif value is not whole[number]:
                whole[number] = refilled(whole[number], attached(value))
        self._entered = whole
        self._put(whole)
        trace = current_trace()
        assert trace is not None
        self._given = list(values[count:])
        for array, value, owned in zip(self._arrays, self._given, self._owned, strict=True):
            if trace is owned.owner and value.instruction is owned.instruction:
                array.restore(owned)
            else:
                if trace is not owned.owner:
                    array.share_as(owned)  # not as a recording before has left it
                array.lend(value.instruction, trace)
        self._versions = [array.version for array in self._arrays]

    def take_back(self) -> None:
        """Makes everything what it was before."""
        self._put(self._before)
        for array, owned in zip(self._arrays, self._owned, strict=True):
            array.restore(owned)

    def require_free(self, array: Tracer) -> None:
        """Raises `ConcretizationError` where the array is lent, or a variable's that is not."""
        names = [
            name
            for name, value in zip(self.names, self._shown_before(), strict=False)
            if any(isinstance(leaf, Tracer) and _may_be(leaf, array) for leaf in tree.leaves(value))
        ]
        if names or any(array is one for one in self._arrays):
            shown = [name for name in names if not name.startswith("autograph_")]
            name = shown[0] if shown else "x"
            which = f" {name}," if shown else ""
            raise ConcretizationError(
                f"an array is written to under a traced condition or in a traced loop that also "
                f"assigns another name of it,{which} so that the arrays behind the names are not "
                f"known; copy the array before: {name} = {name}.copy()"
            ) from None

    def _shown_before(self) -> list[Any]:
        return [self._before[n] for n in self._shown]


def _may_be(value: Tracer, array: Tracer) -> bool:
    """Whether a value is an array or a view of it, or after a branch may be one."""
    root = value.root
    if root is array or root.shares is None:
        return root is array
    others = [entry.other.array() for entry in root.shares.entries]
    return any(other is not None and other.root is array for other in others)


def _arrays_in(values: Sequence[Any], but: Sequence[Tracer]) -> list[Tracer]:
    """The arrays of the running trace in a tree, each once, but for those ``but``."""
    found: list[Tracer] = []
    for leaf in tree.leaves(list(values)):
        if isinstance(leaf, Tracer) and not leaf.is_scalar:
            root = leaf.root
            if root.owner is current_trace() and not root.is_scalar:
                found += [] if any(root is one for one in (*but, *found)) else [root]
    return found


def _detached(roots: set[int], value: Any) -> Any:
    """A variable's value; of an array in it among ``roots``, or a view of one, what it is now."""

    def is_lent(leaf: Any) -> bool:
        return isinstance(leaf, Tracer) and not leaf.is_scalar and id(leaf.root) in roots

    if not any(map(is_lent, tree.leaves(value))):
        return value
    return tree.map(lambda leaf: Detached(leaf) if is_lent(leaf) else leaf, value)


def with_arrays_lent(
    run: Callable[[Get, Put, tuple[str, ...]], None],
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    all_held: bool = False,
    held: tuple[Any, ...] = (),
) -> None:
    """``run(get, put, names)``, which records a statement, with arrays among the variables.

    ``unbound`` are the names that the parts write into and never bind again: their arrays are
    lent from the beginning, and with ``all_held`` those of all names, and those in the containers
    ``held``, which are no variables; others when a recording finds a write to them. Raises
    `ForeignWriteError` for arrays of traces further out, and `ConcretizationError` for one that a
    variable shares which the parts do bind.
    """
    arrays: list[Tracer] = []
    kept: set[int] = set()
    for number, (name, value) in enumerate(zip(names, get(), strict=True)):
        if (all_held or name in unbound) and isinstance(value, Tracer) and not value.is_scalar:
            root = value.root
            if root.owner is current_trace() and not root.is_scalar:
                kept |= {number} if name in unbound else set()
                arrays += [] if any(root is one for one in arrays) else [root]
    if all_held:
        arrays += _arrays_in([*held, *filter(is_kept, get())], arrays)
    else:
        arrays += _arrays_in(held, [*arrays, *_arrays_in(get(), [])])
    while True:
        lent = _Lent(get, put, names, kept, arrays, all_held)
        is_done = False
        try:
            run(lent.get, lent.put, lent.names)
            is_done = True
            return
        except ForeignWriteError as error:
            is_lent = error.is_lent and any(error.array is one for one in arrays)
            if error.array.owner is not current_trace() and not is_lent:
                raise
            lent.require_free(error.array)
            found = error.array
            dismiss(error)
        finally:
            if not is_done:
                lent.take_back()
        arrays = [*arrays, found]
