"""One of four ranks: the programs of `cases`, compared with what plain NumPy makes of a few.

mpiexec -n 4 python -m tests.sharding.ranks
"""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.sharding.cases import T, W, X, of_tracejit


def main() -> None:
    tj.distributed.initialize()
    made = of_tracejit()

    def whole(name: str) -> np.ndarray:
        value = made[name]
        return value.gather() if hasattr(value, "gather") else np.asarray(value)

    np.testing.assert_allclose(whole("psum"), X[:4] + X[4:])
    np.testing.assert_allclose(whole("nothing"), np.tanh(X) * 2)
    np.testing.assert_allclose(whole("tensor-parallel product"), X @ W)
    np.testing.assert_allclose(whole("psum of a number"), 4 * X)
    np.testing.assert_allclose(whole("pmax"), np.maximum(X[:4], X[4:]))
    loss, _ = made["data-parallel step"]
    np.testing.assert_allclose(loss, ((np.tanh(X @ W) - T) ** 2).mean())
    inside = made["data-parallel step in jit"]
    for first, second in zip(made["data-parallel step"], inside, strict=True):
        np.testing.assert_allclose(first, second)


if __name__ == "__main__":
    main()
