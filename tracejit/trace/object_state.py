"""What a function can reach and change beside its result: variables, attributes, containers.

before = snapshot(function)
...                             the function runs
before.changes()                which places hold another value now
"""

from __future__ import annotations

import dis
import functools
import io
import os
import pickle
import re
import sys
import types
import warnings
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tracejit.errors import ConcretizationError
from tracejit.sources import is_internal, warn
from tracejit.trace.outside_world import FrozenValueWarning
from tracejit.trace.recording import (
    Namespace,
    RecordingGlobals,
    flush_writes,
    is_users,
    is_users_module,
)
from tracejit.trace.table import Traced

MOST = 5000
"""The most objects that are visited, nearest first."""
MOST_BYTES = 1 << 22
"""The most bytes of NumPy's arrays that are compared."""
MOST_PICKLED = 1 << 16
"""The most bytes of another object that are compared."""
DEEPEST = 4
"""So deep is looked into iterators of iterators."""

PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range, np.dtype}
)
_CONTAINERS = (list, dict, set, deque)
_MOVING = {
    "random": ("Random",),
    "numpy.random": ("Generator", "RandomState", "SeedSequence"),
    "queue": ("Queue", "SimpleQueue"),
}


def _moving_types() -> tuple[type[Any], ...]:
    """Files, queues and random generators, as far as their modules are imported already."""
    loaded = ((sys.modules.get(module), names) for module, names in _MOVING.items())
    drawing = [vars(module)[name] for module, names in loaded if module for name in names]
    return (io.IOBase, *drawing)


class Missing:
    """Stands in a place that holds nothing."""


MISSING = Missing()


class Change(NamedTuple):
    """A place called ``name`` that holds another value than before.

    ``holder`` and ``key`` lead there, where it can be set again; a ``holder`` that is None is an
    object that is only known to have changed.
    """

    name: str
    holder: Any
    key: Any
    before: Any

    @property
    def identity(self) -> tuple[int, Any]:
        """The same for all changes of one place."""
        return _identity(self.holder), self.key

    def get(self) -> Any:
        """What the place holds; `MISSING` where there is nothing."""
        return _held(self.holder).get(self.key, MISSING)

    @property
    def is_place(self) -> bool:
        """Whether it can be set, to whatever value."""
        if self.holder is None or isinstance(self.holder, set | deque):
            return False
        if isinstance(self.holder, list) and not isinstance(self.key, _Attribute):
            return self.before is not MISSING and self.get() is not MISSING
        return True

    def put(self, value: Any) -> None:
        """Sets what the place holds."""
        _set(self.holder, self.key, value)


