"""Variables that may be None, or unbound, where a traced condition decides: `OptionalValue`.

best = None                     if x > 0: y = x
while x < 9:                    ...
    if best is None: best = x   y                    # raises UnboundLocalError where x <= 0

Such a variable is a tree of arrays with a flag beside it, which says whether it is there. A test
for None is the flag. To use the value as an array asserts the flag while the program runs, but for
where a test for None has settled it.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.callbacks import callback
from tracejit.errors import ConcretizationError
from tracejit.graph import Instruction
from tracejit.lax.control import cond
from tracejit.ops import elementwise, elementwise_unary
from tracejit.ops.layout import full
from tracejit.shapes import ElementType, Shape
from tracejit.sources import user_source
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.context import Trace, current_trace
from tracejit.trace.convert import Operand, operand
from tracejit.trace.evaluation import known_value
from tracejit.trace.table import Traced
from tracejit.trace.table import call as numpy_call
from tracejit.trace.tracer import Tracer, lift
from tracejit.transforms.autograph.capture_policy import is_inside_counted


class Undefined:
    """The value of a variable that is not assigned on every path; using it raises."""

    def __init__(self, name: str, reason: str = "") -> None:
        self.name = name
        self.reason = reason


class UnboundError(UnboundLocalError):
    """The variable ``name`` was read, and nothing has been assigned to it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the variable {name} has no value yet ({user_source()})")
        self.variable = name


class MayBeMissing(ConcretizationError):
    """The ``variable`` of a loop has no value before or after some steps."""

    def __init__(self, statement: str, variable: str) -> None:
        super().__init__(
            f"{statement}: the variable {variable} is None or has no value in some steps, and is "
            f"no tree of arrays in others; only arrays and numbers can change in a loop on traced "
            f"values"
        )
        self.variable = variable


@dataclass(frozen=True)
class Absent:
    """What a variable is where it has no value: None, or unbound. ``name`` is for errors."""

    is_none: bool
    name: str = field(compare=False)

    def error(self) -> Exception:
        """What Python raises where the variable is used, with the user's line."""
        if self.is_none:
            return TypeError(f"the variable {self.name} is None at {user_source()}")
        return UnboundLocalError(f"the variable {self.name} has no value at {user_source()}")


