"""How the functions that users call behave inside and outside traces.

@implements(np.tanh)
def tanh(x): ...

Inside a trace a call on traced values records; a call on plain arrays is NumPy's own, since
nothing in it is unknown. Outside every trace a call is recorded and evaluated at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from types import MethodType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracejit.loading import is_redefined
from tracejit.trace.affine_bounds import are_counted
from tracejit.trace.context import Trace, current_trace, running_traces
from tracejit.trace.convert import PLAIN_KINDS, as_instruction, held
from tracejit.trace.evaluation import evaluate
from tracejit.trace.hash_consing import Memory, Result, key_of_call
from tracejit.trace.memory_order import given_layout
from tracejit.trace.result_layouts import Rule, by_default, lay_out, unknown
from tracejit.trace.settled import NotPlainError, called_plainly, settled_trace
from tracejit.trace.table import FUNCTIONS, Traced, find_traced, function_name, origin
from tracejit.trace.tracer import Tracer, lift, unrecorded
from tracejit.tracebacks import hide_internal_frames, misuse
from tracejit.tree import flatten, unflatten

P = ParamSpec("P")
R = TypeVar("R")


def public(
    function: Callable[P, R],
    static: Callable[..., Any] | None = None,
    *,
    creates: bool = False,
    raises: bool = False,
    layout: Rule | None = by_default,
) -> Callable[P, R]:
    """Makes ``function``, which records, callable inside and outside traces.

    ``static`` is NumPy's own, for calls without a traced value; a function that ``creates``
    arrays records those calls too, so that the arrays can be written to. A function that
    ``raises`` for some values, which no graph can, is NumPy's own outside traces as well.
    ``layout`` says how its results lie in memory; None if they say so themselves.
    """
    rule = _rule_of(static, layout)

    def laid_out(result: R, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> R:
        if rule is not None and isinstance(result, _OF_ARRAYS):
            lay_out(rule, result, args, kwargs)
        return result

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        is_recorded, entered = True, None
        try:
            traces = running_traces()
            if not traces:
                if raises and static is not None and find_traced((args, kwargs)) is None:
                    is_recorded = False
                    plain: R = static(*args, **kwargs)
                    return plain
                return run_now(function, *args, **kwargs)
            if static is not None and settled_trace() is not None:
                with suppress(NotPlainError):
                    return _plainly(static, args, kwargs)  # type: ignore[no-any-return]
            entered = traces[-1]
            entered.inside += 1
            if creates or static is None or traces[-1].eager:
                return laid_out(function(*args, **kwargs), args, kwargs)
            memory = traces[-1].memory
            if memory is not None and not are_counted():
                key = key_of_call(function, args, kwargs, Tracer)
                if key is None and takes_arrays(function) and find_traced(args) is not None:
                    args = arrays_traced(args)  # type: ignore[assignment]
                    key = key_of_call(function, args, kwargs, Tracer)
                if key is not None:
                    known: R = remembered(memory, key, function, args, kwargs)
                    return laid_out(known, args, kwargs)
            if find_traced((args, kwargs)) is not None:
                return laid_out(function(*args, **kwargs), args, kwargs)
            is_recorded = False
            result: R = adopted(static(*args, **kwargs))
            return result
        except Exception as error:
            instead = misuse(error, function, args, kwargs) if is_recorded else None
            hide_internal_frames(error)
            if instead is not None:
                raise instead from error
            raise
        finally:
            if entered is not None:
                entered.inside -= 1

    return call


def _plainly(static: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy makes of known arguments in a settled trace; written where ``out`` says.

    Raises `NotPlainError` where that is not for NumPy to say.
    """
    out = kwargs.get("out")
    if out is None:
        return _not_recorded(called_plainly(static, args, kwargs))
    if not isinstance(static, np.ufunc) or not isinstance(out, Tracer) or len(kwargs) > 1:
        raise NotPlainError
    made = called_plainly(static, args, {})
    if np.shape(made) != out.shape or not np.can_cast(made.dtype, out.dtype, "same_kind"):
        raise NotPlainError
    out.write_plainly(..., made)
    return out


def _not_recorded(result: Any) -> Any:
    """The numbers and arrays of a result, these as arrays of the settled trace."""
    if type(result) is np.ndarray:
        return unrecorded(result)
    if type(result) in (tuple, list):
        return type(result)(map(_not_recorded, result))
    return result


_OF_ARRAYS = (Tracer, tuple, list)


def _rule_of(static: Callable[..., Any] | None, given: Rule | None) -> Rule | None:
    """The rule for the results of the function that records ``static``: JAX's arrays have no order
    of memory.
    """
    if static is None:
        return None
    module = origin(static)
    return unknown if module.startswith("scipy.") and module != "scipy.special" else given


_TAKING_ARRAYS = frozenset(
    {"concatenate", "dot", "hstack", "stack", "tensordot", "vstack", "where"}
)


def takes_arrays(function: Callable[..., Any]) -> bool:
    """Whether a function treats traced arrays as all others: ufuncs, and some more."""
    return isinstance(function, MethodType) or function.__name__ in _TAKING_ARRAYS


