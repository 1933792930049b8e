"""Variables of a rewritten function: those without a value, and what two branches make of one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError, ConcretizationError, ShapeError
from tracejit.graph import Instruction
from tracejit.ops.layout import full
from tracejit.shapes import ElementType, Shape
from tracejit.sources import user_source
from tracejit.trace.body import Abstract
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import current_trace
from tracejit.trace.convert import PYTHON_SCALARS, converted, operand
from tracejit.trace.evaluation import known_value
from tracejit.trace.masks import is_same_mask
from tracejit.trace.may_alias import aliases_of, is_written, lose, shares_of, tick
from tracejit.trace.promotion import common_element_type, weak_type
from tracejit.trace.table import Traced
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.autograph.capture_policy import current_counting
from tracejit.transforms.autograph.optional import (
    Absent,
    OptionalValue,
    UnboundError,
    Undefined,
    is_optional,
    narrowed,
)


class NoValue:
    """What a function returns before its first ``return``; any value goes in its place."""


NO_VALUE = NoValue()


class Detached(Tracer):
    """What ``original`` was when a statement began to which it, or its array, is lent."""

    __slots__ = ("original",)

    def __init__(self, view: Tracer) -> None:
        super().__init__(view.instruction, view.owner, is_scalar=False)
        self.original = view
        self.lay_like(view)


def attached(value: Any) -> Any:
    """A variable's value, each detached array in it the one that it was detached from."""
    return _with_detached(value, lambda one: one.original)


def seen_through(value: Any) -> Any:
    """A variable's value, each detached array in it a view of its array as that is now."""
    return _with_detached(value, lambda one: _cut_again(one.original).view())


def has_detached(value: Any) -> bool:
    """Whether a lent array is, or is in, a variable's value."""
    return any(isinstance(leaf, Detached) for leaf in tree.leaves(value))


def _with_detached(value: Any, function: Callable[[Detached], Any]) -> Any:
    if not has_detached(value):
        return value
    return tree.map(lambda leaf: function(leaf) if isinstance(leaf, Detached) else leaf, value)


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
        return isinstance(value, OptionalValue)
    counting = current_counting()
    is_asked = counting is not None and counting.is_asked
    return known_value(value.instruction, through_loops=not is_asked) is None


def truth(value: Any, statement: str) -> Instruction:
    """A scalar as PRED. Raises `ShapeError`, which names the statement, for an array."""
    if isinstance(value, OptionalValue) and value.absent.is_none:
        return truth(value.truth(), statement)
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


def is_container(value: Any) -> bool:
    """Whether a variable's value is an object that holds others: a container of the user's."""
    is_mark = isinstance(value, Traced | Masked | Undefined | NoValue)
    return not (is_mark or value is None or is_numeric(value))


def is_kept(value: Any) -> bool:
    """Whether a branch sees the container itself that a variable holds, its arrays lent."""
    return is_container(value) and not masked_in([value])


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


def containers_in(values: Iterable[Any]) -> Iterator[Any]:
    """The lists and dictionaries among the values, and inside of them."""
    for value in values:
        if isinstance(value, list | dict):
            yield value
        if isinstance(value, list | tuple):
            yield from containers_in(value)
        elif isinstance(value, dict):
            yield from containers_in(value.values())


def is_same_tree(one: Any, other: Any) -> bool:
    """Whether two trees have the same leaves."""
    first, structure = tree.flatten(one)
    second, another = tree.flatten(other)
    return structure == another and all(x is y for x, y in zip(first, second, strict=True))


def require_equal_keys(statement: str, name: str, one: Any, other: Any) -> None:
    """Raises `ConcretizationError` for a key that only one of two dictionaries has."""
    if type(one) is type(other) is dict:
        for key in {**one, **other}:
            place = f"{_called(name)}[{key!r}]".removeprefix("the variable ")
            if key not in one or key not in other:
                way = "after one branch only" if statement == "if" else "only in its steps"
                raise ConcretizationError(
                    f"{statement}: {place} is there {way}, which depends on a traced value; give "
                    f"it a value, or None, before"
                )
            require_equal_keys(statement, place, one[key], other[key])


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
        return refilled(before, after, kept)
    if is_kept(before) and tree.structure(kept) == tree.structure(before):
        # A tuple, or a container bound anew, some of whose arrays stay at their places.
        return tree.map(written_back, before, after, kept)
    if in_place and isinstance(before, Masked) and before.whole.owner is current_trace():
        before.become(after)
        return before
    if in_place and isinstance(before, Detached):
        return before.original
    if in_place and isinstance(before, Tracer) and not before.root.owner.alive:
        return before  # lent to a part that has ended: who lent it gives it its value
    if not in_place or not isinstance(before, Tracer) or before.owner is not current_trace():
        return after
    instruction = after.instruction
    if before.is_scalar or instruction.array_shape != before.instruction.array_shape:
        return after
    before.write(instruction)
    return before


