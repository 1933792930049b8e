"""Parts of the package that are imported when they are first used, so that importing it is quick.

__getattr__ = on_first_use(__name__, ("fft", "linalg"))  # at the end of a package's __init__
load("tracejit.scipy.special")
"""

from __future__ import annotations

import importlib
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
    """Inside, an interrupt (Ctrl-C) waits until the end, and is then raised as ever.

    An import that is broken off leaves what it registered behind, and extension modules by halves,
    so that it fails for good when it is tried again. Interrupts come to the main thread alone.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = []
    signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def load_if_any(module: str) -> ModuleType | None:
    """A module by its full name, whose package there is; None if there is none."""
    try:
        return load(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # but of something that it imports
            raise
        return None


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
