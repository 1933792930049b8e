"""The page's worked examples of ops across replicas, with the numbers it prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit import ops
from tracejit.graph import Computation, Instruction, Module
from tracejit.ops.groups import GroupMode, participants
from tracejit.shapes import ElementType, Shape, shape_of
from tracejit.verifier import verify

F32, S32 = ElementType.F32, ElementType.S32
ADD = ops.scalar_computation("add", F32)


def on_replicas(build: Callable[..., Instruction], *arrays: np.ndarray) -> Any:
    """``build`` of one parameter for each array, which has a part for each replica."""
    parameters = [ops.parameter(i, shape_of(array[0])) for i, array in enumerate(arrays)]
    entry = Computation("example", tuple(parameters), build(*parameters))
    return tj.interpret(verify(Module("example", entry, len(arrays[0]))), *arrays)


def f32(*rows: object) -> np.ndarray:
    return np.array(rows, np.float32)


def s32(*rows: object) -> np.ndarray:
    return np.array(rows, np.int32)


def test_all_gather() -> None:
    made = on_replicas(lambda x: ops.all_gather(x, 0, 2), f32([1.0, 2.5], [3.0, 5.25]))
    np.testing.assert_array_equal(made, f32([1.0, 2.5, 3.0, 5.25], [1.0, 2.5, 3.0, 5.25]))


def test_all_gather_between_replicas_0_and_2_and_1_and_3() -> None:
    made = on_replicas(lambda x: ops.all_gather(x, 0, 2, [[0, 2], [1, 3]]), f32([0], [1], [2], [3]))
    np.testing.assert_array_equal(made, f32([0, 2], [1, 3], [0, 2], [1, 3]))


def test_all_reduce() -> None:
    made = on_replicas(lambda x: ops.all_reduce(x, ADD), f32([1.0, 2.5], [3.0, 5.25]))
    np.testing.assert_array_equal(made, f32([4.0, 7.75], [4.0, 7.75]))


def test_all_reduce_of_a_tuple() -> None:
    first, second = on_replicas(
        lambda x, y: ops.all_reduce(ops.tuple_([x, y]), ADD),
        f32([1.0, 2.5], [3.0, 5.25]),
        f32([1.0], [10.0]),
    )
    np.testing.assert_array_equal(first, f32([4.0, 7.75], [4.0, 7.75]))
    np.testing.assert_array_equal(second, f32([11.0], [11.0]))


def test_cross_replica_sum() -> None:
    made = on_replicas(ops.cross_replica_sum, f32([1.0, 2.5], [3.0, 5.25]))
    np.testing.assert_array_equal(made, f32([4.0, 7.75], [4.0, 7.75]))


def test_all_to_all_example_1() -> None:
    """Four cores; f32[4,16] is split into four along dimension 1, joined along dimension 0."""
    x = ops.parameter(0, Shape(F32, (4, 16)))
    assert ops.all_to_all(x, 1, 0, 4).shape == Shape(F32, (16, 4))
    given = np.arange(4 * 4 * 16, dtype=np.float32).reshape(4, 4, 16)
    made = on_replicas(lambda x: ops.all_to_all(x, 1, 0, 4), given)
    for core in range(4):
        parts = [given[sender][:, 4 * core : 4 * core + 4] for sender in range(4)]
        np.testing.assert_array_equal(made[core], np.concatenate(parts))


def test_all_to_all_example_2() -> None:
    given = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
    made = on_replicas(lambda x: ops.all_to_all(x, 1, 0, 2), given)
    np.testing.assert_array_equal(made[0], [[0, 1], [4, 5], [8, 9], [12, 13]])
    np.testing.assert_array_equal(made[1], [[2, 3], [6, 7], [10, 11], [14, 15]])


def test_all_to_all_in_the_order_of_the_groups() -> None:
    """In {4,5,0} what was received is joined in the order 4, 5, 0."""
    given = np.arange(18, dtype=np.float32).reshape(6, 3)
    groups = [[1, 2, 3], [4, 5, 0]]
    made = on_replicas(lambda x: ops.all_to_all(x, 0, 0, 3, groups), given)
    np.testing.assert_array_equal(made[1], [3, 6, 9])
    np.testing.assert_array_equal(made[4], [12, 15, 0])
    np.testing.assert_array_equal(made[0], [14, 17, 2])


def test_ragged_all_to_all() -> None:
    made = on_replicas(
        lambda x, offsets, sizes, out, targets, received: ops.ragged_all_to_all(
            x, offsets, sizes, out, targets, received
        ),
        s32([1, 2, 2], [3, 4, 0]),
        s32([0, 1], [0, 1]),
        s32([1, 2], [1, 1]),
        s32([0, 0, 0, 0], [0, 0, 0, 0]),
        s32([0, 0], [1, 2]),
        s32([1, 1], [2, 1]),
    )
    np.testing.assert_array_equal(made, s32([1, 3, 0, 0], [2, 2, 4, 0]))


def test_ragged_tensor() -> None:
    """The page's ragged tensor: rows {a}, {b,c,d}, {e,f,g,h}, each to another replica."""
    data = np.arange(24, dtype=np.float32).reshape(8, 3)
    offsets, sizes = s32([0, 1, 4]), s32([1, 3, 4])
    made = on_replicas(
        lambda x, o, s, out, t: ops.ragged_all_to_all(x, o, s, out, t, s),
        np.stack([data, 0 * data, 0 * data]),
        np.repeat(offsets, 3, 0),
        s32([1, 3, 4], [0, 0, 0], [0, 0, 0]),
        np.zeros((3, 8, 3), np.float32),
        s32([0, 0, 0], [0, 0, 0], [0, 0, 0]),
    )
    for replica, (first, size) in enumerate(zip(offsets[0], sizes[0], strict=True)):
        np.testing.assert_array_equal(made[replica][:size], data[first : first + size])
        assert not made[replica][size:].any()


