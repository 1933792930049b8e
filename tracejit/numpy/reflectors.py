"""LAPACK's Householder reflections as array functions, whose derivatives are those of geqrf, orgqr.

packed, tau = factored(a)       R above the diagonal, the vectors v of H = I - tau v v^H below it
q = product(packed, tau)        H_1 H_2 ... H_k, as many columns as ``packed`` has

Of matrices with any number of batch dimensions before them. They compute what geqrf and orgqr do,
the signs of R included (LAPACK Users' Guide, "QR Factorization"; larfg). Where a column is a
multiple of a unit vector already, H is the identity.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracejit.lax.control import fori_loop


def factored(a: Any) -> tuple[Any, Any]:
    rows, columns = np.arange(a.shape[-2]), np.arange(a.shape[-1])
    count = min(a.shape[-2:])

    def step(j: Any, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        a, taus = carried
        column = np.take(a, j, axis=-1)
        alpha = np.take(column, j, axis=-1)[..., None]
        below = rows > j
        rest = np.sum(np.where(below, _square(column), 0), axis=-1, keepdims=True)
        reflects = rest + np.imag(alpha) ** 2 > 0
        norm = np.sqrt(np.where(reflects, rest + _square(alpha), 1))
        beta = np.where(np.real(alpha) < 0, norm, -norm)
        tau = np.where(reflects, (beta - alpha) / beta, 0)
        scale = np.where(reflects, 1 / (alpha - beta), 0)
        v = np.where(below, column * scale, (rows == j).astype(a.dtype))
        along = np.sum(np.conj(v)[..., None] * a, axis=-2)
        turned = a - np.conj(tau)[..., None] * v[..., None] * along[..., None, :]
        corner = np.where(reflects, beta.astype(a.dtype), alpha)
        made = np.where(below, v, np.where(rows == j, corner, column))
        a = np.where(columns > j, turned, np.where(columns == j, made[..., None], a))
        return a, np.where(np.arange(count) == j, tau, taus)

    taus = np.zeros((*a.shape[:-2], count), a.dtype)
    made: tuple[Any, Any] = fori_loop(0, count, step, (a, taus))
    return made


def product(packed: Any, tau: Any) -> Any:
    rows, count = np.arange(packed.shape[-2]), tau.shape[-1]

    def step(i: Any, q: Any) -> Any:
        j = count - 1 - i
        column = np.take(packed, j, axis=-1)
        v = np.where(rows > j, column, (rows == j).astype(packed.dtype))
        along = np.sum(np.conj(v)[..., None] * q, axis=-2)
        factor = np.take(tau, j, axis=-1)[..., None, None]
        return q - factor * v[..., None] * along[..., None, :]

    start = np.broadcast_to(np.eye(*packed.shape[-2:], dtype=packed.dtype), packed.shape)
    return fori_loop(0, count, step, start)


def _square(x: Any) -> Any:
    return np.real(x) ** 2 + np.imag(x) ** 2
