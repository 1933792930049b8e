"""What users write works with default settings, where another process compiles."""

from __future__ import annotations

from tests.runtime.processes import python


def test_everyday_programs() -> None:
    assert python("from tests.runtime import everyday; everyday.main()", TRACEJIT_CACHE="0") == ""
