"""Memory that holds anything, for the interpreter: what nobody may read is not a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.layout import full
from tracejit.runtime import importing_tvm
from tracejit.traversal import transform

with importing_tvm():
    from tracejit.backends.tvm.known import UNDEFINED


def defined(module: Module) -> Module:
    """The module with NaN for what is undefined in its entry."""
    entry = module.entry

    def visit(instruction: Instruction, _: Sequence[Instruction]) -> Instruction | None:
        return full(instruction.array_shape, np.nan) if instruction.op is UNDEFINED else None

    (root,) = transform([entry.root], visit)
    return Module("test", Computation(entry.name, entry.parameters, root))
