"""Branches on a traced condition: both are recorded, and what they assign is put together."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracejit import tree
from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.lax.control import chosen_body
from tracejit.ops import elementwise_unary
from tracejit.sources import source_of
from tracejit.trace.affine_bounds import assuming
from tracejit.trace.body import Body, record_body
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import current_trace
from tracejit.trace.convert import PYTHON_SCALARS, converted
from tracejit.trace.tracer import Tracer
from tracejit.transforms.autograph.branch_aliases import (
    Holding,
    Originals,
    candidates,
    note,
    note_made_inside,
    originals,
)
from tracejit.transforms.autograph.hidden_writes import note_end, require_kept, with_hidden_writes
from tracejit.transforms.autograph.optional import (
    UnboundError,
    Undefined,
    fail,
    narrowed,
    settled,
    without_flags,
)
from tracejit.transforms.autograph.parts import Action, Get, Put
from tracejit.transforms.autograph.values import (
    NO_VALUE,
    BranchResult,
    Detached,
    Final,
    Leaf,
    Merged,
    NoValue,
    attached,
    fresh,
    has_detached,
    in_branch,
    is_in_branch,
    is_kept,
    is_numeric,
    is_same,
    is_unknown,
    leaf_of,
    lose_masked,
    require_own_masked,
    seen_through,
    start_of_part,
    truth,
    unchanged,
    written_back,
)
from tracejit.transforms.autograph.write_capture import require_lent


def if_(
    test: Any,
    body: Action,
    orelse: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...] = (),
    parts: Sequence[Action] = (),
) -> None:
    """``if test: body() else: orelse()``; both are recorded when ``test`` is unknown.

    ``names`` are the variables that they assign or write into, ``unbound`` those among them that
    are never bound again. ``parts`` are the user's own functions in place of the branches.
    """
    if not is_unknown(test):
        (body if test else orelse)()
        return
    selector = truth(test, "if")
    run = functools.partial(_record_branches, selector, body, orelse)
    try:
        with_hidden_writes(run, parts or (body, orelse), get, put, names, unbound, True)
    except RecursionError as error:
        if is_in_branch():
            raise
        raise ConcretizationError(
            "if: both branches are recorded, and a function calls itself in one, which does not "
            "end while the condition is traced; write a loop, or make the number static: "
            "jit(f, static_argnums=...)"
        ) from error


def _record_branches(
    selector: Instruction, body: Action, orelse: Action, get: Get, put: Put, names: tuple[str, ...]
) -> None:
    before = get()
    branches = [_Branch(action, get, put, before, names) for action in (body, orelse)]
    bodies, seen = [], []
    for branch, holds in zip(branches, (True, False), strict=True):
        with assuming(selector, holds), settled(selector, holds):
            bodies.append(record_body(branch, "a branch of if", []))
            seen.append([narrowed(value) for value in before])
    _leave_out_failing(branches)
    merged = Merged()
    opposite = elementwise_unary.not_(selector)
    values: list[Any] = []
    finals = [branch.finals for branch in branches]
    for number, name in enumerate(names):
        ways = [one[number] for one in finals]
        if all(way.is_same for way in ways):
            values.append(before[number])
            continue
        are_made = [way.is_seen or not way.is_same for way in ways]
        trees = [
            way.value if is_made else kept[number]
            for way, is_made, kept in zip(ways, are_made, seen, strict=True)
        ]
        leaves = [
            _leaves(value, side if is_made else None)
            for value, is_made, side in zip(trees, are_made, bodies, strict=True)
        ]
        values.append(merged.variable(name, list(zip(trees, leaves, strict=True))))
    may_be = [
        [
            (side, one, merged.condition(side, one.condition))
            for side, branch in enumerate(branches)
            for one in candidates(branch.finals[number].held, branch.originals)
        ]
        for number in range(len(names))
    ]
    structure = tree.structure(tuple(merged.kinds), is_leaf=_is_kind)
    alike = [
        replace(
            side,
            results=tuple(
                converted(result, kind.shape.element_type)
                for result, kind in zip(results, merged.kinds, strict=True)
            ),
            abstract=tuple(merged.kinds),
            structure=structure,
        )
        for side, results in zip(bodies, merged.results, strict=True)
    ]
    made = chosen_body(selector, ["true_fun", "false_fun"], alike, [])
    after = []
    for number, value in enumerate(values):
        filled = tree.map(
            lambda v: made[v.number] if isinstance(v, BranchResult) else v, value, is_leaf=_is_place
        )
        in_place = all(one[number].is_same or one[number].in_place for one in finals)
        is_changed = filled is not before[number] and not isinstance(value, Undefined | NoValue)
        kept = _kept_by_all([one[number].kept for one in finals if not one[number].is_same])
        made_of = written_back(before[number], filled, in_place, kept) if is_changed else value
        after.append(made_of)
    put(after)
    for branch in branches:
        lose_masked(branch.lost)
    old = [leaf for branch in branches for _, leaf in branch.originals.values()]
    holding: list[Holding] = [{}, {}]
    for name, value, found, *ways in zip(names, after, may_be, *finals, strict=True):
        if not isinstance(value, Undefined | NoValue):
            _require_aligned(name, value, ways)
        conditions = [
            (one, (selector, opposite)[side] if place is None else made[place].instruction)
            for side, one, place in found
        ]
        note(value, old, conditions)
        for (one, condition), (side, *_) in zip(conditions, found, strict=True):
            note_made_inside(value, one, condition, holding[side])


def _leave_out_failing(branches: Sequence[_Branch]) -> None:
    """Gives the variables of a branch that always fails no values. Raises the error of two."""
    for branch, other in (branches, branches[::-1]):
        if branch.error is not None:
            if other.error is not None:
                raise branch.error
            none = Final(False, False, NO_VALUE)
            branch.finals = [final if final.is_same else none for final in other.finals]


def _kept_by_all(ways: Sequence[Any]) -> Any:
    """For each leaf whether it is kept on all ways; None where these are different trees."""
    if not ways or any(tree.structure(way) != tree.structure(ways[0]) for way in ways):
        return None
    return tree.map(lambda *marks: all(marks), *ways)


def _require_aligned(name: str, value: Any, ways: Sequence[Final]) -> None:
    """Raises `ConcretizationError` for an array in trees that differ between branches: which array
    it may be is not known.
    """
    count = len(tree.leaves(without_flags(value)))
    for way in ways:
        if way.held and len(way.held) != count:
            if any(isinstance(leaf, Tracer) and not leaf.is_scalar for leaf in way.held):
                raise ConcretizationError(
                    f"if: {name} has arrays in other places after one branch than after the "
                    f"other; give each its place, or None, before"
                )


def _is_place(value: Any) -> bool:
    return isinstance(value, BranchResult)


def _is_kind(value: Any) -> bool:
    return hasattr(value, "is_scalar")


class _Branch:
    """A branch as a function without arguments that returns the arrays it assigned."""

    def __init__(
        self, action: Action, get: Get, put: Put, before: Sequence[Any], names: Sequence[str]
    ) -> None:
        self._action, self._get, self._put, self._before = action, get, put, before
        self._names = names
        self._owner = current_trace()
        self.finals: list[Final] = []
        self.error: Exception | None = None
        self.lost: list[tuple[Masked, str]] = []
        self.originals: Originals = {}

    def __call__(self) -> list[Any]:
        copies = [value if is_kept(value) else fresh(value) for value in self._before]
        self.originals = originals(self._before, copies)
        # Lists that are written into are compared with what they held.
        held = [tree.map(_itself, value) for value in copies]
        self._put(copies)
        if any(map(has_detached, self._before)):
            pairs = zip(self._before, copies, strict=True)
            copies = [
                copy if copy is value else tree.map(_seen, value, copy) for value, copy in pairs
            ]
            held = [tree.map(_itself, value) for value in copies]
            self._put(copies)
        versions = [copy.version if isinstance(copy, Tracer) else 0 for copy in copies]
        begun = start_of_part(self._before)
        try:
            with in_branch():
                self._action()
        except (UnboundError, TypeError, AttributeError) as error:
            if not isinstance(error, UnboundError):
                if "NoneType" not in str(error):
                    raise
                error.args = (f"{error} ({source_of(error)})",)
            # A variable without a value was used, which Python finds where the branch runs.
            require_kept("if")
            fail(error)
            self.error = error
            return []
        require_kept("if")
        require_lent(self._owner, self.originals.values())
        left = self._get()
        note_end(self._names, left)
        self.lost = require_own_masked("if", self._names, self._before, copies, left, begun)
        results: list[Any] = []
        ends = zip(copies, versions, held, left, strict=True)
        for copy, version, before, end in ends:
            value = attached(end) if end is copy else narrowed(end)
            leaves = tree.leaves(without_flags(value))
            is_left = isinstance(value, Tracer) and value is copy and value.version == version
            is_stays = end is copy and is_kept(copy)
            if is_left or (not is_stays and is_same(before, value)):
                self.finals.append(Final(True, False, value, held=leaves))
                continue
            in_place = value is copy and isinstance(value, Tracer | Masked | list | dict)

            def placed(leaf: Any) -> Any:
                if not is_numeric(leaf):
                    return leaf
                results.append(leaf)
                static = leaf if type(leaf) in PYTHON_SCALARS else None
                return _Result(len(results) - 1, static)

            made = tree.map(placed, value)
            if is_stays:
                self.finals.append(Final(True, False, made, held=leaves, is_seen=True))
            else:
                kept = unchanged(before, value)
                self.finals.append(Final(False, in_place, made, kept, leaves))
        return results


def _itself(leaf: Any) -> Any:
    return leaf


def _seen(leaf: Any, copy: Any) -> Any:
    """What a branch sees of an array: what it is now where it is lent, else a copy."""
    return seen_through(leaf) if isinstance(leaf, Detached) else copy


class _Result:
    """The place of a leaf among the results of a branch; ``static`` if it is a Python number."""

    def __init__(self, number: int, static: Any) -> None:
        self.number = number
        self.static = static


def _leaves(value: Any, body: Body | None) -> list[Leaf]:
    """The leaves of a variable, of a branch's results or of before the branches."""
    leaves = tree.leaves(value)
    if body is None:
        return [leaf_of(leaf) for leaf in leaves]
    return [
        Leaf(leaf.static, body.abstract[leaf.number], body.results[leaf.number])
        if isinstance(leaf, _Result)
        else Leaf(leaf, None, None)
        for leaf in leaves
    ]
