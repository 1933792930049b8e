"""The reference interpreter: a module for each family of ops, imported when it is first needed."""

from __future__ import annotations

from tracejit.backends.numpy.interpreter import evaluate, evaluate_instruction, interpret

__all__ = ["evaluate", "evaluate_instruction", "interpret"]
