"""docs/numpy.md says what there is."""

from __future__ import annotations

import numpy as np

import tracejit as tj
import tracejit.numpy
from tests.numpy_api.table import ABSENT, PAGE, page, public_names
from tracejit.trace.table import find


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.numpy_api.table"


def test_every_absent_name_has_a_reason() -> None:
    assert "absent: ?" not in page()


def test_no_reason_is_left_over() -> None:
    known = {name for module in (np, np.linalg, np.fft) for name in public_names(module)}
    there = {name for name in ABSENT if name in known and hasattr(tracejit.numpy, name)}
    assert there == set()
    assert set(ABSENT) - known == set()


def test_numpys_own_functions_are_found() -> None:
    """One that NumPy has under two names may be two functions."""
    pairs = [(np.max, np.amax), (np.min, np.amin)]
    for pair in pairs:
        assert len({find(function) for function in pair}) == 1
        assert find(pair[1]) is not None
    x = np.array([2.0, 5.0, 1.0])
    assert tj.jit(lambda x: (np.amax(x), np.amin(x)))(x) == (5.0, 1.0)
