"""Hash consing across traces of one function: equal instructions are built once.

memory = memory_of(loss)                    one for all functions of the same code
with Trace("loss", memory=memory): ...      equal graphs are the same instructions as last time

A function that is differentiated without `jit` runs again in every step of a script, since its
Python may ask for values, and mostly records the graph that it recorded before. Parameters are the
same instructions in each of these traces, so instructions can be looked up by op, operands and
attributes, and the results of NumPy's functions by their arguments. A graph on another path has
other instructions. The cache holds shapes, not arrays.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from tracejit.graph import Instruction
from tracejit.ops.base import Made
from tracejit.ops.constants import parameter
from tracejit.shapes import AnyShape
from tracejit.sources import is_internal

MOST = 20_000
"""The most instructions that are remembered of one function; then all are forgotten."""
MOST_ANSWERS = 64


class Result(NamedTuple):
    """What a function returned: an array of its own, as a tracer shows it."""

    instruction: Instruction
    is_weak: bool
    is_scalar: bool


class Read(NamedTuple):
    """What brackets gave: the place in the array, what stands there, and whether it is a number."""

    path: Any
    instruction: Instruction
    is_scalar: bool


class Memory:
    """What the traces of one function have made.

    ``asked`` counts how often a value was asked for: what depends on values is not remembered.
    ``answers`` is for what transformations make of whole graphs, ``prepared`` for functions that
    work out single instructions.
    """

    def __init__(self) -> None:
        self.made = Made()
        self.parameters: dict[tuple[int, AnyShape], Instruction] = {}
        self.results: dict[Hashable, Result] = {}
        self.answers: dict[Hashable, Any] = {}
        self.prepared: dict[Instruction, Callable[..., Any]] = {}
        self.reads: dict[Hashable, Read] = {}
        self.asked = 0

    def parameter(self, number: int, shape: AnyShape) -> Instruction:
        """The Parameter of this number in every trace."""
        key = number, shape
        known = self.parameters.get(key)
        if known is None:
            known = self.parameters.setdefault(key, parameter(number, shape))
        return known

    def keep_answer(self, key: Hashable, answer: Any) -> None:
        """Remembers an answer, in place of the oldest if there are many."""
        if len(self.answers) >= MOST_ANSWERS:
            self.answers.pop(next(iter(self.answers)), None)
        self.answers[key] = answer

    def begun(self) -> Made:
        """The remembered instructions, at the beginning of a trace; forgotten if there are too
        many.
        """
        if len(self.made) + len(self.results) > MOST:
            self.made.clear()
            self.parameters.clear()
            self.results.clear()
            self.answers.clear()
            self.prepared.clear()
            self.reads.clear()
        return self.made


_MEMORIES: weakref.WeakKeyDictionary[CodeType, Memory] = weakref.WeakKeyDictionary()


def memory_of(function: Callable[..., Any]) -> Memory | None:
    """The memory of a user's function, method or callable object; None for anything else.

    Functions of the same code share it: a lambda that is written in a loop is one.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, FunctionType | MethodType):
        function = type(function).__call__
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or is_internal(code):
        return None
    known = _MEMORIES.get(code)
    return _MEMORIES.setdefault(code, Memory()) if known is None else known


def key_of_index(index: Any) -> Hashable:
    """An index expression, if it consists of integers and slices; else None."""
    kind = type(index)
    if kind is int:
        return int(index)
    if kind is slice:
        bounds = index.start, index.stop, index.step
        return bounds if all([one is None or type(one) is int for one in bounds]) else None
    if kind is tuple:
        keys = tuple([key_of_index(one) for one in index])
        return None if None in keys else ("tuple", *keys)
    return None


_PLAIN = frozenset({bool, int, str, type(None), type})


def key_of_call(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], tracer: type
) -> Hashable:
    """What the result of a call depends on, but for values that it asks for.

    None for a call without traced arguments, which are of the class ``tracer``, and for one with
    arguments that no table can find. Traced ones that are given by name may be written to.
    """
    key: list[Any] = [function]
    is_traced = False
    for value in args:
        kind = type(value)
        if kind is tracer:
            key += (value.instruction, value.is_weak, value.is_scalar)
            is_traced = True
        elif kind is tuple or kind is list:
            inner = key_of_call(kind, tuple(value), {}, tracer)
            if inner is not None:
                key.append(inner)
                is_traced = True
            elif not _add_plain(key, tuple, value):
                return None
        elif not _add_plain(key, kind, value):
            return None
    if not is_traced:
        return None
    for name, value in kwargs.items():
        key.append(name)
        if not _add_plain(key, type(value), value):
            return None
    return tuple(key)


def _add_plain(key: list[Any], kind: type, value: Any) -> bool:
    """Adds a number, a name or a tuple of them to the key, so that 1, 1.0 and True differ."""
    if kind in _PLAIN:
        key += (kind, value)
    elif kind is float:
        key += (kind, value or value.hex())
    elif kind is tuple:
        key += (kind, len(value))
        return all([_add_plain(key, type(part), part) for part in value])
    elif issubclass(kind, np.generic):
        key += (kind, value.tobytes())
    else:
        return False
    return True
