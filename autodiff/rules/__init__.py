"""Every op's derivative; the families are imported here, so that the rule table is full."""

from __future__ import annotations

from tracejit.autodiff.rules import comparison, element_types, elementwise, elementwise_unary

__all__ = ["comparison", "element_types", "elementwise", "elementwise_unary"]