def refilled(before: Any, after: Any, kept: Any = None) -> Any:
    """``after``, its lists and dictionaries those of ``before``, and arrays that were ``kept``."""
    if type(before) is not type(after) or type(before) not in (list, tuple, dict):
        return written_back(before, after, kept is True)
    if type(before) is dict:
        made = {
            key: refilled(before[key], value, None if kept is None else kept[key])
            if key in before
            else value
            for key, value in after.items()
        }
        before.clear()
        before.update(made)
        return before
    marks = [None] * len(after) if kept is None else kept
    parts = [refilled(*each) for each in zip(before, after, marks, strict=False)]
    parts += after[len(parts) :]
    if type(before) is tuple:
        return tuple(parts)
    before[:] = parts
    return before


class Final(NamedTuple):
    """A variable at the end of a branch.

    ``value`` is a tree, in which a number refers to the branch's result with that index. ``kept``
    has for each leaf whether it was at most written to, ``held`` the leaves themselves. With
    ``is_seen`` it is the container of before, whose arrays have the values of the branch.
    """

    is_same: bool
    in_place: bool
    value: Any
    kept: Any = None
    held: Sequence[Any] = ()
    is_seen: bool = False


class BranchResult(NamedTuple):
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
        self._masks: list[tuple[Leaf, Leaf, BranchResult]] = []

    def variable(self, name: str, ways: Sequence[tuple[Any, list[Leaf]]]) -> Any:
        """The tree of the variable, with a `BranchResult` for each array.

        ``ways`` has the variable of both branches as a tree and its leaves.
        """
        left, right = (_with_leaves(way, leaves) for way, leaves in ways)
        if _is_missing(left) and _is_missing(right):
            return left if isinstance(left, Undefined | None) else right
        return self._tree(name, left, right)

    def condition(self, side: int, holds: Instruction | None) -> int | None:
        """The place of the result that is true where a branch is taken and ``holds`` in it."""
        if holds is None:
            return None
        self.kinds.append(Abstract(holds.array_shape))
        self.results[side].append(holds)
        self.results[1 - side].append(full(holds.array_shape, False))
        return len(self.kinds) - 1

    def _tree(self, name: str, left: Any, right: Any) -> Any:
        """Two trees of leaves as one; what only one of them has is optional."""
        if isinstance(left, Leaf) and isinstance(right, Leaf):
            return self._leaf(name, left, right)
        for side, (one, other) in enumerate(((left, right), (right, left))):
            if isinstance(one, NoValue):
                return self._padded(name, other, side)
        if _is_missing(left) or _is_missing(right) or is_optional(left) or is_optional(right):
            if left is None and right is None:
                return None
            return self._optional(name, left, right)
        if isinstance(left, Masked) or isinstance(right, Masked):
            return self._masked(name, left, right)
        first, second = (None if _is_leaf(one) else tree.node(one) for one in (left, right))
        if first is None or second is None or first.kind != second.kind:
            require_equal_keys("if", name, left, right)
            shown = (tree.structure(side, _is_leaf) for side in (left, right))
            raise ArgumentError(
                f"if: {_called(name)} must be equal trees after both branches, not "
                f"{' and '.join(map(str, shown))}"
            )
        pairs = zip(first.children, second.children, strict=True)
        return first.joined([self._tree(name, *pair) for pair in pairs])

    def _masked(self, name: str, left: Any, right: Any) -> Masked:
        """Elements that masks select; of a whole array all. Equal masks stay one."""
        known = left if isinstance(left, Masked) else right
        sides = [_as_masked(name, side, known) for side in (left, right)]
        whole = self._tree(name, sides[0].whole, sides[1].whole)
        masks = sides[0]._mask, sides[1]._mask
        for first, second, place in self._masks:
            if _is_one_mask(first, masks[0]) and _is_one_mask(second, masks[1]):
                return Masked(whole, place, known.axis)
        made = self._leaf(name, *masks)
        self._masks.append((*masks, made))
        return Masked(whole, made, known.axis)

    def _padded(self, name: str, value: Any, side: int) -> Any:
        """A value of one branch, zero in the branch ``side``."""
        return tree.map(lambda leaf: self._leaf(name, leaf, leaf, side), value, is_leaf=_is_leaf)

    def _optional(self, name: str, left: Any, right: Any) -> Any:
        """A value that may be missing in one branch or in both."""
        sides = [_taken_apart(name, side) for side in (left, right)]
        absent = next(one for _, _, one in sides if one is not None)
        missing = [is_empty for is_empty, value in enumerate((left, right)) if _is_missing(value)]
        if missing:
            value = sides[1 - missing[0]][0]
            reason = getattr((left, right)[missing[0]], "reason", "")
            if any(leaf.kind is None for leaf in tree.leaves(value, _is_leaf)):
                return self._refused(name, left, right, reason)
            value = self._padded(name, value, missing[0])
        else:
            value = self._tree(name, sides[0][0], sides[1][0])
        present = self._leaf(name, sides[0][1], sides[1][1])
        return value if present is True else OptionalValue(value, present, absent)

    def _refused(self, name: str, left: Any, right: Any, reason: str) -> Undefined:
        """What is no array in one branch, and missing in the other."""
        if left is None or right is None:
            shown = [_shown(side) for side in (left, right)]
            raise ArgumentError(
                f"if: {_called(name)} is {shown[0]} after one branch and {shown[1]} after the "
                f"other; only arrays and numbers can depend on a traced condition"
            )
        return Undefined(
            name,
            reason
            or f"it is assigned in only one branch of the if at {user_source()}, whose "
            f"condition is traced; assign it before",
        )

    def _leaf(self, name: str, left: Leaf, right: Leaf, padded: int | None = None) -> Any:
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
        return BranchResult(len(self.kinds) - 1)


