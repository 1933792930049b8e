"""docs/numpy.md says what there is."""

from __future__ import annotations

import numpy as np

import tracejit.numpy
from tests.numpy_api.table import ABSENT, PAGE, page, public_names


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.numpy_api.table"


def test_every_absent_name_has_a_reason() -> None:
    assert "absent: ?" not in page()


def test_no_reason_is_left_over() -> None:
    known = {name for module in (np, np.linalg, np.fft) for name in public_names(module)}
    there = {name for name in ABSENT if name in known and hasattr(tracejit.numpy, name)}
    assert there == set()
    assert set(ABSENT) - known == set()