class OptionalValue(Traced):
    """``value``, a tree of arrays, where ``present`` holds; else the variable is ``absent``.

    It is a node of trees. It behaves as ``value`` does, after an assertion that it is there.
    """

    __array_priority__ = 1000
    may_be_none = True
    __slots__ = ("_asserted", "absent", "present", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, present: Any, absent: Absent) -> None:
        self.value, self.present, self.absent = value, present, absent
        self._asserted: set[Any] = set()

    def certain(self) -> Any:
        """The value; where it is not there the program raises what Python would."""
        where = _settled.facts, current_trace()
        if where not in self._asserted and not is_implied(self.present.instruction):
            _require(self.present.instruction, self.absent)
            self._asserted.add(where)
        return self.value

    @property
    def owner(self) -> Trace:
        owner: Trace = self.present.owner
        return owner

    def operand(self) -> Operand:
        return operand(self.certain())

    def __getattr__(self, name: str) -> Any:
        if name in OptionalValue.__slots__:
            raise AttributeError(name)
        return getattr(self.certain(), name)

    def __eq__(self, other: Any) -> Any:
        if other is None:
            return is_none(self)
        return numpy_call(np.logical_and, self.present, self.value == other)

    def __ne__(self, other: Any) -> Any:
        return numpy_call(np.logical_not, self == other)

    def __bool__(self) -> bool:
        return bool(self.truth())

    def truth(self) -> Tracer:
        """The truth value: None is false."""
        made: Tracer = numpy_call(np.logical_and, self.present, self.value)
        return made

    def __repr__(self) -> str:
        return f"{self.value!r} or {None if self.absent.is_none else 'unbound'}"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.certain(), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        given = [certain(value) for value in inputs]
        if "out" in kwargs:
            kwargs["out"] = tuple(certain(value) for value in kwargs["out"])
        return getattr(ufunc, method)(*given, **kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        args, kwargs = tree.map(certain, (args, kwargs), is_leaf=is_optional)
        return function(*args, **kwargs)


def _forwarded(name: str, function: Callable[..., Any], reflected: bool = False) -> None:
    def method(self: OptionalValue, *others: Any) -> Any:
        given = (*map(certain, others), self.certain())
        return function(*given) if reflected else function(given[-1], *given[:-1])

    setattr(OptionalValue, name, method)


_BINARY = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor"
for _name in _BINARY.split():
    _of, _plain = getattr(operator, _name), _name.rstrip("_")
    _forwarded(f"__{_plain}__", _of)
    _forwarded(f"__r{_plain}__", _of, reflected=True)
    _forwarded(f"__i{_plain}__", getattr(operator, f"i{_plain}"))
for _name in "lt le gt ge neg pos abs invert getitem setitem index".split():
    _forwarded(f"__{_name}__", getattr(operator, _name))
for _kind in (len, iter, int, float, complex, format, divmod, round):
    _forwarded(f"__{_kind.__name__}__", _kind)


def _joined(absent: Absent, children: Sequence[Any]) -> Any:
    """The value again; where a program has finished, Python's own value or None."""
    value, present = children
    if type(present) is np.bool_ and absent.is_none:
        return value if present else None
    if isinstance(present, np.ndarray) and present.ndim:
        raise ConcretizationError(
            f"the variable {absent.name} is None for some elements of a batch, which no array can "
            f"hold; return a number in its place"
        )
    return OptionalValue(value, present, absent)


tree.register_node(OptionalValue, lambda one: ((one.value, one.present), one.absent), _joined)


def is_optional(value: Any) -> bool:
    """Whether a value is an `OptionalValue`."""
    return isinstance(value, OptionalValue)


def certain(value: Any) -> Any:
    """A value, or that of an `OptionalValue`, which is asserted to be there."""
    return value.certain() if isinstance(value, OptionalValue) else value


def is_none(value: Any) -> Any:
    """``value is None``."""
    if not isinstance(value, OptionalValue) or not value.absent.is_none:
        return value is None
    if is_implied(value.present.instruction):
        return False
    return numpy_call(np.logical_not, value.present)


def without_flags(value: Any) -> Any:
    """A tree with values in place of its optional parts, and arrays without their masks."""
    return tree.map(_without_flag, value, is_leaf=_has_flag)


def _without_flag(leaf: Any) -> Any:
    if is_optional(leaf):
        return without_flags(leaf.value)
    return leaf.whole if type(leaf) is Masked else leaf


def _has_flag(value: Any) -> bool:
    return is_optional(value) or type(value) is Masked


def flag(holds: bool) -> Tracer:
    """A known flag of the running trace."""
    return lift(full(Shape(ElementType.PRED), holds))


def narrowed(value: Any) -> Any:
    """An optional value without its flag, where a test around has settled that it is there."""
    if isinstance(value, OptionalValue) and is_implied(value.present.instruction):
        return value.value
    return value


# Loops


def is_missing(value: Any) -> bool:
    """Whether a variable is None or unbound."""
    return value is None or isinstance(value, Undefined)


def begun(name: str, before: Any, after: Any) -> Any:
    """The value ``before`` a loop, optional where it is missing there or ``after`` a step."""
    if is_missing(before):
        value = after.value if is_optional(after) else after
        missing = Absent(before is None, name)
        return before if is_missing(after) else OptionalValue(value, flag(False), missing)
    if is_optional(before):
        return before
    if is_missing(after):
        return OptionalValue(before, flag(True), Absent(after is None, name))
    if is_optional(after):
        return OptionalValue(before, flag(True), after.absent)
    made = _zipped(lambda *pair: begun(name, *pair), before, after)
    return before if made is None else made


def conformed(value: Any, like: Any) -> Any:
    """A value after a step, optional where the one before the loop is."""
    if not is_optional(like):
        made = _zipped(conformed, value, like)
        return value if made is None else made
    if is_optional(value):
        return OptionalValue(conformed(value.value, like.value), value.present, like.absent)
    if is_missing(value):
        return OptionalValue(like.value, flag(False), like.absent)
    return OptionalValue(conformed(value, like.value), flag(True), like.absent)


def is_missing_from(value: Any, start: Any) -> bool:
    """Whether a value after a step, or a part of it, is optional or missing, and ``start`` not."""
    if is_optional(start):
        return False
    if is_missing(start) or is_missing(value) or is_optional(value):
        return is_missing(start) != is_missing(value) or is_optional(value)
    found = _zipped(is_missing_from, value, start, any)
    return bool(found)


def _zipped(function: Callable[[Any, Any], Any], one: Any, other: Any, joined: Any = None) -> Any:
    """``function`` of the children of two trees, put together; None for leaves and others."""
    first, second = tree.node(one), tree.node(other)
    if first is None or second is None or first.kind != second.kind:
        return None
    made = [function(*pair) for pair in zip(first.children, second.children, strict=True)]
    if joined is not None:
        return joined(made)
    # What has not changed is the same list or dictionary.
    is_same = all(new is old for new, old in zip(made, first.children, strict=True))
    return one if is_same else first.joined(made)


# What tests have settled


class _Settled(threading.local):
    def __init__(self) -> None:
        self.facts: tuple[tuple[Instruction, bool, bool], ...] = ()


_settled = _Settled()


@contextmanager
def settled(truth: Instruction, holds: bool, is_speculative: bool = False) -> Iterator[None]:
    """Inside, a truth value holds, or does not.

    Where that ``is_speculative``, what is inside runs in either case and is then thrown away.
    """
    before = _settled.facts
    _settled.facts = (*before, (truth, holds, is_speculative))
    try:
        yield
    finally:
        _settled.facts = before


def is_implied(truth: Instruction) -> bool:
    """Whether a truth value is known to hold here."""
    if any(_implies(fact, holds, truth) for fact, holds, _ in _settled.facts):
        return True
    known = known_value(truth)
    return known is not None and bool(known)


def _implies(fact: Instruction, holds: bool, truth: Instruction) -> bool:
    if fact is truth:
        return holds
    if fact.op is elementwise_unary.NOT:
        return _implies(fact.operands[0], not holds, truth)
    if fact.op is (elementwise.AND if holds else elementwise.OR):
        return any(_implies(one, holds, truth) for one in fact.operands)
    return False


def _require(present: Instruction, absent: Absent) -> None:
    """The program raises where ``present`` does not hold, though all speculative facts do."""
    if is_inside_counted():
        raise ConcretizationError(f"the variable {absent.name} may have no value in some steps")
    needed = present
    for fact, holds, is_speculative in _settled.facts:
        if is_speculative:
            needed = elementwise.or_(needed, elementwise_unary.not_(fact) if holds else fact)
    cond(lift(needed), lambda: None, functools.partial(fail, absent.error()))


def fail(error: BaseException | type[BaseException]) -> None:
    """The program raises ``error`` where it comes here."""
    callback(functools.partial(_raise, error), flag(True))


def _raise(error: BaseException | type[BaseException], _: np.ndarray) -> None:
    raise error.with_traceback(None) if isinstance(error, BaseException) else error
