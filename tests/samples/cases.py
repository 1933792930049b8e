"""All samples of all families, as modules for the drivers.

every_sample()                         one pytest parameter per sample, named after its op
sample_module(sample, element_type)    a verified module with one parameter per operand
joint_module(sample, types)            the same for several element types at once
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests import samples
from tests.samples.base import Sample
from tests.samples.values import draw, operand_type
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify


@functools.cache
def families() -> dict[str, list[Sample]]:
    """The samples of each family, by the name of the family's module."""
    found = {}
    for info in pkgutil.iter_modules(samples.__path__):
        module = importlib.import_module(f"{samples.__name__}.{info.name}")
        if hasattr(module, "SAMPLES"):
            found[info.name] = list(module.SAMPLES)
    return found


def all_samples() -> list[Sample]:
    return [sample for family in families().values() for sample in family]


def every_sample(
    wanted: Callable[[Sample], bool] = lambda sample: True,
) -> list[Any]:
    """A pytest parameter for each sample that is wanted."""
    return [
        pytest.param(sample, id=f"{sample.op}-{sample.label}".rstrip("-").replace(" ", "_"))
        for sample in all_samples()
        if wanted(sample)
    ]


def parameters_of(sample: Sample, element_type: ElementType, first: int = 0) -> list[Instruction]:
    """One parameter for each operand of the sample, numbered from ``first``."""
    return [
        ops.parameter(first + i, Shape(operand_type(operand, element_type), operand.dimensions))
        for i, operand in enumerate(sample.operands)
    ]


def sample_module(sample: Sample, element_type: ElementType) -> Module:
    """The sample as a verified module."""
    parameters = parameters_of(sample, element_type)
    root = sample.build(*parameters)
    return verify(Module(sample.op, Computation("entry", tuple(parameters), root)))


def joint_module(sample: Sample, types: Sequence[ElementType]) -> Module:
    """The sample for each element type, side by side; the root is a tuple of all results."""
    parameters: list[Instruction] = []
    results: list[Instruction] = []
    for element_type in types:
        own = parameters_of(sample, element_type, len(parameters))
        parameters.extend(own)
        results.extend(ops.elements_of(sample.build(*own)))
    root = ops.tuple_(results)
    return verify(Module(sample.op, Computation("entry", tuple(parameters), root)))


def seeded(sample: Sample) -> np.random.Generator:
    """The random numbers of a sample: the same in every run, different for every sample."""
    return np.random.default_rng(list(f"{sample.op} {sample.label}".encode()))


def draw_joint(
    sample: Sample, types: Sequence[ElementType], special: bool = False, extremes: bool = True
) -> list[np.ndarray]:
    """Arrays for `joint_module`'s parameters."""
    rng = seeded(sample)
    return [array for t in types for array in draw(sample, t, rng, special, extremes)]
