"""Packages that import their modules late say the same names everywhere, and find each of them."""

from __future__ import annotations

import importlib
import inspect
import math
import pickle
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.project import checkout
from tests.project.stubs import PACKAGES, path_of, stub
from tracejit.loading import members_of
from tracejit.trace.table import FUNCTIONS, find, origin, own_name

packages = pytest.mark.parametrize("package", PACKAGES)


@packages
def test_the_stub_says_what_the_table_says(package: str) -> None:
    written = path_of(package).read_text(encoding="utf-8")
    assert written == stub(package), "run: python -m tests.project.stubs"


@packages
def test_the_table_says_what_the_modules_define(package: str) -> None:
    """Every name is where the table says; no function that users may call is left out."""
    made = importlib.import_module(package)
    table = members_of(package, made.NAMES)
    assert sum(len(words.split()) for words in made.NAMES.values()) == len(table)
    public = set()
    for module in map(importlib.import_module, sorted(set(table.values()))):
        for name, value in vars(module).items():
            is_own = inspect.isfunction(value) and value.__module__ == module.__name__
            # What is made public wraps what it was made of.
            if is_own and hasattr(value, "__wrapped__") and not name.startswith("_"):
                public.add(name)
    unlisted = members_of(package, getattr(made, "UNLISTED", {}))
    assert public - set(table) == set(unlisted)
    for name, module_name in table.items():
        assert getattr(made, name) is getattr(importlib.import_module(module_name), name)


@packages
def test_no_name_is_a_modules_name(package: str) -> None:
    """An imported module takes the place of a name that is like its own."""
    folder = path_of(package).parent
    modules = {path.stem for path in folder.glob("*.py")}
    assert modules & set(members_of(package, importlib.import_module(package).NAMES)) == set()


@packages
def test_all_and_dir(package: str) -> None:
    made = importlib.import_module(package)
    given: dict[str, Any] = {}
    exec(f"from {package} import *", given)
    assert set(made.__all__) == set(given) - {"__builtins__"}
    assert set(made.__all__) <= set(dir(made))
    with pytest.raises(AttributeError, match=re.escape(f"module '{package}' has no attribute")):
        made.nonsense  # noqa: B018


def public_modules(module: ModuleType) -> dict[str, ModuleType]:
    """A module, and those that are found from it by the names that it shows."""
    found: dict[str, ModuleType] = {}
    waiting = [module]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found and module.__name__.startswith("tracejit"):
            found[module.__name__] = module
            named = [getattr(module, name) for name in module.__all__]
            waiting += [each for each in named if isinstance(each, ModuleType)]
    return found


def test_every_module_shows_its_public_names_alone() -> None:
    """What Tab completes after a dot."""
    modules = public_modules(tj)
    assert len(modules) > 30
    for name, module in modules.items():
        shown = {each for each in dir(module) if not each.startswith("_")}
        assert shown == {each for each in module.__all__ if not each.startswith("_")}, name


def test_every_implementation_is_found_by_name() -> None:
    """What a NumPy function is found by leads to the module that implements it."""
    everything = [name for name in checkout.modules() if name.startswith("tracejit.numpy")]
    for name in everything:
        importlib.import_module(name)
    package = importlib.import_module("tracejit.numpy")
    listed = members_of("tracejit.numpy", package.NAMES)
    listed |= members_of("tracejit.numpy", package.UNLISTED)
    ours = {f: made for f, made in FUNCTIONS.items() if origin(f) == "numpy"}
    assert len(ours) > 300
    for function, made in ours.items():
        module = importlib.import_module(listed[own_name(function)])
        is_here = any(value is made for value in vars(module).values())
        assert is_here or made.__module__ == module.__name__, own_name(function)


def test_what_is_not_implemented_is_not_found() -> None:
    assert find(np.save) is None
    assert find(math.comb) is None
    assert find(len) is None
    assert find(np.random.default_rng) is None


def test_names_are_pickled() -> None:
    for name in ("mean", "where", "vectorize", "float32", "concat"):
        made = getattr(tj.numpy, name)
        assert pickle.loads(pickle.dumps(made)) is made


def test_a_class_of_the_compiler_has_a_name_of_its_own() -> None:
    """One word, one meaning: no two public classes of `backends/tvm` have one name."""
    found: dict[str, list[str]] = {}
    for path in sorted((checkout.ROOT / "backends" / "tvm").rglob("*.py")):
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.M):
            found.setdefault(name, []).append(str(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
