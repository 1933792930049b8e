"""Heat in a plate, shared out over a grid of devices that exchange the edges of their parts.

mpiexec -n 4 python notebooks/stencil.py [--steps 200]
python notebooks/stencil.py --rows 2 --columns 2        # threads
"""

from __future__ import annotations

import argparse

import numpy as np

import tracejit as tj
from tracejit import P, lax

SIZE = 64
SPEED = 0.2


def with_edges(x: np.ndarray, axis: str, dimension: int) -> np.ndarray:
    """A part with its neighbours' edges along a dimension; zeros beyond the plate."""
    count = lax.axis_size(axis)
    first, last = np.take(x, [0], dimension), np.take(x, [-1], dimension)
    before = lax.ppermute(last, axis, [(n, n + 1) for n in range(count - 1)])
    after = lax.ppermute(first, axis, [(n + 1, n) for n in range(count - 1)])
    return np.concatenate([before, x, after], dimension)


def step(x: np.ndarray) -> np.ndarray:
    """One step of the heat equation, explicit in time, on this device's part."""
    high, wide = with_edges(x, "rows", 0), with_edges(x, "columns", 1)
    return x + SPEED * (high[:-2] + high[2:] + wide[:, :-2] + wide[:, 2:] - 4 * x)


def main(steps: int = 200, rows: int | None = None, columns: int | None = None) -> np.ndarray:
    """The plate after so many steps, from a hot square in a corner."""
    if tj.distributed.is_launched():
        tj.distributed.initialize()
    count = tj.distributed.process_count()
    rows = rows or (2 if count % 2 == 0 else 1)
    columns = columns or max(count // rows, 1)
    mesh = tj.make_mesh((rows, columns), ("rows", "columns"))

    def run(x: np.ndarray) -> np.ndarray:
        return lax.fori_loop(0, steps, lambda _, state: step(state), x)

    parts = P("rows", "columns")
    spread = tj.shard_map(run, mesh=mesh, in_specs=parts, out_specs=parts)
    plate = np.zeros((SIZE, SIZE))
    plate[: SIZE // 4, : SIZE // 4] = 1.0
    made = spread(plate)
    whole = made if isinstance(made, np.ndarray) else made.gather()
    if tj.distributed.process_index() == 0:
        print(f"{rows} x {columns} devices, {steps} steps: heat {whole.sum():.9f}")
    return whole


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Heat in a plate on several devices.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    options = parser.parse_args()
    main(options.steps, options.rows, options.columns)
