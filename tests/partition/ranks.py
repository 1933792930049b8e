"""One of two or four ranks: annotated modules, whose whole results every rank gets.

mpiexec -n 4 python -m tests.partition.ranks
"""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.partition.test_partitioner import (
    ADD,
    COLUMNS,
    DOT,
    LOOP,
    ROWS,
    SWAPPED,
    WHOLE,
    arrays,
    looped,
    module,
)


def main() -> None:
    tj.distributed.initialize()
    n = tj.distributed.process_count()
    layers = f"""
  x = f32[4,8] parameter(0), sharding={WHOLE[n]}
  w = f32[8,16] parameter(1), sharding={COLUMNS[n]}
  v = f32[16,8] parameter(2), sharding={ROWS[n]}
  h = f32[4,16] dot(x, w), {DOT}
  t = f32[4,16] tanh(h)
  ROOT y = f32[4,8] dot(t, v), {DOT}"""
    uneven = f"""
  x = f32[7,5] parameter(0), sharding={SWAPPED[n]}
  zero = f32[] constant(0)
  sums = f32[5] reduce(x, zero), dimensions={{0}}, to_apply=add
  y = f32[7,5] negate(x), sharding={COLUMNS[n]}
  ROOT r = (f32[5], f32[7,5]) tuple(sums, y)"""
    for body in (layers, looped(ROWS[n]), uneven):
        annotated = module(body, n, ADD + LOOP)
        given = arrays(annotated)
        wanted, made = tj.interpret(annotated, *given), tj.compile(annotated)(*given)
        for ours, theirs in zip(tj.tree.leaves(made), tj.tree.leaves(wanted), strict=True):
            assert np.shape(ours) == np.shape(theirs)
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-5)


if __name__ == "__main__":
    main()
