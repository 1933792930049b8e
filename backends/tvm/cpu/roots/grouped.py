"""RaggedDot: a callback to the interpreter, which multiplies group by group."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.host_calls import library_call
from tracejit.backends.tvm.codegen.root_rules import rooted
from tracejit.ops.grouped import RAGGED_DOT

rooted.attach(RAGGED_DOT)(library_call)
