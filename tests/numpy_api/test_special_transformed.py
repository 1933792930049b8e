"""Derivatives of all special functions against finite differences, and vmap over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import tracejit as tj
from tests.numpy_api.test_special import ACCURACY, SEVERAL
from tracejit.scipy import special

CASES = ACCURACY | SEVERAL
# No derivative in these arguments is known: it is NaN, or 0 where SciPy cuts off a fraction.
ORDERS = {
    **dict.fromkeys(["jn", "jv", "jve", "yn", "yv", "yve", "iv", "ive", "kn", "expn"], (0,)),
    **dict.fromkeys(["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"], (0,)),
    **dict.fromkeys(["pdtr", "pdtrc", "pdtri"], (0,)),
    **dict.fromkeys(["bdtr", "bdtrc", "nbdtr", "nbdtrc"], (0, 1)),
}
WHOLE = {name: (0,) for name in ORDERS if name not in ("iv", "ive", "jve", "yv", "yve")} | {
    name: (0, 1) for name in ("bdtr", "bdtrc", "nbdtr", "nbdtrc")
}
SLOW = {"betaincinv", "betainccinv", "stdtrit", "fdtri"}
"""Iterations inside of iterations: their derivatives are not batched in tests."""


def _at(name: str) -> list[float]:
    """A place inside of the domain, where the function is smooth."""
    odd = {
        "agm": [2.0, 0.7], "bdtr": [2, 6, 0.3], "bdtrc": [2, 6, 0.3], "ellipj": [0.8, 0.6],
        "boxcox": [1.7, 0.6], "erfcinv": [0.6], "erfinv": [0.3], "ndtri_exp": [-0.9],
        "nrdtrisd": [0.3, 0.7, 1.1], "voigt_profile": [0.4, 0.7, 0.9], "elliprc": [0.4, 0.7],
        "binom": [5.3, 2.2], "comb": [5.3, 2.2], "perm": [5.3, 2.2], "zeta": [2.4],
        "ellipkm1": [0.4], "nrdtrimn": [0.3, 2.1, 1.3],
        "rel_entr": [0.4, 0.7], "fdtri": [1.3, 2.1, 0.3],
    }  # fmt: skip
    if name in odd:
        return odd[name]
    count = len(CASES[name][1])
    made = [0.37, 0.71, 0.43][:count] if count < 3 else [1.3, 2.1, 0.3]
    return [2.0 if n in WHOLE.get(name, ()) else x for n, x in enumerate(made)]


def _parts(made: Any) -> list[Any]:
    return list(made) if isinstance(made, tuple) else [made]


@pytest.mark.parametrize("name", sorted(CASES))
def test_derivatives(name: str) -> None:
    function, like = getattr(special, name), getattr(scipy.special, name)
    at = _at(name)
    for n, x in enumerate(at):
        if n in ORDERS.get(name, ()):
            continue
        h = 1e-4 * max(abs(x), 0.1)

        def along(t: float, n: int = n) -> list[Any]:
            return _parts(like(*at[:n], t, *at[n + 1 :]))

        def ours(t: Any, n: int = n) -> list[Any]:
            return _parts(function(*at[:n], t, *at[n + 1 :]))

        sides = [along(x + k * h) for k in (-2, -1, 1, 2)]
        for part, (a, b, c, d) in enumerate(zip(*sides, strict=True)):
            wanted = (a - 8 * b + 8 * c - d) / (12 * h)
            found = tj.grad(lambda t, part=part: ours(t)[part])(x)
            np.testing.assert_allclose(found, wanted, 2e-6, atol=1e-8)


@pytest.mark.parametrize("name", sorted(CASES))
def test_vmap(name: str) -> None:
    """One argument batched at a time, and all; the other way round for the derivative."""
    function = getattr(special, name)
    at = _at(name)
    for n, x in enumerate(at):
        batch = x + (np.arange(3.0) if n in WHOLE.get(name, ()) else np.arange(3) * 0.01 * abs(x))
        given = [*at[:n], batch, *at[n + 1 :]]
        axes = [0 if k == n else None for k in range(len(at))]
        found = _parts(tj.vmap(function, in_axes=tuple(axes))(*given))
        for mine, theirs in zip(found, _parts(function(*given)), strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-13, atol=1e-300)
        if n in ORDERS.get(name, ()) or name in SLOW:
            continue

        def slope(t: Any, n: int = n) -> Any:
            return tj.grad(lambda t: _parts(function(*at[:n], t, *at[n + 1 :]))[0])(t)

        np.testing.assert_allclose(
            tj.vmap(slope)(batch), [slope(one) for one in batch], 1e-11, atol=1e-300
        )
