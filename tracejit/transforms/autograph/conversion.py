"""From a function to the function that its rewritten source makes: `autograph`."""

from __future__ import annotations

import ast
import functools
import inspect
import random
from collections.abc import Callable
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tracejit.errors import ArgumentError, ConcretizationError, UnsupportedError
from tracejit.sources import is_internal
from tracejit.trace.context import current_trace
from tracejit.trace.recording import copied, is_users
from tracejit.trace.table import find
from tracejit.transforms.autograph import objects, runtime
from tracejit.transforms.autograph.calls import use_conversion
from tracejit.transforms.autograph.capture_policy import is_inside_counted
from tracejit.transforms.autograph.definitions import (
    converted,
    definition,
    kept_definition,
    origins,
    rewritten,
)
from tracejit.transforms.autograph.purity import is_quiet_function, writes_to_its_own
from tracejit.transforms.autograph.rewriting import Rewriter

P = ParamSpec("P")
R = TypeVar("R")

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)


def autograph(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` with its ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, chained
    comparisons, conditional expressions and ``assert`` deciding on traced values, too.

    The user's functions that it calls are rewritten as well. A traced ``if`` records both
    branches as one Conditional, a traced ``while`` and a ``for`` over a range of traced length one
    While; a loop over a known range with a traced ``break`` becomes one when it is long. What is
    known while tracing runs as Python runs it, but for loops of a long trace that do nothing but
    compute: they become one While as well, in which a place outside of an array is no error.

    Raises `ArgumentError` for what is no Python function, `UnsupportedError` when its source is
    not to be had.

    >>> tj.jit(tj.nn.relu, autograph=True)(-3.0)
    np.float64(0.0)
    """
    if isinstance(function, functools.partial):
        inner = autograph(function.func)
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(autograph(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        method = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(method, FunctionType):
            return MethodType(autograph(method), function)
        raise ArgumentError(f"autograph: takes a Python function, not a {type(function).__name__}")
    is_made_here = is_internal(function.__code__)
    made: Callable[P, R] | None = (_transformed if is_made_here else convert)(function)
    if made is None:
        raise UnsupportedError(
            f"autograph: the source of {function.__qualname__} cannot be read; define it in a "
            f"file, one lambda to a line"
        )
    return made


def _transformed(function: FunctionType) -> Any:
    """What ``grad(f)``, ``vmap(f)`` and their like have made, of the rewritten f.

    grad(vmap(f)) -> grad(vmap(autograph(f)))
    """
    cells = tuple(_rewritten_cell(cell) for cell in function.__closure__ or ())
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made


def _rewritten_cell(cell: CellType) -> CellType:
    try:
        value = cell.cell_contents
    except ValueError:  # not assigned yet
        return cell
    if type(value) is FunctionType and is_internal(value.__code__):
        return CellType(_transformed(value))
    made = called(value)
    return cell if made is value else CellType(made)


def keeps_to_itself(function: Callable[..., Any]) -> bool:
    """Whether running a function again is not noticed, as far as its own text tells.

    It writes to its own variables, and sees no generator of random numbers from outside.
    """
    while isinstance(function, functools.partial | MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    function = inspect.unwrap(function)
    if not isinstance(function, FunctionType):
        method = inspect.getattr_static(type(function), "__call__", None)
        return isinstance(method, FunctionType) and keeps_to_itself(method)
    node = definition(function.__code__)
    if node is None or not writes_to_its_own(node):
        return False
    seen = [function.__globals__.get(name) for name in function.__code__.co_names]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            seen.append(cell.cell_contents)
    return not any(isinstance(value, GENERATORS) for value in seen)


def convert(function: FunctionType) -> Any:
    """The rewritten function; None when its source is not to be had."""
    return rewritten(function, _with_control_flow, converted, runtime)


def _with_control_flow(node: ast.FunctionDef, owner: str | None) -> ast.FunctionDef:
    return Rewriter(owner).function(node)


def called(function: Any) -> Any:
    """What a rewritten function calls for ``function``: the user's own are rewritten, too."""
    kind = type(function)
    if kind is FunctionType:
        if is_users(function.__code__) and find(function) is None:
            made = convert(function) or function
            code = made.__code__
            if is_inside_counted() and not _is_quiet(origins.get((code.co_filename, code))):
                raise ConcretizationError(
                    f"{function.__qualname__}: may do more than compute a value"
                )
            trace = current_trace()
            return copied(made) if trace is not None and trace.record_numpy else made
        if function.__module__.partition(".")[0] == "tracejit":
            return functools.partial(_with_functions, function)
        return function
    if kind is MethodType and type(function.__func__) is FunctionType:
        return MethodType(called(function.__func__), function.__self__)
    if kind is functools.partial:
        return functools.partial(called(function.func), *function.args, **function.keywords)
    return function


def _with_functions(function: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of a transformation or of control flow: functions given to it are rewritten."""
    return function(
        *(_given(value) for value in args), **{name: _given(v) for name, v in kwargs.items()}
    )


def _given(value: Any) -> Any:
    return called(value) if type(value) in (FunctionType, MethodType) else value


@functools.cache
def _is_quiet(code: CodeType | None) -> bool:
    """Whether the function of this code does nothing but compute, as far as its text tells."""
    node = None if code is None else kept_definition(code)
    return node is not None and is_quiet_function(node)


use_conversion(called)
objects.use_reader(keeps_to_itself)
