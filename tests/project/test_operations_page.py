"""The page of operations says what the op table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import operations_page
from tests.project.operations_page import COMPOSED, MISSING, PAGE, main, methods, page, spelling
from tracejit.builder import XlaBuilder
from tracejit.graph import OPS


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run: python -m tests.project.operations_page"


def test_every_method_of_the_builder_is_on_the_page() -> None:
    listed = {name for op in OPS.values() for name in methods(op)}
    of_its_own = {"build", "build_module", "get_shape", "remember"}
    public = {name for name in dir(XlaBuilder) if not name.startswith("_")}
    assert public - of_its_own == listed


def test_composed_methods_exist() -> None:
    named = [name for names in COMPOSED.values() for name in names]
    assert [name for name in named if spelling(name) is None] == []
    assert set(COMPOSED) <= set(OPS)


def test_a_missing_column_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(operations_page, "compiled", lambda op: MISSING)
    main(tmp_path / "page.md")
    assert "Add (compile, cuda)" in (tmp_path / "page.md").read_text(encoding="utf-8")
