"""Exports programs as shared libraries for C and for Python, without TVM or this package.

library(entries, Path("model.so"), threads=4)

When: `tracejit.transforms.export` is called; the library is built from lowered programs.
"""

from __future__ import annotations

from tracejit.backends.tvm.export.entries import Entry, entry_of
from tracejit.backends.tvm.export.header import header
from tracejit.backends.tvm.export.library import library
from tracejit.backends.tvm.export.loader import loader

__all__ = ["Entry", "entry_of", "header", "library", "loader"]