def _is_missing(value: Any) -> bool:
    return value is None or isinstance(value, Undefined | NoValue)


def _with_leaves(value: Any, leaves: Sequence[Leaf]) -> Any:
    """The tree of a variable with `Leaf` for what is there."""
    marks = Undefined | NoValue
    shown = [leaf.static if isinstance(leaf.static, marks) else leaf for leaf in leaves]
    return tree.unflatten(tree.structure(value), shown)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, Leaf)


def _as_masked(name: str, value: Any, like: Masked) -> Masked:
    """A value in a branch beside elements that a mask selects in the other one."""
    if isinstance(value, Masked) and value.axis == like.axis:
        return value
    rank = like._mask.kind.shape.rank
    if not _is_leaf(value) or value.kind is None or len(value.kind.shape.dimensions) < rank:
        raise ArgumentError(
            f"if: {_called(name)} is an array of unknown size after one branch, and none after the "
            f"other"
        )
    sizes = value.kind.shape.dimensions[like.axis : like.axis + rank]
    mask = full(Shape(ElementType.PRED, sizes), True)
    return Masked(value, Leaf(None, Abstract(mask.array_shape), mask), like.axis)


def of_unknown_size(value: Any, like: Any) -> Any:
    """A traced array after a step, as the elements that a mask of True selects, where ``like``, the
    value before the step, are elements that a mask selects."""
    if not isinstance(like, Masked) or not isinstance(value, Tracer):
        return value
    sizes = like.mask.array_shape.dimensions
    rank = len(sizes)
    if value.shape[like.axis : like.axis + rank] != tuple(sizes):
        return value
    return Masked(value, lift(full(Shape(ElementType.PRED, sizes), True), False), like.axis)


def _is_one_mask(one: Leaf, other: Leaf) -> bool:
    if one.instruction is None or other.instruction is None:
        return False
    return is_same_mask(one.instruction, other.instruction)


def masked_in(value: Any) -> list[Masked]:
    """The elements that unknown masks select, among the values of a tree."""
    found = tree.leaves(value, is_leaf=_is_masked)
    return [one for one in found if _is_masked(one)]


