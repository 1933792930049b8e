"""Variables of a rewritten function: those without a value, and what two branches make of one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ConcretizationError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.layout import full
from tracejit.shapes import ElementType, Shape
from tracejit.sources import user_source
from tracejit.trace.body import Abstract
from tracejit.trace.context import current_trace
from tracejit.trace.convert import PYTHON_SCALARS, converted, operand
from tracejit.trace.evaluation import known_value
from tracejit.trace.promotion import common_element_type, weak_type
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.autograph.capture_policy import current_counting


class Undefined:
    """The value of a variable that is not assigned on every path; using it raises."""

    def __init__(self, name: str, reason: str = "") -> None:
        self.name = name
        self.reason = reason


class NoValue:
    """What a function returns before its first ``return``; any value goes in its place."""


NO_VALUE = NoValue()


class Detached(Tracer):
    """What ``original`` was when a statement began to which it, or its array, is lent."""

    __slots__ = ("original",)

    def __init__(self, view: Tracer) -> None:
        super().__init__(view.instruction, view.owner, is_scalar=False)
        self.original = view


def attached(value: Any) -> Any:
    """A variable's value, or the view that it was detached from."""
    return value.original if isinstance(value, Detached) else value


def seen_through(value: Any) -> Any:
    """A variable's value, or for a detached one a view of its array as that is now."""
    return _cut_again(value.original).view() if isinstance(value, Detached) else value


def _cut_again(view: Tracer) -> Tracer:
    if view.base is None:
        return view
    base, path = view.step
    return _cut_again(base).through(path)


class _Branches(threading.local):
    def __init__(self) -> None:
        self.depth = 0


_branches = _Branches()


@contextmanager
def in_branch() -> Iterator[None]:
    """Inside, it is unknown whether what is recorded runs."""
    _branches.depth += 1
    try:
        yield
    finally:
        _branches.depth -= 1


def is_in_branch() -> bool:
    """Whether this thread records what may not run."""
    return _branches.depth > 0


def is_unknown(value: Any) -> bool:
    """Whether a value is known only when the graph runs.

    So is what a recorded loop makes, where loops are recorded because the user has asked for it.
    """
    if not isinstance(value, Tracer):
        return False
    counting = current_counting()
    is_asked = counting is not None and counting.is_asked
    return known_value(value.instruction, through_loops=not is_asked) is None


def truth(value: Any, statement: str) -> Instruction:
    """A scalar as PRED. Raises `ShapeError`, which names the statement, for an array."""
    if value.ndim:
        raise ShapeError(
            f"{statement}: the truth value of an array {value.instruction.shape} is ambiguous; "
            f"use .any() or .all()"
        )
    return converted(value.instruction, ElementType.PRED)


def is_numeric(leaf: Any) -> bool:
    """Whether a leaf of a tree can be part of a graph."""
    if isinstance(leaf, np.ndarray):
        return leaf.dtype.kind in "biufcV"
    return isinstance(leaf, Tracer | np.number | np.bool_) or type(leaf) in PYTHON_SCALARS


def dtype_kind(value: Any) -> str:
    """The kind of a number's or an array's dtype: b, i, u, f, c; empty for other things."""
    return operand(value).element_type.dtype.kind if is_numeric(value) else ""


def fresh(value: Any) -> Any:
    """The value with arrays of the running trace, so that writes stay in it."""
    return tree.map(_fresh, value)


def _fresh(leaf: Any) -> Any:
    if not isinstance(leaf, Tracer):
        return leaf
    made = lift(leaf.instruction, leaf.is_scalar)
    made.is_weak = leaf.is_weak
    made.lay_like(leaf)
    return made


def is_same(before: Any, after: Any) -> bool:
    """Whether a variable still holds the value that `fresh` made, not written to."""
    if isinstance(after, Tracer):
        return after is before and not after.version
    first, structure = tree.flatten(before)
    second, other = tree.flatten(after)
    return structure == other and all(
        x is y and not (isinstance(y, Tracer) and y.version)
        for x, y in zip(first, second, strict=True)
    )


Containers = list[tuple[str, Any, list[Any]]]


