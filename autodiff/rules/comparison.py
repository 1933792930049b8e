"""Comparisons have no derivative."""

from __future__ import annotations

from tracejit.autodiff.reverse import differentiate
from tracejit.ops.comparison import COMPARE

differentiate.decline(COMPARE, "makes a pred")
