"""Cumulative reductions (prefix sums and the like).

When: in `lower`, for a cumulative ReduceWindow.
"""
