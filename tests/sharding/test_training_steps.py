"""Steps of the digits' network in single precision, on two devices and on one."""

from __future__ import annotations

import numpy as np

import tracejit as tj
from tests.notebooks import scripts


def test_every_step_from_the_same_state_has_the_same_loss() -> None:
    """Left to themselves both drift apart, as one device does from one rounding: see the page."""
    digits = scripts.load("train_digits")
    data = digits.load(0)
    single = tj.jit(digits.train_step)
    shared = digits.parallel_step(tj.make_mesh((2,), ("batch",)))
    state = digits.make_state(np.random.default_rng(0))
    for number in range(20):
        chosen = slice(32 * number, 32 * number + 32)
        batch = data.images[chosen], data.labels[chosen], digits.learning_rate(number / 20)
        _, loss = shared(state, *batch)
        state, wanted = single(state, *batch)
        np.testing.assert_allclose(loss, wanted, 0, 1e-5)
