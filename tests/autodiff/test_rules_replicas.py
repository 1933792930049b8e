"""Gradients of ops between devices, against finite differences of the sum over all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import ops
from tracejit.autodiff.reverse import pullback
from tracejit.errors import DerivativeError
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Shape
from tracejit.verifier import verify

F64, S32 = ElementType.F64, ElementType.S32
SHAPE = Shape(F64, (4, 2))
ADD, MAX, MIN, MUL = (ops.scalar_computation(n, F64) for n in ("add", "max", "min", "mul"))
STEP = 1e-4

Build = Callable[[Instruction], Instruction]


def check(build: Build, replicas: int, partitions: int, order: int = 2) -> None:
    """Compares the cotangent of ``build``'s operand, on every device, with central differences."""
    x = ops.parameter(0, SHAPE)
    # Not linear, so that the derivative of the derivative is not zero.
    root = ops.elements_of(build(ops.sin(x)))[0]
    for _ in range(order):
        root = _check_once(x, root, replicas, partitions)


def _check_once(x: Instruction, root: Instruction, replicas: int, partitions: int) -> Instruction:
    count = replicas * partitions
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(count, *root.array_shape.dimensions))
    given = rng.normal(size=(count, *SHAPE.dimensions))
    cotangent = ops.parameter(1, root.array_shape)
    (gradient,) = pullback([root], [x], [cotangent])
    assert gradient is not None

    def run(of: Instruction, *arrays: np.ndarray) -> np.ndarray:
        parameters = (x, cotangent)[: len(arrays)]
        entry = Computation("entry", parameters, of)
        module = verify(Module("module", entry, replicas, partitions))
        return np.asarray(tj.interpret(module, *arrays))

    made = run(gradient, given, weights)
    for _ in range(3):
        direction = rng.normal(size=given.shape)
        ahead, behind = (run(root, given + s * STEP * direction) for s in (1, -1))
        numeric = ((ahead - behind) * weights).sum() / (2 * STEP)
        assert np.isclose((made * direction).sum(), numeric, rtol=1e-5, atol=1e-5)
    # Weights within the graph, so that the gradient is again a function of x alone.
    return ops.elements_of(
        pullback([root], [x], [ops.full_like(root, 0.75)])[0]  # type: ignore[arg-type]
    )[0]


def ragged(x: Instruction) -> Instruction:
    """Rows 0 and 1 to both devices; row 3 once more to the next; rows that do not exist."""

    def numbers(values: object) -> Instruction:
        return ops.constant(np.array(values, np.int32))

    offsets = numbers([[0, 3], [1, -1]])
    sizes = numbers([[2, 1], [2, 3]])
    # Each device writes to rows of its own.
    own = ops.convert_element_type(ops.replica_id(), S32)
    start = ops.mul(own, ops.constant(4, S32))
    targets = ops.add(numbers([[0, 3], [0, 1]]), ops.broadcast(start, (2, 2)))
    output = ops.mul(ops.concatenate([x, x, x], 0), ops.full(Shape(F64, (12, 2)), 2))
    return ops.ragged_all_to_all(x, offsets, sizes, output, targets, sizes, [[0, 1]])


EVERY = [[3, 1], [0, 2]]
GLOBAL: dict[str, Any] = {"channel_id": 1, "use_global_device_ids": True}
CASES: dict[str, tuple[Build, int, int]] = {
    "all_reduce": (lambda x: ops.all_reduce(x, ADD), 3, 1),
    "all_reduce, groups": (lambda x: ops.all_reduce(x, ADD, [[0], [2, 1]]), 3, 1),
    "all_reduce, partitions": (lambda x: ops.all_reduce(x, ADD, channel_id=2), 2, 2),
    "all_reduce, global": (lambda x: ops.all_reduce(x, ADD, EVERY, **GLOBAL), 2, 2),
    "all_reduce, several": (lambda x: ops.all_reduce([x, x], ADD), 3, 1),
    "all_reduce, max": (lambda x: ops.all_reduce(x, MAX), 3, 1),
    "all_reduce, product": (lambda x: ops.all_reduce(x, MUL), 3, 1),
    "all_reduce, min": (lambda x: ops.all_reduce(x, MIN), 3, 1),
    "all_gather": (lambda x: ops.all_gather(x, 1, 3), 3, 1),
    "all_gather, global": (lambda x: ops.all_gather(x, 0, 2, EVERY, **GLOBAL), 2, 2),
    "reduce_scatter": (lambda x: ops.reduce_scatter(x, ADD, 0, 4), 4, 1),
    "reduce_scatter, global": (lambda x: ops.reduce_scatter(x, ADD, 1, 2, EVERY, **GLOBAL), 1, 4),
    "all_to_all": (lambda x: ops.all_to_all(x, 0, 1, 4), 4, 1),
    "all_to_all, partitions": (lambda x: ops.all_to_all(x, 1, 1, 2, channel_id=1), 2, 2),
    "all_to_all, tuple": (lambda x: ops.all_to_all_tuple([x, ops.mul(x, x)]), 2, 1),
    "collective_permute": (lambda x: ops.collective_permute(x, [[0, 2], [1, 0]]), 3, 1),
    "collective_permute, partitions": (lambda x: ops.collective_permute(x, [[0, 1]], 3), 2, 2),
    "collective_broadcast": (lambda x: ops.collective_broadcast(x, [[2, 0]]), 4, 1),
    "collective_broadcast, all": (ops.collective_broadcast, 3, 1),
    "ragged_all_to_all": (ragged, 2, 1),
    "all_reduce_start": (lambda x: ops.all_reduce_done(ops.all_reduce_start(x, ADD)), 3, 1),
    "all_gather_start": (lambda x: ops.all_gather_done(ops.all_gather_start(x, 0, 3)), 3, 1),
    "collective_permute_start": (
        lambda x: ops.collective_permute_done(ops.collective_permute_start(x, [[1, 0]])),
        3,
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    check(*CASES[name])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: ops.reduce_scatter(x, MUL, 0, 2), "has no derivative but for sums"),
        (lambda x: ops.all_reduce_done(ops.all_reduce_start(x, MAX)), "but for sums"),
        (lambda x: ops.collective_broadcast(x, channel_id=1), "without replica_groups"),
    ],
)
def test_no_derivative(build: Build, message: str) -> None:
    x = ops.parameter(0, SHAPE)
    root = build(x)
    with pytest.raises(DerivativeError, match=message):
        pullback([root], [x], [ops.full_like(root, 1)])


def test_channels_have_no_derivative() -> None:
    x = ops.parameter(0, SHAPE)
    token = ops.send(x, 1)
    root = ops.get_tuple_element(ops.recv_with_token(token, SHAPE, 1), 0)
    with pytest.raises(DerivativeError, match="what a channel carries is not followed"):
        pullback([root], [x], [ops.full_like(root, 1)])