class _Globals:
    """The globals of a module that functions name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.own = values
        self.names: set[str] = set()

    @property
    def values(self) -> dict[str, Any]:
        """The globals, with what copies of functions have written to them."""
        flush_writes(self.own)
        return self.own


class _Opaque(NamedTuple):
    """An object that says where it stands, but not what it holds."""

    value: Any
    state: Any


def _identity(holder: Any) -> int:
    return id(holder.own if isinstance(holder, _Globals) else holder)


class Snapshot:
    """The reachable objects at one moment, and their state."""

    def __init__(self) -> None:
        self.held: list[tuple[str, Any, dict[Any, Any]]] = []
        self.arrays: list[tuple[str, np.ndarray, np.ndarray]] = []
        self.opaque: list[tuple[str, _Opaque]] = []
        self.globals: dict[int, _Globals] = {}

    def changes(self) -> Iterator[Change]:
        """The places that hold another value now."""
        for name, holder, before in self.held:
            after = _held(holder)
            if len(after) == len(before) and all(map(is_, after.values(), before.values())):
                if all(map(is_, after, before)):
                    continue
            for key in chain(before, (key for key in after if key not in before)):
                old, new = before.get(key, MISSING), after.get(key, MISSING)
                if not _is_one(old, new):
                    yield Change(_place(name, holder, key), holder, key, old)
            if isinstance(holder, OrderedDict) and [*after] != [*before] and {*after} == {*before}:
                yield Change(name, None, None, holder)
        for name, array, copy in self.arrays:
            if not np.array_equal(array, copy, equal_nan=array.dtype.kind in "fc"):
                yield Change(name, None, None, copy)
        yield from self.moves()

    def holders(self) -> Iterator[int]:
        """What can be changed, as the `Change.identity` of a place in it begins."""
        return (_identity(holder) for _, holder, _ in self.held)

    def moves(self) -> Iterator[Change]:
        """The iterators, files and random generators whose state is another now."""
        for name, (value, state) in self.opaque:
            if _state_of(value) != state:
                yield Change(name, None, None, value)


def snapshot(function: Any, but: Collection[CellType] = (), only_moving: bool = False) -> Snapshot:
    """All that a function of the user's can reach; some cells may hold other values later on.

    With ``only_moving`` what is kept are iterators, files and random generators.
    """
    made = Snapshot()
    own = {id(cell) for cell in but}
    seen: set[int] = set()
    kept: list[Any] = []  # or others would be made in their places
    waiting: deque[tuple[str, Any]] = deque([("", function)])
    nbytes = 0
    while waiting and len(kept) < MOST:
        name, value = waiting.popleft()
        kind: type = type(value)
        if id(value) in own:
            waiting.extend((name, one) for one in _held(value).values())
            continue
        if kind in PLAIN or id(value) in seen or isinstance(value, Traced | np.generic):
            continue
        seen.add(id(value))
        kept.append(value)
        if isinstance(value, np.ndarray):
            nbytes += value.nbytes
            if value.flags.writeable and nbytes <= MOST_BYTES and not only_moving:
                made.arrays.append((name, value, value.copy()))
            continue
        is_users_iterator = hasattr(kind, "__next__") and is_of_user(kind)
        if not is_users_iterator or only_moving:
            if hasattr(kind, "__next__") or isinstance(value, _moving_types()) or _is_c(kind):
                state = _state_of(value)
                if type(state) is not _Unknown or "." not in name:
                    made.opaque.append((name, _Opaque(value, state)))
                continue
        if kind is FunctionType:
            if is_users(value.__code__):
                waiting.extend(_of_function(value, made))
                waiting.append((f"{name}.__dict__", value.__dict__))
            elif is_internal(value.__code__):
                waiting.extend((name, one) for one in _functions_in(value))
            continue
        is_holder = isinstance(value, _CONTAINERS) or kind is type(os.environ)
        if kind is CellType or is_holder or _has_attributes(value):
            held = _held(value)
            if not only_moving:
                made.held.append((name, value, held))
            waiting.extend((_place(name, value, key), one) for key, one in held.items())
        waiting.extend((name, one) for one in _parts(value))
    if not only_moving:
        for known in made.globals.values():
            made.held.append(("", known, _held(known)))
    return made


def holders_from(roots: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The lists, dictionaries and objects that named values lead to, nearest first, with names."""
    seen: set[int] = set()
    kept: list[Any] = []  # or others would be made in their places
    waiting = deque(roots)
    while waiting and len(kept) < MOST:
        name, value = waiting.popleft()
        is_still = isinstance(value, Traced | np.generic | np.ndarray | ModuleType | type)
        if type(value) in PLAIN or id(value) in seen or is_still:
            continue
        seen.add(id(value))
        kept.append(value)
        if type(value) is FunctionType:
            if is_users(value.__code__):
                waiting.extend(_of_function(value, Snapshot()))
            continue
        if type(value) is CellType or isinstance(value, _CONTAINERS) or _has_attributes(value):
            yield name, value
            waiting.extend((_place(name, value, key), one) for key, one in _held(value).items())
        waiting.extend((name, one) for one in _parts(value))


def held_by(holder: Any) -> dict[Any, Any]:
    """What there is in each place of a container or an object."""
    return _held(holder)


