"""These tests are about what is recorded; the interpreter runs it."""

from __future__ import annotations

from tests.interpreted import interpreted, machine_code

__all__ = ["interpreted", "machine_code"]
