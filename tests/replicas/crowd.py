"""One of many ranks that share few processors: sums, rings and overlapping sums of integers.

mpiexec -n 8 python -m tests.replicas.crowd
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P, lax


def main() -> None:
    tj.distributed.initialize()
    rank, count = tj.distributed.process_index(), tj.distributed.process_count()
    mesh = tj.make_mesh((count,), ("i",))
    ring = [(n, (n + 1) % count) for n in range(count)]

    @tj.shard_map(mesh=mesh, in_specs=(P(), P()), out_specs=(P(), P(), P("i")))
    def step(x: np.ndarray, n: np.ndarray) -> Any:
        place = lax.axis_index("i")
        first, second = lax.psum(n + place, "i"), lax.psum(2 * n + place, "i")
        moved = lax.ppermute(place[None] + 0, "i", ring)
        return first + second, lax.psum(np.tanh(x @ x), "i"), moved

    x, n = np.eye(32), np.arange(20000, dtype=np.int32)
    for _ in range(20):
        total, product, moved = step(x, n)
    places = count * (count - 1) // 2
    np.testing.assert_array_equal(total, 3 * count * n + 2 * places)
    np.testing.assert_allclose(product, count * np.tanh(x))
    assert moved.addressable_shards[0].data[0] == (rank - 1) % count
    print(f"rank {rank} is through", flush=True)


if __name__ == "__main__":
    main()
