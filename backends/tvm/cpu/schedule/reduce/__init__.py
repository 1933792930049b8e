"""Reductions: along rows, down columns, whole."""
