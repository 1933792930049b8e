"""The optimisers, as chains of gradient transformations and the learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.optim.transformations import (
    Rate,
    Transformation,
    Tree,
    add_decayed_weights,
    chain,
    dtype_of,
    mapped,
    scale_by_learning_rate,
    zeros_like,
)
from tracejit.tracebacks import names_misuse


@names_misuse
def sgd(
    learning_rate: Rate, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
) -> Transformation:
    """Gradient descent: v = momentum v + g, and a step along v (g + momentum v by Nesterov).

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.sgd(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.3, -0.4])
    """
    parts = [add_decayed_weights(weight_decay)] if weight_decay else []
    if momentum:
        parts.append(_trace(momentum, nesterov))
    return chain(*parts, scale_by_learning_rate(learning_rate))


def _trace(decay: float, nesterov: bool) -> Transformation:
    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        state = mapped(lambda v, g: decay * v + g, state, gradient)
        if not nesterov:
            return state, state
        return mapped(lambda v, g: decay * v + g, state, gradient), state

    return Transformation(zeros_like, update)


@names_misuse
def adam(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Transformation:
    """Adam (Kingma and Ba, 2015): m / (sqrt(v) + eps), both moments corrected for their start.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.adam(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.1, -0.1])
    """
    return chain(_scale_by_adam(b1, b2, eps), scale_by_learning_rate(learning_rate))


@names_misuse
def adamw(
    learning_rate: Rate,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Transformation:
    """Adam with decay of the weights beside it (Loshchilov and Hutter, 2019).

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.adamw(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.101, -0.098])
    """
    return chain(
        _scale_by_adam(b1, b2, eps),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(learning_rate),
    )


def _scale_by_adam(b1: float, b2: float, eps: float) -> Transformation:
    def init(parameters: Tree) -> Tree:
        return {
            "count": np.zeros((), np.int32),
            "mu": zeros_like(parameters),
            "nu": zeros_like(parameters),
        }

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        count = state["count"] + np.int32(1)
        mu = mapped(lambda m, g: b1 * m + (1 - b1) * g, state["mu"], gradient)
        nu = mapped(lambda v, g: b2 * v + (1 - b2) * abs(g) ** 2, state["nu"], gradient)
        first, second = 1 / (1 - b1**count), 1 / (1 - b2**count)

        def scaled(m: Any, v: Any) -> Any:
            mean = m * first.astype(dtype_of(m))
            return mean / (np.sqrt(v * second.astype(dtype_of(v))) + eps)

        return mapped(scaled, mu, nu), {"count": count, "mu": mu, "nu": nu}

    return Transformation(init, update)


@names_misuse
def rmsprop(
    learning_rate: Rate, decay: float = 0.99, eps: float = 1e-8, momentum: float = 0.0
) -> Transformation:
    """g / (sqrt(v) + eps), v the running mean of squares (Tieleman and Hinton, 2012).

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.rmsprop(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-1., -1.])
    """

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        state = mapped(lambda v, g: decay * v + (1 - decay) * abs(g) ** 2, state, gradient)
        return mapped(lambda g, v: g / (np.sqrt(v) + eps), gradient, state), state

    parts = [Transformation(zeros_like, update)]
    if momentum:
        parts.append(_trace(momentum, False))
    return chain(*parts, scale_by_learning_rate(learning_rate))


@names_misuse
def adagrad(
    learning_rate: Rate, initial_accumulator_value: float = 0.0, eps: float = 1e-10
) -> Transformation:
    """g / (sqrt(v) + eps), v the sum of squares (Duchi, Hazan and Singer, 2011).

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.adagrad(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.1, -0.1])
    """

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        state = mapped(lambda v, g: v + abs(g) ** 2, state, gradient)
        return mapped(lambda g, v: g / (np.sqrt(v) + eps), gradient, state), state

    def init(parameters: Tree) -> Tree:
        return zeros_like(parameters, initial_accumulator_value)

    return chain(Transformation(init, update), scale_by_learning_rate(learning_rate))


@names_misuse
def lion(
    learning_rate: Rate, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 0.0
) -> Transformation:
    """The sign of an interpolated momentum (Chen and others, 2023).

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.lion(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.1, -0.1])
    """

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        signs = mapped(lambda m, g: np.sign(b1 * m + (1 - b1) * g), state, gradient)
        return signs, mapped(lambda m, g: b2 * m + (1 - b2) * g, state, gradient)

    parts = [Transformation(zeros_like, update)]
    if weight_decay:
        parts.append(add_decayed_weights(weight_decay))
    return chain(*parts, scale_by_learning_rate(learning_rate))
