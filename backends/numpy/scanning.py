"""Scan, evaluated step by step."""

from __future__ import annotations

import numpy as np

from tracejit.backends.numpy.interpreter import Value, evaluate, interpret
from tracejit.graph import Instruction
from tracejit.ops.scanning import SCAN, scan_length
from tracejit.shapes import Shape


@interpret.attach(SCAN)
def scan(instruction: Instruction, *operands: np.ndarray) -> Value:
    attributes = instruction.attributes
    (dimension,) = attributes["dimensions"]
    count = len(operands) - attributes["num_carries"]
    inputs, carries = operands[:count], operands[count:]
    stacked = len(instruction.element_shapes) - len(carries)
    shapes = [s for s in instruction.element_shapes[:stacked] if isinstance(s, Shape)]
    outputs = [np.empty(s.dimensions, s.dtype) for s in shapes]
    steps = range(scan_length(instruction))
    for step in reversed(steps) if attributes["is_reverse"] else steps:
        place = (slice(None),) * dimension + (step,)
        slices = [np.asarray(array[place]) for array in inputs]
        results = evaluate(attributes["to_apply"], [*slices, *carries])
        for output, result in zip(outputs, results, strict=False):
            output[place] = result
        carries = results[stacked:]
    return (*outputs, *carries)
