"""What rewritten functions call in place of Python's statements and operators.

Each looks whether what decides is traced: if not, Python's own behaviour follows.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.callbacks import callback
from tracejit.errors import ConcretizationError, ShapeError
from tracejit.graph import Instruction
from tracejit.lax.control import chosen_body
from tracejit.shapes import ElementType
from tracejit.statements.counted import recorded_once, require_quiet
from tracejit.statements.counting import is_inside_counted
from tracejit.statements.lending import with_arrays_lent
from tracejit.statements.loops import TracedRange, run_loop
from tracejit.statements.quiet import is_users_function
from tracejit.statements.values import (
    NO_VALUE,
    Final,
    Leaf,
    Merged,
    NoValue,
    Place,
    Undefined,
    containers_of,
    dtype_kind,
    fresh,
    in_branch,
    is_in_branch,
    is_numeric,
    is_same,
    is_unknown,
    leaf_of,
    require_kept,
    require_one_name,
    unchanged,
    use,
    written_back,
)
from tracejit.trace.body import Body, record_body
from tracejit.trace.convert import PYTHON_SCALARS, converted, operand
from tracejit.trace.counters import assuming
from tracejit.trace.exact import require_exact
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer, lift

Action = Callable[..., Any]
Get = Callable[[], tuple[Any, ...]]
Put = Callable[[Sequence[Any]], None]

UNROLLED = 16
"""So many steps of a known range are recorded one by one behind a traced ``break``."""


class _Conversion:
    called: Callable[[Any], Any] = staticmethod(lambda function: function)


def use_conversion(called: Callable[[Any], Any]) -> None:
    """Sets what rewrites the functions that a rewritten function calls."""
    _Conversion.called = staticmethod(called)


def peek(read: Callable[[], Any], name: str) -> Any:
    """A variable's value, or `Undefined` when it has none."""
    try:
        return read()
    except NameError:
        return Undefined(name)


# Statements


def if_(
    test: Any,
    body: Action,
    orelse: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...] = (),
) -> None:
    """``if test: body() else: orelse()``; both are recorded when ``test`` is unknown.

    ``names`` are the variables that they assign or write into, ``unbound`` those among them that
    are never bound again.
    """
    if not is_unknown(test):
        (body if test else orelse)()
        return
    selector = _truth(test, "if")
    run = functools.partial(_record_branches, selector, body, orelse)
    with_arrays_lent(run, get, put, names, unbound)


def _record_branches(
    selector: Instruction,
    body: Action,
    orelse: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
) -> None:
    before = get()
    branches = [_Branch(action, get, put, before, names) for action in (body, orelse)]
    bodies = []
    for branch, holds in zip(branches, (True, False), strict=True):
        with assuming(selector, holds):
            bodies.append(record_body(branch, "a branch of if", []))
    merged = Merged()
    values: list[Any] = []
    finals = [branch.finals for branch in branches]
    written = {
        name
        for one in finals
        for name, final in zip(names, one, strict=True)
        if final.in_place and not final.is_same
    }
    require_one_name("if", names, before, sorted(written))
    for number, name in enumerate(names):
        ways = [one[number] for one in finals]
        if all(way.is_same for way in ways):
            values.append(before[number])
            continue
        trees = [before[number] if way.is_same else way.value for way in ways]
        leaves = [
            _leaves(value, None if way.is_same else side)
            for value, way, side in zip(trees, ways, bodies, strict=True)
        ]
        values.append(merged.variable(name, list(zip(trees, leaves, strict=True))))
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
            lambda v: made[v.number] if isinstance(v, Place) else v, value, is_leaf=_is_place
        )
        in_place = all(one[number].is_same or one[number].in_place for one in finals)
        is_changed = filled is not before[number] and not isinstance(value, Undefined | NoValue)
        kept = _kept_by_all([one[number].kept for one in finals if not one[number].is_same])
        made_of = written_back(before[number], filled, in_place, kept) if is_changed else value
        after.append(made_of)
    put(after)


def _kept_by_all(ways: Sequence[Any]) -> Any:
    """For each leaf whether it is kept on all ways; None where these are different trees."""
    if not ways or any(tree.structure(way) != tree.structure(ways[0]) for way in ways):
        return None
    return tree.map(lambda *marks: all(marks), *ways)


def _is_place(value: Any) -> bool:
    return isinstance(value, Place)


def _is_kind(value: Any) -> bool:
    return hasattr(value, "is_scalar")


