"""Sums in loops under a condition become sums of selected terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracejit as tj
from tests.backends_tvm.compiled import check
from tracejit import lax
from tracejit.ops.control import WHILE
from tracejit.runtime import importing_tvm
from tracejit.traversal import in_order

with importing_tvm():
    from tracejit.backends.tvm.pipeline import applied

CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda s, v: s + v,
    "add to": lambda s, v: v + s,
    "sub": lambda s, v: s - v,
    "sub from": lambda s, v: v - s,
    "min": np.minimum,
    "max": lambda s, v: np.maximum(v, s),
}


def changed(change: Callable[[Any, Any], Any], is_else: bool) -> Callable[..., Any]:
    def function(x: Any, told: Any, start: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            sides = change(s, x[i]), s
            return np.where(told[i], *(sides[::-1] if is_else else sides))

        return lax.fori_loop(np.int64(0), np.int64(x.shape[0]), step, start)

    return function


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
@pytest.mark.parametrize("name", CHANGES)
def test_values(name: str, dtype: Any) -> None:
    """What is hidden may be NaN."""
    told = np.arange(12) % 3 == 1
    for is_else in (False, True):
        x = np.arange(12).astype(dtype)
        shown = ~told if is_else else told
        if np.dtype(dtype).kind == "f":
            x = np.where(shown, x - 6, np.nan).astype(dtype)
        function = changed(CHANGES[name], is_else)
        for start in (dtype(3), dtype(0)):
            module = tj.jit(function).lower(x, told, start).module
            check(module.entry, [x, told, np.asarray(start)])
            nothing = np.full(12, is_else)
            (made,) = check(module.entry, [x, nothing, np.asarray(start)])
            assert made == start


@pytest.mark.parametrize("name", ["add", "add to", "sub", "min", "max"])
def test_they_need_no_loop(name: str) -> None:
    given = np.ones(12), np.ones(12, bool), np.float64(0)
    module = tj.jit(changed(CHANGES[name], False)).lower(*given).module
    assert not any(i.op is WHILE for i in in_order(applied("vectorize-loops", [module.entry.root])))
