"""The state of a statement: all that its parts can reach, and which places of it they change.

A part may write into a list, to an attribute, to a global, to a variable of another function.
While a statement is recorded that would happen once. So all that its parts can reach is compared
before and after each; a place that has changed becomes one more variable of the statement, which
is recorded again. Containers and arrays stay the objects that they are: what is reached in two
ways, ``l[0]`` and ``z``, is one array in a step and after it, too.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import CellType, CodeType
from typing import Any

from tracejit.callbacks import callback
from tracejit.errors import ConcretizationError, dismiss
from tracejit.trace.context import running_traces
from tracejit.trace.object_state import MISSING, Change, Snapshot, snapshot
from tracejit.trace.spoken import postponing
from tracejit.transforms.autograph.optional import OptionalValue, Undefined
from tracejit.transforms.autograph.parts import Action, Get, Put
from tracejit.transforms.autograph.second_names import Values, note_twins, require_one_name
from tracejit.transforms.autograph.values import is_container
from tracejit.transforms.autograph.write_capture import with_arrays_lent

Run = Callable[[Get, Put, tuple[str, ...]], None]


class HiddenWriteError(ConcretizationError):
    """A part of the statement that a ``watch`` watches has made ``changes``."""

    def __init__(self, message: str, watch: Watch, changes: Sequence[Change]) -> None:
        super().__init__(message)
        self.watch, self.changes = watch, changes


class Watch:
    """All that the parts of a statement can reach, as it is before, but for what is ``carried``."""

    def __init__(
        self,
        parts: Sequence[Action | None],
        put: Put | None,
        carried: Sequence[Change],
        held: Collection[str] = (),
    ) -> None:
        cells = _cells(put, held)
        self._snapshots: list[Snapshot] = [snapshot(p, cells) for p in parts if p is not None]
        self.carry(carried)
        self.before: Values = {}
        self.ends: list[Values] = []
        """What the variables hold before the statement, and at the ends of its parts."""

    def carry(self, carried: Sequence[Change]) -> None:
        """Leaves out the places that are ``carried`` from now on."""
        self._carried = {one.identity for one in carried}

    def reachable(self, changes: Collection[Change]) -> list[Change]:
        """Those of the changes whose place is watched."""
        if not changes:
            return []
        watched = {one for each in self._snapshots for one in each.holders()}
        return [one for one in changes if one.identity[0] in watched]

    def require_kept(self, statement: str) -> None:
        """Raises `HiddenWriteError` where something has changed, and makes it what it was."""
        changes = self._changes()
        if not changes:
            return
        are_places = [change.is_place for change in changes]
        fixed = changes[are_places.index(False)] if False in are_places else changes[0]
        self._restore(changes)
        raise HiddenWriteError(
            f"{statement}: {_described(fixed)} is changed, which would happen once while tracing, "
            f"whatever the traced values are; write to an array or a variable made before",
            self,
            changes if all(are_places) else [],
        )

    def _changes(self) -> list[Change]:
        found: dict[Any, Change] = {}
        for one in self._snapshots:
            for change in one.changes():
                if change.holder is None:
                    found.setdefault(change.name, change)
                elif change.identity not in self._carried:
                    found.setdefault(change.identity, change)
        return list(found.values())

    def _restore(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.holder is not None:
                change.put(change.before)

    def restored(self, run: Run) -> Run:
        """``run``; its changes are undone if it fails half-way."""

        def restoring(get: Get, put: Put, names: tuple[str, ...]) -> None:
            try:
                run(get, put, names)
            except BaseException:
                self._restore(self._changes())
                raise

        return restoring


def note_end(names: Sequence[str], values: Sequence[Any]) -> None:
    """Says what the variables hold at the end of a part of the statement being recorded."""
    if _watches.running:
        _watches.running[-1].ends.append(dict(zip(names, values, strict=True)))


def require_one_holder(statement: str, name: str) -> None:
    """Raises `ConcretizationError` where the container that ``name`` holds before a loop has
    another name, and a step has changed a copy."""
    if _watches.running:
        require_one_name(statement, name, _watches.running[-1].before.get(name))


def _described(change: Change) -> str:
    holder = change.before if change.holder is None else change.holder
    if isinstance(holder, list | dict | set | deque) or change.holder is None:
        return f"the {type(holder).__name__} {change.name.partition('[')[0]}"
    return f"the variable {change.name}"


def _cells(put: Put | None, held: Collection[str]) -> list[CellType]:
    """The cells of the variables, but for those ``held``, that a statement gives values to."""
    while isinstance(put, functools.partial):
        put = put.func
    if put is None or put.__closure__ is None:
        return []
    named = zip(put.__code__.co_freevars, put.__closure__, strict=True)
    return [cell for name, cell in named if name not in held]


class _Watches(threading.local):
    def __init__(self) -> None:
        self.running: list[Watch] = []


_watches = _Watches()


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Inside, ``watch`` is of the statement that is being recorded."""
    _watches.running.append(watch)
    try:
        yield
    finally:
        _watches.running.pop()


