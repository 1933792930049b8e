"""`same_graph` sees every difference that matters, and none that does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tracejit import ops
from tracejit.attributes import ResultAccuracy
from tracejit.equality import same_graph
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape

F32 = ElementType.F32
X = Shape(F32, (2, 2))

Build = Callable[[Instruction, Instruction], Instruction]


def module(build: Build, shape: Shape = X, name: str = "main") -> Module:
    x, y = ops.parameter(0, shape), ops.parameter(1, shape)
    return Module(name, Computation(name, (x, y), build(x, y)))


def called(build: Build, name: str = "f") -> Build:
    x, y = ops.parameter(0, X), ops.parameter(1, X)
    inner = Computation(name, (x, y), build(x, y))
    return lambda a, b: ops.call(inner, [a, ops.call(inner, [a, b])])


def test_names_order_and_source_lines_do_not_matter() -> None:
    def other_order(x: Instruction, y: Instruction) -> Instruction:
        right = ops.sin(y)
        return ops.add(ops.cos(x), right)

    one = module(lambda x, y: ops.add(ops.cos(x), ops.sin(y)))
    assert same_graph(one, module(other_order, name="other"))
    assert same_graph(module(called(ops.add, "f")), module(called(ops.add, "g")))


def square(x: Instruction) -> Instruction:
    return ops.mul(x, x)


DIFFERENT: list[tuple[Build, Build]] = [
    (ops.add, ops.sub),
    (ops.sub, lambda x, y: ops.sub(y, x)),
    (lambda x, y: x, lambda x, y: y),
    (lambda x, y: ops.transpose(x, (0, 1)), lambda x, y: ops.transpose(x, (1, 0))),
    (lambda x, y: ops.constant(0.0), lambda x, y: ops.constant(-0.0)),
    (lambda x, y: ops.constant(np.zeros(2)), lambda x, y: ops.constant(np.zeros((1, 2)))),
    (lambda x, y: ops.constant(0), lambda x, y: ops.constant(0.0)),
    (called(ops.add), called(ops.mul)),
    (lambda x, y: ops.tuple_([x]), lambda x, y: ops.tuple_([x, x])),
    # Computed once and used twice, or computed twice.
    (lambda x, y: ops.mul(ops.sin(x), ops.sin(x)), lambda x, y: square(ops.sin(x))),
    (lambda x, y: square(ops.sin(x)), lambda x, y: ops.mul(ops.sin(x), ops.sin(x))),
    (lambda x, y: ops.exp(x), lambda x, y: ops.exp(x, ResultAccuracy("highest"))),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_differences(left: Build, right: Build) -> None:
    assert same_graph(module(left), module(left))
    assert same_graph(module(right), module(right))
    assert not same_graph(module(left), module(right))


def test_parameters_count_even_if_unused() -> None:
    x = ops.parameter(0, X)
    alone = Computation("main", (x,), x)
    assert not same_graph(Module("m", alone), module(lambda x, y: x))
    assert not same_graph(module(lambda x, y: x), module(lambda x, y: x, Shape(F32, (2, 3))))
    assert same_graph(alone, alone)


def test_nan_constants_are_compared_by_their_bits() -> None:
    quiet = np.array(np.nan, np.float32)
    other = (quiet.view(np.uint32) | np.uint32(1)).view(np.float32)
    left = module(lambda x, y: ops.constant(quiet))
    right = module(lambda x, y: ops.constant(other))
    assert same_graph(left, left)
    assert not same_graph(left, right)


def test_depth_is_no_limit() -> None:
    def deep(x: Instruction, y: Instruction) -> Instruction:
        for _ in range(20_000):
            x = ops.neg(x)
        return x

    assert same_graph(module(deep), module(deep))
