"""The derivatives of `factorizations`: from operands and cotangents to the operands' cotangents.

The formulas are written for gradients g, with Re<g, dx> the change of the result; cotangents are
their conjugates. See M. B. Giles, "Collected Matrix Derivative Results for Forward and Reverse Mode
Algorithmic Differentiation" (2008), for most of them, and J. Townsend, "Differentiating the
Singular Value Decomposition" (2016). Where singular values or eigenvalues are equal, vectors have
no derivative and it is infinite, unless nothing depends on them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import UnsupportedError
from tracejit.lax import factorizations
from tracejit.lax.factorizations import Factorization
from tracejit.lax.linalg import triangular_solve
from tracejit.numpy.joining import concatenate
from tracejit.numpy.selecting import take_along_axis, where
from tracejit.ops.matrices import identity
from tracejit.targets import Function, Target, define_target
from tracejit.trace.tracer import lift

Array = Any


def _differentiates(factorization: Factorization) -> Callable[[Function], Function]:
    """Makes a factorization's target known, with the decorated derivative."""

    def define(rule: Function) -> Function:
        define_target(Target(factorization.name, factorization.evaluate, rule))
        return rule

    return define


def _of_gradients(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule on cotangents from one on gradients: ``rule(a, g, …)`` for one operand."""

    @functools.wraps(rule)
    def converted(a: Array, *cotangents: Array) -> Array:
        return rule(a, *(c.conj() for c in cotangents)).conj()

    return converted


def _transposed(a: Array) -> Array:
    return a.swapaxes(-1, -2)


def _adjoint(a: Array) -> Array:
    return a.swapaxes(-1, -2).conj()


def _skew(a: Array) -> Array:
    return a - _adjoint(a)


def _diagonal(a: Array) -> Array:
    """The diagonals as vectors."""
    return a.diagonal(0, -2, -1)


def _on_diagonal(v: Array) -> Array:
    """Matrices with the vectors on their diagonals."""
    return v[..., None] * _identity(v.shape[-1])


def _identity(size: int) -> np.ndarray:
    return np.eye(size, dtype=bool)


def _over_gaps(a: Array, values: Array) -> Array:
    """``a[i, j] / (values[j] - values[i])``; zero on the diagonal, and 0 / 0 is zero as well.

    Without a gap only: elsewhere the quotient depends on ``a`` where that is zero, too.
    """
    gaps = values[..., None, :] - values[..., :, None]
    idle = ((gaps == 0) & (a == 0)) | _identity(a.shape[-1])
    return where(idle, 0, a / where(idle, 1, gaps))


def _inverted(values: Array) -> Array:
    """1 / values, and 0 for 0."""
    zero = values == 0
    return where(zero, 0, 1 / where(zero, 1, values))


def _triangle(a: Array, lower: bool) -> Array:
    """Folds a full cotangent onto the triangle of a Hermitian matrix that is read."""
    size = a.shape[-1]
    mask = np.tril(np.ones((size, size), bool))
    both = a + _adjoint(a)
    half = where(_identity(size), both * 0.5, both)
    return where(mask if lower else mask.T, half, 0)


@_differentiates(factorizations.solve)
def solve(a: Array, b: Array, cotangent: Array) -> tuple[Array, Array]:
    """a x = b:  of b  a^-T c,  of a  -(a^-T c) x^T."""
    (of_b,) = factorizations.solve(_transposed(a), cotangent)
    (x,) = factorizations.solve(a, b)
    return -of_b @ _transposed(x), of_b


def _inverse(a: Array) -> Array:
    return factorizations.solve(a, lift(identity(a.instruction.array_shape), False))[0]


@_differentiates(factorizations.det)
def det(a: Array, cotangent: Array) -> Array:
    (minors,) = factorizations.cofactors(a)
    return cotangent[..., None, None] * minors


@_differentiates(factorizations.cofactors)
def cofactors(a: Array, cotangent: Array) -> Array:
    """Of C = det(a) a^-T:  sum(c a^-T) C - det(a) (a^-1 c a^-1)^T."""
    inverse = _inverse(a)
    (value,) = factorizations.det(a)
    (minors,) = factorizations.cofactors(a)
    total = (cotangent * _transposed(inverse)).sum((-2, -1))
    second = _transposed(inverse @ cotangent @ inverse)
    return total[..., None, None] * minors - value[..., None, None] * second


@_differentiates(factorizations.slogdet)
@_of_gradients
def slogdet(a: Array, of_sign: Array, of_logarithm: Array) -> Array:
    """d log det = tr(a^-1 da): its real part moves the logarithm, its imaginary part the sign."""
    g = of_logarithm
    if np.issubdtype(a.dtype, np.complexfloating):
        (sign, _) = factorizations.slogdet(a)
        g = of_logarithm - 1j * (of_sign.conj() * sign).imag
    return (g[..., None, None] * _adjoint(_inverse(a))).astype(a.dtype)


def _define_hermitian(vectors: Factorization, values: Factorization, lower: bool) -> None:
    """a = v diag(w) v^H:  v (diag(gw) + v^H gv / (w_j - w_i)) v^H."""

    @_differentiates(vectors)
    @_of_gradients
    def eigh(a: Array, of_w: Array, of_v: Array) -> Array:
        w, v = vectors(a)
        inner = _on_diagonal(of_w) + _over_gaps(_adjoint(v) @ of_v, w)
        return _triangle(v @ inner.astype(a.dtype) @ _adjoint(v), lower)

    @_differentiates(values)
    @_of_gradients
    def eigvalsh(a: Array, of_w: Array) -> Array:
        _, v = vectors(a)
        return _triangle((v * of_w[..., None, :]) @ _adjoint(v), lower)


_define_hermitian(factorizations.eigh_lower, factorizations.eigvalsh_lower, True)
_define_hermitian(factorizations.eigh_upper, factorizations.eigvalsh_upper, False)


def _like(a: Array, gradient: Array) -> Array:
    """A gradient of a real matrix is real."""
    if np.issubdtype(a.dtype, np.complexfloating):
        return gradient
    return gradient.real


@_differentiates(factorizations.eig)
@_of_gradients
def eig(a: Array, of_w: Array, of_v: Array) -> Array:
    """v^-H (diag(gw) + (v^H gv - v^H v Re diag(v^H gv)) / conj(w_j - w_i)) v^H, with |v_j| = 1."""
    w, v = factorizations.eig(a)
    vh = _adjoint(v)
    turned = vh @ of_v
    turned = turned - (vh @ v) * _diagonal(turned).real[..., None, :]
    inner = _on_diagonal(of_w) + _over_gaps(turned, w.conj())
    (made,) = factorizations.solve(vh, inner @ vh)
    return _like(a, made)


@_differentiates(factorizations.eigvals)
@_of_gradients
def eigvals(a: Array, of_w: Array) -> Array:
    _, v = factorizations.eig(a)
    vh = _adjoint(v)
    (made,) = factorizations.solve(vh, of_w[..., :, None] * vh)
    return _like(a, made)


@_differentiates(factorizations.svd)
@_of_gradients
def svd(a: Array, of_u: Array, of_s: Array, of_vh: Array) -> Array:
    """a = u diag(s) v^H, of as many columns as the shorter side of a.

    With the gaps e_ij = s_j² - s_i²:
    u (skew(u^H gu) / e s + s skew(v^H gv) / e + diag(gs)) v^H, and what gu and gv have outside of
    the columns of u and v.
    """
    u, s, vh = factorizations.svd(a)
    of_v, v = _adjoint(of_vh), _adjoint(vh)
    turn_u, turn_v = _adjoint(u) @ of_u, vh @ of_v
    squares = s * s
    inner = _over_gaps(_skew(turn_u), squares) * s[..., None, :]
    inner = inner + s[..., :, None] * _over_gaps(_skew(turn_v), squares) + _on_diagonal(of_s)
    inverse = _inverted(s)[..., None, :]
    if np.issubdtype(a.dtype, np.complexfloating):
        inner = inner + _on_diagonal(_diagonal(turn_u).imag * 1j) * inverse
    made = u @ inner.astype(a.dtype) @ vh
    if u.shape[-2] > u.shape[-1]:
        made = made + ((of_u - u @ turn_u) * inverse) @ vh
    if v.shape[-2] > v.shape[-1]:
        made = made + u @ _adjoint((of_v - v @ turn_v) * inverse)
    return made


@_differentiates(factorizations.svdvals)
@_of_gradients
def svdvals(a: Array, of_s: Array) -> Array:
    u, _, vh = factorizations.svd(a)
    return (u * of_s[..., None, :]) @ vh


@_differentiates(factorizations.pinv)
def pinv(a: Array, rcond: Array, cotangent: Array) -> tuple[Array, None]:
    """G. H. Golub and V. Pereyra (1973): -p^H g p^H + (1 - a p) g^H p p^H + p^H p g^H (1 - p a)."""
    (p,) = factorizations.pinv(a, rcond)
    g, ph = cotangent.conj(), _adjoint(p)
    gh = _adjoint(g)
    left, right = gh @ p @ ph, ph @ p @ gh
    made = -ph @ g @ ph + (left - a @ p @ left) + (right - right @ p @ a)
    return made.conj(), None


@_differentiates(factorizations.lstsq)
def lstsq(
    a: Array, b: Array, rcond: Array, of_x: Array, of_values: Array
) -> tuple[Array, Array, None]:
    """x = p b with the pseudo-inverse p of a; the values are those of `svdvals`."""
    (p,) = factorizations.pinv(a, rcond)
    of_a, _ = pinv(a, rcond, of_x @ _transposed(b))
    return of_a + svdvals(a, of_values), _transposed(p) @ of_x, None


@_differentiates(factorizations.qr)
@_of_gradients
def qr(a: Array, of_q: Array, of_r: Array) -> Array:
    """Columns beyond as many as rows are q^H times a's: a = [x y], r = [u q^H y]."""
    q, r = factorizations.qr(a)
    rows, columns = a.shape[-2:]
    if rows >= columns:
        return _qr_of_tall(q, r, of_q, of_r)
    y = a[..., rows:]
    of_u, of_rest = of_r[..., :rows], of_r[..., rows:]
    of_x = _qr_of_tall(q, r[..., :rows], of_q + y @ _adjoint(of_rest), of_u)
    return concatenate([of_x, q @ of_rest], -1)


def _qr_of_tall(q: Array, r: Array, of_q: Array, of_r: Array) -> Array:
    """(gq + q (m + m^H with a real diagonal)) r^-H, m the upper triangle of gr r^H - q^H gq."""
    size = r.shape[-1]
    m = of_r @ _adjoint(r) - _adjoint(q) @ of_q
    upper = where(np.triu(np.ones((size, size), bool)), m, 0)
    both = upper + _adjoint(upper)
    both = where(_identity(size), both * 0.5, both)
    (made,) = factorizations.solve(r, _adjoint(of_q + q @ both))
    return _adjoint(made)


# What only compiled code calls has no derivative.
@_differentiates(factorizations.lu)
def lu(a: Array, of_lu: Array, of_pivots: Array, of_order: Array) -> Array:
    """p a = l u:  of a  p^T l^-T (lower part of l^T c + upper part of c u^T) u^-T."""
    size = a.shape[-1]
    if a.shape[-2] != size:
        raise UnsupportedError("lu: only the factors of square matrices have a derivative")
    packed, _, order = factorizations.lu(a)
    below = np.tril(np.ones((size, size), bool), -1)
    lower = where(below, packed, _identity(size).astype(a.dtype))
    upper = where(below, 0, packed)
    of_lower, of_upper = where(below, of_lu, 0), where(below, 0, of_lu)
    middle = where(below, _transposed(lower) @ of_lower, of_upper @ _transposed(upper))
    left = triangular_solve(
        lower, middle, left_side=True, lower=True, transpose_a=True, unit_diagonal=True
    )
    made = triangular_solve(upper, left, left_side=False, lower=False, transpose_a=True)
    places = order.real.astype(np.int64).argsort(-1)
    return take_along_axis(made, places[..., None], -2)


for _part in (factorizations.qr_r, factorizations.cofactors_of_singular):
    define_target(Target(_part.name, _part.evaluate))

# Vectors that complete a basis are not determined by the matrix, and have no derivative.
for _each in (factorizations.svd_full, factorizations.qr_complete, factorizations.qr_raw):
    define_target(Target(_each.name, _each.evaluate))
