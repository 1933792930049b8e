"""What an optimiser is: a pair of pure functions, and how pairs are put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tracejit import tree
from tracejit.errors import ArgumentError
from tracejit.optim.schedules import Schedule

Tree = Any
Rate = float | Schedule


class Transformation(NamedTuple):
    """How gradients become updates.

    ``init(parameters)`` makes the first state; ``update(gradient, state, parameters)`` gives the
    updates, a tree like the parameters, and the next state. Updates are added to the parameters.
    """

    init: Callable[[Tree], Tree]
    update: Callable[..., tuple[Tree, Tree]]


def apply_updates(parameters: Tree, updates: Tree) -> Tree:
    """The parameters with the updates added, each in its own dtype.

    Raises `ArgumentError` for what is no array of numbers.

    >>> tj.optim.apply_updates(np.array([1.0]), np.array([-0.25]))
    array([0.75])
    """
    return mapped(lambda p, u: p + u, parameters, updates)


def chain(*transformations: Transformation) -> Transformation:
    """One after the other; the state is a tuple of theirs.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.chain(tj.optim.clip(1.0), tj.optim.sgd(0.1))
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates
    array([-0.1, -0.1])
    """

    def init(parameters: Tree) -> Tree:
        return tuple(one.init(parameters) for one in transformations)

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        if len(state) != len(transformations):
            raise ArgumentError(
                f"optim.chain: the state is of {len(state)} transformations, not of "
                f"{len(transformations)}"
            )
        following = []
        for one, own in zip(transformations, state, strict=True):
            gradient, own = one.update(gradient, own, parameters)
            following.append(own)
        return gradient, tuple(following)

    return Transformation(init, update)


def stateless(function: Callable[[Tree, Tree], Tree]) -> Transformation:
    """The transformation ``function(gradient, parameters)``, which remembers nothing."""

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        return function(gradient, parameters), state

    return Transformation(lambda parameters: (), update)


def scale(factor: float) -> Transformation:
    """Multiplies by a number.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.scale(0.5)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([1.5, 2. ])
    """
    return stateless(lambda gradient, _: mapped(lambda g: factor * g, gradient))


def scale_by_learning_rate(rate: Rate) -> Transformation:
    """Multiplies by -rate; of a schedule, by the rate of the step that is counted.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.scale_by_learning_rate(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([-0.3, -0.4])
    """
    if not callable(rate):
        return scale(-rate)
    schedule = rate

    def update(gradient: Tree, state: Tree, parameters: Tree = None) -> tuple[Tree, Tree]:
        factor = -schedule(state)
        return mapped(lambda g: factor * g, gradient), state + np.int32(1)

    return Transformation(lambda parameters: np.zeros((), np.int32), update)


def add_decayed_weights(decay: float) -> Transformation:
    """Adds ``decay`` times the parameters.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.add_decayed_weights(0.1)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([3.1, 3.8])
    """

    def function(gradient: Tree, parameters: Tree) -> Tree:
        if parameters is None:
            raise ArgumentError("optim: decay of weights needs update(gradient, state, parameters)")
        return mapped(lambda g, p: g + decay * p, gradient, parameters)

    return stateless(function)


def mapped(function: Callable[..., Any], first: Tree, *rest: Tree) -> Tree:
    """``function`` of leaves at the same place, each result in the dtype of the first tree's."""

    def converted(a: Any, *others: Any) -> Any:
        made = function(a, *others)
        made = np.float64(made) if isinstance(made, float) else made
        return made.astype(dtype_of(a))

    return tree.map(converted, first, *rest)


def zeros_like(parameters: Tree, value: float = 0.0) -> Tree:
    """A tree like the parameters, filled with one number."""
    return tree.map(lambda p: np.full(np.shape(p), value, dtype_of(p)), parameters)


def dtype_of(leaf: Any) -> Any:
    """The dtype of an array, a traced value or a number."""
    return leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
