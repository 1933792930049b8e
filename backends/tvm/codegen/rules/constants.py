"""Constants that need no buffer: Iota and undefined memory."""

from __future__ import annotations

from collections.abc import Sequence

from tracejit.backends.tvm.analysis.element_rules import Scope, Value, indexed
from tracejit.backends.tvm.ir.affine import Index
from tracejit.backends.tvm.ir.internal_ops import UNDEFINED
from tracejit.graph import Instruction
from tracejit.ops.constants import IOTA
from tracejit.ops.layout import scalar_like


@indexed.attach(IOTA)
def iota(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    dimension = instruction.attributes["iota_dimension"]
    return scope.number(indices[dimension], instruction.array_shape.element_type)


@indexed.attach(UNDEFINED)
def undefined(scope: Scope, instruction: Instruction, indices: Sequence[Index]) -> Value:
    """Reading an undefined element yields 0."""
    return scope.value(scalar_like(instruction, 0), ())