class _Branch:
    """A branch as a function without arguments that returns the arrays it assigned."""

    def __init__(
        self, action: Action, get: Get, put: Put, before: Sequence[Any], names: Sequence[str]
    ) -> None:
        self._action, self._get, self._put, self._before = action, get, put, before
        self._names = names
        self.finals: list[Final] = []

    def __call__(self) -> list[Any]:
        copies = [fresh(value) for value in self._before]
        # Lists that are written into are compared with what they held.
        held = [tree.map(_itself, value) for value in copies]
        self._put(copies)
        containers = containers_of(self._action, self._names)
        with in_branch():
            self._action()
        require_kept("if", containers)
        results: list[Any] = []
        for copy, before, value in zip(copies, held, self._get(), strict=True):
            if is_same(before, value):
                self.finals.append(Final(True, False, value))
                continue
            in_place = value is copy and isinstance(value, Tracer | list | dict)

            def placed(leaf: Any) -> Any:
                if not is_numeric(leaf):
                    return leaf
                results.append(leaf)
                static = leaf if type(leaf) in PYTHON_SCALARS else None
                return _Result(len(results) - 1, static)

            kept = unchanged(before, value)
            self.finals.append(Final(False, in_place, tree.map(placed, value), kept))
        return results


def _itself(leaf: Any) -> Any:
    return leaf


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


def while_(
    test: Action,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
) -> None:
    """``while test(): body()``; recorded from where ``test()`` is unknown."""
    while True:
        condition = test()
        if is_unknown(condition):
            _truth(condition, "while")
            run = functools.partial(run_loop, "while", None, test, body)
            with_arrays_lent(run, get, put, names, unbound)
            return
        if not condition:
            return
        body()


def for_(
    iterable: Any,
    goes_on: Action | None,
    body: Action,
    get: Get,
    put: Put,
    names: tuple[str, ...],
    unbound: tuple[str, ...],
    wanted: tuple[Any, ...] | None = None,
) -> None:
    """``for item in iterable: body(item)``, as long as ``goes_on()``; as for `recorded_once`."""
    if recorded_once(iterable, goes_on, body, get, put, names, unbound, wanted):
        return
    if isinstance(iterable, TracedRange):
        run = functools.partial(run_loop, "for", iterable, goes_on, body)
        with_arrays_lent(run, get, put, names, unbound)
        return
    for position, item in enumerate(iterable):
        condition = True if goes_on is None else goes_on()
        if is_unknown(condition):
            if isinstance(iterable, range) and len(iterable) - position > UNROLLED:
                rest = TracedRange(item, iterable.stop, iterable.step)
                run = functools.partial(run_loop, "for", rest, goes_on, body)
                with_arrays_lent(run, get, put, names, unbound)
                return
            if_(condition, functools.partial(body, item), _nothing, get, put, names, unbound)
            continue
        if not condition:
            return
        body(item)


def _nothing() -> None:
    """The branch that is not there."""


def assert_(test: Any, message: Action | None) -> None:
    """``assert test, message``; an unknown test is looked at when the program runs."""
    if not is_unknown(test):
        if not test:
            raise AssertionError(*([] if message is None else [message()]))
        return
    given = () if message is None else (message(),)
    callback(functools.partial(_require, given), lift(_truth(test, "assert")))


def _require(given: tuple[Any, ...], test: np.ndarray) -> None:
    if not test:
        raise AssertionError(*given)


def raise_(error: Action, cause: Action | None = None) -> None:
    """``raise error() from cause()`` under control flow that may be recorded.

    Raises `ConcretizationError` in a recorded branch: whether it is reached is unknown.
    """
    made = error()
    if is_in_branch():
        shown = made.__name__ if isinstance(made, type) else type(made).__name__
        raise ConcretizationError(
            f"raise: whether {shown} is raised depends on a traced value; use assert, which is "
            f"looked at when the program runs, or jit(f, check=True)"
        ) from (made if isinstance(made, BaseException) else None)
    if cause is None:
        raise made
    raise made from cause()


def returned(value: Any, flag: Any) -> Any:
    """What a function returns. Raises `ConcretizationError` when it may end without a return."""
    if isinstance(value, NoValue) or (not is_unknown(flag) and not flag):
        return None
    if is_unknown(flag) and value is not None:
        raise ConcretizationError(
            "return: on some ways, which depend on a traced condition, the function returns "
            "nothing; end it with a return"
        )
    return use(value)


# Expressions


def and_(first: Any, *others: Action) -> Any:
    """``first and other() and ...``; the others are worked out as well behind an unknown one."""
    value = first
    for other in others:
        if is_unknown(value):
            value = _combined(value, other(), np.logical_and)
        elif value:
            value = other()
        else:
            return value
    return value


def or_(first: Any, *others: Action) -> Any:
    """``first or other() or ...``."""
    value = first
    for other in others:
        if is_unknown(value):
            value = _combined(value, other(), np.logical_or)
        elif not value:
            value = other()
        else:
            return value
    return value


