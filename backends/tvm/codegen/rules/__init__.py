"""The rules that turn instructions into TIR, one module per family, imported when it is needed."""

from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise
from tracejit.backends.tvm.codegen.root_rules import rooted

__all__ = ["indexed", "pointwise", "rooted"]
