"""The specification's examples, run as a user of the builder would: interpreted and compiled.

expect(lambda b, x: b.abs(x), [array], expected)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tracejit as tj
from tracejit.builder import XlaBuilder
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import AnyShape, ElementType, Shape, shape_of
from tracejit.verifier import verify

Build = Callable[..., Instruction]

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED


def f32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def s32(values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def computation(build: Build, *shapes: AnyShape, name: str = "function") -> Computation:
    """What ``build(builder, *parameters)`` makes of parameters of these shapes."""
    builder = XlaBuilder(name)
    parameters = [builder.parameter(i, shape) for i, shape in enumerate(shapes)]
    return builder.build(build(builder, *parameters))


def scalars(build: Build, *element_types: ElementType) -> Computation:
    """A computation of scalars."""
    return computation(build, *map(Shape, element_types), name="scalars")


def _module(made: Computation) -> Module:
    return verify(Module(made.name, made))


def expect(build: Build, arrays: Sequence[np.ndarray], expected: Any) -> None:
    """The interpreter and the compiled code give ``expected``: values, dimensions, element types.

    Comparison is exact; a tuple is compared element by element.
    """
    module = _module(computation(build, *map(shape_of, arrays), name="example"))
    for result in (tj.interpret(module, *arrays), tj.compile(module)(*arrays)):
        if isinstance(expected, tuple):
            assert isinstance(result, tuple)
            assert len(result) == len(expected)
            for one, wanted in zip(result, expected, strict=True):
                _require_equal(one, wanted)
        else:
            _require_equal(result, expected)


def _require_equal(result: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(result, expected, strict=True)
