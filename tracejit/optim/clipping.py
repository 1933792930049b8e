"""Clipping of gradients, by value and by the norm of the whole tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit import tree
from tracejit.optim.transformations import Transformation, Tree, mapped, stateless


def global_norm(updates: Tree) -> Any:
    """The Euclidean norm of all leaves together."""
    total: Any = sum(np.sum(abs(leaf) ** 2) for leaf in tree.leaves(updates))
    return np.sqrt(total)


def clip(max_delta: float) -> Transformation:
    """Every element between -max_delta and max_delta."""
    return stateless(
        lambda gradient, _: mapped(lambda g: np.clip(g, -max_delta, max_delta), gradient)
    )


def clip_by_global_norm(max_norm: float) -> Transformation:
    """The whole tree scaled down to the norm ``max_norm`` where its norm is greater."""

    def function(gradient: Tree, _: Tree) -> Tree:
        norm = global_norm(gradient)
        factor = max_norm / np.maximum(norm, max_norm)
        return mapped(lambda g: g * factor, gradient)

    return stateless(function)