def arrays_traced(args: Iterable[Any]) -> tuple[Any, ...]:
    """The arguments, with arrays of the running trace in place of given ones that hold data."""
    made: list[Any] = []
    for value in args:
        kind = type(value)
        if kind in (list, tuple):
            made.append(kind(arrays_traced(value)))
        elif kind in PLAIN_KINDS and value.ndim and value.dtype.kind in "biufc":
            made.append(lift(held(value), False))
        else:
            made.append(value)
    return tuple(made)


def remembered(
    memory: Memory,
    key: Hashable,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What ``function``, which records, returns; without running it where that is remembered.

    An array that shares its memory with an argument, or that depends on a value, is not.
    """
    known = memory.results.get(key)
    if known is not None:
        made = lift(known.instruction, known.is_scalar)
        made.is_weak = known.is_weak
        return made
    asked = memory.asked
    result = function(*args, **kwargs)
    if type(result) is Tracer and memory.asked == asked and not any(a is result for a in args):
        if result.base is None and not result.instruction.has_effect:
            memory.results[key] = Result(result.instruction, result.is_weak, result.is_scalar)
    return result


def implements(
    *numpy_functions: Any,
    creates: bool = False,
    raises: bool = False,
    layout: Rule | None = by_default,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Registers the decorated function for NumPy functions, and makes it public.

    Registering twice raises.
    """

    def register(function: Callable[P, R]) -> Callable[P, R]:
        made = public(function, numpy_functions[0], creates=creates, raises=raises, layout=layout)
        for numpy_function in numpy_functions:
            enter(numpy_function, made)
        return made

    return register


def enter(numpy_function: Any, function: Callable[..., Any]) -> None:
    """Puts a public function into the table. Raises when NumPy's function is there already."""
    known = FUNCTIONS.get(numpy_function)
    if known is not None and not is_redefined(known, function):
        raise ValueError(f"{function_name(numpy_function)} is implemented twice")
    FUNCTIONS[numpy_function] = function


def run_now(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Records one call and evaluates it, NumPy arrays in and out."""
    traced = find_traced((args, kwargs))
    if traced is not None:
        # In a thread that traces nothing: the values know their trace, or that it has ended.
        with traced.owner.resumed():
            return function(*args, **kwargs)
    with Trace(function.__name__, eager=True):
        targets = _Targets()
        if kwargs.get("out") is not None:
            kwargs["out"] = targets.lent(kwargs["out"])
        if function.__name__ in WRITING and args:
            args = (targets.lent(args[0]), *args[1:])  # type: ignore[assignment]
        return targets.finished(function(*args, **kwargs))


WRITING = frozenset({"_at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"})
"""The functions that write to their first argument."""


class _Targets:
    """The arrays that a call outside traces may write to, and their tracers."""

    def __init__(self) -> None:
        self._pairs: list[tuple[np.ndarray, Tracer]] = []

    def lent(self, value: Any) -> Any:
        """A traced array in place of a plain one; the same for tuples of them."""
        if isinstance(value, tuple):
            return tuple(map(self.lent, value))
        if not isinstance(value, np.ndarray):
            return value
        made = lift(as_instruction(value), False)
        self._pairs.append((value, made))
        return made

    def finished(self, result: R) -> R:
        """The values of a result; those that were written go into the arrays, which it names."""
        if not self._pairs:
            return evaluated(result)
        written = [pair for pair in self._pairs if pair[1].version]
        values = evaluate([tracer.instruction for _, tracer in written], {})
        leaves, structure = flatten(result)
        own_arrays = {id(tracer): array for array, tracer in self._pairs}
        made = evaluated([None if id(leaf) in own_arrays else leaf for leaf in leaves])
        for (array, _), value in zip(written, values, strict=True):
            array[...] = value
        kept = [own_arrays.get(id(old), new) for old, new in zip(leaves, made, strict=True)]
        finished: R = unflatten(structure, kept)
        return finished


def evaluated(result: R) -> R:
    """A result with its traced values replaced by arrays, and by NumPy scalars where they are ones.

    The running trace's side effects happen as well.
    Every argument that they depend on must have a value.
    """
    leaves, structure = flatten(result)
    traced = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
    trace = current_trace()
    effects = [] if trace is None else trace.effects
    values = iter(evaluate([*(leaf.instruction for leaf in traced), *effects], {}))
    made = [own(next(values), leaf) if isinstance(leaf, Tracer) else leaf for leaf in leaves]
    finished: R = unflatten(structure, made)
    return finished


def own(value: np.ndarray, like: Tracer) -> Any:
    """A value that shares no memory with anything; a number where ``like`` is one."""
    if like.is_weak:
        return value.item()
    return value[()] if like.is_scalar else np.array(value)


def adopted(result: Any) -> Any:
    """What NumPy made while tracing: arrays become traced, so that they can be written to."""
    if type(result) is np.ndarray:
        made = lift(as_instruction(result), False)
        made.lay(given_layout(result))
        return made
    if type(result) in (tuple, list):
        return type(result)(adopted(item) for item in result)
    return result


__all__ = ["Traced", "adopted", "enter", "evaluated", "implements", "own", "public", "run_now"]
