"""Loops inside what a batch runs for all of its elements, though some did not ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np

import tracejit as tj


def halvings(x: Any) -> Any:
    """How often one can be taken from ``x`` until it is zero: endless below zero."""
    start = (x, 0)
    return tj.lax.while_loop(lambda s: s[0] != 0, lambda s: (s[0] - 1, s[1] + 1), start)[1]


def test_of_a_branch_that_is_not_taken() -> None:
    def one(x: Any) -> Any:
        return tj.lax.cond(x >= 0, halvings, lambda x: x * 0 - 1, x)

    made = tj.jit(tj.vmap(one))(np.array([3, -2, 0, 7]))
    np.testing.assert_array_equal(made, [3, -1, 0, 7])


def test_of_a_loop_that_is_over() -> None:
    def one(x: Any) -> Any:
        start = (x, x * 0)
        step = lambda s: (s[0] - 1, s[1] + halvings(s[0]))  # noqa: E731
        return tj.lax.while_loop(lambda s: s[0] >= 0, step, start)[1]

    made = tj.jit(tj.vmap(one))(np.array([3, -2, 0, 4]))
    np.testing.assert_array_equal(made, [6, 0, 0, 10])
