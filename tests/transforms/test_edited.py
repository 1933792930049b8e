"""Cells that are run again, and modules that are loaded again, in a shell of IPython's."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython")


@pytest.fixture
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell

    made: Any = InteractiveShell.instance()
    run(made, "import numpy as np, tracejit as tj")
    yield made
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


def test_a_helper_that_is_edited_is_traced_anew(shell: Any) -> None:
    run(shell, "def helper(x):\n    return x + 1")
    run(shell, "@tj.jit\ndef f(x):\n    return helper(x) * 2\n\nf(np.ones(2))")
    assert run(shell, "f(np.ones(2))[0]") == 4
    assert run(shell, "f.cache_report().count") == 1
    run(shell, "def helper(x):\n    return x + 1")
    assert run(shell, "f(np.ones(2))[0]") == 4
    assert run(shell, "f.cache_report().count") == 1, "the same code again"
    run(shell, "def helper(x):\n    return x + 9")
    assert run(shell, "f(np.ones(2))[0]") == 20


def test_derivatives_and_helpers_of_helpers_follow(shell: Any) -> None:
    run(shell, "def inner(x):\n    return x**2")
    run(shell, "def outer(x):\n    return np.sum(inner(x))")
    run(shell, "g = tj.jit(tj.grad(outer))\ng(np.ones(2))")
    run(shell, "def inner(x):\n    return x**3")
    assert run(shell, "g(np.ones(2))[0]") == 3


def test_autoreload_of_a_module(shell: Any, tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "edited_helpers.py"
    file.write_text("def scale(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    run(
        shell, "import edited_helpers\nh = tj.jit(lambda x: edited_helpers.scale(x))\nh(np.ones(2))"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(shell, "%load_ext autoreload\n%autoreload 2")
    file.write_text("def scale(x):\n    return x * 5  # edited\n")
    assert run(shell, "h(np.ones(2))[0]") == 5
    run(shell, "%autoreload 0")


def test_a_global_that_changed_is_named(shell: Any) -> None:
    run(shell, "gain, table = 2.0, np.ones(2)")
    run(shell, "k = tj.jit(lambda x: x * gain + table)\nk(np.ones(2))")
    run(shell, "gain = 5.0\ntable[0] = 7")
    shell.user_ns["warnings"] = warnings
    found = run(
        shell,
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    k(np.ones(2))\n"
        "    k(np.ones(2))\n"
        "[str(each.message) for each in found]",
    )
    assert len(found) == 1
    assert "gain, table changed since the function was traced" in found[0]