def _combined(left: Any, right: Any, function: Any) -> Any:
    """Truth values are combined; of numbers one is chosen, as Python does."""
    test = lift(_truth(left, "and, or"))
    if dtype_kind(left) == dtype_kind(right) == "b":
        return numpy_call(function, left, right)
    if function is np.logical_and:
        return either(test, lambda: right, lambda: left)
    return either(test, lambda: left, lambda: right)


def not_(value: Any) -> Any:
    """``not value``."""
    if not is_unknown(value):
        return not value
    return numpy_call(np.logical_not, lift(_truth(value, "not")))


def either(test: Any, body: Action, orelse: Action) -> Any:
    """``body() if test else orelse()``."""
    if not is_unknown(test):
        return body() if test else orelse()
    state: list[Any] = [NO_VALUE]

    def put(values: Sequence[Any]) -> None:
        state[0] = values[0]

    if_(
        test,
        lambda: put([body()]),
        lambda: put([orelse()]),
        lambda: (state[0],),
        put,
        ("autograph_value",),
    )
    return state[0]


def contains(value: Any, container: Any) -> Any:
    """``value in container``."""
    if isinstance(container, Tracer) or (is_unknown(value) and isinstance(container, np.ndarray)):
        return numpy_call(np.any, container == value)
    if is_unknown(value) and isinstance(container, list | tuple | range):
        return or_(False, *(functools.partial(operator.eq, value, item) for item in container))
    return value in container


def _lacks(value: Any, container: Any) -> Any:
    return not_(contains(value, container))


_COMPARISONS: dict[str, Any] = {"contains": contains, "lacks": _lacks}


def compare(operators: tuple[str, ...], first: Any, *others: Action) -> Any:
    """``first < second() < third()``, each worked out once."""
    left, value = first, True
    for name, other in zip(operators, others, strict=True):
        right = other()
        compared = _COMPARISONS.get(name) or getattr(operator, name)
        result = compared(left, right)
        value = result if value is True else and_(value, functools.partial(_same, result))
        if not is_unknown(value) and not value:
            return value
        left = right
    return value


def _same(value: Any) -> Any:
    return value


def call(function: Any) -> Any:
    """What is called for ``function``."""
    replacement = _BUILTINS.get(function) if type(function) in _BUILTIN_KINDS else None
    if is_inside_counted():
        if function is isinstance or function is type:
            return functools.partial(_of_kind, function)
        if not is_users_function(function):
            require_quiet(function)
    return _Conversion.called(function) if replacement is None else replacement


def _of_kind(function: Any, value: Any, *kinds: Any) -> Any:
    """``isinstance`` and ``type`` in a step that stands for many, whose numbers are no Python's.

    Raises `ConcretizationError` for these.
    """
    if isinstance(value, Tracer) and value.is_weak:
        raise ConcretizationError(f"{function.__name__}: a step's number is not the counter itself")
    return function(value, *kinds)


def _truth(value: Any, statement: str) -> Instruction:
    if value.ndim:
        raise ShapeError(
            f"{statement}: the truth value of an array {value.instruction.shape} is ambiguous; "
            f"use .any() or .all()"
        )
    return converted(value.instruction, ElementType.PRED)


def _range(*limits: Any) -> Any:
    if not any(is_unknown(limit) for limit in limits):
        return range(*limits)
    return TracedRange.of(*limits)


def _converting(kind: type, dtype: Any) -> Any:
    def convert(*args: Any) -> Any:
        if len(args) == 1 and is_unknown(args[0]) and not args[0].ndim:
            made = args[0].astype(dtype).weakened()
            require_exact(np.positive, args, made)
            return made
        return kind(*args)

    return convert


def _extreme(function: Any, ufunc: Any, reduction: Any) -> Any:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not any(is_unknown(leaf) for leaf in tree.leaves(args)):
            return function(*args, **kwargs)
        if len(args) == 1 and isinstance(args[0], Tracer):
            return numpy_call(reduction, args[0])
        values = args if len(args) > 1 else tuple(args[0])
        return functools.reduce(functools.partial(_chosen, ufunc), values)

    return extreme


def _chosen(ufunc: Any, a: Any, b: Any) -> Any:
    made = numpy_call(ufunc, a, b)
    if not (operand(a).is_weak and operand(b).is_weak):
        return made
    made = made.weakened()
    require_exact(ufunc, (a, b), made)
    return made


_BUILTIN_KINDS = (type, type(len))
_BUILTINS: dict[Any, Any] = {
    builtins.range: _range,
    builtins.int: _converting(int, np.int64),
    builtins.float: _converting(float, np.float64),
    builtins.bool: _converting(bool, np.bool_),
    builtins.min: _extreme(min, np.minimum, np.min),
    builtins.max: _extreme(max, np.maximum, np.max),
}
__all__ = ["NO_VALUE", "use"]
