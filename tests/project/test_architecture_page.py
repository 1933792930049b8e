"""The architecture page has the passes as they run, and names files that exist."""

from __future__ import annotations

import re

from tests.project import checkout
from tests.project.architecture_page import PAGE, page


def test_the_page_is_that_of_the_pipeline() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert page(written) == written, "run: python -m tests.project.architecture_page"


def test_files_on_the_page_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tracejit|backends|autodiff|tests)/[\w/]+(?:\.py|/))", text))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (checkout.ROOT / name).exists()] == []
