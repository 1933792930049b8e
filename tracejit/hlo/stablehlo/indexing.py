"""Gather and Scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import boolean, integers, numbers
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.indexing import GATHER, SCATTER


def _dimension_numbers(values: Mapping[str, Any], *names: str) -> str:
    """What is given of the fields of `#stablehlo.gather` or `#stablehlo.scatter`."""
    lists = [f"{n} = {numbers(values[n])}" for n in names if values[n]]
    return ", ".join([*lists, f"index_vector_dim = {values['index_vector_dim']}"])


@stablehlo.attach(GATHER)
def gather(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    dimension_numbers = _dimension_numbers(
        values,
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
    )
    attributes = {
        "dimension_numbers": f"#stablehlo.gather<{dimension_numbers}>",
        "slice_sizes": integers(values["slice_sizes"]),
        "indices_are_sorted": boolean(values["indices_are_sorted"]),
    }
    return writer.operation(instruction, "stablehlo.gather", operands, attributes)


@stablehlo.attach(SCATTER)
def scatter(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    values = instruction.attributes
    dimension_numbers = _dimension_numbers(
        values,
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scatter_dims_to_operand_dims",
    )
    attributes = {
        "scatter_dimension_numbers": f"#stablehlo.scatter<{dimension_numbers}>",
        "indices_are_sorted": boolean(values["indices_are_sorted"]),
        "unique_indices": boolean(values["unique_indices"]),
    }
    regions = [writer.region(values["to_apply"])]
    return writer.operation(instruction, "stablehlo.scatter", operands, attributes, regions)
