"""Parts of the package that are imported when they are first used, so that importing it is quick.

__getattr__ = on_first_use(__name__, ("fft", "linalg"))  # at the end of a package's __init__
load("tracejit.scipy.special")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


def load(module: str) -> ModuleType:
    """A module by its full name, imported if it was not yet."""
    return importlib.import_module(module)


def on_first_use(package: str, names: Iterable[str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``, which imports its submodules ``names`` when one asks for them.

    Raises `AttributeError` for every other name.
    """
    parts = frozenset(names)

    def getattribute(name: str) -> Any:
        if name not in parts:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return load(f"{package}.{name}")

    return getattribute
