"""Every public function has an example that is run, and says what it raises."""

from __future__ import annotations

import pytest

from tests.project.reference import MODULES, failures_of, public_names

NAMES = [name for name in public_names() if name.is_our_own]
RAISE_NOTHING = {
    "tj.default_backend",
    "tj.disable_jit",
    "tj.lax.stop_gradient",
    "tj.named_scope",
    "tj.numpy.__array_namespace_info__",
    "tj.numpy.min_scalar_type",
    "tj.process_count",
    "tj.process_index",
    "tj.stop_gradient",
}


def test_the_names_are_found() -> None:
    assert {name.module for name in NAMES} == set(MODULES.values())
    assert len(NAMES) > 800


def test_every_function_has_an_example() -> None:
    assert [str(name) for name in NAMES if ">>>" not in name.documentation] == []


def test_every_function_says_what_it_raises() -> None:
    silent = {str(name) for name in NAMES if "aises" not in name.documentation}
    assert silent == RAISE_NOTHING


@pytest.mark.parametrize("module", sorted(MODULES.values()))
def test_examples_print_what_they_say(module: str) -> None:
    assert "".join(failures_of(name) for name in NAMES if name.module == module) == ""
