"""Random bits and numbers."""

from __future__ import annotations

import numpy as np

from tracejit import ops
from tracejit.graph import Instruction
from tracejit.hlo.stablehlo.text import enumeration, leaves
from tracejit.hlo.stablehlo.writer import Names, Writer, stablehlo
from tracejit.ops.random import RNG, RNG_BIT_GENERATOR, RNG_GET_AND_UPDATE_STATE

stablehlo.decline(RNG_GET_AND_UPDATE_STATE, "reads a state that StableHLO programs do not have")


@stablehlo.attach(RNG_BIT_GENERATOR)
def rng_bit_generator(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    algorithm = instruction.attributes["algorithm"].removeprefix("rng_").upper()
    attributes = {"rng_algorithm": enumeration("rng_algorithm", algorithm)}
    return writer.operation(instruction, "stablehlo.rng_bit_generator", operands, attributes)


@stablehlo.attach(RNG)
def rng(writer: Writer, instruction: Instruction, operands: list[Names]) -> Names:
    """The dialect takes the result's sizes as a third operand."""
    sizes = ops.constant(np.array(instruction.array_shape.dimensions, np.int64))
    names = [*operands, writer.compose([], [], lambda: sizes)]
    shapes = [s for o in (*instruction.operands, sizes) for s in leaves(o.shape)]
    distribution = instruction.attributes["distribution"].removeprefix("rng_").upper()
    attributes = {"rng_distribution": enumeration("rng_distribution", distribution)}
    flat = [name for value in names for name in value]
    return writer.raw("stablehlo.rng", flat, shapes, instruction.shape, attributes)