def frozen_values(function: Any) -> dict[str, Any]:
    """The arrays and containers that a function of the user's names, by name, as they are now.

    They are variables of functions around it, globals, defaults, and those of functions it calls.
    """
    found: dict[str, Any] = {}
    waiting, seen = deque([function]), {id(function)}
    while waiting and len(seen) < MOST:
        one = waiting.popleft()
        one = one.__func__ if isinstance(one, MethodType) else one
        if type(one) is not FunctionType or not is_users(one.__code__):
            continue
        for name, value in _of_function(one, Snapshot()):
            if type(value) is CellType:
                value = _held(value).get("", MISSING)
            if isinstance(value, np.ndarray | list | dict | set | deque):
                found.setdefault(name, value)
            elif id(value) not in seen:
                seen.add(id(value))
                waiting.append(value)
    return found


def _of_function(function: FunctionType, made: Snapshot) -> Iterator[tuple[str, Any]]:
    yield from zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    code, defaults = function.__code__, function.__defaults__ or ()
    optional = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    yield from zip(optional, defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    values: dict[str, Any] = function.__globals__
    values = values.module_globals if isinstance(values, RecordingGlobals) else values
    known = made.globals.setdefault(id(values), _Globals(values))
    names = _all_names(function.__code__)
    # Those that are not there yet may be made.
    known.names |= names
    modules: list[Any] = [sys.modules.get(name) for name in names]  # imported inside
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            modules.append(cell.cell_contents)
    for name in names & values.keys():
        value = values[name]
        modules.append(value)
        if type(value) is not ModuleType:
            yield name, value
    for module in modules:
        module = getattr(module, "_module", None) if type(module) is Namespace else module
        if type(module) is not ModuleType:
            continue
        inside = made.globals.setdefault(id(vars(module)), _Globals(vars(module)))
        if is_users_module(module):
            inside.names |= names
            yield from ((one, vars(module)[one]) for one in names & vars(module).keys())
            continue
        # Of other modules, what the function assigns to, and the containers that it names.
        inside.names |= _assigned_names(function.__code__)
        for one in names & vars(module).keys():
            value = vars(module)[one]
            if isinstance(value, _CONTAINERS) or type(value) is type(os.environ):
                yield f"{module.__name__}.{one}", value


def _functions_in(function: FunctionType) -> Iterator[Any]:
    """The functions that a transformation is of."""
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            if isinstance(cell.cell_contents, FunctionType | MethodType | functools.partial):
                yield cell.cell_contents


def require_still(before: Snapshot, title: str) -> None:
    """Raises `ConcretizationError` where a body that is recorded once for many has changed some
    state.
    """
    for change in before.moves():
        raise ConcretizationError(
            f"{title}: the {type(change.before).__name__} {change.name} gives a value, and its "
            f"state moves, which would happen once while tracing, however often this runs; draw "
            f"the values before, as an array, or with tracejit.random"
        )


def warn_of_moves(before: Snapshot, title: str) -> None:
    """Warns where tracing has moved something: what it gave is kept for ever."""
    for change in before.moves():
        warn(
            f"{title}: the {type(change.before).__name__} {change.name} gives a value while "
            f"tracing, which is frozen into the compiled function; pass the value as an argument",
            FrozenValueWarning,
        )


@functools.lru_cache(maxsize=4096)
def _all_names(code: CodeType) -> frozenset[str]:
    """The globals and attributes that a function names, and those inside of it."""
    inside = (_all_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return frozenset(code.co_names).union(*inside)


@functools.lru_cache(maxsize=4096)
def _assigned_names(code: CodeType) -> frozenset[str]:
    """The attributes that a function assigns to, and those inside of it."""
    inside = (_assigned_names(one) for one in code.co_consts if isinstance(one, CodeType))
    own = (i.argval for i in dis.get_instructions(code) if i.opname in _ASSIGNING)
    return frozenset(own).union(*inside)


_ASSIGNING = ("STORE_ATTR", "DELETE_ATTR")


def _parts(value: Any) -> Iterator[Any]:
    """What is behind a value that is no place of its own."""
    kind = type(value)
    if isinstance(value, tuple | frozenset):
        yield from value
    elif kind is MethodType:
        yield from (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, staticmethod | classmethod):
        yield value.__func__
    elif isinstance(value, functools.cached_property):
        yield value.func
    elif isinstance(value, type):
        yield from value.__bases__
    elif kind.__module__.startswith("tracejit."):
        yield getattr(value, "__wrapped__", None)
    elif isinstance(value, types.BuiltinMethodType | types.MethodWrapperType):
        if not isinstance(value.__self__, ModuleType):
            yield value.__self__
    elif _has_attributes(value):
        yield kind


def is_of_user(kind: type) -> bool:
    """Whether a class is the user's own."""
    module = kind.__module__
    if module == "__main__":
        return True
    if module.partition(".")[0] in ("builtins", "numpy", "tracejit"):
        return False
    functions = (one for one in vars(kind).values() if isinstance(one, FunctionType))
    return any(is_users(one.__code__) for one in functions) or _is_in_users_module(module)


def _is_in_users_module(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and is_users_module(module)


def _has_attributes(value: Any) -> bool:
    if isinstance(value, types.SimpleNamespace):
        return True
    return is_of_user(value if isinstance(value, type) else type(value))


def _held(holder: Any) -> dict[Any, Any]:
    """What there is in each place of something that can be changed."""
    if isinstance(holder, CellType):
        with suppress(ValueError):  # not assigned yet
            return {"": holder.cell_contents}
        return {}
    if isinstance(holder, _Globals):
        values = holder.values
        return {name: values[name] for name in holder.names if name in values}
    made: dict[Any, Any] = {}
    if isinstance(holder, dict | type(os.environ)):
        made = dict(holder)
    elif isinstance(holder, list | deque):
        made = dict(enumerate(holder))
    elif isinstance(holder, set):
        made = dict.fromkeys(holder, True)
    if isinstance(holder, type):
        return {k: v for k, v in vars(holder).items() if not k.startswith("__")}
    if isinstance(holder, type(os.environ)):
        return made
    if hasattr(holder, "__dict__") and type(holder) not in _CONTAINERS:
        made |= {_Attribute(k): v for k, v in vars(holder).items()}
    if type(holder) not in _CONTAINERS:
        for name in _slots(type(holder)):
            with suppress(AttributeError):  # not assigned yet
                made[_Attribute(name)] = getattr(holder, name)
    return made


class _Attribute(str):
    """The name of an attribute, where a dictionary's key could be meant."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((1, str(self)))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Attribute and str(self) == str(other)


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        own: Any = vars(base).get("__slots__", ())
        for name in (own,) if isinstance(own, str) else own:
            if name not in ("__dict__", "__weakref__"):
                yield f"_{base.__name__.lstrip('_')}{name}" if name.startswith("__") else name


def _set(holder: Any, key: Any, value: Any) -> None:
    if isinstance(holder, CellType):
        if value is MISSING:
            with suppress(ValueError):  # not assigned yet
                del holder.cell_contents
        else:
            holder.cell_contents = value
    elif isinstance(holder, type) and value is not MISSING:
        setattr(holder, str(key), value)
    elif isinstance(holder, type):
        delattr(holder, str(key))
    elif isinstance(key, _Attribute):
        if value is not MISSING:
            object.__setattr__(holder, str(key), value)
        elif hasattr(holder, str(key)):
            object.__delattr__(holder, str(key))
    elif isinstance(holder, _Globals | dict | type(os.environ)):
        values = holder.values if isinstance(holder, _Globals) else holder
        if value is MISSING:
            values.pop(key, None)
        else:
            values[key] = value
    elif isinstance(holder, set):
        (holder.discard if value is MISSING else holder.add)(key)
    elif value is MISSING:
        while len(holder) > key:
            holder.pop()
    elif key < len(holder):
        holder[key] = value
    else:
        holder.append(value)


def _place(name: str, holder: Any, key: Any) -> str:
    """A place in words: c, self.n, d['k'], l[0], the length of l."""
    if isinstance(holder, CellType | _Globals):
        return name or str(key)
    if isinstance(key, _Attribute) or isinstance(holder, type):
        kind = holder if isinstance(holder, type) else type(holder)
        return f"{name or kind.__name__}.{key!s}"
    return f"{name}[{key!r}]"


def _is_one(old: Any, new: Any) -> bool:
    if old is new:
        return True
    return type(old) is type(new) and type(old) in PLAIN and bool(old == new)


@functools.lru_cache(maxsize=1024)
def _is_c(kind: type) -> bool:
    """Whether a class is written in C, and its objects may change: no container, no function."""
    if type(kind).__module__ == "_ctypes":
        return True
    if issubclass(kind, _C_BUT_STILL) or kind in _CONTAINERS or "dtype" in kind.__name__:
        return False
    if issubclass(kind, _CONTAINERS) or kind.__module__.startswith("tracejit"):
        return False
    if is_of_user(kind):
        return False
    bases = [base for base in kind.__mro__ if base is not object]
    own = [value for base in bases for value in vars(base).values()]
    return not any(isinstance(value, FunctionType | property) for value in own)


_C_BUT_STILL = (
    *(tuple, frozenset, str, bytes, int, float, complex, type, ModuleType, FunctionType, CellType),
    *(CodeType, MethodType, types.BuiltinMethodType, types.MethodWrapperType, staticmethod),
    *(classmethod, property, functools.partial, np.ufunc, np.ndarray, types.SimpleNamespace),
    *(types.MethodDescriptorType, types.WrapperDescriptorType, types.MappingProxyType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, re.Pattern),
)


class _Unknown:
    """The state of an object that does not say it, unlike every other."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


class _Short(io.BytesIO):
    """A file for what is not long."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > MOST_PICKLED:
            raise OverflowError
        return super().write(data)


def _contents(value: Any) -> Any:
    """The bytes of an object written in C: its memory, its digest, or what is pickled of it."""
    with suppress(Exception):
        with memoryview(value) as memory:
            return memory.tobytes() if memory.nbytes <= MOST_BYTES else None
    with suppress(Exception):
        if hasattr(value, "hexdigest"):
            return value.hexdigest()
        file = _Short()
        pickle.Pickler(file, 4).dump(value)
        return file.getvalue()
    return None


def _state_of(value: Any, depth: int = 0) -> Any:
    """Where an iterator, a file or a random generator stands, to be compared."""
    if isinstance(value, io.IOBase):
        with suppress(OSError, ValueError):  # closed, or a terminal
            return value.tell()
        return None
    if isinstance(value, _moving_types()):
        if hasattr(value, "qsize"):
            return value.qsize()
        if hasattr(value, "bit_generator"):
            return pickle.dumps(value.bit_generator.state)
        if hasattr(value, "spawn_key"):
            return pickle.dumps(value.state)
        with suppress(NotImplementedError):  # the system's, which has none
            known = hasattr(value, "getstate")
            return value.getstate() if known else pickle.dumps(value.get_state())
        return None
    if isinstance(value, types.GeneratorType):
        frame = value.gi_frame
        if frame is None:
            return None
        return frame.f_lasti, [_Same(one) for one in frame.f_locals.values()]
    if not hasattr(type(value), "__next__"):
        return _contents(value)
    for name in _COUNTERS:
        with suppress(Exception):
            return getattr(value, name)
    if is_of_user(type(value)):
        return [(name, _Same(one)) for name, one in _held(value).items()]
    if type(value) is _CALLABLE_ITERATOR:  # its function moves
        return _Unknown()
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        made = value.__reduce_ex__(4)
        if isinstance(made, tuple) and depth < DEEPEST:
            return _numbers(made, depth)
    with suppress(Exception):
        return value.__length_hint__()
    return _Unknown()


_COUNTERS = ("line_num", "index")
"""Where readers and NumPy's iterators say how far they are."""
_CALLABLE_ITERATOR = type(iter(int, 1))


def _numbers(made: Any, depth: int) -> list[Any]:
    """What an iterator says of itself: its numbers, and the states of the iterators in it."""
    found: list[Any] = []
    for one in made.values() if isinstance(made, dict) else made:
        if isinstance(one, tuple | dict):
            found.append(_numbers(one, depth))
        elif type(one) in PLAIN:
            found.append(one)
        elif hasattr(type(one), "__next__"):
            found.append(_state_of(one, depth + 1))
        else:
            found.append(_Same(one))
    return found


class _Same:
    """Equal to what holds the same object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and _is_one(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]
