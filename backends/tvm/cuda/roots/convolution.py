"""ConvGeneralDilated: the portable loops, with products that are added with one rounding."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.convolution import convolution
from tracejit.backends.tvm.cuda.products import Sum
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED


@rooted.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """A thread for each element of the result."""
    return convolution(frame, instruction, results, Sum(instruction.array_shape.element_type))
