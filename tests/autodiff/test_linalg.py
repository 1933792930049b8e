"""Derivatives of numpy.linalg's functions, compared with finite differences; compiled ones too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import tracejit as tj
from tests.autodiff.gradients import check_gradients
from tracejit import hlo
from tracejit.errors import DerivativeError
from tracejit.graph import Instruction, Module
from tracejit.ops.constants import tuple_
from tracejit.trace.context import Trace
from tracejit.trace.convert import operand
from tracejit.trace.tracer import Tracer

Function = Callable[..., Any]


def instructions(function: Function) -> Callable[..., Instruction]:
    """A function of arrays as one of instructions, its results in a tuple."""

    def build(*inputs: Instruction) -> Instruction:
        with Trace("linalg") as trace:
            made = function(*(Tracer(i, trace) for i in inputs))
            results = [operand(m).natural for m in tj.tree.leaves(made)]
        return tuple_(results)

    return build


def matrix(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    values = rng.uniform(-1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(values.astype(dtype))


def regular(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Well-conditioned matrices with eigenvalues and singular values apart."""
    slope = np.diag(np.arange(1.0, shape[-1] + 1))
    return np.asarray((matrix(*shape, dtype=dtype) * 0.3 + slope).astype(dtype))


def squared(values: Any) -> Any:
    """What does not depend on the signs and phases of vectors."""
    return (values * values.conj()).real


def eigh(uplo: Literal["L", "U"]) -> Function:
    def function(a: Any) -> Any:
        w, v = np.linalg.eigh(a, uplo)
        return w, squared(v)

    return function


