"""Containers that may be one: a statement binds a name to one list or to another.

k = rows if c else columns      a new list after the branch, with the arrays of both
k[0] = x                        no other name sees it: an error at the end of the trace

Which list ``k`` is depends on a traced value. Its arrays may be those of the others; what is bound
in it, or in the others, is known under one name only.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from tracejit import tree
from tracejit.errors import ConcretizationError
from tracejit.sources import Source, user_source
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import current_trace, running_traces
from tracejit.trace.object_state import held_by, holders_from
from tracejit.trace.recording import is_users
from tracejit.trace.table import Traced
from tracejit.transforms.autograph.capture_policy import is_inside_counted
from tracejit.transforms.autograph.optional import OptionalValue
from tracejit.transforms.autograph.values import is_container

Values = Mapping[str, Any]
"""The values of variables by their names."""


class Twins(NamedTuple):
    """Two containers that may be one, with their names."""

    names: tuple[str, str]
    containers: tuple[Any, Any]


def note_twins(ends: Sequence[Values], after: Values) -> None:
    """Sees that the values of variables after a statement are not written to under another name.

    ``ends`` are what they held at the ends of its parts, and before it where no part may run.
    Raises `ConcretizationError` at the end of the trace where one of two that may be one has been
    written to, and at once in a loop that could be recorded step by step.
    """
    pairs = [
        (name, made, end)
        for values in ends
        for name, value in values.items()
        if name in after and is_container(value)
        for made, end in _pairs(after[name], value)
        if made is not end
    ]
    if not pairs:
        return
    trace = current_trace()
    assert trace is not None
    known: list[Twins] = running_traces()[0].twins
    names = _names()
    found: dict[int, tuple[str, Any]] = {}
    for name, made, end in pairs:
        for one in _related(end, known):
            other = found.setdefault(id(one), (names.get(id(one), ""), one))
            if other[0] and other[1] is not made:
                _note(trace, Twins((name, other[0]), (made, other[1])))
            elif not other[0]:
                found[id(one)] = name, made
        known.append(Twins((name, name), (made, end)))


def _note(trace: Any, twins: Twins) -> None:
    if is_inside_counted():
        raise ConcretizationError(_described(twins))
    held = [held_by(one) for one in twins.containers]
    trace.at_end(functools.partial(_require_kept, twins, held, user_source()))


def _require_kept(twins: Twins, held: Sequence[Mapping[Any, Any]], source: Source | None) -> None:
    for container, before in zip(twins.containers, held, strict=True):
        if not _are_one(before, held_by(container)):
            raise ConcretizationError(_described(twins), source)


def _are_one(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> bool:
    return before.keys() == after.keys() and all(after[key] is one for key, one in before.items())


def _described(twins: Twins) -> str:
    kind = type(twins.containers[0]).__name__
    one, other = twins.names
    shown = "the chosen value" if one.startswith("autograph_") else one
    return (
        f"{shown} may be the same {kind} as {other}, which a traced value decides, and one of "
        f"them is written to after that; copy it where it gets its second name: {kind}({other})"
    )


def require_one_name(statement: str, name: str, before: Any) -> None:
    """Raises `ConcretizationError` where a container that ``name`` holds ``before`` a loop has
    another name, and a step has a copy."""
    names = _names()
    for one, _ in _pairs(before, before):
        if id(one) in names:
            raise ConcretizationError(
                f"{statement}: {name} is bound anew and written to, and the {type(one).__name__} "
                f"that it holds before has another name, {names[id(one)]}; copy it before: "
                f"{name} = {type(one).__name__}({name})"
            )


def _names() -> dict[int, str]:
    """By their ids the containers that the user's functions that are running lead to."""
    return {id(holder): name for name, holder in holders_from(_locals())}


def _locals() -> Iterator[tuple[str, Any]]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code) and frame.f_code.co_name != "<module>":
            for name, value in frame.f_locals.items():
                if not name.startswith("autograph_"):
                    yield name, value
        frame = frame.f_back


def _related(one: Any, known: Sequence[Twins]) -> list[Any]:
    """A container, and those of inner traces that it was built from."""
    found = [one]
    for made in found:
        for twins in known:
            if twins.containers[0] is made and not any(twins.containers[1] is x for x in found):
                found.append(twins.containers[1])
    return found


def _pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The containers that can be written to at equal places of two trees."""
    one, other = (x.value if isinstance(x, OptionalValue) else x for x in (one, other))
    first, second = tree.node(one), tree.node(other)
    if first is None or second is None or len(first.children) != len(second.children):
        return
    if one is None or isinstance(one, Masked | Traced):
        return
    if not isinstance(one, tuple):
        yield one, other
    for pair in zip(first.children, second.children, strict=True):
        yield from _pairs(*pair)
