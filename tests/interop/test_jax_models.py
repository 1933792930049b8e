"""Models as people write them for JAX, in the styles of Flax, Equinox, Optax, NumPyro and Diffrax.

They are plain JAX: the test environment has none of these packages. Each is called, and its
derivative taken, by JAX and by us.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tracejit as tj

RNG = np.random.default_rng(0)
MODELS: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {}


def numbers(*shape: int, scale: float = 0.3) -> np.ndarray:
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


def model(parameters: Any, *inputs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def define(loss: Callable[..., Any]) -> Callable[..., Any]:
        MODELS[loss.__name__] = loss, parameters, inputs
        return loss

    return define


def dense(parameters: Any, x: Any) -> Any:
    return x @ parameters["kernel"] + parameters["bias"]


def layer(inputs: int, outputs: int) -> dict[str, np.ndarray]:
    return {"kernel": numbers(inputs, outputs), "bias": numbers(outputs)}


X, LABELS = numbers(8, 6, scale=1), RNG.integers(0, 4, 8)
IMAGES = numbers(4, 8, 8, 2, scale=1)
SEQUENCE = numbers(5, 3, 4, scale=1)


@model({"Dense_0": layer(6, 16), "Dense_1": layer(16, 4)}, X, LABELS)
def flax_mlp(parameters: Any, x: Any, labels: Any) -> Any:
    logits = dense(parameters["Dense_1"], jax.nn.gelu(dense(parameters["Dense_0"], x)))
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


@model({"Conv_0": numbers(3, 3, 2, 4), "Dense_0": layer(64, 4)}, IMAGES)
def flax_cnn(parameters: Any, images: Any) -> Any:
    x = lax.conv_general_dilated(
        images, parameters["Conv_0"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jax.nn.logsumexp(dense(parameters["Dense_0"], x.reshape(len(x), -1)), axis=-1).sum()


@model({"scale": numbers(6), "bias": numbers(6), "Dense_0": layer(6, 6)}, X)
def flax_batch_and_layer_norm(parameters: Any, x: Any) -> Any:
    x = (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-5) * parameters["scale"] + parameters["bias"]
    x = dense(parameters["Dense_0"], x)
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x**2 * jnp.arange(6.0)).sum()


@model({name: numbers(4, 4) for name in "qkvo"}, numbers(3, 5, 4, scale=1))
def flax_attention(parameters: Any, x: Any) -> Any:
    q, k, v = (jnp.einsum("btd,de->bte", x, parameters[name]) for name in "qkv")
    q, k, v = (jnp.reshape(each, (3, 5, 2, 2)) for each in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(2.0)
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(3, 5, 4)
    return jnp.square(x + mixed @ parameters["o"]).mean()


@jax.tree_util.register_dataclass
@dataclass
class LSTMCell:
    """A module that is a tree, as in Equinox."""

    inputs: Any
    hidden: Any
    bias: Any

    def __call__(self, state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x @ self.inputs + h @ self.hidden + self.bias, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), h


@model((numbers(4, 12), numbers(3, 12), numbers(12)), SEQUENCE)
def equinox_lstm(parameters: Any, xs: Any) -> Any:
    cell = LSTMCell(*parameters)
    start = (jnp.zeros((3, 3), jnp.float32),) * 2
    (h, _), hidden = lax.scan(lambda state, x: cell(state, x), start, xs)
    return (h**2).sum() + hidden.mean()


@model([numbers(6, 6) for _ in range(3)], X)
def equinox_layers_by_scan_and_remat(parameters: Any, x: Any) -> Any:
    def block(x: Any, weights: Any) -> Any:
        return x + jnp.tanh(x @ weights), None

    made, _ = lax.scan(jax.checkpoint(block), x, jnp.stack(parameters))
    return jnp.abs(made).sum()


class AdamState(NamedTuple):
    """What Optax's scale_by_adam keeps."""

    count: Any
    mu: Any
    nu: Any


