"""Whether a changed definition breaks those who use the op.

found = compatibility(old, new)
found.is_compatible, found.graphs, found.calls

A graph that holds a call of the old op must mean the same with the new one: attributes that it
lacks take their defaults, what it holds must still be allowed, and its arrays must be the
inputs. A Python call of the old op must mean the same call of the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.custom_ops.builder import DefinitionBuilder
from tracejit.custom_ops.calling import python_name
from tracejit.custom_ops.definition import Argument, Attr, Definition
from tracejit.custom_ops.types import type_name


@dataclass(frozen=True)
class Compatibility:
    """What breaks, a sentence each: ``graphs`` that were made before, Python ``calls``."""

    graphs: tuple[str, ...]
    calls: tuple[str, ...]

    @property
    def is_compatible(self) -> bool:
        """Whether graphs made before go on to mean the same."""
        return not self.graphs

    def __bool__(self) -> bool:
        return self.is_compatible

    def __str__(self) -> str:
        return "\n".join((*self.graphs, *self.calls)) or "compatible"


def compatibility(
    old: Definition | DefinitionBuilder, new: Definition | DefinitionBuilder
) -> Compatibility:
    """What a change of an op's definition breaks, and why. True when no graph breaks."""
    before = old.definition if isinstance(old, DefinitionBuilder) else old
    after = new.definition if isinstance(new, DefinitionBuilder) else new
    title = before.name
    graphs = [] if before.name == after.name else [f"the op is renamed to {after.name!r}"]
    for attr in before.attrs:
        graphs += _attribute(attr, after.attr(attr.name))
    added = {a.name: a for a in after.attrs if before.attr(a.name) is None}
    graphs += [
        f"attribute {name!r} is new and has no default, so graphs without it mean nothing"
        for name, attr in added.items()
        if not attr.has_default
    ]
    if all(attr.has_default for attr in added.values()):
        graphs += _arguments("inputs", before, after, before.inputs, after.inputs, added)
        graphs += _arguments("outputs", before, after, before.outputs, after.outputs, added)
    if before.stateful and not after.stateful:
        graphs.append("the op is no longer stateful, so calls may be left out or joined")
    return Compatibility(
        tuple(f"{title}: {sentence}" for sentence in graphs),
        tuple(f"{title}: {sentence}" for sentence in _calls(before, after)),
    )


def _attribute(old: Attr, new: Attr | None) -> list[str]:
    title = f"attribute {old.name!r}"
    if new is None:
        return [f"{title} is removed, but graphs give it"]
    if (old.kind, old.is_list) != (new.kind, new.is_list):
        return [f"{title} changes its type from {old.type_text} to {new.type_text}"]
    found = []
    if new.allowed is not None:
        lost = [v for v in old.allowed or () if v not in new.allowed]
        shown = ", ".join(type_name(v) if new.kind == "type" else repr(v) for v in lost)
        if old.allowed is None:
            found.append(f"{title} could be any {old.kind} and is restricted to {new.type_text}")
        elif lost:
            found.append(f"{title} no longer allows {shown}")
    least_before = old.minimum if old.minimum is not None else 0 if old.is_list else None
    if new.minimum is not None and (least_before is None or new.minimum > least_before):
        was = "no minimum" if least_before is None else least_before
        found.append(f"{title} has the minimum {new.minimum}, which was {was}")
    if old.has_default and not new.has_default:
        found.append(f"{title} loses its default, {old.default!r}")
    elif old.has_default and not _equal(old.default, new.default):
        found.append(f"{title} changes its default from {old.default!r} to {new.default!r}")
    return found


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other) and one.dtype == other.dtype
    return bool(one == other)


def _arguments(
    what: str,
    before: Definition,
    after: Definition,
    old: Sequence[Argument],
    new: Sequence[Argument],
    added: dict[str, Attr],
) -> list[str]:
    """Whether the arrays of old graphs are the arrays of the new op."""
    was = [part for argument in old for part in _parts(before, argument, {})]
    now = [part for argument in new for part in _parts(after, argument, added)]
    if was == now:
        return []
    return [f"the {what} were ({', '.join(was)}), and of an old graph are ({', '.join(now)})"]


def _parts(definition: Definition, argument: Argument, added: dict[str, Attr]) -> list[str]:
    """The arrays of an argument, attributes that old graphs lack replaced by their defaults."""
    attr = definition.attr(argument.type)
    if attr is None:
        types = [type_name(definition.fixed_type(argument))]
    elif attr.name in added:
        types = [type_name(t) for t in (attr.default if attr.is_list else (attr.default,))]
    else:
        types = [f"list {attr.name}" if attr.is_list else attr.name]
    if argument.number is None:
        return types
    if argument.number in added:
        return types * int(added[argument.number].default)
    return [f"{argument.number} * {types[0]}"]


def _calls(before: Definition, after: Definition) -> list[str]:
    """What breaks for callers from Python: names, order, and what may be left out."""
    old = _parameters(before)
    new = _parameters(after)
    found = []
    names = [name for name, _ in new]
    for place, (name, is_optional) in enumerate(old):
        if name not in names:
            found.append(f"the parameter {name!r} is gone")
        elif names.index(name) != place:
            found.append(f"the parameter {name!r} is number {names.index(name)}, it was {place}")
        elif is_optional and not new[place][1]:
            found.append(f"the parameter {name!r} must be given, it was optional")
    known = {name for name, _ in old}
    found += [
        f"the parameter {name!r} is new and must be given"
        for name, is_optional in new
        if name not in known and not is_optional
    ]
    for old_in, new_in in zip(before.inputs, after.inputs, strict=False):
        if before.is_list(old_in) != after.is_list(new_in):
            kind = "a list" if after.is_list(new_in) else "no list"
            found.append(f"the parameter {new_in.name!r} is {kind} now")
    if [o.name for o in before.outputs] != [o.name for o in after.outputs]:
        found.append("the names or the number of results change")
    return found


def _parameters(definition: Definition) -> list[tuple[str, bool]]:
    return [
        *((python_name(i.name), False) for i in definition.inputs),
        *((python_name(a.name), a.has_default) for a in definition.parameters),
    ]
