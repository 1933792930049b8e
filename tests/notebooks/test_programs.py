"""The training scripts on small settings: what they learn is checked, not only that they run."""

from __future__ import annotations

import numpy as np

from tests.notebooks import scripts


def test_gru() -> None:
    script = scripts.load("train_gru")
    losses = script.main(steps=120)
    assert abs(losses[0] - np.log(len(script.load()[1]))) < 0.6
    assert np.mean(losses[-10:]) < 2.6
    assert losses == sorted(losses, reverse=True) or min(losses[-20:]) < losses[0] - 1.5


def test_transformer() -> None:
    script = scripts.load("train_transformer")
    parameters = script.make_parameters(np.random.default_rng(0), len(script.load()[1]))
    count = sum(np.size(leaf) for leaf in script.tj.tree.leaves(parameters))
    assert 90_000 < count < 120_000
    losses = script.main(steps=80)
    assert np.mean(losses[-10:]) < 2.7


def test_oscillator() -> None:
    script = scripts.load("fit_oscillator")
    np.testing.assert_allclose(script.places(script.TRUTH), script.exact(script.TRUTH), atol=5e-3)
    np.testing.assert_allclose(script.main(), script.TRUTH, atol=0.02)


def test_gaussian_process() -> None:
    script = scripts.load("gaussian_process")
    logs, error = script.main()
    assert abs(np.exp(logs[2] / 2) - script.NOISE) < 0.04
    assert error < 0.08


def test_newton() -> None:
    script = scripts.load("logistic_newton")
    weights, truth, norms = script.main()
    assert norms[-1] < 1e-12
    # Quadratic convergence: a small norm is squared, up to a constant.
    assert norms[4] < 10 * norms[3] ** 2 + 1e-14
    np.testing.assert_allclose(weights, truth, atol=0.7)
