"""Elements of constants that need no buffer."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.affine import Index
from tracejit.backends.tvm.scope import Scope, Value, indexed
from tracejit.graph import Instruction
from tracejit.ops.constants import IOTA


@indexed.attach(IOTA)
def iota(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    dimension = instruction.attributes["iota_dimension"]
    return scope.number(indices[dimension], instruction.array_shape.element_type)