def containers_of(action: Any, names: Sequence[str]) -> Containers:
    """The lists, dictionaries and sets that ``action`` sees, but for those of ``names``, and what
    they hold."""
    while isinstance(action, functools.partial):
        action = action.func
    seen: Containers = []
    for name, cell in zip(action.__code__.co_freevars, action.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            value = cell.cell_contents
            if name not in names and isinstance(value, list | dict | set):
                seen.append((name, value, _held(value)))
    return seen


def require_kept(statement: str, containers: Containers) -> None:
    """Raises `ConcretizationError` if one has changed: Python changes it once while tracing."""
    for name, value, before in containers:
        after = _held(value)
        if len(after) != len(before) or any(x is not y for x, y in zip(before, after, strict=True)):
            raise ConcretizationError(
                f"{statement}: the {type(value).__name__} {name} is changed, which would happen "
                f"once while tracing, whatever the traced values are; write to an array made before"
            )


def _held(container: Any) -> list[Any]:
    """What a container holds, in order."""
    if isinstance(container, dict):
        return [one for pair in container.items() for one in pair]
    return list(container)


def containers_in(values: Iterable[Any]) -> Iterator[Any]:
    """The lists and dictionaries among the values, and inside of them."""
    for value in values:
        if isinstance(value, list | dict):
            yield value
        if isinstance(value, list | tuple):
            yield from containers_in(value)
        elif isinstance(value, dict):
            yield from containers_in(value.values())


def require_one_name(
    statement: str, names: Sequence[str], values: Sequence[Any], written: Sequence[str]
) -> None:
    """Raises `ConcretizationError` where a list that is ``written`` to has another name, too.

    Each variable has a value of its own while a statement is recorded.
    """
    for name, value in zip(names, values, strict=True):
        if name not in written:
            continue
        mine = [id(one) for one in containers_in([value])]
        for other, another in zip(names, values, strict=True):
            theirs = [id(one) for one in containers_in([another])] if other != name else []
            if len(set(mine)) < len(mine) or not set(mine).isdisjoint(theirs):
                raise ConcretizationError(
                    f"{statement}: a {type(value).__name__} that {name} holds is written to, and "
                    f"{other} holds it, too; write to it under one name, or copy it"
                )


def unchanged(before: Any, after: Any) -> Any:
    """For each leaf of ``after`` whether it is that of ``before``; None for other trees."""
    first, structure = tree.flatten(before)
    second, other = tree.flatten(after)
    if structure != other:
        return None
    return tree.unflatten(structure, [x is y for x, y in zip(first, second, strict=True)])


def written_back(before: Any, after: Any, in_place: bool, kept: Any = None) -> Any:
    """``after``; where ``before`` was written to in place, before with its value.

    That goes for lists and dictionaries, too, which others may see under another name; ``kept``
    says which of their leaves were at most written to.
    """
    if in_place and isinstance(before, list | dict):
        return _refilled(before, after, kept)
    if in_place and isinstance(before, Detached):
        return before.original
    if not in_place or not isinstance(before, Tracer) or before.owner is not current_trace():
        return after
    instruction = after.instruction
    if before.is_scalar or instruction.array_shape != before.instruction.array_shape:
        return after
    before.write(instruction)
    return before


def _refilled(before: Any, after: Any, kept: Any) -> Any:
    """``after``, its lists and dictionaries those of ``before``, and arrays that were ``kept``."""
    if type(before) is not type(after) or type(before) not in (list, tuple, dict):
        return written_back(before, after, kept is True)
    if type(before) is dict:
        made = {
            key: _refilled(before[key], value, None if kept is None else kept[key])
            if key in before
            else value
            for key, value in after.items()
        }
        before.clear()
        before.update(made)
        return before
    marks = [None] * len(after) if kept is None else kept
    parts = [_refilled(*each) for each in zip(before, after, marks, strict=False)]
    parts += after[len(parts) :]
    if type(before) is tuple:
        return tuple(parts)
    before[:] = parts
    return before


class Final(NamedTuple):
    """A variable at the end of a branch.

    ``value`` is a tree, in which a number refers to the branch's result with that index. ``kept``
    has for each leaf whether it was at most written to, ``held`` the leaves themselves.
    """

    is_same: bool
    in_place: bool
    value: Any
    kept: Any = None
    held: Sequence[Any] = ()


class Place(NamedTuple):
    """Which result of a branch a leaf is."""

    number: int


class Leaf(NamedTuple):
    """A leaf that is no array, or an array: its kind and its instruction."""

    static: Any
    kind: Abstract | None
    instruction: Instruction | None


class Merged:
    """What two branches return, made alike: results of both, and the variables after them."""

    def __init__(self) -> None:
        self.results: tuple[list[Instruction], list[Instruction]] = ([], [])
        self.kinds: list[Abstract] = []

    def variable(self, name: str, ways: Sequence[tuple[Any, list[Leaf]]]) -> Any:
        """The tree of the variable, with a `Place` for each array.

        ``ways`` has the variable of both branches as a tree and its leaves.
        """
        (left, first), (right, second) = ways
        for one, other in ((left, second), (right, first)):
            if isinstance(one, NoValue):
                if one is left and one is right:
                    return one
                value = right if one is left else left
                if isinstance(value, Undefined):
                    return value
                pairs = [(leaf, leaf) for leaf in other]
                return self._tree(name, value, pairs, padded=0 if one is left else 1)
        for value in (left, right):
            if isinstance(value, Undefined):
                return Undefined(
                    name,
                    value.reason
                    or f"it is assigned in only one branch of the if at "
                    f"{user_source()}, whose condition is traced; assign it before",
                )
        structures = tree.structure(left), tree.structure(right)
        if structures[0] != structures[1]:
            raise ArgumentError(
                f"if: {_called(name)} must be equal trees after both branches, not "
                f"{structures[0]} and {structures[1]}"
            )
        return self._tree(name, left, list(zip(first, second, strict=True)))

    def condition(self, side: int, holds: Instruction | None) -> int | None:
        """The place of the result that is true where a branch is taken and ``holds`` in it."""
        if holds is None:
            return None
        self.kinds.append(Abstract(holds.array_shape))
        self.results[side].append(holds)
        self.results[1 - side].append(full(holds.array_shape, False))
        return len(self.kinds) - 1

    def _tree(
        self, name: str, value: Any, pairs: list[tuple[Leaf, Leaf]], padded: int | None = None
    ) -> Any:
        structure = tree.structure(value)
        merged = [self._leaf(name, *pair, padded) for pair in pairs]
        return tree.unflatten(structure, merged)

    def _leaf(self, name: str, left: Leaf, right: Leaf, padded: int | None) -> Any:
        if left.static is right.static and left.kind is None and right.kind is None:
            return left.static
        is_python = type(left.static) in PYTHON_SCALARS and type(left.static) is type(right.static)
        if is_python and left.static == right.static:
            return left.static
        if left.kind is None or right.kind is None:
            raise ArgumentError(
                f"if: {_called(name)} is {left.static!r} after one branch and {right.static!r} "
                f"after the other; only arrays and numbers can depend on a traced condition"
            )
        shapes = left.kind.shape, right.kind.shape
        if shapes[0].dimensions != shapes[1].dimensions:
            raise ShapeError(
                f"if: {_called(name)} must have equal shapes after both branches, not "
                f"{shapes[0]} and {shapes[1]}"
            )
        kinds = [
            weak_type(k.shape.dtype) if k.is_weak else k.shape.dtype
            for k in (left.kind, right.kind)
        ]
        element_type = common_element_type(kinds)
        shape = Shape(element_type, shapes[0].dimensions)
        is_weak = left.kind.is_weak and right.kind.is_weak
        is_scalar = left.kind.is_scalar and right.kind.is_scalar
        self.kinds.append(Abstract(shape, is_weak, is_scalar))
        for side, leaf in enumerate((left, right)):
            assert leaf.instruction is not None
            zero = padded == side
            self.results[side].append(full(shape, 0) if zero else leaf.instruction)
        return Place(len(self.kinds) - 1)


def leaf_of(value: Any) -> Leaf:
    """A leaf of a variable that lives outside the branches."""
    if not is_numeric(value):
        return Leaf(value, None, None)
    static = value if type(value) in PYTHON_SCALARS else None
    return Leaf(static, Abstract.of(value), operand(value).natural)


def use(value: Any) -> Any:
    """A variable that is read. Raises `ConcretizationError` when it has no value."""
    if isinstance(value, Undefined):
        if not value.reason:
            raise UnboundLocalError(f"the variable {value.name} has no value yet")
        raise ConcretizationError(f"the variable {value.name} may have no value: {value.reason}")
    return value


def _called(name: str) -> str:
    return "the returned value" if name == "autograph_value" else f"the variable {name}"
