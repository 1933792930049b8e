"""These tests are about the numbers; the interpreter makes them unless a test says otherwise."""

from __future__ import annotations

from tests.interpreted import interpreted, machine_code

__all__ = ["interpreted", "machine_code"]
