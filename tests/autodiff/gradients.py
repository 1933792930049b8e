"""Derivatives of a graph compared with finite differences, in f64 and c128.

    check_gradients(ops.sin, [x])        first and second order; raises AssertionError

Complex cotangents follow JAX: the change of Re(sum(w f(x))) along a direction v is Re(sum(g v)),
where g is the cotangent of x for the cotangent w of f(x); nothing is conjugated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tracejit import ops
from tracejit.autodiff import rules
from tracejit.autodiff.reverse import is_differentiable, pullback
from tracejit.backends.numpy import evaluate
from tracejit.graph import Computation, Instruction, Module
from tracejit.shapes import shape_of
from tracejit.verifier import verify

__all__ = ["check_gradients", "rules"]  # the rules are imported for the table they fill

# Small, so that it seldom reaches across a kink; the fourth-order formula is still exact enough.
STEP = 1e-5
DIRECTIONS = 3
NEARBY = 1e-4

# Functions of arrays: all inputs in, all outputs out.
Function = Callable[[list[np.ndarray]], list[np.ndarray]]


def check_gradients(
    build: Callable[..., Instruction],
    arrays: Sequence[np.ndarray],
    order: int = 2,
    relative: float = 1e-6,
    fixed: Sequence[int] = (),
) -> None:
    """Compares the derivatives of ``build`` at ``arrays`` with finite differences.

    ``fixed`` are the positions of arrays that are not differentiated, beside those that are
    neither floating nor complex. The derivative of order 2 is also taken in the cotangents.
    """
    rng = np.random.default_rng(0)
    inputs = [ops.parameter(i, shape_of(a)) for i, a in enumerate(arrays)]
    root = build(*inputs)
    values = list(arrays)
    wanted = [p for i, p in enumerate(inputs) if is_differentiable(p) and i not in fixed]
    outputs = [o for o in ops.elements_of(root) if is_differentiable(o)]
    for level in range(1, order + 1):
        if not wanted or not outputs:
            return
        cotangents = [
            ops.parameter(len(inputs) + i, output.shape) for i, output in enumerate(outputs)
        ]
        weights = [_normal(rng, output.array_shape.dimensions, output) for output in outputs]
        _leave_out_infinities(_function(inputs, outputs)(values), weights)
        results = [
            ops.full_like(w, 0) if r is None else r
            for w, r in zip(wanted, pullback(outputs, wanted, cotangents), strict=True)
        ]
        forward = _function(inputs, outputs)
        inputs, values = [*inputs, *cotangents], [*values, *weights]
        backward = _function(inputs, results)
        # Nearby as well, so that a derivative that is right at one point only is found out.
        for place in (values, _nearby(values, inputs, wanted, rng)):
            _compare(forward, backward, place, weights, inputs, wanted, rng, relative, level)
        wanted, outputs = [*wanted, *cotangents], results


def _normal(rng: np.random.Generator, dimensions: tuple[int, ...], like: Instruction) -> np.ndarray:
    dtype = like.array_shape.dtype
    real = np.asarray(rng.normal(size=dimensions))
    if like.array_shape.element_type.is_complex:
        return np.asarray(real + 1j * rng.normal(size=dimensions)).astype(dtype)
    return real.astype(dtype)


def _nearby(
    values: Sequence[np.ndarray],
    inputs: Sequence[Instruction],
    wanted: Sequence[Instruction],
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """The values with all that is differentiated moved a little."""
    return [
        np.asarray(v + NEARBY * _normal(rng, v.shape, i)) if i in wanted else v
        for v, i in zip(values, inputs, strict=True)
    ]


def _leave_out_infinities(results: list[np.ndarray], weights: list[np.ndarray]) -> None:
    """A maximum over nothing is -inf and has no finite differences, so its weight is 0."""
    for result, weight in zip(results, weights, strict=True):
        np.copyto(weight, 0, where=~np.isfinite(result))


def _function(inputs: Sequence[Instruction], outputs: Sequence[Instruction]) -> Function:
    computation = Computation("gradient", tuple(inputs), ops.tuple_(outputs))
    verify(Module("gradient", computation))
    return lambda values: list(evaluate(computation, values))


def _compare(
    forward: Function,
    backward: Function,
    values: list[np.ndarray],
    weights: list[np.ndarray],
    inputs: list[Instruction],
    wanted: list[Instruction],
    rng: np.random.Generator,
    relative: float,
    level: int,
) -> None:
    given = values[: len(values) - len(weights)]
    gradients = backward(values)
    moving = [inputs.index(w) for w in wanted]
    for _ in range(DIRECTIONS):
        directions = [_normal(rng, values[i].shape, inputs[i]) for i in moving]

        def weighted(distance: float, directions: list[np.ndarray] = directions) -> float:
            moved = list(given)
            for i, direction in zip(moving, directions, strict=True):
                moved[i] = np.asarray(given[i] + distance * direction)
            return _pairing(forward(moved), weights)

        numeric = (
            8 * (weighted(STEP) - weighted(-STEP)) - weighted(2 * STEP) + weighted(-2 * STEP)
        ) / (12 * STEP)
        analytic = _pairing(gradients, directions)
        size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, directions, strict=True))
        allowed = relative * (size + abs(numeric)) + 1e-13 / STEP * (1 + abs(weighted(0.0)))
        assert abs(analytic - numeric) <= allowed, (
            f"order {level}: the derivative is {analytic}, finite differences give {numeric}"
        )


def _pairing(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> float:
    """The real part of the sum of all products; what is multiplied by 0 does not count."""
    pairs = zip(left, right, strict=True)
    return float(sum(np.sum(np.real(a[b != 0] * b[b != 0])) for a, b in pairs))
