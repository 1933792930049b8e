"""Imports at first use: an interrupt breaks none of them off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.processes import finished, python, start
from tracejit.graph import Op
from tracejit.loading import load_if_any, uninterrupted
from tracejit.rules import RuleTable

INTERRUPTED_WHILE_IMPORTING = """
import os
import signal
import sys

import numpy as np

import tracejit as tj


signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Interrupting())
try:
    tj.jit(tj.grad(lambda x: np.cumsum(x) @ x))(np.ones(2))
except KeyboardInterrupt:
    f = tj.jit(tj.grad(lambda x: np.cumsum(x) @ x))
    print("interrupted, then", *f(np.ones(2)))
"""


@pytest.fixture(autouse=True)
def interrupts_raise() -> Iterator[None]:
    """Also where whoever began the tests has them ignored, as shells do in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "module",
    ["tvm.runtime.device", "tracejit.backends.tvm.fusion.planner", "tracejit.autodiff.masks"],
)
def test_a_call_after_an_interrupted_import_is_answered(module: str) -> None:
    chosen = {"TRACEJIT_CACHE": "0", "TRACEJIT_COMPILE_SERVER": "0"}  # all imports are here
    said = finished(start(INTERRUPTED_WHILE_IMPORTING, module, **chosen))
    assert said == "interrupted, then 3.0 3.0"


def test_an_interrupt_waits_for_the_end() -> None:
    done = False
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        done = True
    assert done


def test_a_handler_is_as_before_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_every_handler_waits_for_the_end() -> None:
    """Those of other signals may call jit, and find half of what is imported."""
    heard: list[str] = []
    number = signal.SIGTERM
    before = signal.signal(number, lambda *_: heard.append("handler"))
    try:
        with uninterrupted(), uninterrupted():
            signal.raise_signal(number)
            signal.raise_signal(number)
            heard.append("end")
        assert heard == ["end", "handler"]
    finally:
        signal.signal(number, before)


def test_what_a_broken_import_registered_is_registered_anew() -> None:
    """The same line of the same module replaces what it registered; another one is refused."""
    code = "def f(x):\n    return x\n"
    first: dict[str, Any] = {"__name__": "tests.some"}
    again: dict[str, Any] = {"__name__": "tests.some"}
    other: dict[str, Any] = {"__name__": "tests.other"}
    for scope in (first, again, other):
        exec(code, scope)
    table: RuleTable[Any] = RuleTable("tested")
    op = Op("Tested", "tested", "tested", "tested", first["f"])
    for scope in (first, again):
        table.attach(op)(scope["f"])
    assert table.get(op) is again["f"]
    with pytest.raises(ValueError, match="registered twice"):
        table.attach(op)(other["f"])
    with pytest.raises(ValueError, match="registered twice"):
        table.attach(op)(again["f"])


def test_other_threads_leave_handlers_alone() -> None:
    seen = []

    def look() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_a_missing_package_is_none_and_so_are_its_modules() -> None:
    """Not so a package that is there and imports one that is not."""
    assert load_if_any("no_such_package") is None
    assert load_if_any("no_such_package.part.of_it") is None
    assert load_if_any("json.no_such_part") is None


def test_a_package_that_lacks_another_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking_another.py").write_text("import no_such_package", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        load_if_any("lacking_another")


def test_without_jax_one_line_says_what_is_needed() -> None:
    said = python(
        """
import sys
import importlib.abc

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("jax", "jaxlib"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import tracejit as tj

for call in (lambda: tj.from_stablehlo("module {}"), lambda: tj.from_jax(abs)(1.0)):
    try:
        call()
    except tj.errors.UnsupportedError as error:
        print("pip install" in str(error))
"""
    )
    assert said.splitlines() == ["True", "True"]
