"""Parts of the package that are imported when they are first used, so that importing it is quick.

__getattr__ = on_first_use(__name__, ("fft", "linalg"))  # at the end of a package's __init__
load("tracejit.scipy.special")
"""

from __future__ import annotations

import importlib
import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def load(module: str) -> ModuleType:
    """A module by its full name, imported if it was not yet."""
    if module in sys.modules:
        return importlib.import_module(module)
    with uninterrupted():
        return importlib.import_module(module)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, what handles signals waits until the end: an interrupt (Ctrl-C) is raised there.

    An import that is broken off leaves what it registered behind, and extension modules by halves,
    so that it fails for good when it is tried again; and a handler that runs in the middle of one
    finds half a module. Signals are handled by the main thread alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {n: h for n in _SIGNALS if callable(h := _handler(n)) and h is not _wait}
    try:
        for number in handlers:
            signal.signal(number, _wait)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        waiting = [number for number in handlers if number in _waiting]
        _waiting.difference_update(waiting)
        # An interrupt ends what follows.
        for number in sorted(waiting, key=lambda number: number == signal.SIGINT):
            signal.raise_signal(number)


_SIGNALS = sorted(signal.valid_signals())
_waiting: set[int] = set()
# Without a look-up of the handler's name among constants, for each signal.
_handler: Callable[[int], Any] = getattr(signal.getsignal, "__wrapped__", signal.getsignal)


def _wait(number: int, _: object) -> None:
    _waiting.add(number)


def is_redefined(old: Any, new: Any) -> bool:
    """Whether a function is another one, defined again by the same line of the same module.

    That is so where a module is imported anew after an import of it that was broken off.
    """
    return old is not new and _definition(old) == _definition(new) is not None


def _definition(function: Any) -> tuple[str, str, int] | None:
    inner: Any = inspect.unwrap(function) if callable(function) else None
    code = getattr(inner, "__code__", None)
    return None if code is None else (inner.__module__, inner.__qualname__, code.co_firstlineno)


def load_if_any(module: str) -> ModuleType | None:
    """A module by its full name, whose package there is; None if there is none."""
    try:
        return load(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # but of something that it imports
            raise
        return None


_supplied: dict[str, str] = {}


def supply(**modules: str) -> None:
    """Says which modules lower layers get when they ask for one by what it does."""
    _supplied.update(modules)


def supplied(name: str) -> ModuleType:
    """A module of a higher layer that `supply` has named, imported if it was not yet."""
    return load(_supplied[name])


def members_of(package: str, names: Mapping[str, str]) -> dict[str, str]:
    """The full name of each name's module, for a package's names by the module that defines them.

    ``names`` has words in a string for each module, which is one of the package's own unless its
    name has a dot.
    """
    return {
        name: module if "." in module else f"{package}.{module}"
        for module, words in names.items()
        for name in words.split()
    }


def adds_names(package: str, members: Mapping[str, str]) -> None:
    """Gives a package names that modules of higher layers define, each with its module's name.

    The module is imported when a name of it is first used.
    """
    vars(load(package))["__getattr__"] = on_first_use(package, members=members)


def on_first_use(
    package: str, submodules: Iterable[str] = (), members: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """A package's ``__getattr__``, which imports its ``submodules`` when one asks for them.

    ``members`` are names that other modules define, each with the module's full name; from then on
    they are the package's own. Raises `AttributeError` for every other name.
    """
    parts = frozenset(submodules)
    elsewhere = dict(members or {})

    def getattribute(name: str) -> Any:
        if name in parts:
            return load(f"{package}.{name}")
        if name in elsewhere:
            value = getattr(load(elsewhere[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return getattribute
