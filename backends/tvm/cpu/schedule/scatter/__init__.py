"""Scatter: copies the operand, then combines windows of updates into it.

When: in `lower`, for a Scatter.
"""
