"""Reductions: along rows, along columns, and of whole arrays."""
