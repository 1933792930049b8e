"""The rules that turn instructions into TIR, one module per family, imported when it is needed.

When: for each instruction of a kernel, twice: to find its loads, then to write it.
"""

from tracejit.backends.tvm.analysis.element_rules import indexed, pointwise

__all__ = ["indexed", "pointwise"]
