"""Every public name of JAX is here or has a reason; packages that load late list their names."""

from __future__ import annotations

import importlib
from fnmatch import fnmatchcase

import pytest

import tracejit as tj
from tests.project import checkout
from tests.project.jax_names import ABSENT, MODULES, PAGE, page, rows


@pytest.mark.parametrize("module", MODULES)
def test_every_absent_name_has_a_reason(module: str) -> None:
    assert [name for name, why in rows(module) if why == ""] == []


@pytest.mark.parametrize("module", ABSENT)
def test_no_reason_is_left_over(module: str) -> None:
    """A reason is for names that JAX has and we have not."""
    absent = [name for name, why in rows(module) if why is not None]
    words = [word for words in ABSENT[module] for word in words.split()]
    assert [word for word in words if not any(fnmatchcase(name, word) for name in absent)] == []


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.project.jax_names"


def test_a_missing_name_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tj.tree_util, "tree_leaves")
    assert [n for n, why in rows("tree_util") if why == ""].count("tree_leaves") == 1


def lazy_packages() -> list[str]:
    """The packages whose `__init__` imports names when they are first used."""
    found = []
    for name, path in checkout.modules().items():
        if path.name == "__init__.py" and "on_first_use(" in path.read_text(encoding="utf-8"):
            found.append(name)
    return found


@pytest.mark.parametrize("package", lazy_packages())
def test_dir_lists_all_public_names_and_nothing_else(package: str) -> None:
    made = importlib.import_module(package)
    extra = {"__array_api_version__"} if package == "tracejit.numpy" else set()
    assert set(dir(made)) - extra == set(made.__all__)
    for name in made.__all__:
        getattr(made, name)


def test_version() -> None:
    written = checkout.ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{tj.__version__}"' in written
