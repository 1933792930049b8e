"""Calls with arguments that do not fit, made from the examples of the public functions.

for attempt in attempts(name): attempt.call()

The first call of a function in its example is taken, and one of its arguments at a time is
replaced. Each is tried with arrays and with traced arrays.
"""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tracejit as tj
from tests.project.reference import Name, namespace

ARRAYS: tuple[Any, ...] = (np.ones((7, 5, 3)), np.ones(()))
INSTEAD: dict[type, tuple[Any, ...]] = {
    int: (-100, 99, "x", 1.5),
    str: ("no such", 5),
    tuple: ((99,), (-100, 99), ("x",)),
}
AXES = {"axis", "axes", "axis1", "axis2", "dimension", "dimensions"}


class Attempt(NamedTuple):
    what: str
    call: Callable[[], Any]


def attempts(name: Name) -> Iterator[Attempt]:
    """Calls of a function, one argument of each replaced; none where no example calls it."""
    found = _call_in_example(name)
    if found is None:
        return
    args, kwargs = found
    for n, value in enumerate(args):
        for other in _in_place_of(value):
            changed = [*args[:n], other, *args[n + 1 :]]
            yield from _both(name, f"argument {n} is {other!r:.40}", changed, kwargs)
    for option in kwargs:
        for other in ("no such", 99, -100):
            what = f"{option} is {other!r}"
            yield from _both(name, what, args, {**kwargs, option: other})
    for axis in _axes(name.value, len(args)) - set(kwargs):
        for other in (99, "x"):
            yield from _both(name, f"{axis} is {other!r}", args, {**kwargs, axis: other})
    yield from _both(name, "an option that there is not", args, {**kwargs, "nosuch": 1})


def _both(name: Name, what: str, args: list[Any], kwargs: dict[str, Any]) -> Iterator[Attempt]:
    places = [n for n, value in enumerate(args) if _is_array(value)]

    def traced(*arrays: Any) -> int:
        given = list(args)
        for n, array in zip(places, arrays, strict=True):
            given[n] = array
        name.value(*given, **kwargs)
        return 0

    yield Attempt(f"{name}: {what}", lambda: name.value(*args, **kwargs))
    if places:
        arrays = [np.asarray(args[n]) for n in places]
        yield Attempt(f"{name}, traced: {what}", lambda: tj.jit(traced).lower(*arrays))


def _is_array(value: Any) -> bool:
    if isinstance(value, list) and any(isinstance(item, tuple | str) for item in value):
        return False
    if not isinstance(value, list | np.ndarray | float):
        return False
    try:
        return np.asarray(value).dtype.kind in "biufc"
    except ValueError:  # arrays of different shapes
        return False


def _in_place_of(value: Any) -> tuple[Any, ...]:
    if _is_array(value):
        return ARRAYS
    return () if isinstance(value, bool) else INSTEAD.get(type(value), ())


def _axes(function: Any, given: int) -> set[str]:
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()
    return set(parameters[given:]) & AXES


def _call_in_example(name: Name) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of the first call of the function in its example."""
    seen = namespace()
    for example in doctest.DocTestParser().get_examples(name.documentation):
        code = ast.parse(example.source)
        for node in ast.walk(code):
            if isinstance(node, ast.Call) and _is_of(ast.unparse(node.func), name):
                text = f"(lambda *args, **kwargs: (list(args), kwargs))({_arguments(node)})"
                try:
                    args, kwargs = eval(text, seen)
                except NameError:  # a variable of a function around the call
                    return None
                return args, kwargs
        exec(compile(code, str(name), "exec"), seen)
    return None


def _arguments(call: ast.Call) -> str:
    keywords = (f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords)
    return ", ".join([*map(ast.unparse, call.args), *keywords])


def _is_of(text: str, name: Name) -> bool:
    short = str(name).replace("tj.numpy.", "tnp.")
    return text in (str(name), short)
