"""The rules that turn instructions into TIR, one module per family, imported when it is needed."""

from tracejit.backends.tvm.roots import rooted
from tracejit.backends.tvm.scope import indexed, pointwise

__all__ = ["indexed", "pointwise", "rooted"]
