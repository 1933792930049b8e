"""These tests are about what is recorded; the interpreter runs it."""

from __future__ import annotations

from tests.interpreted import interpreted

__all__ = ["interpreted"]
