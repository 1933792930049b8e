"""ConvGeneralDilated: calls the convolution kernels with accessors."""

from __future__ import annotations

from tracejit.attributes import ConvDimensionNumbers, Window, WindowDimension
from tracejit.backends.tvm.codegen.kernel_frame import Frame
from tracejit.backends.tvm.codegen.root_rules import Results
from tracejit.backends.tvm.cpu.kernels.conv.convolution import ConvolutionShape, convolution
from tracejit.backends.tvm.cpu.machine import machine_of
from tracejit.backends.tvm.cpu.root_rules import rooted
from tracejit.backends.tvm.cpu.roots.accessors import Accessors, DimensionGroup, placed
from tracejit.backends.tvm.ir.tir import Stmt
from tracejit.graph import Instruction
from tracejit.ops.convolution import CONV_GENERAL_DILATED


@rooted.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(frame: Frame, instruction: Instruction, results: Results) -> Stmt:
    lhs, rhs = (operand.array_shape.dimensions for operand in instruction.operands)
    out = results[0][0].array_shape.dimensions
    attributes = instruction.attributes
    numbers: ConvDimensionNumbers = attributes["dim_labels"]
    # The kernels need a spatial dimension: one of size 1 if there is none.
    window: Window = attributes["window"] or (WindowDimension(1),)
    spare = [] if attributes["window"] else [1]
    lhs_dims = (
        numbers.input_batch_dimension,
        numbers.input_feature_dimension,
        *numbers.input_spatial_dimensions,
    )
    rhs_dims = (
        numbers.kernel_output_feature_dimension,
        numbers.kernel_input_feature_dimension,
        *numbers.kernel_spatial_dimensions,
    )
    out_dims = (
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    )
    # Every dimension of an array is a group: padding prevents merging.
    lhs_groups, rhs_groups, out_groups = (
        [DimensionGroup([size]) for size in (*(sizes[d] for d in dims), *spare)]
        for sizes, dims in ((lhs, lhs_dims), (rhs, rhs_dims), (out, out_dims))
    )

    access = Accessors(
        frame,
        instruction,
        results,
        [*lhs_groups, *rhs_groups, *out_groups],
        [placed(lhs_dims, lhs_groups), placed(rhs_dims, rhs_groups)],
        placed(out_dims, out_groups),
    )
    shape = ConvolutionShape(
        batch=lhs[lhs_dims[0]],
        in_features=lhs[lhs_dims[1]],
        out_features=rhs[rhs_dims[0]],
        in_sizes=tuple(g.extent for g in lhs_groups[2:]),
        window=tuple(w.size for w in window),
        strides=tuple(w.stride for w in window),
        padding=tuple((w.padding_low, w.padding_high) for w in window),
        lhs_dilation=tuple(w.base_dilation for w in window),
        rhs_dilation=tuple(w.window_dilation for w in window),
        window_reversal=tuple(w.reversal for w in window),
        feature_group_count=attributes["feature_group_count"],
        batch_group_count=attributes["batch_group_count"],
    )
    work = convolution(
        shape,
        lambda *where: access.operand(0, *zip(lhs_groups, where, strict=True)),
        lambda *where: access.operand(1, *zip(rhs_groups, where, strict=True)),
        lambda *where: access.store(where[-1], *zip(out_groups, where[:-1], strict=True)),
        accumulate_dtype=access.accumulate_dtype,
        machine=machine_of(frame),
        index_dtype=frame.index_dtype,
        choices=frame.choices,
    )
    return frame.written(work)