def require_own_masked(
    statement: str,
    names: Sequence[str],
    before: Sequence[Any],
    entered: Sequence[Any],
    left: Sequence[Any],
    begun: int,
) -> list[tuple[Masked, str]]:
    """Raises `ConcretizationError` where arrays that masks shorten have two names.

    ``before`` are the values ahead of the statement. A part of it, which begins at the time
    ``begun``, gets copies of them, ``entered``, and leaves the values ``left``. Returns the arrays
    of ``before`` that were written to and whose names were bound anew: `lose_masked` them behind
    the statement.
    """
    lost = []
    copies = {id(one): n for n, value in enumerate(entered) for one in masked_in([value])}
    known = {id(one) for value in before for one in masked_in([value])}
    is_twice = len([one for value in before for one in masked_in([value])]) > len(known)
    roots = [leaf.root for leaf in tree.leaves(list(before)) if isinstance(leaf, Tracer)]
    seen: set[int] = set()
    for number, value in enumerate(left):
        for one in masked_in([value]):
            is_foreign = one.whole.is_lent or one.whole.owner is not current_trace()
            is_outer = id(one) not in copies and is_foreign
            if id(one) in seen or copies.get(id(one), number) != number or is_twice or is_outer:
                raise ConcretizationError(
                    f"{statement}: {names[number]} is a second name of an array that a mask has "
                    f"shortened, or takes the place of one; copy the array where it gets that "
                    f"name, {names[number]} = x.copy()"
                )
            seen.add(id(one))
        pairs = zip(masked_in([before[number]]), masked_in([entered[number]]), strict=True)
        for old, copy in pairs:
            is_changed = is_written(copy.whole)
            mine, others = shares_of(old.whole), aliases_of(old.whole)
            is_read = is_changed and (
                any(one.read > begun for one in (mine, *others))
                or any(one.array() is root for one in others for root in roots)
            )
            if is_read or any(one.written > begun for one in (mine, *others)):
                raise ConcretizationError(
                    f"{statement}: {names[number]}, which a mask has shortened, may be one array "
                    f"with another name, and one of them is written to here; copy it before: "
                    f"{names[number]} = {names[number]}.copy()"
                )
            if is_changed and value is not entered[number]:
                lost.append((old, names[number]))
    return lost


def start_of_part(before: Sequence[Any]) -> int:
    """The time at which a part of a statement begins; reads of shortened arrays are timed."""
    for one in masked_in(list(before)):
        shares_of(one.whole)
    return tick()


def lose_masked(lost: Sequence[tuple[Masked, str]]) -> None:
    """Makes arrays unreadable under the names that are left."""
    for array, name in lost:
        reason = (
            f"the statement at {user_source()}, which is recorded, writes to it as {name} and "
            f"binds {name} anew; copy it before: {name} = {name}.copy()"
        )
        lose(array.whole, reason=reason)


def _is_masked(value: Any) -> bool:
    return type(value) is Masked


def _taken_apart(name: str, value: Any) -> tuple[Any, Leaf, Absent | None]:
    """A value in a branch, whether it is there, and what the variable is otherwise."""
    if isinstance(value, OptionalValue):
        return value.value, value.present, value.absent
    if value is None or isinstance(value, Undefined):
        return value, _known(False), Absent(value is None, name)
    return value, _known(True), None


def _known(holds: bool) -> Leaf:
    return leaf_of(np.bool_(holds))._replace(static=holds)


def _shown(value: Any) -> str:
    leaves = tree.map(lambda leaf: _Shown(leaf), value, is_leaf=_is_leaf)
    return repr(leaves)


class _Shown:
    """A leaf in an error."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf

    def __repr__(self) -> str:
        return repr(self._leaf.static) if self._leaf.kind is None else str(self._leaf.kind.shape)


def leaf_of(value: Any) -> Leaf:
    """A leaf of a variable that lives outside the branches."""
    if not is_numeric(value):
        return Leaf(value, None, None)
    static = value if type(value) in PYTHON_SCALARS else None
    return Leaf(static, Abstract.of(value), operand(value).natural)


def use(value: Any) -> Any:
    """A variable that is read. Raises `ConcretizationError` when it has no value."""
    if isinstance(value, OptionalValue):
        return narrowed(value) if value.absent.is_none else value.certain()
    if isinstance(value, Undefined):
        if not value.reason:
            raise UnboundError(value.name)
        raise ConcretizationError(f"the variable {value.name} may have no value: {value.reason}")
    return value


def _called(name: str) -> str:
    return "the returned value" if name == "autograph_value" else f"the variable {name}"