def adam(gradient: Any, state: AdamState, rate: float = 0.05) -> tuple[Any, AdamState]:
    """An update as Optax's chain of clip_by_global_norm, scale_by_adam and scale makes it."""
    leaves = jax.tree.leaves(gradient)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in leaves))
    gradient = jax.tree.map(lambda g: g * jnp.minimum(1, 1 / norm), gradient)
    mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mu, gradient)
    nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, state.nu, gradient)
    count = state.count + 1
    t = count.astype(jnp.float32)
    update = jax.tree.map(
        lambda m, v: -rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), mu, nu
    )
    return update, AdamState(count, mu, nu)


@model({"w": numbers(6, 4)}, X)
def optax_steps_in_a_loop(parameters: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.square(jnp.tanh(x @ p["w"]) - 0.5).mean()

    def step(carried: Any, _: Any) -> Any:
        p, state = carried
        update, state = adam(jax.grad(loss)(p), state)
        return (jax.tree.map(jnp.add, p, update), state), loss(p)

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state = AdamState(jnp.zeros((), jnp.int32), zeros, zeros)
    (made, _), losses = lax.scan(step, (parameters, state), None, length=4)
    return loss(made) + losses.sum()


@model({"beta": numbers(6), "log_sigma": numbers()}, X, numbers(8))
def numpyro_log_density(parameters: Any, x: Any, y: Any) -> Any:
    sigma = jnp.exp(parameters["log_sigma"])
    residual = (y - x @ parameters["beta"]) / sigma
    likelihood = -0.5 * residual**2 - jnp.log(sigma) - 0.5 * jnp.log(2 * jnp.pi)
    student = jax.scipy.special.gammaln(2.5) - 2.5 * jnp.log1p(parameters["beta"] ** 2 / 4)
    return likelihood.sum() + student.sum()


@model({"q": numbers(6)}, X)
def numpyro_leapfrog_with_random_momentum(parameters: Any, x: Any) -> Any:
    def potential(q: Any) -> Any:
        return jnp.logaddexp(0, -x @ q).sum() + 0.5 * (q**2).sum()

    momentum = jax.random.normal(jax.random.key(3), (6,))

    def leap(_: int, carried: Any) -> Any:
        q, p = carried
        p = p - 0.05 * jax.grad(potential)(q)
        q = q + 0.1 * p
        return q, p - 0.05 * jax.grad(potential)(q)

    q, p = lax.fori_loop(0, 5, leap, (parameters["q"], momentum))
    return potential(q) + 0.5 * (p**2).sum()


@model({"length": np.float32(0.7), "noise": np.float32(0.3)}, X, numbers(8))
def gaussian_process(parameters: Any, x: Any, y: Any) -> Any:
    distance = ((x[:, None] - x[None]) ** 2).sum(-1)
    kernel = jnp.exp(-distance / parameters["length"] ** 2) + parameters["noise"] * jnp.eye(8)
    factor = jnp.linalg.cholesky(kernel)
    solved = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * (solved**2).sum() + jnp.log(jnp.diag(factor)).sum()


@model({"theta": numbers(3)}, numbers(2, scale=1))
def diffrax_neural_ode(parameters: Any, y: Any) -> Any:
    a, b, c = parameters["theta"]

    def field(t: Any, y: Any) -> Any:
        return jnp.stack([a * y[1] + jnp.sin(t), b * y[0] * y[1] - c * y[1]])

    def rk4(y: Any, t: Any) -> Any:
        h = 0.1
        k1 = field(t, y)
        k2 = field(t + h / 2, y + h / 2 * k1)
        k3 = field(t + h / 2, y + h / 2 * k2)
        k4 = field(t + h, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y

    end, path = lax.scan(rk4, y, jnp.arange(20) * 0.1)
    return (end**2).sum() + path.mean()


@model({"w": numbers(4, 4)}, numbers(5, 4, scale=1), RNG.integers(0, 5, (2, 9)))
def graph_network(parameters: Any, nodes: Any, edges: Any) -> Any:
    messages = jax.nn.silu(nodes[edges[0]] @ parameters["w"])
    gathered = jax.ops.segment_sum(messages, edges[1], num_segments=5)
    highest = jax.ops.segment_max(messages, edges[1], num_segments=5)
    return (gathered**2).sum() + jnp.where(jnp.isfinite(highest), highest, 0).sum()


def agree(found: Any, wanted: Any) -> None:
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, np.asarray(other), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models_have_jaxs_numbers(name: str) -> None:
    loss, parameters, inputs = MODELS[name]
    value, gradient = jax.jit(jax.value_and_grad(loss))(parameters, *inputs)
    ours = tj.from_jax(loss)
    agree(ours(parameters, *inputs), value)
    agree(tj.jit(tj.grad(ours))(parameters, *inputs), gradient)
    agree(tj.from_jax(jax.value_and_grad(loss))(parameters, *inputs), (value, gradient))


def test_there_are_twelve() -> None:
    assert len(MODELS) == 12


TRAINING = """
#include <stdio.h>
#include "train.h"
#define COUNT(a) (sizeof(a) / sizeof(*(a)))
static float state[2][SIZE];
static int count[2];
int main(void) {
  float x[64 * 2], y[64], loss = 0, first = 0;
  unsigned seed = 1;
  for (unsigned i = 0; i < COUNT(x); i++) {
    seed = seed * 1103515245u + 12345u;
    x[i] = (float)(seed >> 16 & 1023) / 512 - 1;
  }
  for (int i = 0; i < 64; i++) y[i] = x[2 * i] * x[2 * i + 1] > 0;
  for (int i = 0; i < SIZE; i++) {
    seed = seed * 1103515245u + 12345u;
    if (i < WEIGHTS) state[0][i] = (float)(seed >> 16 & 1023) / 512 - 1;
  }
  for (int step = 0; step < 500; step++) {
    float *old = state[step % 2], *new = state[1 - step % 2];
    int status = CALL;
    if (status) { fprintf(stderr, "%s", train_message(status)); return status; }
    if (step == 0) first = loss;
  }
  printf("%f %f", first, loss);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_training_step_of_jax_as_a_library_for_c(tmp_path: Path) -> None:
    """The weights and Adam's state are one array in C, each leaf at its offset in it."""
    weights = {"Dense_0": layer(2, 16), "Dense_1": layer(16, 1)}
    zeros = jax.tree.map(np.zeros_like, weights)
    x, y = numbers(64, 2), numbers(64)

    def loss(p: Any, x: Any, y: Any) -> Any:
        logits = dense(p["Dense_1"], jnp.tanh(dense(p["Dense_0"], x)))[:, 0]
        return (jnp.maximum(logits, 0) - logits * y + jnp.log1p(jnp.exp(-abs(logits)))).mean()

    def train(weights: Any, mu: Any, nu: Any, count: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss)(weights, x, y)
        update, state = adam(gradient, AdamState(count, mu, nu))
        weights = jax.tree.map(jnp.add, weights, update)
        return weights, state.mu, state.nu, state.count, value

    step = tj.from_jax(train)
    compiled = tj.jit(step).lower(weights, zeros, zeros, np.int32(0), x, y).compile()
    compiled.export(tmp_path / "train.so", header=tmp_path / "train.h")
    sizes = [leaf.size for leaf in jax.tree.leaves(weights)] * 3
    offsets = np.cumsum([0, *sizes])
    given = [f"old + {offset}" for offset in offsets[:-1]]
    made = [f"new + {offset}" for offset in offsets[:-1]]
    call = [*given, "&count[step % 2]", "x", "y", *made, "&count[1 - step % 2]", "&loss"]
    (tmp_path / "main.c").write_text(TRAINING)
    options = [f"-DSIZE={offsets[-1]}", f"-DWEIGHTS={offsets[-1] // 3}"]
    options += [f"-DCALL=train({', '.join(call)})", "-Wall", "-Werror", f"-Wl,-rpath,{tmp_path}"]
    files = [str(tmp_path / name) for name in ("main.c", "train.so")]
    subprocess.run(["cc", *options, *files, "-o", str(tmp_path / "main")], check=True)
    ran = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True)
    first, last = map(float, ran.stdout.split())
    assert first > 0.5
    assert last < 0.1
