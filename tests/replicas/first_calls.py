"""One of some ranks that share a disk cache: programs that none of them has compiled before.

mpiexec -n 4 python -m tests.replicas.first_calls
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tracejit import P, lax


def main() -> None:
    tj.distributed.initialize()
    count = tj.distributed.process_count()
    mesh = tj.make_mesh((count,), ("i",))
    for k in range(4):

        def summed(x: np.ndarray, k: int = k) -> Any:
            return lax.psum(np.tanh(x * (k + 1)) @ np.ones((16, k + 3)), "i")

        x = np.random.default_rng(k).normal(size=(4 * count, 16))
        made = tj.shard_map(summed, mesh=mesh, in_specs=P("i"), out_specs=P())(x)
        wanted = sum(np.tanh(part * (k + 1)) @ np.ones((16, k + 3)) for part in np.split(x, count))
        np.testing.assert_allclose(made, wanted, 1e-9)
    print(f"rank {tj.distributed.process_index()} is through", flush=True)


if __name__ == "__main__":
    main()
