"""Reverse-mode differentiation: a pass from graph to graph."""

from __future__ import annotations

if __name__ == "autodiff":
    raise ImportError(
        "this folder is the package tracejit.autodiff: write 'import tracejit.autodiff'"
    )