def svd(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return squared(u), s, squared(vh), u @ vh


def eig(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    return w.real, w.imag, squared(v)


SQUARE: dict[str, Function] = {
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": lambda a: tuple(np.linalg.slogdet(a)),
    "eigh of the lower triangle": eigh("L"),
    "eigh of the upper triangle": eigh("U"),
    "eigvalsh": np.linalg.eigvalsh,
    "eig": eig,
    "eigvals": lambda a: np.linalg.eigvals(a) ** 2,
    "svd": svd,
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "pinv": np.linalg.pinv,
    "matrix_power": lambda a: (np.linalg.matrix_power(a, 3), np.linalg.matrix_power(a, -2)),
    "cond": lambda a: (np.linalg.cond(a), np.linalg.cond(a, 1)),
    "nuclear norm": lambda a: np.linalg.norm(a, "nuc"),
    "spectral norm": lambda a: np.linalg.norm(a, 2),
}
# Vectors of a norm have no derivative where phases are free, which complex matrices' second
# derivatives would need.
ORDERS = {("eig", np.complex128): 1, ("svd", np.complex128): 1}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("name", SQUARE)
def test_square(name: str, dtype: Any) -> None:
    a = regular(3, 3, dtype=dtype)
    order = ORDERS.get((name, dtype), 2)
    check_gradients(instructions(SQUARE[name]), [a], order, relative=1e-5)


OTHER: dict[str, Function] = {
    "svd": svd,
    "svdvals": np.linalg.svdvals,
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "pinv": np.linalg.pinv,
    "norms": lambda a: [np.linalg.norm(a, o) for o in (None, 1, -1, 2, -2, np.inf, "nuc")],
    "norms of rows": lambda a: [np.linalg.norm(a, o, 1) for o in (None, 1, 3, 0.5, -2, np.inf)],
}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", OTHER)
def test_of_any_shape(name: str, shape: tuple[int, ...], dtype: Any) -> None:
    if len(shape) > 2 and "norms" in name:
        shape = (3, 3)
    order = ORDERS.get((name, dtype), 2)
    check_gradients(instructions(OTHER[name]), [matrix(*shape, dtype=dtype)], order, relative=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_of_two_operands(dtype: Any) -> None:
    a, b = regular(2, 3, 3, dtype=dtype), matrix(2, 3, 2, dtype=dtype)
    check_gradients(instructions(np.linalg.solve), [a, b], relative=1e-5)
    check_gradients(instructions(np.linalg.solve), [a, b[0]], relative=1e-5)
    check_gradients(instructions(np.linalg.solve), [a[0], b[0, :, 0]], relative=1e-5)
    tall, right = matrix(4, 2, dtype=dtype), matrix(4, 3, dtype=dtype)
    least = instructions(lambda a, b: np.linalg.lstsq(a, b)[:2])
    check_gradients(least, [tall, right], relative=1e-5)
    check_gradients(least, [tall, right[:, 0]], relative=1e-5)
    check_gradients(least, [tall.T, right[:2]], relative=1e-5)


def gradient(function: Function, at: np.ndarray) -> Any:
    return tj.grad(lambda a: np.sum(function(a)))(at)


def test_norms_have_the_derivative_zero_at_zero() -> None:
    for order in (None, 2, 3):
        for x in (np.zeros(3), np.zeros(3, np.complex64)):
            made = gradient(lambda a, o=order: np.linalg.norm(a, o), x)
            np.testing.assert_array_equal(made, np.zeros(3))
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    made = gradient(lambda a: np.linalg.norm(a, axis=1), rows)
    np.testing.assert_allclose(made, [[0.0, 0.0], [0.6, 0.8]])


def test_determinant_of_a_singular_matrix() -> None:
    """The cofactors."""
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(gradient(np.linalg.det, a), [[4, -2], [-2, 1]], atol=1e-12)
    np.testing.assert_allclose(gradient(np.linalg.det, np.zeros((2, 2))), np.zeros((2, 2)))


def test_equal_eigenvalues() -> None:
    """Values have a derivative; vectors have none, which is seen."""
    eye = np.eye(3)
    np.testing.assert_allclose(gradient(np.linalg.eigvalsh, eye), eye)
    np.testing.assert_allclose(gradient(lambda a: np.linalg.norm(a, "nuc"), eye), eye)
    weights = np.arange(9.0).reshape(3, 3)
    made = gradient(lambda a: np.linalg.eigh(a)[1] * weights, eye)
    assert not np.isfinite(made).all()


@pytest.mark.parametrize("order", ["symmetric", "diagonal"])
def test_second_derivatives_where_the_first_ones_are_symmetric(order: str) -> None:
    """Left and right vectors are the same, and what they turn by cancels."""
    a = regular(3, 3)
    a = a + a.T if order == "symmetric" else np.diag([3.0, 2.0, 1.0])
    check_gradients(instructions(lambda a: np.linalg.svd(a, compute_uv=False)), [a])
    check_gradients(instructions(np.linalg.eigvalsh), [a])


def test_what_has_no_derivative_is_refused() -> None:
    tall = matrix(3, 2)
    for function in (
        lambda a: np.linalg.svd(a)[1],
        lambda a: np.linalg.qr(a, "complete")[1],
        lambda a: np.linalg.qr(a, "raw")[0],
    ):
        with pytest.raises(DerivativeError, match="without a gradient"):
            gradient(function, tall)


def loss(a: Any, b: Any) -> Any:
    """A little of everything."""
    x = np.linalg.solve(a, b)
    w, v = np.linalg.eigh(a @ a.T)
    u, s, vh = np.linalg.svd(b, full_matrices=False)
    lower = np.linalg.cholesky(a @ a.T + np.eye(3))
    return (
        (x**2).sum() + np.log(w).sum() + (v**2 * w).sum() + (u @ vh).sum() + s.sum()
        + np.linalg.slogdet(lower)[1] + np.linalg.norm(x)
    )  # fmt: skip


def test_compiled_and_batched() -> None:
    a, b = regular(2, 3, 3), matrix(2, 3, 2)
    both = tj.grad(loss, argnums=(0, 1))
    expected = [
        np.stack(parts)
        for parts in zip(*(both(*pair) for pair in zip(a, b, strict=True)), strict=True)
    ]
    for run in (tj.jit(tj.vmap(both)), tj.vmap(both)):
        for one, other in zip(run(a, b), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8)


def test_text_of_factorizations_comes_back() -> None:
    module: Module = tj.jit(tj.grad(loss)).lower(regular(3, 3), matrix(3, 2)).module
    again = hlo.parse(str(module))
    assert str(again) == str(module)
    arguments = (regular(3, 3), matrix(3, 2))
    np.testing.assert_array_equal(tj.interpret(again, *arguments), tj.interpret(module, *arguments))
