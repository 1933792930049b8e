"""Programs over which passes fire that HLO text cannot express."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj
from tracejit.graph import Module


def recurrent_gradient() -> Module:
    """A derivative asks for the carries of every step with a Scan like the first one.

    HLO text has a computation for each Scan; `fuse_scans` knows steps by their instructions.
    """

    def loss(w: np.ndarray, x: np.ndarray) -> Any:
        def step(carry: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            new = np.tanh(w @ carry + row)
            return new, new.sum()

        last, sums = tj.lax.scan(step, x[0], x, unroll=2)
        return (sums**2).sum() + last.sum()

    gradient = tj.value_and_grad(loss, argnums=(0, 1))
    return tj.jit(gradient).lower(np.eye(3), np.ones((4, 3))).module
