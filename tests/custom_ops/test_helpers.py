"""What kernels and shape functions use: work split over threads, arithmetic of shapes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tracejit.custom_ops import (
    InferenceContext,
    register_op,
    require,
    shard,
)
from tracejit.errors import (
    InvalidArgumentError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("own_targets")
X = np.array([1, 2, 3], np.float32)


def test_shards() -> None:
    for total in (0, 1, 2, 7, 100):
        seen = np.zeros(total, int)

        def work(start: int, stop: int, seen: np.ndarray = seen) -> None:
            seen[start:stop] += 1

        shard(work, total)
        assert seen.tolist() == [1] * total
    pieces: list[tuple[int, int]] = []
    shard(lambda *piece: pieces.append(piece), 10, minimum=6)
    shard(lambda *piece: pieces.append(piece), 10, max_parallelism=1)
    assert pieces == [(0, 10), (0, 10)]


def test_shards_inside_shards_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "3")
    inner: list[tuple[int, int]] = []
    threads: set[int] = set()

    def outer(start: int, stop: int) -> None:
        threads.add(threading.get_ident())
        shard(lambda *piece: inner.append(piece), stop - start)

    shard(outer, 9)
    assert inner == [(0, 3)] * 3
    assert len(threads) >= 2
    with pytest.raises(InvalidArgumentError, match="bad piece 3"):
        shard(lambda start, stop: require(start != 3, "bad piece ", start), 9)


def test_shape_functions_compute() -> None:
    found: dict[str, Any] = {}

    def shapes(c: InferenceContext) -> Any:
        x = c.input(0)
        found["rank"] = c.rank(x)
        found["divided"] = c.divide(6, 4, evenly=False)
        found["joined"] = c.concatenate(c.subshape(x, 1), (c.multiply(2, 3), c.unknown_dim()))
        found["merged"] = c.merge((None, 3), (2, None))
        found["replaced"] = c.replace_dim(x, -1, 9)
        found["count"] = c.num_elements(x)
        for refused in (
            lambda: c.divide(5, 2),
            lambda: c.with_rank_at_least(x, 4),
            lambda: c.with_rank_at_most(x, 1),
            lambda: c.with_value(3, 4),
            lambda: c.dim(x, 2),
            lambda: c.merge((1,), (1, 2)),
            lambda: c.make_shape([-1]),
            lambda: c.input(5),
            lambda: c.set_output("z", x),
        ):
            with pytest.raises(ShapeError, match="Shapes: "):
                refused()
        return [c.make_shape([2]), c.vector(1)]

    op = register_op("Shapes").input("x: float").output("y: float").output("z_: float")
    op.set_shape_fn(shapes)
    lowered = tj.jit(op).lower(np.zeros((2, 3), np.float32))
    assert [str(s) for s in lowered.module.entry.root.element_shapes] == ["f32[2]", "f32[1]"]
    assert found == {
        "rank": 2,
        "divided": 1,
        "joined": (3, 6, None),
        "merged": (2, 3),
        "replaced": (2, 9),
        "count": 6,
    }
    wrong = register_op("Few").input("x: float").output("y: float").output("z: float")
    wrong.set_shape_fn(lambda c: [c.scalar()])
    with pytest.raises(ShapeError, match="Few: the shape function must return 2 shapes, not 1"):
        tj.jit(wrong).lower(X)
