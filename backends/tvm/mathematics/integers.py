"""Sums, differences and products of integers that wrap.

TVM promises LLVM that its own never do, and LLVM then takes ``x + 1 < x`` for false and
``x + 0x80000000`` for ``x | 0x80000000``.
"""

from __future__ import annotations

from tracejit.backends.tvm.mathematics.llvm import Value


def add(x: Value, y: Value) -> Value:
    """The sum of integers, modulo the power of two that their type counts to."""
    return x + y


def sub(x: Value, y: Value) -> Value:
    """The difference of integers, modulo the power of two that their type counts to."""
    return x - y


def mul(x: Value, y: Value) -> Value:
    """The product of integers, modulo the power of two that their type counts to."""
    return x * y
