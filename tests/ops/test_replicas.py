"""What the shape rules of ops between devices accept and refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracejit import ops
from tracejit.errors import (
    AttributeValueError,
    DimensionError,
    ElementTypeError,
    ShapeError,
    TracejitError,
)
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import ElementType, Layout, Shape, TupleShape
from tracejit.verifier import verify

F32, S32, U32 = ElementType.F32, ElementType.S32, ElementType.U32
ADD = ops.scalar_computation("add", F32)
X = ops.parameter(0, Shape(F32, (4, 6)))
V = ops.parameter(1, Shape(F32, (3,)))
N = ops.parameter(2, Shape(S32, (2,)))
TOKEN = ops.after_all([])
GLOBAL: dict[str, Any] = {"channel_id": 1, "use_global_device_ids": True}

ACCEPTED: list[tuple[Instruction, str]] = [
    (ops.all_reduce(X, ADD), "f32[4,6]"),
    (ops.all_reduce([X, V], ADD, [[2], [0, 1]]), "(f32[4,6], f32[3])"),
    (ops.cross_replica_sum(ops.tuple_([X, V])), "(f32[4,6], f32[3])"),
    (ops.all_gather(X, 1, 3), "f32[4,18]"),
    (ops.all_gather(X, -2, 3, [[1, 0, 2]]), "f32[12,6]"),
    (ops.all_gather([X, V], 0, 2, [[0, 1]], 1), "(f32[8,6], f32[6])"),
    # Two replicas of any number of partitions.
    (ops.all_gather(X, 0, 6, [[0, 1]], 1), "f32[24,6]"),
    (ops.reduce_scatter(X, ADD, 1, 3), "f32[4,2]"),
    (ops.reduce_scatter([X, X], ADD, 0, 2, [[0, 2], [1, 3]], **GLOBAL), "(f32[2,6], f32[2,6])"),
    (ops.all_to_all(X, 1, 0, 3), "f32[12,2]"),
    (ops.all_to_all(X, 0, 0, 2, [[0, 1]]), "f32[4,6]"),
    (ops.all_to_all_tuple([X, X], [[0, 1]]), "(f32[4,6], f32[4,6])"),
    (ops.collective_broadcast(X, [[5, 1]]), "f32[4,6]"),
    (ops.collective_permute([X, V], [[0, 1]]), "(f32[4,6], f32[3])"),
    (ops.all_gather(X, 0, 2, layout=Layout((0, 1))), "f32[8,6]"),
]


@pytest.mark.parametrize(("made", "shape"), ACCEPTED)
def test_shapes(made: Instruction, shape: str) -> None:
    assert str(made.shape) == shape


GROUPS: list[tuple[list[list[int]], str]] = [
    ([[0, 1], [1, 2]], r"1 is in replica_groups more than once; they are \{\{0,1\},\{1,2\}\}"),
    ([[0, 0]], "0 is in replica_groups more than once"),
    ([[0, 2]], r"1 is missing in replica_groups \{\{0,2\}\}, which must hold every number below 2"),
    ([[0, 1], []], "replica_groups must not have an empty group"),
    ([[0, -1]], "replica_groups has the negative number -1"),
]
UNEQUAL = ([[0], [1, 2]], r"all be of one size; \{\{0\},\{1,2\}\} has groups of 1 and of 2")
WITH_GROUPS: dict[str, Callable[..., Instruction]] = {
    "all_reduce": lambda groups: ops.all_reduce(X, ADD, groups),
    "all_gather": lambda groups: ops.all_gather(X, 0, 2, groups),
    "reduce_scatter": lambda groups: ops.reduce_scatter(X, ADD, 0, 2, groups),
    "all_to_all": lambda groups: ops.all_to_all(X, 0, 0, 2, groups),
    "ragged_all_to_all": lambda groups: ops.ragged_all_to_all(X, N, N, X, N, N, groups),
    "collective_broadcast": lambda groups: ops.collective_broadcast(X, groups),
}


@pytest.mark.parametrize("name", WITH_GROUPS)
@pytest.mark.parametrize(("groups", "message"), [*GROUPS, UNEQUAL])
def test_groups(name: str, groups: list[list[int]], message: str) -> None:
    free = {"collective_broadcast": ("missing", "one size"), "all_reduce": ("one size",)}
    if any(part in message for part in free.get(name, ())):
        WITH_GROUPS[name](groups)
        return
    with pytest.raises(AttributeValueError) as caught:
        WITH_GROUPS[name](groups)
    text = str(caught.value)
    assert text.startswith(f"{name}: ")
    # A builder may see first that the sizes are not its count.
    assert "replica_groups" in text


@pytest.mark.parametrize(("groups", "message"), GROUPS)
def test_messages_about_groups(groups: list[list[int]], message: str) -> None:
    with pytest.raises(AttributeValueError, match=message):
        ops.all_reduce(X, ADD, groups)
    if len(groups) == 1 and len(groups[0]) == 2:
        with pytest.raises(AttributeValueError, match=message):
            ops.all_gather(X, 0, 2, groups)


def test_groups_of_unequal_sizes() -> None:
    groups, message = UNEQUAL
    with pytest.raises(AttributeValueError, match=message):
        ops.ragged_all_to_all(X, N, N, X, N, N, groups)


REFUSED: list[tuple[Callable[[], object], type[TracejitError], str]] = [
    (
        lambda: ops.all_reduce([], ADD),
        ShapeError,
        "all_reduce: needs at least one operand",
    ),
    (lambda: ops.all_reduce(TOKEN, ADD), ShapeError, "all_reduce: operand must be an array"),
    (lambda: ops.all_reduce([X, N], ADD), ElementTypeError, "operand 0 f32.*, operand 1 s32"),
    (
        lambda: ops.all_reduce(X, ops.scalar_computation("add", S32)),
        TracejitError,
        "all_reduce: computation",
    ),
    (
        lambda: ops.all_reduce(X, ADD, use_global_device_ids=True),
        AttributeValueError,
        "all_reduce: use_global_device_ids needs a channel_id",
    ),
    (
        lambda: ops.all_reduce(X, ADD, **GLOBAL),
        AttributeValueError,
        "replica_groups must not be empty with use_global_device_ids",
    ),
    (
        lambda: ops.all_reduce(X, ADD, shape_with_layout=Shape(F32, (4,))),
        ShapeError,
        r"shape_with_layout f32\[4\] must be the operand's shape f32\[4,6\]",
    ),
    (lambda: ops.all_gather(X, 2, 2), DimensionError, "all_gather: dimension 2 is out of range"),
    (
        lambda: ops.all_gather(X, 0, 0),
        AttributeValueError,
        "all_gather: shard_count must be at least 1, not 0",
    ),
    (
        lambda: ops.all_gather(X, 0, 3, [[0, 1]]),
        AttributeValueError,
        "shard_count must be the size of a group of replica_groups, 2, not 3",
    ),
    (
        lambda: ops.all_gather(X, 0, 2, layout=Layout((0,))),
        TracejitError,
        "layout",
    ),
    (
        lambda: ops.reduce_scatter(X, ADD, 0, 3),
        ShapeError,
        r"dimension 0 of operand f32\[4,6\] must be divisible by shard_count 3",
    ),
    (
        lambda: ops.all_to_all(X, 1, 0, 4),
        ShapeError,
        r"dimension 1 of operand f32\[4,6\] must be divisible by split_count 4",
    ),
    (
        lambda: ops.all_to_all(X, 0, 1, 4, [[0, 1]]),
        AttributeValueError,
        "split_count must be the size of a group of replica_groups, 2, not 4",
    ),
    (lambda: ops.all_to_all(ops.tuple_([X]), 0, 0, 1), ShapeError, "operand must be an array"),
    (
        lambda: ops.all_to_all_tuple([X, V]),
        ShapeError,
        r"all operands must have one shape, not \(f32\[4,6\], f32\[3\]\)",
    ),
    (
        lambda: ops.all_to_all_tuple([X], [[0, 1]]),
        ShapeError,
        r"groups of 2, \{\{0,1\}\}, need as many operands, not 1",
    ),
    (
        lambda: ops.collective_permute(X, [[0, 1], [0, 2]]),
        AttributeValueError,
        r"0 is the source of more than one of the source_target_pairs \{\{0,1\},\{0,2\}\}",
    ),
    (
        lambda: ops.collective_permute(X, [[0, 1], [2, 1]]),
        AttributeValueError,
        "1 is the target of more than one",
    ),
    (
        lambda: ops.collective_permute(X, [[0]]),
        AttributeValueError,
        "source_target_pairs must be pairs of numbers from 0 on",
    ),
    (
        lambda: ops.collective_permute_slices(X, X, [[N]], [[N]], [[1]], [[0, 0]]),
        ShapeError,
        "a start in input must be a scalar",
    ),
    (
        lambda: ops.ragged_all_to_all(X, N, N, V, N, N),
        ShapeError,
        "input and output must have the same dimensions but for the first",
    ),
    (
        lambda: ops.ragged_all_to_all(X, V, V, X, V, V),
        ElementTypeError,
        "input_offsets f32.* has element type f32",
    ),
    (
        lambda: ops.ragged_all_to_all(X, N, N, X, N, N, [[0, 1, 2]]),
        ShapeError,
        "must be the size of a group, 3",
    ),
    (lambda: ops.send_with_token(X, X, 1), ShapeError, "send: token must be a token, not f32"),
    (lambda: ops.send_done(X), ShapeError, "send_done: operand must be a send's result"),
    (lambda: ops.recv_done(TOKEN), ShapeError, "recv_done: operand must be a recv's result"),
    (lambda: ops.send(X, 1, [[0, 1], [0, 2]]), AttributeValueError, "source of more than one"),
    (lambda: ops.all_gather_done(X), ShapeError, "all_gather_done: the result must be a tuple"),
]


@pytest.mark.parametrize(("build", "error", "message"), REFUSED)
def test_refusals(build: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


def test_layout_is_asked_for_by_an_attribute() -> None:
    made = ops.all_to_all_tuple([X], layout=Layout((0, 1)))
    assert made.attributes["constrain_layout"]
    assert isinstance(made.shape, TupleShape)


def test_the_verifier_compares_groups_with_the_module() -> None:
    root = ops.all_reduce(X, ADD, [[0, 1]])
    x, entry = X, Computation("entry", (X,), root)
    assert x.shape == root.shape
    verify(Module("fits", entry, replica_count=2))
    # As XLA does, a module that does not say how many replicas it has is let pass.
    verify(Module("silent", entry))
    with pytest.raises(TracejitError, match="does not go with 4 replicas"):
        verify(Module("does not", entry, replica_count=4))
