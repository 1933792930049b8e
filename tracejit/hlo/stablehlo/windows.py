"""ReduceWindow and SelectAndScatter."""

from __future__ import annotations

from tracejit.attributes import Window
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import integers, pairs
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.windows import REDUCE_WINDOW, SELECT_AND_SCATTER


def _placement(window: Window) -> dict[str, str]:
    return {
        "padding": pairs([(d.padding_low, d.padding_high) for d in window]),
        "window_dimensions": integers([d.size for d in window]),
        "window_strides": integers([d.stride for d in window]),
    }


@stablehlo.attach(REDUCE_WINDOW)
def reduce_window(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    window = instruction.attributes["window"]
    attributes = {
        "base_dilations": integers([d.base_dilation for d in window]),
        "window_dilations": integers([d.window_dilation for d in window]),
        **_placement(window),
    }
    regions = [writer.region(instruction.attributes["to_apply"])]
    return writer.operation(instruction, "stablehlo.reduce_window", operands, attributes, regions)


@stablehlo.attach(SELECT_AND_SCATTER)
def select_and_scatter(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    regions = [writer.region(values["select"]), writer.region(values["scatter"])]
    attributes = _placement(values["window"])
    return writer.operation(
        instruction, "stablehlo.select_and_scatter", operands, attributes, regions
    )
