"""ConvGeneralDilated."""

from __future__ import annotations

from tracejit.attributes import ConvDimensionNumbers
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.contraction import precisions
from tracejit.hlo.stablehlo.text import booleans, integer, integers, pairs
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.convolution import CONV_GENERAL_DILATED


def _labels(batch: int, feature: int, spatial: tuple[int, ...], letters: str) -> str:
    """``[b, 0, 1, f]``: what each dimension of an operand is."""
    named = {batch: letters[0], feature: letters[1]}
    named.update({dimension: str(i) for i, dimension in enumerate(spatial)})
    return "[" + ", ".join(named[d] for d in sorted(named)) + "]"


def _conv_numbers(n: ConvDimensionNumbers) -> str:
    lhs = _labels(
        n.input_batch_dimension, n.input_feature_dimension, n.input_spatial_dimensions, "bf"
    )
    rhs = _labels(
        n.kernel_input_feature_dimension,
        n.kernel_output_feature_dimension,
        n.kernel_spatial_dimensions,
        "io",
    )
    out = _labels(
        n.output_batch_dimension, n.output_feature_dimension, n.output_spatial_dimensions, "bf"
    )
    return f"#stablehlo.conv<{lhs}x{rhs}->{out}>"


@stablehlo.attach(CONV_GENERAL_DILATED)
def conv_general_dilated(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    window = values["window"]
    attributes = {
        "batch_group_count": integer(values["batch_group_count"]),
        "dimension_numbers": _conv_numbers(values["dim_labels"]),
        "feature_group_count": integer(values["feature_group_count"]),
        "lhs_dilation": integers([d.base_dilation for d in window]),
        "padding": pairs([(d.padding_low, d.padding_high) for d in window]),
        "rhs_dilation": integers([d.window_dilation for d in window]),
        "window_reversal": booleans([d.reversal for d in window]),
        "window_strides": integers([d.stride for d in window]),
        **precisions(instruction),
    }
    return writer.operation(instruction, "stablehlo.convolution", operands, attributes)
