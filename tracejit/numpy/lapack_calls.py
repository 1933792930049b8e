"""XLA's calls of LAPACK that are no ops of ours, by SciPy: LU, Householder, Schur, tridiagonal.

find_target("lapack_dgetrf_ffi").function(a)        (lu, pivots, info)

The functions take arrays with any number of batch dimensions first, and ``backend_config``, the
attributes of the call as HLO writes them. Results are what LAPACK's routines of these names return,
in the order of jaxlib's calls; pivots count from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg import lapack

from tracejit.hlo.lapack_calls import config_of
from tracejit.lax.control import fori_loop
from tracejit.lax.linalg import triangular_solve
from tracejit.loading import supplied
from tracejit.numpy.reflectors import factored, product
from tracejit.ops.constants import elements_of
from tracejit.ops.custom import custom_call
from tracejit.shapes import ElementType, Shape, TupleShape
from tracejit.targets import Target, define_target
from tracejit.trace.tracer import Tracer, lift

Arrays = tuple[Any, ...]
Routine = Callable[..., Arrays]
Config = dict[str, str]


def _batched(routine: Routine, ranks: Sequence[int], letter: str) -> Callable[..., Any]:
    """``routine``, of operands of these ranks, over the dimensions that stand before them."""

    def function(*operands: np.ndarray, backend_config: str = "") -> Any:
        config = config_of(backend_config)
        batch = operands[0].shape[: operands[0].ndim - ranks[0]]

        def of_one(*arrays: np.ndarray) -> list[np.ndarray]:
            made = routine(letter, config, *arrays)
            return [np.asarray(m, np.int32) if isinstance(m, int) else np.asarray(m) for m in made]

        if 0 in batch:  # the shapes of results are those of matrices of zeros
            zeros = [
                np.zeros(o.shape[o.ndim - r :], o.dtype)
                for o, r in zip(operands, ranks, strict=True)
            ]
            results = [np.zeros((*batch, *one.shape), one.dtype) for one in of_one(*zeros)]
        else:
            made = [of_one(*(o[index] for o in operands)) for index in np.ndindex(*batch)]
            results = [
                np.stack(each).reshape((*batch, *each[0].shape)) for each in zip(*made, strict=True)
            ]
        return tuple(results) if len(results) > 1 else results[0]

    return function


def _of_type(letter: str, name: str) -> Any:
    """SciPy's function for a routine and an element type: s, d, c or z."""
    return getattr(lapack, letter + name)


def _getrf(letter: str, config: Config, a: np.ndarray) -> Arrays:
    lu, pivots, info = _of_type(letter, "getrf")(a)
    return lu, (pivots + 1).astype(np.int32), info


def _geqrf(letter: str, config: Config, a: np.ndarray) -> Arrays:
    return tuple(_of_type(letter, "geqrf")(a)[:2])


def _geqp3(letter: str, config: Config, a: np.ndarray, _: np.ndarray) -> Arrays:
    factor, pivots, tau, _, _ = _of_type(letter, "geqp3")(a)
    return factor, pivots.astype(np.int32), tau


def _orgqr(letter: str, config: Config, a: np.ndarray, tau: np.ndarray) -> Arrays:
    name = "ungqr" if letter in "cz" else "orgqr"
    return (_of_type(letter, name)(a, tau)[0],)


def _ormqr(letter: str, config: Config, a: np.ndarray, tau: np.ndarray, c: np.ndarray) -> Arrays:
    name, adjoint_ = ("unmqr", "C") if letter in "cz" else ("ormqr", "T")
    side = "L" if config.get("left") == "true" else "R"
    transposed = adjoint_ if config.get("transpose") == "true" else "N"
    room = max(1, 64 * max(c.shape))
    return (_of_type(letter, name)(side, transposed, a, tau, c, room)[0],)


def _gees(letter: str, config: Config, a: np.ndarray) -> Arrays:
    wanted = int(config.get("mode") == "V")
    form, count, *values, vectors, _, info = _of_type(letter, "gees")(
        lambda *_: None, a, compute_v=wanted
    )
    vectors = vectors if wanted else np.zeros_like(a)
    return form, vectors, *values, count, info


def _gehrd(letter: str, config: Config, a: np.ndarray) -> Arrays:
    low, high = (int(config[key]) - 1 for key in ("low", "high"))
    return tuple(_of_type(letter, "gehrd")(a, low, high))


def _sytrd(letter: str, config: Config, a: np.ndarray) -> Arrays:
    name = "hetrd" if letter in "cz" else "sytrd"
    return tuple(_of_type(letter, name)(a, lower=int(config.get("uplo") != "U")))


def _geev(letter: str, config: Config, a: np.ndarray) -> Arrays:
    """Left eigenvectors too; real matrices' are pairs of columns in LAPACK, complex here."""
    *values, left, right, info = _of_type(letter, "geev")(
        a, int(config.get("compute_left") == "V"), int(config.get("compute_right") == "V")
    )
    if len(values) == 1:
        return *values, _or_zeros(left, a), _or_zeros(right, a), info
    both = [_unpaired(values[1], _or_zeros(vectors, a)) for vectors in (left, right)]
    return *values, *both, info


