"""Arguments that do not fit are refused by an error that names the function: none is bare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project.hostile import Attempt, attempts
from tests.project.reference import MODULES, public_names
from tracejit import tracebacks
from tracejit.errors import TracejitError
from tracejit.trace import public

NAMES = [name for name in public_names() if name.is_our_own]
CALLS_NUMPY = Path(public.__file__)


def is_numpys(error: Exception) -> bool:
    """Whether NumPy or SciPy raised: it runs itself where nothing is traced."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    assert entry is not None
    module = str(entry.tb_frame.f_globals.get("__name__")).partition(".")[0]
    if module in ("numpy", "scipy"):
        return True
    code = entry.tb_frame.f_code
    return code.co_name == "call" and Path(code.co_filename) == CALLS_NUMPY


def complaint(attempt: Attempt) -> str | None:
    """What is wrong with the error of a call; None for a good one, and for none."""
    try:
        attempt.call()
    except TracejitError as error:
        return None if str(error) else f"{attempt.what}: no message"
    except Exception as error:
        is_pythons = re.search("unexpected keyword|positional argument", str(error))
        if not (is_pythons or is_numpys(error)):
            return f"{attempt.what}: {type(error).__name__}: {error}"
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", sorted(MODULES.values()))
def test_no_error_is_bare(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEJIT_TRACEBACK", "full")
    names = [name for name in NAMES if name.module == module]
    found = [attempt for name in names for attempt in attempts(name)]
    assert len(found) >= len(names) // 2
    assert [c for c in map(complaint, found) if c is not None] == []


def test_a_mistake_of_ours_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_KINDS", ())
    monkeypatch.setenv("TRACEJIT_TRACEBACK", "full")
    name = next(name for name in NAMES if str(name) == "tj.numpy.eye")
    assert any(complaint(attempt) for attempt in attempts(name))
