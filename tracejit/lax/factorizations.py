"""What LAPACK computes beyond Cholesky and triangular systems: custom calls to NumPy.

    (x,) = solve(a, b)          u, s, vh = svd(a)          w, v = eigh_lower(a)

Each takes and returns traced arrays, any number of batch dimensions first, all floating or complex
of one element type. A matrix for which NumPy raises `LinAlgError` (singular, no convergence) gives
NaN, since a compiled graph cannot raise. `numpy.factorization_gradients` has the derivatives,
and makes the targets of the calls known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.linalg.lapack import get_lapack_funcs

from tracejit.ops.constants import elements_of
from tracejit.ops.custom import LINEAR_ALGEBRA, custom_call
from tracejit.shapes import ElementType, Shape, TupleShape, shape_of
from tracejit.trace.tracer import Tracer, lift

Arrays = tuple[np.ndarray, ...]
Shapes = Callable[..., Sequence[Shape]]

_MOST_KNOWN = 1024
"""Shapes of operands that each function keeps the results' for."""


@dataclass(frozen=True)
class Factorization:
    """A function of arrays that is recorded as a custom call."""

    name: str
    shapes: Shapes
    numpy: Callable[..., Arrays]
    _known: dict[Any, Sequence[Shape]] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, *operands: Tracer) -> tuple[Tracer, ...]:
        """Records the call."""
        instructions = [operand.instruction for operand in operands]
        shape = TupleShape(tuple(self.shapes(*(i.array_shape for i in instructions))))
        return tuple(lift(e) for e in elements_of(custom_call(self.name, instructions, shape)))

    def evaluate(self, *operands: np.ndarray) -> Arrays:
        """The results, of the matrices that fail NaN."""
        with np.errstate(all="ignore"):
            try:
                return self._typed(operands, self.numpy(*operands))
            except np.linalg.LinAlgError:
                return self._one_by_one(operands)

    def _shapes(self, operands: Sequence[np.ndarray]) -> Sequence[Shape]:
        """The shapes of the results, kept for the next call."""
        key = tuple((operand.shape, operand.dtype.char) for operand in operands)
        shapes = self._known.get(key)
        if shapes is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            shapes = self._known[key] = self.shapes(*map(shape_of, operands))
        return shapes

    def _typed(self, operands: Sequence[np.ndarray], results: Arrays) -> Arrays:
        shapes = self._shapes(operands)
        return tuple(np.asarray(r, s.dtype) for r, s in zip(results, shapes, strict=True))

    def _one_by_one(self, operands: Sequence[np.ndarray]) -> Arrays:
        shapes = self._shapes(operands)
        results = tuple(np.full(s.dimensions, np.nan, s.dtype) for s in shapes)
        batch = operands[0].shape[:-2]
        for index in np.ndindex(*batch):
            try:
                made = self.numpy(*(operand[index] for operand in operands))
            except np.linalg.LinAlgError:
                continue
            for result, one in zip(results, made, strict=True):
                result[index] = one
        return results


def _define(name: str, shapes: Shapes, function: Callable[..., Arrays]) -> Factorization:
    return Factorization(LINEAR_ALGEBRA + name, shapes, function)


def _sized(shape: Shape, *dimensions: int, real: bool = False) -> Shape:
    """The batch of ``shape`` with other dimensions after it."""
    element_type = shape.element_type.real if real else shape.element_type
    return Shape(element_type, (*shape.dimensions[:-2], *dimensions))


def _complex(shape: Shape) -> Shape:
    single = shape.element_type in (ElementType.F32, ElementType.C64)
    return shape.with_element_type(ElementType.C64 if single else ElementType.C128)


solve = _define("solve", lambda a, b: [b], lambda a, b: (np.linalg.solve(a, b),))

det = _define("det", lambda a: [_sized(a)], lambda a: (np.linalg.det(a),))

slogdet = _define(
    "slogdet",
    lambda a: [_sized(a), _sized(a, real=True)],
    lambda a: tuple(np.linalg.slogdet(a)),
)


def _cofactors(a: np.ndarray) -> Arrays:
    """det(a) a^-T, which is finite for singular matrices too."""
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        u, s, vh = np.linalg.svd(a)
        # The cofactors of a product are the products of the cofactors.
        others = [np.prod(np.delete(s, i, -1), -1) for i in range(s.shape[-1])]
        unitary = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
        return (unitary * (u.conj() * np.stack(others, -1)[..., None, :]) @ vh.conj(),)
    return (np.linalg.det(a)[..., None, None] * np.swapaxes(inverse, -1, -2),)


cofactors = _define("cofactors", lambda a: [a], _cofactors)

# What compiled code calls where the inverse is not finite.
cofactors_of_singular = _define("cofactors_of_singular", lambda a: [a], _cofactors)