def _or_zeros(vectors: np.ndarray, a: np.ndarray) -> np.ndarray:
    return vectors if vectors.shape == a.shape else np.zeros_like(a)


def _unpaired(imaginary: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Complex eigenvectors from columns of real and imaginary parts that follow each other."""
    made = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    first = np.flatnonzero(imaginary > 0)
    parts = vectors[:, first] + 1j * vectors[:, first + 1]
    made[:, first], made[:, first + 1] = parts, parts.conj()
    return made


def _gtsv(letter: str, config: Config, *operands: np.ndarray) -> Arrays:
    below, diagonal, above, b = operands
    *_, x, info = _of_type(letter, "gtsv")(below[1:], diagonal, above[:-1], b)
    return below, diagonal, above, x, info


def _perturbed(
    letter: str, config: Config, below: np.ndarray, diagonal: np.ndarray, above: np.ndarray,
    b: np.ndarray,
) -> Arrays:  # fmt: skip
    """The solution with pivots of at least epsilon times the largest number of U."""
    missing = max(0, 3 - len(diagonal))  # what LAPACK's routine needs
    below, above = (np.pad(each, (0, missing)) for each in (below, above))
    diagonal = np.pad(diagonal, (0, missing), constant_values=1)
    given = np.pad(b, ((0, missing), (0, 0)))
    lower, pivots, *upper, order, _ = _of_type(letter, "gttrf")(below[1:], diagonal, above[:-1])
    largest = max(np.abs(each).max(initial=0) for each in (pivots, *upper))
    least = np.finfo(pivots.dtype).eps * largest
    signs = np.where(pivots.real < 0, -1, 1)
    pivots = np.where(np.abs(pivots) < least, signs * least, pivots).astype(pivots.dtype)
    x, _ = _of_type(letter, "gttrs")(lower, pivots, *upper, order, given)
    return (x[: len(b)],)


def _perturbed_of_any(*operands: np.ndarray, backend_config: str = "") -> Any:
    letter = _LETTERS[operands[0].dtype.char]
    return _batched(_perturbed, (1, 1, 1, 2), letter)(*operands, backend_config=backend_config)


def _solved(target: str, matrix: Sequence[Any], b: Any) -> Any:
    """The result x of a call that solves a tridiagonal system."""
    operands = [each.instruction for each in (*matrix, b)]
    shapes = [each.shape for each in operands]
    if target == _PERTURBED:
        return lift(custom_call(target, operands, shapes[3]))
    info = Shape(ElementType.S32, shapes[0].dimensions[:-1])
    return lift(elements_of(custom_call(target, operands, TupleShape((*shapes, info))))[3])


def _tridiagonal_gradient(target: str, matrix: Sequence[Tracer], x: Any, gradient: Any) -> Arrays:
    """Cotangents of the diagonals and of b: with A^T m = g they are -m x^T there, and m."""
    below, diagonal, above = matrix
    zero = np.zeros_like(below[..., :1])
    transposed = (
        np.concatenate([zero, above[..., :-1]], axis=-1),
        diagonal,
        np.concatenate([below[..., 1:], zero], axis=-1),
    )
    m = _solved(target, transposed, gradient)
    first = np.sum(m[..., 1:, :] * x[..., :-1, :], axis=-1)
    last = np.sum(m[..., :-1, :] * x[..., 1:, :], axis=-1)
    return (
        -np.concatenate([zero, first], axis=-1),
        -np.sum(m * x, axis=-1),
        -np.concatenate([last, zero], axis=-1),
        m,
    )


def _gtsv_gradient(*given: Any) -> Arrays:
    """That of the solution; the diagonals come back as they are."""
    matrix, b, gradients = given[:3], given[3], given[4:]
    target = f"lapack_{_LETTERS[b.dtype.char]}gtsv_ffi"
    made = _tridiagonal_gradient(target, matrix, _solved(target, matrix, b), gradients[3])
    return (*(a + b for a, b in zip(made, gradients[:3], strict=False)), made[3])


def _perturbed_gradient(below: Any, diagonal: Any, above: Any, b: Any, gradient: Any) -> Arrays:
    matrix = below, diagonal, above
    return _tridiagonal_gradient(_PERTURBED, matrix, _solved(_PERTURBED, matrix, b), gradient)


def _permutation(pivots: Tracer, rows: int) -> Any:
    """The row of A that comes to each place when row k is exchanged with row ``pivots[k] - 1``."""
    numbers = np.arange(rows)

    def exchanged(k: Any, order: Any) -> Any:
        other = np.take(pivots, k, axis=-1)[..., None] - 1
        here, there = numbers == k, numbers == other
        at_here = np.sum(np.where(here, order, 0), axis=-1, keepdims=True)
        at_there = np.sum(np.where(there, order, 0), axis=-1, keepdims=True)
        return np.where(here, at_there, np.where(there, at_here, order))

    first = np.broadcast_to(numbers, (*pivots.shape[:-1], rows))
    return fori_loop(0, pivots.shape[-1], exchanged, first)


def _lu_gradient(a: Tracer, packed: Tracer, _: Tracer, info: Tracer) -> Arrays:
    """The cotangent of A, of m x n numbers, from that of its packed factors.

    Of a square A = P^T L U, with the gradients G of L, strictly below its diagonal, and H of U, it
    is P^T L^-H (tril(L^H G, -1) + triu(H U^H)) U^-H. Rows below, L2 = A2 U^-1, have the gradient
    G2 U^-H, and take triu(L2^H G2 U^-H) from H; columns on the right, U2 = L^-1 A2, have L^-H H2,
    and take tril(L^-H H2 U2^H, -1) from G. (F. de Hoog, R. Anderssen, M. Lukas, "Differentiation of
    matrix functionals using triangular factorization", 2011.)
    """
    rank, letter = min(a.shape[-2:]), _LETTERS[a.dtype.char]
    shape, batch = a.instruction.array_shape, a.shape[:-2]
    integers = (Shape(ElementType.S32, (*batch, rank)), Shape(ElementType.S32, batch))
    call = custom_call(f"lapack_{letter}getrf_ffi", [a.instruction], TupleShape((shape, *integers)))
    factors, pivots, _ = map(lift, elements_of(call))
    gradient = np.conj(packed)

    def solved(lower: bool, right: Any) -> Any:
        """L^-H right, or right U^-H."""
        return triangular_solve(
            factors[..., :rank, :rank],
            right,
            left_side=lower,
            lower=lower,
            transpose_a=True,
            conjugate_a=True,
            unit_diagonal=lower,
        )

    of_l, of_u = gradient[..., :rank, :rank], gradient[..., :rank, :rank]
    below = solved(False, gradient[..., rank:, :rank])
    of_u = of_u - _adjoint(factors[..., rank:, :rank]) @ below
    beside = solved(True, gradient[..., :rank, rank:])
    of_l = of_l - beside @ _adjoint(factors[..., :rank, rank:])
    lower = np.tril(factors[..., :rank, :rank], -1) + np.eye(rank, dtype=a.dtype)
    upper = np.triu(factors[..., :rank, :rank])
    inner = np.tril(_adjoint(lower) @ np.tril(of_l, -1), -1) + np.triu(
        np.triu(of_u) @ _adjoint(upper)
    )
    made = np.concatenate([solved(True, solved(False, inner)), below], axis=-2)
    if a.shape[-1] > rank:
        made = np.concatenate([made, beside], axis=-1)
    order = _permutation(pivots, a.shape[-2])
    back = np.argsort(order, axis=-1)[..., None]
    return (np.conj(np.take_along_axis(made, back, axis=-2)),)


def _factored_gradient(a: Tracer, packed: Tracer, tau: Tracer) -> Arrays:
    return _pulled_back(factored, (a,), (packed, tau))


def _product_gradient(packed: Tracer, tau: Tracer, q: Tracer) -> Arrays:
    return _pulled_back(product, (packed, tau), q)


def _pulled_back(function: Callable[..., Any], given: Arrays, cotangent: Any) -> Arrays:
    made: Arrays = supplied("gradients").vjp(function, *given)[1](cotangent)
    return made


def _adjoint(a: Any) -> Any:
    return np.conj(np.swapaxes(a, -1, -2))


_PERTURBED = "tridiagonal_solve_perturbed_ffi"
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
_TARGETS: dict[str, tuple[Routine, tuple[int, ...], Callable[..., Any] | None]] = {
    "geev": (_geev, (2,), None),
    "geqrf": (_geqrf, (2,), _factored_gradient),
    "geqp3": (_geqp3, (2, 1), None),
    "gees": (_gees, (2,), None),
    "gehrd": (_gehrd, (2,), None),
    "getrf": (_getrf, (2,), _lu_gradient),
    "gtsv": (_gtsv, (1, 1, 1, 2), _gtsv_gradient),
}
_OF_REAL: dict[str, tuple[Routine, tuple[int, ...], Callable[..., Any] | None]] = {
    "orgqr": (_orgqr, (2, 1), _product_gradient),
    "ormqr": (_ormqr, (2, 1, 2), None),
    "sytrd": (_sytrd, (2,), None),
}
_OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "sytrd": "hetrd"}

for _letter in "sdcz":
    for _name, (_routine, _ranks, _gradient) in _TARGETS.items():
        _function = _batched(_routine, _ranks, _letter)
        define_target(Target(f"lapack_{_letter}{_name}_ffi", _function, _gradient))
    for _name, (_routine, _ranks, _gradient) in _OF_REAL.items():
        _named = _OF_COMPLEX[_name] if _letter in "cz" else _name
        _function = _batched(_routine, _ranks, _letter)
        define_target(Target(f"lapack_{_letter}{_named}_ffi", _function, _gradient))

define_target(Target(_PERTURBED, _perturbed_of_any, _perturbed_gradient))
