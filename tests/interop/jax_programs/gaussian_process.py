"""Gaussian process regression: hyperparameters by gradients, then predictions."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap
from jax.scipy.linalg import cho_factor, cho_solve, solve_triangular

jax.config.update("jax_enable_x64", True)


def positive(x):
    return jnp.logaddexp(x, 0.0)


def kernel(params, x1, x2):
    difference = (x1 - x2) / positive(params["length"])
    return positive(params["amplitude"]) * jnp.exp(-jnp.sum(difference**2))


def covariance(params, xs, ys=None):
    ys = xs if ys is None else ys
    return vmap(lambda x: vmap(lambda y: kernel(params, x, y))(ys))(xs)


def log_likelihood(params, x, y):
    noisy = covariance(params, x) + jnp.eye(x.shape[0]) * (positive(params["noise"]) + 1e-6)
    factor = jnp.linalg.cholesky(noisy)
    whitened = solve_triangular(factor, y - y.mean(), lower=True)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(factor)))
    return -0.5 * (jnp.sum(whitened**2) + log_determinant + x.shape[0] * jnp.log(2 * jnp.pi))


@jit
def fit(params, x, y):
    slope = grad(lambda p: -log_likelihood(p, x, y))

    def body(_, state):
        params, squares = state
        gradient = slope(params)
        squares = jax.tree.map(lambda s, g: 0.9 * s + 0.1 * g**2, squares, gradient)
        params = jax.tree.map(
            lambda p, g, s: p - 0.02 * g / jnp.sqrt(s + 1e-5), params, gradient, squares
        )
        return params, squares

    return lax.fori_loop(0, 60, body, (params, jax.tree.map(jnp.ones_like, params)))[0]


@jit
def predict(params, x, y, at):
    noisy = covariance(params, x) + jnp.eye(x.shape[0]) * (positive(params["noise"]) + 1e-6)
    across = covariance(params, x, at)
    factor = cho_factor(noisy, lower=True)
    mean = across.T @ cho_solve(factor, y - y.mean()) + y.mean()
    variance = jnp.diag(covariance(params, at) - across.T @ cho_solve(factor, across))
    return mean, jnp.sqrt(variance)


def main():
    key = random.PRNGKey(0)
    x = (random.uniform(key, (15, 1)) * 4.0) + 1
    y = jnp.sin(x)[:, 0] + 0.05 * random.normal(random.fold_in(key, 1), (15,))
    start = {"amplitude": jnp.zeros(()), "noise": jnp.zeros(()) - 5.0, "length": jnp.zeros((1,))}
    params = fit(start, x, y)
    mean, deviation = predict(params, x, y, jnp.linspace(1, 5, 9)[:, None])
    print(jax.make_jaxpr(kernel)(params, x[0], x[1]))
    return {**params, "mean": mean, "deviation": deviation}
