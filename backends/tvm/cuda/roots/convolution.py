"""ConvGeneralDilated: implicit matrix products, or portable loops with one rounding a product."""

from __future__ import annotations

from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.codegen.scalar.convolution import convolution
from tracejit.backends.tvm.cuda.products import Sum
from tracejit.backends.tvm.cuda.schedule.implicit_product import ConvolutionParts
from tracejit.backends.tvm.cuda.schedule.product import tiled, tiles_pay
from tracejit.backends.tvm.cuda.table import rooted
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED


@rooted.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    """Tiles of a product with many features, else a thread for each element of the result."""
    parts = ConvolutionParts(instruction)
    if tiles_pay(parts) and not instruction.array_shape.element_type.is_complex:
        statement = tiled(frame, instruction, results, parts).statement()
        frame.schedule = f"implicit product in {frame.schedule}"
        return statement
    return convolution(frame, instruction, results, Sum(instruction.array_shape.element_type))
