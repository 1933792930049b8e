"""`tracejit.nn` against formulas in plain NumPy; gradients by differences, tails by limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import tracejit as tj
from tests.numpy_api.compare import same
from tracejit import nn
from tracejit.errors import AttributeValueError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6)) * 3


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "sigmoid": special.expit,
    "log_sigmoid": special.log_expit,
    "softplus": softplus,
    "silu": lambda x: x * special.expit(x),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "softmax": lambda x: special.softmax(x, axis=-1),
    "log_softmax": lambda x: special.log_softmax(x, axis=-1),
    "logsumexp": lambda x: special.logsumexp(x),
    "glu": lambda x: x[:, :3] * special.expit(x[:, 3:]),
    "standardize": lambda x: (
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    ),
    "layer_norm": lambda x: (
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    ),
    "rms_norm": lambda x: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name: str) -> None:
    function, formula = getattr(nn, name), ACTIVATIONS[name]
    same(function(X), formula(X), rtol=1e-10)
    same(tj.jit(function)(X), formula(X), rtol=1e-10)
    assert tj.jit(function)(X.astype(np.float32)).dtype == np.float32
    weights = np.cos(np.arange(formula(X).size)).reshape(np.shape(formula(X)))
    gradient = tj.grad(lambda x: (function(x) * weights).sum())(X)
    step = 1e-6
    for index in ((0, 0), (1, 3), (3, 5)):
        move = np.zeros_like(X)
        move[index] = step
        slope = ((formula(X + move) - formula(X - move)) * weights).sum() / (2 * step)
        assert gradient[index] == pytest.approx(slope, rel=1e-5, abs=1e-7)


TAILS = np.array([-1e4, -800.0, -30.0, -1e-30, 0.0, 1e-30, 30.0, 800.0, 1e4])


@pytest.mark.parametrize(
    "name",
    "relu elu celu selu sigmoid log_sigmoid softplus silu mish gelu soft_sign leaky_relu".split(),
)
def test_tails(name: str) -> None:
    """Finite, with finite gradients, far from zero and at it."""
    function = getattr(nn, name)
    with np.errstate(all="ignore"):
        same(function(TAILS), ACTIVATIONS[name](TAILS), rtol=1e-10)
    assert np.isfinite(tj.grad(lambda x: function(x).sum())(TAILS)).all()
    assert np.isnan(function(np.array([np.nan])))


def test_exact_gelu() -> None:
    same(nn.gelu(X, approximate=False), X * special.ndtr(X), rtol=1e-10)


def test_relu_at_zero() -> None:
    same(tj.grad(lambda x: nn.relu(x).sum())(np.array([0.0, -0.0, 1.0])), np.array([0.0, 0, 1]))


def test_infinities() -> None:
    x = np.array([[-np.inf, 0.0, 1.0], [-np.inf] * 3, [np.inf, 0.0, 1.0]])
    with np.errstate(all="ignore"):
        same(nn.softmax(x[:1]), special.softmax(x[:1], axis=1), rtol=1e-12)
        same(nn.log_softmax(x[:1]), special.log_softmax(x[:1], axis=1), rtol=1e-12)
        same(nn.logsumexp(x, axis=1), special.logsumexp(x, axis=1), rtol=1e-12)
    gradient = tj.grad(lambda x: nn.logsumexp(x))(x[0])
    same(gradient, special.softmax(x[0]), rtol=1e-12)


def test_axes_and_masks() -> None:
    mask = X > -2
    same(nn.softmax(X, axis=(0, 1)), special.softmax(X), rtol=1e-12)
    expected = np.where(mask, np.exp(X), 0)
    same(nn.softmax(X, axis=1, where=mask), expected / expected.sum(1, keepdims=True), rtol=1e-12)
    same(nn.logsumexp(X, axis=0, keepdims=True), special.logsumexp(X, 0, keepdims=True), rtol=1e-12)
    same(nn.logsumexp(X, 1, b=mask), special.logsumexp(X, 1, b=mask), rtol=1e-12)


def test_softmax_of_rows_that_a_mask_leaves_out() -> None:
    mask = np.ones(X.shape, bool)
    mask[1] = False
    expected = np.where(mask, special.softmax(X, 1), 0)
    softmax = tj.jit(lambda x: nn.softmax(x, axis=1, where=mask))
    same(softmax(X), expected, rtol=1e-12)
    weights = np.arange(float(X.size)).reshape(X.shape)
    gradient = tj.jit(tj.grad(lambda x: (nn.softmax(x, axis=1, where=mask) * weights).sum()))(X)
    same(gradient, expected * (weights - (expected * weights).sum(1, keepdims=True)), rtol=1e-9)


def test_one_hot() -> None:
    labels = np.array([0, 2, 5, -1])
    expected = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], float)
    same(nn.one_hot(labels, 3), expected)
    same(tj.jit(lambda n: nn.one_hot(n, 3, dtype=int, axis=0))(labels), expected.T.astype(int))


def windows(x: np.ndarray, size: int) -> np.ndarray:
    view = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
    return view[:, ::size, ::size]


def test_pooling() -> None:
    x = np.random.default_rng(1).normal(size=(2, 4, 6, 3))
    same(nn.max_pool(x, (2, 2), (2, 2)), windows(x, 2).max((-1, -2)))
    same(nn.min_pool(x, (2, 2), (2, 2)), windows(x, 2).min((-1, -2)))
    same(nn.avg_pool(x, (2, 2), (2, 2)), windows(x, 2).mean((-1, -2)))
    ones = np.ones((1, 3, 3, 1))
    counted = nn.avg_pool(ones, (2, 2), (2, 2), "SAME")
    same(counted[0, :, :, 0], np.array([[1.0, 0.5], [0.5, 0.25]]))
    same(nn.avg_pool(ones, (2, 2), (2, 2), "SAME", False), np.ones((1, 2, 2, 1)))
    same(nn.max_pool(ones, (2, 2), None, [(1, 0), (0, 1)]), np.ones((1, 3, 3, 1)))
    with pytest.raises(AttributeValueError, match="must have a size for each of 2 spatial"):
        nn.max_pool(x, (2,))


def test_batch_norm() -> None:
    x = np.random.default_rng(2).normal(size=(5, 4, 3))
    scale, offset = np.array([1.0, 2, 3]), np.array([0.5, 0, -1])
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    expected = (x - mean) / np.sqrt(variance + 1e-5) * scale + offset
    made, batch_mean, batch_variance = nn.batch_norm(x, scale, offset)
    same(made, expected, rtol=1e-6)
    same((batch_mean, batch_variance), (mean, variance))
    same(nn.batch_norm_inference(x, scale, offset, mean, variance), expected, rtol=1e-6)
    moved = nn.batch_norm(np.moveaxis(x, -1, 1), scale, offset, axis=1)[0]
    same(moved, np.moveaxis(expected, -1, 1), rtol=1e-6)


def test_conv() -> None:
    x, kernel = np.ones((1, 4, 4, 2)), np.ones((3, 3, 2, 5))
    made = tj.jit(nn.conv)(x, kernel)
    assert made.shape == (1, 4, 4, 5)
    assert made[0, 1, 1, 0] == 18
    assert made[0, 0, 0, 0] == 8
    assert nn.conv(x, kernel, 2, "VALID").shape == (1, 1, 1, 5)
    grouped = nn.conv(x, np.ones((3, 3, 1, 4)), feature_group_count=2)
    assert grouped[0, 1, 1, 0] == 9
    with pytest.raises(AttributeValueError, match="give dimension_numbers for 2 dimensions"):
        nn.conv(X, X)


def test_losses() -> None:
    labels = np.array([0, 5, 2, 2])
    scores = special.log_softmax(X, axis=1)
    expected = -scores[np.arange(4), labels]
    same(nn.cross_entropy(X, labels), expected)
    same(nn.softmax_cross_entropy(X, np.eye(6)[labels]), expected)
    gradient = tj.grad(lambda x: nn.cross_entropy(x, labels).sum())(X)
    same(gradient, special.softmax(X, axis=1) - np.eye(6)[labels], rtol=1e-9)
    truth = X > 1
    probabilities = special.expit(X)
    binary = -np.where(truth, np.log(probabilities), np.log1p(-probabilities))
    same(nn.sigmoid_binary_cross_entropy(X, truth), binary, rtol=1e-9)
    same(nn.squared_error(X, 1.0), (X - 1) ** 2)
    huber = np.where(np.abs(X) <= 1, X**2 / 2, np.abs(X) - 0.5)
    same(nn.huber_loss(X, 0.0), huber)
    with pytest.raises(ShapeError, match="without its last dimension"):
        nn.cross_entropy(X, labels[:2])


def test_group_and_instance_norm() -> None:
    x = RNG.normal(size=(2, 5, 6, 4))
    split = x.reshape(2, 5, 6, 2, 2)
    centred = split - split.mean((1, 2, 4), keepdims=True)
    expected = centred / np.sqrt(split.var((1, 2, 4), keepdims=True) + 1e-5)
    same(nn.group_norm(x, 2, np.arange(4.0), 1), expected.reshape(x.shape) * np.arange(4.0) + 1)
    expected = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    same(tj.jit(nn.instance_norm)(x), expected)
    with pytest.raises(ValueError, match="3 groups do not divide the features"):
        nn.group_norm(x, 3)


def test_more_activations_and_losses() -> None:
    x = RNG.normal(size=(3, 4)) * 2
    y = special.softmax(RNG.normal(size=(3, 4)), -1)
    log_x = special.log_softmax(x, -1)
    same(nn.squareplus(x), (x + np.sqrt(x * x + 4)) / 2)
    between = np.where(x >= 1, x, (x + 1) ** 2 / 4)
    same(nn.sparse_plus(x), np.where(x <= -1, 0, between))
    same(nn.sparse_sigmoid(x), np.clip((x + 1) / 2, 0, 1))
    small = np.array([1e-12, 0.3, 0.7, 40.0])
    same(nn.log1mexp(small), np.log(-np.expm1(-small)), rtol=1e-10)
    same(nn.tanh(nn.identity(x)), np.tanh(x))
    same(nn.absolute_error(x, y), np.abs(x - y))
    same(nn.log_cosh(x, y), np.log(np.cosh(x - y)))
    same(nn.hinge_loss(x, np.sign(x)), np.maximum(0, 1 - np.abs(x)))
    same(nn.kl_divergence(log_x, y), (y * (np.log(y) - log_x)).sum(-1))
    lengths = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
    same(nn.cosine_similarity(x, y), (x * y).sum(-1) / lengths)