def _eigh(uplo: Literal["L", "U"]) -> Factorization:
    return _define(
        f"eigh_{uplo.lower()}",
        lambda a: [_sized(a, a.dimensions[-1], real=True), a],
        lambda a: tuple(np.linalg.eigh(a, uplo)),
    )


def _eigvalsh(uplo: Literal["L", "U"]) -> Factorization:
    return _define(
        f"eigvalsh_{uplo.lower()}",
        lambda a: [_sized(a, a.dimensions[-1], real=True)],
        lambda a: (np.linalg.eigvalsh(a, uplo),),
    )


eigh_lower, eigh_upper = _eigh("L"), _eigh("U")
eigvalsh_lower, eigvalsh_upper = _eigvalsh("L"), _eigvalsh("U")

eig = _define(
    "eig",
    lambda a: [_complex(_sized(a, a.dimensions[-1])), _complex(a)],
    lambda a: tuple(np.linalg.eig(a)),
)

eigvals = _define(
    "eigvals",
    lambda a: [_complex(_sized(a, a.dimensions[-1]))],
    lambda a: (np.linalg.eigvals(a),),
)


def _svd_shapes(a: Shape, full: bool = False) -> list[Shape]:
    rows, columns = a.dimensions[-2:]
    rank = min(rows, columns)
    return [
        _sized(a, rows, rows if full else rank),
        _sized(a, rank, real=True),
        _sized(a, columns if full else rank, columns),
    ]


svd = _define("svd", _svd_shapes, lambda a: tuple(np.linalg.svd(a, full_matrices=False)))

svd_full = _define("svd_full", lambda a: _svd_shapes(a, True), lambda a: tuple(np.linalg.svd(a)))

svdvals = _define(
    "svdvals",
    lambda a: _svd_shapes(a)[1:2],
    lambda a: (np.linalg.svd(a, compute_uv=False),),
)

pinv = _define(
    "pinv",
    lambda a, rcond: [_sized(a, a.dimensions[-1], a.dimensions[-2])],
    lambda a, rcond: (np.linalg.pinv(a, rcond),),
)


def _lstsq(a: np.ndarray, b: np.ndarray, rcond: np.ndarray) -> Arrays:
    if a.ndim > 2:
        empty = [np.empty(s.dimensions, s.dtype) for s in lstsq.shapes(*map(shape_of, (a, b)))]
        for index in np.ndindex(*a.shape[:-2]):
            for whole, one in zip(empty, _lstsq(a[index], b[index], rcond[index]), strict=True):
                whole[index] = one
        return tuple(empty)
    x, _, _, values = np.linalg.lstsq(a, b, float(rcond))
    return x, values


lstsq = _define(
    "lstsq",
    lambda a, b, *rcond: [
        _sized(b, a.dimensions[-1], b.dimensions[-1]),
        _sized(a, min(a.dimensions[-2:]), real=True),
    ],
    _lstsq,
)


def _qr_shapes(a: Shape, complete: bool = False) -> list[Shape]:
    rows, columns = a.dimensions[-2:]
    inner = rows if complete else min(rows, columns)
    return [_sized(a, rows, inner), _sized(a, inner, columns)]


qr = _define("qr", _qr_shapes, lambda a: tuple(np.linalg.qr(a)))

qr_r = _define("qr_r", lambda a: _qr_shapes(a)[1:], lambda a: (np.asarray(np.linalg.qr(a, "r")),))

qr_complete = _define(
    "qr_complete", lambda a: _qr_shapes(a, True), lambda a: tuple(np.linalg.qr(a, "complete"))
)

qr_raw = _define(
    "qr_raw",
    lambda a: [
        _sized(a, a.dimensions[-1], a.dimensions[-2]),
        _sized(a, min(a.dimensions[-2:])),
    ],
    lambda a: tuple(np.linalg.qr(a, "raw")),
)


def _lu(a: np.ndarray) -> Arrays:
    """LAPACK's factors in one matrix; the exchanges of rows and their product, of the same type."""
    rows = a.shape[-2]
    batch = a.shape[:-2]
    inner = min(a.shape[-2:])
    packed = np.array(a, order="C")
    pivots = np.zeros((*batch, inner), a.dtype)
    orders = np.zeros((*batch, rows), a.dtype)
    getrf = get_lapack_funcs("getrf", (a,))
    for index in np.ndindex(*batch):
        order = np.arange(rows)
        if a.size:
            packed[index], exchanges, _ = getrf(a[index])
            for i, other in enumerate(exchanges):
                order[[i, other]] = order[[other, i]]
            pivots[index] = exchanges
        orders[index] = order
    return packed, pivots, orders


lu = _define(
    "lu",
    lambda a: [a, _sized(a, min(a.dimensions[-2:])), _sized(a, a.dimensions[-2])],
    _lu,
)
