"""Fits a diagonal Gaussian to a density by gradients of a Monte Carlo estimate."""

# mypy: ignore-errors

from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap
from jax.scipy.stats import norm

jax.config.update("jax_enable_x64", True)


def draw(key, mean, log_scale):
    return mean + jnp.exp(log_scale) * random.normal(key, mean.shape)


def log_approximation(x, mean, log_scale):
    return jnp.sum(vmap(norm.logpdf)(x, mean, jnp.exp(log_scale)))


def log_target(x):
    return norm.logpdf(x[0], 0, jnp.exp(x[1])) + norm.logpdf(x[1], 0, 1.35)


def bound(log_density, key, params):
    sample = draw(key, *params)
    return log_density(sample) - log_approximation(sample, *params)


@partial(jit, static_argnums=(0, 3))
def mean_bound(log_density, key, params, count):
    keys = random.split(key, count)
    return jnp.mean(vmap(partial(bound, log_density), in_axes=(0, None))(keys, params))


@jit
def objective(params, step):
    return -mean_bound(log_target, random.PRNGKey(step), params, 40)


@jit
def update(step, state):
    params, velocity = state
    gradient = grad(objective)(params, step)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, gradient)
    params = jax.tree_util.tree_map(lambda p, v: p - 0.01 * v, params, velocity)
    return params, velocity


def main():
    start = (jnp.zeros(2), jnp.zeros(2))
    state = (start, jax.tree_util.tree_map(jnp.zeros_like, start))
    for step in range(30):
        state = update(step, state)
    return {"bound": objective(state[0], 99), "mean": state[0][0], "log_scale": state[0][1]}
