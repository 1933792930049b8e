"""The rules that turn instructions into TIR, one module per family, imported when it is needed."""

from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise

__all__ = ["indexed", "pointwise"]
