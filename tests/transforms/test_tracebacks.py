"""Tracebacks end at the user's line and are short, in Python as in IPython."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import tracejit as tj
from tracejit.sources import is_internal

SETUP = """
import numpy as np
import tracejit as tj

x, y = np.ones((2, 3)), np.ones((4, 5))

@tj.jit
def branching(x):
    if x.sum() > 0:
        return x
    return -x
"""

MISTAKES = {
    "if on a traced value": "branching(x)",
    "shapes": "tj.jit(lambda x, y: np.dot(x, y))(x, y)",
    "shapes outside of jit": "tj.numpy.dot(x, y)",
    "shapes in a gradient": "tj.grad(lambda x: np.sum(np.dot(x, y)))(x)",
    "float": "tj.jit(lambda x: float(x.sum()))(x)",
    "index": "tj.jit(lambda x: x[5])(x)",
    "a string": "branching('a')",
    "a gradient of an array": "tj.grad(lambda x: x * 2)(x)",
    "mapped sizes": "tj.vmap(lambda a, b: a + b)(x, y)",
    "an option": "tj.jit(branching, static_argnums='a')",
    "HLO text": "tj.hlo.parse('HloModule x')",
    "an error of the function's own": "tj.jit(lambda x: 1 / 0)(x)",
    "a pullback": "tj.vjp(lambda x: x * 2, x)[1](y)",
}

MOST_LINES = 20


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    known: dict[str, Any] = {}
    exec(compile(SETUP, "setup.py", "exec"), known)
    return known


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    made: InteractiveShell = InteractiveShell.instance()
    made.colors = "nocolor"
    run_cell(made, SETUP)
    yield made
    InteractiveShell.clear_instance()


def run_cell(shell: InteractiveShell, text: str) -> list[str]:
    """The lines that a cell prints."""
    with capture_output() as captured:
        shell.run_cell(text, store_history=True)  # type: ignore[no-untyped-call]
    lines: list[str] = captured.stdout.splitlines()
    return lines


def raised(call: Callable[[], object]) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def files(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_no_frame_of_ours(text: str, names: dict[str, Any]) -> None:
    code = compile(text, "mistake.py", "eval")
    error = raised(lambda: eval(code, names))
    assert files(error)[-1] in ("mistake.py", "setup.py")
    frames = traceback.walk_tb(error.__traceback__)
    assert not [frame for frame, _ in frames if is_internal(frame.f_code)]


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_ipython_shows_few_lines(text: str, shell: InteractiveShell) -> None:
    lines = run_cell(shell, text)
    assert 3 < len(lines) <= MOST_LINES, "\n".join(lines)


def test_a_cell_is_called_as_ipython_calls_it(shell: InteractiveShell) -> None:
    lines = run_cell(shell, "tj.numpy.dot(x, y)")
    number = shell.execution_count - 1
    assert lines[-1].endswith(f"(Cell In[{number}], line 1)")


def test_full_tracebacks_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_TRACEBACK", "full")
    error = raised(lambda: tj.numpy.dot(np.ones((2, 3)), np.ones((4, 5))))
    assert any(file.endswith("products.py") for file in files(error))


def test_what_an_error_was_raised_from_is_short_as_well() -> None:
    @tj.jit
    def chained(x: Any) -> Any:
        try:
            return np.dot(x, np.ones(7))
        except ValueError as error:
            raise KeyError("chained") from error

    error = raised(lambda: chained(np.ones(3)))
    assert isinstance(error, KeyError)
    assert error.__cause__ is not None
    assert {*files(error), *files(error.__cause__)} == {__file__}


def test_bugs_of_our_own_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> object:
        raise AssertionError("planted")

    function = tj.jit(lambda x: x + 1)
    broken.__code__ = broken.__code__.replace(co_filename=tj.__file__)
    monkeypatch.setattr(function, "_compile", broken)
    error = raised(lambda: function(np.ones(3)))
    assert len(files(error)) > 2
    assert files(error)[-1] == tj.__file__
