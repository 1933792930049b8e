"""What runs a graph: the NumPy interpreter, and compilation by TVM."""

from __future__ import annotations

if __name__ == "backends":
    raise ImportError(
        "this folder is the package tracejit.backends: write 'import tracejit.backends'"
    )