def require_kept(statement: str) -> None:
    """Raises `HiddenWriteError` where a part of the statement being recorded has changed more than
    its variables."""
    if _watches.running:
        _watches.running[-1].require_kept(statement)


def with_hidden_writes(
    run: Run,
    parts: Sequence[Action | None],
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    all_held: bool = False,
    does_run: bool = False,
) -> None:
    """`with_arrays_lent` of a statement and of the changes of its ``parts`` beside its variables.

    A container that has one of the names ``unbound`` is no variable: its places are.
    ``does_run``: a step of the loop surely runs.
    Raises `ConcretizationError` for changes that are no assignments: the length of a list, the
    state of an iterator.
    """
    named = zip(names, get(), strict=True)
    held = {name: value for name, value in named if name in unbound and is_container(value)}
    found = _found_in(parts)
    watch = Watch(parts, put, [], held)
    carried = watch.reachable(found.values())
    watch.carry(carried)
    while True:
        variables = _Variables(get, put, names, held, carried)
        watch.before = variables.named()
        try:
            with watching(watch), nullcontext() if does_run else postponing(callback):
                with_arrays_lent(
                    watch.restored(variables.completing(run, watch, all_held or does_run)),
                    variables.get,
                    variables.put,
                    variables.names,
                    unbound,
                    all_held,
                    tuple(held.values()),
                )
            return
        except HiddenWriteError as error:
            if error.watch is not watch or not error.changes:
                raise
            carried = [*carried, *error.changes]
            found |= {change.identity: change for change in error.changes}
            dismiss(error)
            watch = Watch(parts, put, carried, held)


def _found_in(parts: Sequence[Action | None]) -> dict[Any, Change]:
    """What the statement of some ``parts`` has been found to change in the running trace.

    A statement inside another is recorded once for each recording of the one around it, and need
    not find out again: else the recordings would multiply with each statement around it.
    """
    traces = running_traces()
    return traces[0].hidden_writes.setdefault(tuple(map(_code, parts)), {}) if traces else {}


def _code(part: Action | None) -> CodeType | None:
    while isinstance(part, functools.partial):
        part = part.func
    return getattr(part, "__code__", None)


class _Variables:
    """The variables of a statement but for those ``held``, and the places that are ``carried`` as
    if they were."""

    def __init__(
        self,
        get: Get,
        put: Put,
        names: tuple[str, ...],
        held: Collection[str],
        carried: Sequence[Change],
    ) -> None:
        self._get, self._put, self._carried = get, put, carried
        self._whole = list(get())
        self._shown = [n for n, name in enumerate(names) if name not in held]
        shown = [names[n] for n in self._shown]
        self._count = len(shown)
        for one in carried:
            shown.append(f"{one.name} ({len(shown)})" if one.name in shown else one.name)
        self.names = tuple(shown)
        self._missing = [Undefined(name) for name in shown[self._count :]]

    def get(self) -> tuple[Any, ...]:
        places = zip(self._carried, self._missing, strict=True)
        held = [(one.get(), missing) for one, missing in places]
        values = (missing if value is MISSING else value for value, missing in held)
        now = self._get()
        return (*(now[n] for n in self._shown), *values)

    def put(self, values: Sequence[Any]) -> None:
        for number, value in zip(self._shown, values[: self._count], strict=True):
            self._whole[number] = value
        self._put(self._whole)
        self._left = values[self._count :]
        for one, value in zip(self._carried, self._left, strict=True):
            one.put(MISSING if isinstance(value, Undefined) else value)

    def named(self) -> Values:
        """The values now, by their names."""
        return dict(zip(self.names, self.get(), strict=True))

    def completing(self, run: Run, watch: Watch, does_run: bool) -> Run:
        """``run``, which fails where a place may have no value after it.

        ``does_run``: one of its parts surely runs.
        """

        def completed(get: Get, put: Put, names: tuple[str, ...]) -> None:
            run(get, put, names)
            self.require_values()
            note_twins(watch.ends if does_run else [watch.before, *watch.ends], self.named())

        return completed

    def require_values(self) -> None:
        """Raises `ConcretizationError` for a place that may have no value after the statement."""
        left = zip(self.names[self._count :], self._left, strict=True) if self._carried else ()
        for name, one in left:
            if isinstance(one, Undefined) and one.reason:
                raise ConcretizationError(f"{name} may have no value: {one.reason}")
            if isinstance(one, OptionalValue) and not one.absent.is_none:
                raise ConcretizationError(
                    f"{name} may have no value after a statement whose condition is traced; "
                    f"assign it before"
                )


def without_hidden_writes(statement: str, part: Action) -> Any:
    """``part()``, which may not run. Raises `ConcretizationError` where it changes something."""
    before = Watch([part], None, [])
    value = part()
    before.require_kept(statement)
    return value
