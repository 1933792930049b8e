"""A perceptron trained by stochastic gradient descent, from the weights up."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, grad, jit, lax, random, value_and_grad, vmap
from jax.nn import one_hot
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

jax.config.update("jax_enable_x64", True)

SIZES = [12, 16, 8, 3]


def layer(key: Array, size_in: int, size_out: int, scale: float = 0.3):
    key_w, key_b = random.split(key)
    weights = scale * random.normal(key_w, (size_out, size_in))
    return weights, scale * random.normal(key_b, (size_out,))


def network(sizes, key: Array):
    keys = random.split(key, len(sizes) - 1)
    return [layer(k, m, n) for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)]


def predict(params, image: ArrayLike) -> Array:
    hidden = image
    for weights, biases in params[:-1]:
        outputs = lax.dot(weights, hidden, precision=lax.Precision.HIGHEST) + biases
        hidden = jax.nn.relu(outputs)
    weights, biases = params[-1]
    logits = jnp.dot(weights, hidden) + biases
    return logits - logsumexp(logits)


batched_predict = vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    return -jnp.mean(batched_predict(params, images) * targets)


@jit
def accuracy(params, images, targets):
    predicted = jnp.argmax(batched_predict(params, images), axis=1)
    return jnp.mean(predicted == jnp.argmax(targets, axis=1))


@jit
def update(params, x, y):
    value, gradient = value_and_grad(loss)(params, x, y)
    new = [(w - 0.5 * dw, b - 0.5 * db) for (w, b), (dw, db) in zip(params, gradient, strict=True)]
    return new, value


def main():
    rng = np.random.RandomState(0)
    images = rng.randn(90, SIZES[0])
    labels = np.argmax(images @ rng.randn(SIZES[0], SIZES[-1]), axis=1)
    targets = one_hot(jnp.array(labels), SIZES[-1])
    params = network(SIZES, random.key(0))
    losses = []
    for _ in range(5):
        for start in range(0, 90, 30):
            batch = slice(start, start + 30)
            params, value = update(params, images[batch], targets[batch])
            losses.append(value)
    slope = grad(lambda s: loss([(w * s, b) for w, b in params], images, targets))(1.0)
    assert jax.device_count() >= 1
    assert jax.default_backend() == "cpu"
    return {
        "losses": jnp.stack(losses),
        "accuracy": accuracy(params, images, targets),
        "slope": slope,
        "last": params[-1][0],
    }