def test_ragged_all_to_all_with_several_updates() -> None:
    """SEND input[input_offsets[i][u]] to output[output_offsets[i][u]] of device i, for every u."""
    made = on_replicas(
        lambda x, o, s, out, t: ops.ragged_all_to_all(x, o, s, out, t, s),
        s32([1, 2, 3, 4], [5, 6, 7, 8]),
        s32([[0, 3], [1, 2]], [[0, 1], [3, 2]]),
        s32([[1, 1], [1, 1]], [[1, 1], [1, 1]]),
        s32([0] * 4, [0] * 4),
        s32([[0, 1], [3, 2]], [[2, 3], [0, 1]]),
    )
    np.testing.assert_array_equal(made, s32([1, 4, 5, 6], [8, 7, 3, 2]))


def test_collective_broadcast() -> None:
    """From the first of each group to the others; zeros for a replica in none."""
    made = on_replicas(
        lambda x: ops.collective_broadcast(x, [[2, 0], [3, 1]]), f32([1], [2], [3], [4], [5])
    )
    np.testing.assert_array_equal(made, f32([3], [4], [3], [4], [0]))


def test_collective_permute() -> None:
    """Zeros for a replica that is no target."""
    made = on_replicas(
        lambda x: ops.collective_permute(x, [(0, 1), (2, 0)]), f32([1, 2], [3, 4], [5, 6])
    )
    np.testing.assert_array_equal(made, f32([5, 6], [1, 2], [0, 0]))


def test_reduce_scatter() -> None:
    made = on_replicas(lambda x: ops.reduce_scatter(x, ADD, 0, 2), f32([1.0, 2.25], [3.0, 5.25]))
    np.testing.assert_array_equal(made, f32([4.0], [7.5]))


def test_reduce_scatter_example_1() -> None:
    given = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
    made = on_replicas(lambda x: ops.reduce_scatter(x, ADD, 1, 2), given)
    np.testing.assert_array_equal(made, [[[8, 10], [16, 18]], [[12, 14], [20, 22]]])


def test_global_device_ids() -> None:
    """Two replicas and four partitions; each pair is (replica, partition)."""
    groups = ((0, 1, 4, 5), (2, 3, 6, 7))
    first, second = participants(GroupMode.FLATTENED_ID, groups, 2, 4)
    assert [divmod(device, 4) for device in first] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [divmod(device, 4) for device in second] == [(0, 2), (0, 3), (1, 2), (1, 3)]

    x = ops.parameter(0, Shape(F32, (4,)))
    root = ops.reduce_scatter(x, ADD, 0, 4, groups, channel_id=1, use_global_device_ids=True)
    module = verify(Module("example", Computation("example", (x,), root), 2, 4))
    given = np.arange(32, dtype=np.float32).reshape(8, 4)
    made = tj.interpret(module, given)
    for group in groups:
        np.testing.assert_array_equal(made[list(group)][:, 0], given[list(group)].sum(0))


def test_replica_id_and_partition_id() -> None:
    root = ops.tuple_([ops.replica_id(), ops.partition_id()])
    assert root.shape.elements == (Shape(ElementType.U32),) * 2  # type: ignore[union-attr]
    module = verify(Module("example", Computation("example", (), root), 2, 3))
    replicas, partitions = tj.interpret(module)
    np.testing.assert_array_equal(replicas, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(partitions, [0, 1, 2, 0, 1, 2])


def test_send_and_recv() -> None:
    """The order of each channel: Recv, Send, then both ends."""
    shape = Shape(F32, (2,))
    x = ops.parameter(0, shape)
    token = ops.after_all([])
    pairs = [(0, 1), (1, 0)]
    receiving = ops.recv_start(token, shape, 1, pairs)
    sending = ops.send_start(x, token, 1, pairs)
    received = ops.recv_done(receiving)
    entry = Computation(
        "example", (x,), ops.get_tuple_element(received, 0), (ops.send_done(sending),)
    )
    made = tj.interpret(verify(Module("example", entry, 1, 2)), f32([1, 2], [3, 4]))
    np.testing.assert_array_equal(made, f32([3, 4], [1, 2]))


@pytest.mark.parametrize("count", [1, 3])
def test_contexts_of_send_and_recv(count: int) -> None:
    """(data, u32[], token[]), which send_done and recv_done take."""
    shape = Shape(F32, (count,))
    x = ops.parameter(0, shape)
    sent = ops.send_start(x, ops.after_all([]), 1)
    assert str(sent.shape) == f"(f32[{count}], u32[], token[])"
    assert str(ops.send_done(sent).shape) == "token[]"
    received = ops.recv_start(ops.after_all([]), shape, 1)
    assert str(ops.recv_done(received).shape) == f"(f32[{count}], token[])"
