"""Scatter: copies the operand, then combines windows of updates into it."""
