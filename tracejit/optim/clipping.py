"""Clipping of gradients, by value and by the norm of the whole tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit import tree
from tracejit.optim.transformations import Transformation, Tree, mapped, stateless
from tracejit.tracebacks import names_misuse


@names_misuse
def global_norm(updates: Tree) -> Any:
    """The Euclidean norm of all leaves together.

    Raises `ArgumentError` for what is no number.

    >>> tj.optim.global_norm({"w": np.array([3.0]), "b": np.array([4.0])})
    np.float64(5.0)
    """
    total: Any = sum(np.sum(abs(leaf) ** 2) for leaf in tree.leaves(updates))
    return np.sqrt(total)


def clip(max_delta: float) -> Transformation:
    """Every element between -max_delta and max_delta.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.clip(0.5)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([0.5, 0.5])
    """
    return stateless(
        lambda gradient, _: mapped(lambda g: np.clip(g, -max_delta, max_delta), gradient)
    )


def clip_by_global_norm(max_norm: float) -> Transformation:
    """The whole tree scaled down to the norm ``max_norm`` where its norm is greater.

    Raises, in ``update``, `ArgumentError` for a gradient that is not like the parameters.

    >>> params, grads = np.array([1.0, -2.0]), np.array([3.0, 4.0])
    >>> rule = tj.optim.clip_by_global_norm(1.0)
    >>> updates, state = rule.update(grads, rule.init(params), params)
    >>> updates.round(4)
    array([0.6, 0.8])
    """

    def function(gradient: Tree, _: Tree) -> Tree:
        norm = global_norm(gradient)
        factor = max_norm / np.maximum(norm, max_norm)
        return mapped(lambda g: g * factor, gradient)

    return stateless(function)
