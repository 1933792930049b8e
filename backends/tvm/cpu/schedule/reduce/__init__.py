"""Reductions: along rows, along columns, and of whole arrays.

When: in `lower`, for a kernel whose anchors are Reduces or windows.
"""
