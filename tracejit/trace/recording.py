"""Recording namespaces: plain ``np.`` and ``math.`` calls of a traced function record.

recording(f)        f, with the names np and math standing for namespaces that record

NumPy's protocols reach calls on traced values only: not ``np.zeros(3)`` that is written to later,
not ``np.array([t, t])``, not ``math.sin(t)``, not ``table[t]``. So a copy of the function runs,
whose globals and closure show recording namespaces in place of those modules, copies in place of
the user's own functions, and arrays that traced values may index. Nothing that another thread can
see is changed.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import os
import site
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tracejit.loading import load, supplied
from tracejit.sources import is_internal
from tracejit.trace.array_class import ArrayClass
from tracejit.trace.indexable import indexable
from tracejit.trace.outside_world import (
    CLOCKS,
    FROZEN_MODULES,
    is_outside,
    open_and_warn,
    seedable,
    warning,
)
from tracejit.trace.scalar_class import scalar_class
from tracejit.trace.table import find, is_scipys

# By name: a module that the user has not imported need not be.
_RECORDED = frozenset(
    {
        *("numpy", "numpy.fft", "numpy.linalg", "math", "cmath", "scipy", "scipy.fft"),
        *("scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage"),
        *("scipy.signal", "scipy.special", "scipy.stats"),
    }
)
_SEEN_THROUGH = frozenset({"datetime", "os", "uuid"})
"""Modules that record nothing, and whose clocks warn."""

_CLASSES = (np.vectorize, np.ndenumerate, np.broadcast, np.nditer)
_BRACKETS = (type(np.r_), type(np.c_), type(np.mgrid), type(np.ogrid))
_DISPATCHERS = (BuiltinFunctionType, np.ufunc, type(np.sum))


_OWN = (("self",), ("cls",))
"""How methods name their object."""


def recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with recording namespaces in place of NumPy and math.

    Reaches functions, methods, partials and callable objects of the user's. A function of NumPy's,
    SciPy's or math gives the one that records it; others come back as they are.
    """
    if not (isinstance(function, FunctionType) and is_users(function.__code__)):
        shown: Callable[..., Any] = substitute(function)
        if shown is not function:
            return shown
    if isinstance(function, functools.partial):
        inner = recording(function.func)
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        bound = recording(function.__func__)
        return functools.partial(bound, function.__self__)
    if not isinstance(function, FunctionType):
        method = inspect.getattr_static(type(function), "__call__", None)
        if isinstance(method, FunctionType) and is_users(method.__code__):
            return functools.partial(recording(method), function)
        return function
    copy = copied(function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, _run.seen = _run.seen, [] if _run.seen is None else _run.seen
        own = copy.__globals__
        if isinstance(own, RecordingGlobals) and not any(own is other for other in _run.seen):
            _run.seen.append(own)
        try:
            return copy(*args, **kwargs)
        finally:
            for known in _run.seen:
                known.flush()
            _run.seen = before

    return run


def substitute(value: Any) -> Any:
    """The recording replacement that a traced function sees in place of ``value``."""
    kind = type(value)
    if kind is ModuleType:
        if value.__name__ in _RECORDED or is_users_module(value):
            return Namespace(value)
        if value.__name__ in _SEEN_THROUGH:
            return Namespace(value)
        return FrozenNamespace(value) if value.__name__ in FROZEN_MODULES else value
    if kind is FunctionType:
        recorded = find(value)
        if recorded is None and is_outside(value):
            return warning(value)
        if recorded is None and is_users(value.__code__):
            return copied(value)
        return value if recorded is None else recorded
    if kind is type:
        if value is np.ndarray:
            return ArrayClass
        if issubclass(value, np.generic):
            return scalar_class(value)
        if value in CLOCKS:
            return CLOCKS[value]
        if value in _CLASSES or is_scipys(value):
            return find(value) or value
        return seedable(value)
    if kind in _DISPATCHERS or kind in _BRACKETS:
        if is_outside(value):
            return warning(value)  # from time import perf_counter
        return find(value) or value
    if kind.__name__ == "SystemRandom":
        return FrozenNamespace(value)
    if kind is np.vectorize:
        made = find(np.vectorize)
        assert made is not None, "np.vectorize is implemented"
        function = substitute(value.pyfunc)
        return made(function, value.otypes, None, value.excluded, False, value.signature)
    if kind is np.ndarray:
        return indexable(value)
    if kind is MethodType and is_scipys(type(value.__self__)):
        return getattr(substitute(value.__self__), value.__name__, value)
    return _of_scipy(value) if is_scipys(kind) else value


def _of_scipy(value: Any) -> Any:
    """What records an object of SciPy's: a distribution, an interpolator; others as they are."""
    found = find(value)
    if found is not None:
        return found
    adopt = getattr(find(type(value)), "of_scipy", None)
    return value if adopt is None else adopt(value)


@functools.cache
def _libraries() -> tuple[str, ...]:
    """The folders of Python's own modules and of installed packages."""
    folders = (os.path.dirname(os.__file__), *site.getsitepackages())
    return tuple({os.path.realpath(folder) for folder in folders})


@functools.lru_cache(maxsize=4096)
def _is_users_file(path: str) -> bool:
    return not str(Path(path).resolve() if Path(path).exists() else path).startswith(_libraries())


def is_users(code: CodeType) -> bool:
    """Whether code is the user's own: not Python's, not an installed package's, not tracejit's."""
    file = code.co_filename
    return not file.startswith("<frozen") and _is_users_file(file) and not is_internal(code)


def is_users_module(module: ModuleType) -> bool:
    """Whether a module's functions are the user's own."""
    file = getattr(module, "__file__", None)
    if file is None or module.__name__.partition(".")[0] == "tracejit":
        return False
    return _is_users_file(file)


class Namespace:
    """A module as a traced function sees it."""

    __slots__ = ("_module",)

    def __init__(self, module: Any) -> None:
        object.__setattr__(self, "_module", module)

    def __getattr__(self, name: str) -> Any:
        return substitute(getattr(self._module, name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<recording namespace of {self._module.__name__}>"


class FrozenNamespace(Namespace):
    """A module whose functions should not be called while tracing, and warn that they are."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if callable(value) and (not isinstance(value, type) or name == "SystemRandom"):
            module = getattr(self._module, "__name__", type(self._module).__name__)
            return warning(value, f"{module.replace('numpy', 'np', 1)}.{name}")
        return seedable(value) if isinstance(value, type) else value


class RecordingGlobals(dict[str, Any]):
    """The globals of a copied function: those of the module, seen through `substitute`.

    Python reads globals that are no plain dict by ``__getitem__``, but writes past
    ``__setitem__``: what was written is passed on at the next occasion.
    """

    def __init__(self, module_globals: dict[str, Any]) -> None:
        # Code run by `exec` may have globals without a name.
        name = {key: module_globals[key] for key in ("__name__",) if key in module_globals}
        super().__init__(__builtins__={**vars(builtins), **_BUILTINS}, **name)
        self.module_globals = module_globals
        self._own = len(self)
        self._copies: dict[str, tuple[Any, Any]] = {}

    def __getitem__(self, name: str) -> Any:
        if len(self) != self._own:
            self.flush()
        value = self.module_globals[name]
        if type(value) is not FunctionType:
            return substitute(value)
        known = self._copies.get(name)
        if known is None or known[0] is not value:
            known = self._copies[name] = (value, substitute(value))
        return known[1]

    def flush(self) -> None:
        """Passes on to the module what the copies have written to globals."""
        for name in list(self):
            if name not in ("__builtins__", "__name__"):
                self.module_globals[name] = self.pop(name)


def _import(
    name: str,
    globals: dict[str, Any] | None = None,
    locals: Any = None,
    fromlist: Any = (),
    level: int = 0,
) -> Any:
    """An import statement inside a traced function."""
    if isinstance(globals, RecordingGlobals):
        globals = globals.module_globals
    return substitute(builtins.__import__(name, globals, locals, fromlist, level))


_BUILTINS = {"__import__": _import, "open": open_and_warn}
"""What traced functions see in place of Python's own."""


class _Run(threading.local):
    """The globals that the functions running in this thread have seen, to be flushed at the end."""

    def __init__(self) -> None:
        self.seen: list[RecordingGlobals] | None = None


_run = _Run()
_GLOBALS: weakref.WeakValueDictionary[int, RecordingGlobals] = weakref.WeakValueDictionary()


def recording_globals(module_globals: dict[str, Any]) -> RecordingGlobals:
    """The one view on a module's globals that all copies of its functions share."""
    known = _GLOBALS.get(id(module_globals))
    if known is None:
        known = _GLOBALS.setdefault(id(module_globals), RecordingGlobals(module_globals))
    if _run.seen is not None and not any(known is other for other in _run.seen):
        _run.seen.append(known)
    return known


def flush_writes(module_globals: dict[str, Any]) -> None:
    """Passes on to a module what the copies of its functions have written to globals."""
    known = _GLOBALS.get(id(module_globals))
    if known is not None:
        known.flush()


def copied(function: FunctionType, cells: dict[int, CellType] | None = None) -> FunctionType:
    """A copy of a function that sees recording namespaces; of a copy, itself.

    ``cells`` are the closure cells that are being replaced, by identity: functions may refer to
    each other.
    """
    if isinstance(function.__globals__, RecordingGlobals):
        return function
    replaced = {} if cells is None else cells
    if is_users(function.__code__) and _names_objects(function):
        function = supplied("methods").calling_copies(function)
    copy = FunctionType(
        function.__code__,
        recording_globals(function.__globals__),
        function.__name__,
        function.__defaults__ and tuple(map(substitute, function.__defaults__)),
        tuple(_seen(cell, replaced) for cell in function.__closure__ or ()),
    )
    keywords = function.__kwdefaults__
    copy.__kwdefaults__ = keywords and {name: substitute(v) for name, v in keywords.items()}
    copy.__qualname__ = function.__qualname__
    copy.__dict__ = function.__dict__  # one dictionary: attributes of functions are state, too
    return copy


def _names_objects(function: FunctionType) -> bool:
    """Whether a function is a method, or may call methods of the user's.

    It names an object or a class that has some, or attributes that no array and no container has:
    its arguments may have them.
    """
    code = function.__code__
    if code.co_varnames[:1] in _OWN:
        return True
    known = function.__globals__
    named = [known[name] for name in code.co_names if name in known]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not assigned yet
            named.append(cell.cell_contents)
    if any(_has_users_methods(v if isinstance(v, type) else type(v)) for v in named):
        return True
    return any(name not in known and not _is_usual(name) for name in _all_names(code))


_USUAL = (np, np.ndarray, math, builtins, str, list, dict, set, tuple, complex, np.ufunc)
_ALSO_USUAL = ("numpy.linalg", "cmath")
_FOURIER = frozenset(
    "fftn fft fft2 fftfreq fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft "
    "rfft2 rfftfreq rfftn".split()
)
"""The names of `numpy.fft`, which nobody else may have imported."""


@functools.lru_cache(maxsize=4096)
def _is_usual(name: str) -> bool:
    """Whether NumPy's modules, arrays, Python's containers or builtins call a thing so."""
    if any(name in vars(base) for kind in _USUAL for base in getattr(kind, "__mro__", (kind,))):
        return True
    if name in _FOURIER:
        return True
    return any(name in dir(load(module)) for module in ("numpy", *_ALSO_USUAL))


@functools.lru_cache(maxsize=4096)
def _all_names(code: CodeType) -> frozenset[str]:
    """The globals and attributes of a function, and of those inside."""
    inside = (_all_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return frozenset(code.co_names).union(*inside)


@functools.lru_cache(maxsize=1024)
def _has_users_methods(kind: type) -> bool:
    own = (value for base in kind.__mro__ for value in vars(base).values())
    return any(isinstance(value, FunctionType) and is_users(value.__code__) for value in own)


def _seen(cell: CellType, cells: dict[int, CellType]) -> CellType:
    """A closure cell, or the one that replaces it when what it holds is substituted."""
    if id(cell) in cells:
        return cells[id(cell)]
    try:
        value = cell.cell_contents
    except ValueError:
        # Not assigned yet, and the original cell will be.
        return cell
    if type(value) is FunctionType and find(value) is None and is_users(value.__code__):
        made = cells[id(cell)] = CellType()
        made.cell_contents = copied(value, cells)
        return made
    seen = substitute(value)
    return cell if seen is value else CellType(seen)
