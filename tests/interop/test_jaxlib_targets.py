"""Every custom call that jaxlib registers for the CPU, and that JAX and XLA's CPU compiler make."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.experimental import sparse
from jaxlib import xla_client
from jaxlib.cpu import _lapack, _sparse

import tracejit as tj
from tracejit.errors import UnknownTargetError, UnsupportedError
from tracejit.hlo import lapack_calls
from tracejit.targets import find_target

OP, FUNCTION, REFUSED = "an op", "a function", "refused"

# What becomes of a target: its meaning as a graph, NumPy's and SciPy's functions, or an error.
OF_LAPACK = {
    **dict.fromkeys(["gesdd", "heevd", "potrf", "syevd", "trsm"], OP),
    **dict.fromkeys(["gees", "geev", "gehrd", "geqp3", "geqrf", "getrf", "gtsv"], FUNCTION),
    **dict.fromkeys(["orgqr", "ormqr", "sytrd", "ungqr", "unmqr", "hetrd"], FUNCTION),
    "gesvd": OP,
}
REGISTERED = {
    "cpu_csr_sparse_dense_ffi": FUNCTION,
    "dce_sink": FUNCTION,
    "tridiagonal_solve_perturbed_ffi": FUNCTION,
    "xla_buffer_python_cpu_callback": REFUSED,
    "xla_ffi_partitioned_python_cpu_callback": REFUSED,
    "xla_ffi_python_cpu_callback": REFUSED,
}
# What JAX's lowering for the CPU, StableHLO's export and XLA's CPU compiler make, without an entry
# in the registry.
MADE = {
    "AllocateBuffer": OP,
    "LayoutConstraint": OP,
    "MoveToDevice": OP,
    "MoveToHost": OP,
    "SPMDFullToShardShape": OP,
    "SPMDShardToFullShape": OP,
    "Sharding": OP,
    "TopK": OP,
    "annotate_device_placement": OP,
    "mhlo.erf": OP,
    "PadToStatic": REFUSED,
    "SliceToDynamic": REFUSED,
    "__onednn$convolution": REFUSED,
    "__onednn$layernorm": REFUSED,
    "__onednn$matmul": REFUSED,
    "__onednn$softmax": REFUSED,
    "shape_assertion": REFUSED,
    "stablehlo.dynamic_approx_top_k": REFUSED,
    "stablehlo.dynamic_rng_bit_generator": REFUSED,
    "stablehlo.dynamic_top_k": REFUSED,
}
EXAMPLES = {
    "AllocateBuffer": "ENTRY e { ROOT r = f32[2] custom-call(), custom_call_target=TARGET }",
    "TopK": """g { a = f32[] parameter(0)  b = f32[] parameter(1)
      c = s32[] parameter(2)  d = s32[] parameter(3)
      ROOT r = pred[] compare(a, b), direction=GT }
    ENTRY e { x = f32[5] parameter(0)
      ROOT r = (f32[2], s32[2]) custom-call(x), custom_call_target=TARGET,
        called_computations={g} }""",
}
CALL = (
    "ENTRY e { x = f32[2] parameter(0)  ROOT r = f32[2] custom-call(x), custom_call_target=TARGET }"
)


def registered() -> set[str]:
    return {*_lapack.registrations(), *_sparse.registrations()} | {
        *xla_client.custom_call_targets("cpu")
    }


def expected(target: str) -> str | None:
    routine = lapack_calls.ROUTINE.fullmatch(target)
    return OF_LAPACK.get(routine[2]) if routine else REGISTERED.get(target)


def found(target: str) -> str:
    routine = lapack_calls.ROUTINE.fullmatch(target)
    if routine and routine[2] in lapack_calls.RULES and routine[2] != "geev":
        return OP
    try:
        find_target(target)
    except UnsupportedError:
        return REFUSED
    except UnknownTargetError:
        return "unknown"
    return FUNCTION


def test_every_registered_target_has_its_meaning() -> None:
    # Libraries of the tests register handlers of their own with JAX.
    targets = {t for t in registered() if expected(t) or t.endswith(("_ffi", "callback", "sink"))}
    assert {target: found(target) for target in targets} == {t: expected(t) for t in targets}
    assert {*REGISTERED} <= targets
    assert {m[2] for t in targets if (m := lapack_calls.ROUTINE.fullmatch(t))} == {*OF_LAPACK}


@pytest.mark.parametrize("target", sorted(MADE))
def test_targets_that_are_made(target: str) -> None:
    text = EXAMPLES.get(target, CALL).replace("TARGET", f'"{target}"')
    module = tj.hlo.parse(f"HloModule m\n{text}")
    sizes = [p.array_shape.dimensions[0] for p in module.entry.parameters]
    given = [np.arange(size, dtype=np.float32) for size in sizes]
    if MADE[target] == REFUSED:
        named = target.replace("$", r"\$")
        with pytest.raises(UnsupportedError, match=f"custom_call: target '{named}' is "):
            tj.compile(module)(*given)
        return
    made = tj.compile(module)(*given)
    leaves = [np.asarray(leaf) for leaf in tj.tree.leaves(made)]
    if target == "TopK":
        np.testing.assert_array_equal(leaves[0], [4, 3])
    elif target == "AllocateBuffer":
        assert leaves[0].shape == (2,)
    elif target != "mhlo.erf":
        np.testing.assert_array_equal(leaves[0], given[0])


def test_top_k_of_stablehlo_s_export() -> None:
    text = """module { func.func public @main(%a: tensor<2x6xf32>) ->
        (tensor<2x3xf32>, tensor<2x3xi32>) {
      %0:2 = stablehlo.custom_call @mhlo.topk(%a)
        {mhlo.attributes = {k = 3 : i64, largest = true}, mhlo.version = 1 : i64}
        : (tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
      return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32> } }"""
    x = np.array([[1, 5, 3, 2, 4, 0], [0, 1, 2, 3, 4, 5]], np.float32)
    values, numbers = tj.compile(tj.from_stablehlo(text))(x)
    np.testing.assert_array_equal(values, [[5, 4, 3], [5, 4, 3]])
    np.testing.assert_array_equal(numbers, [[1, 4, 2], [5, 4, 3]])


def gradients(function: Any, *given: Any) -> None:
    """Values and derivatives are JAX's."""
    numbers = tuple(range(len(given)))
    with jax.enable_x64():

        def total(*args: Any) -> Any:
            made = function(*args)
            return (made * made).real.sum()

        wanted = jax.jit(function)(*given), jax.grad(total, numbers)(*given)
        made = tj.from_jax(function)(*given), tj.grad(tj.from_jax(total), numbers)(*given)
    for one, other in zip(jax.tree.leaves(made), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("perturbs", [False, True])
@pytest.mark.parametrize("size", [2, 6])
def test_tridiagonal_systems(dtype: Any, perturbs: bool, size: int) -> None:
    draw = np.random.default_rng(1)

    def drawn(*shape: int) -> Any:
        real, imaginary = draw.normal(size=(2, 2, *shape))
        return (real + 1j * imaginary if dtype == np.complex128 else real).astype(dtype)

    def solve(below: Any, diagonal: Any, above: Any, b: Any) -> Any:
        return lax.linalg.tridiagonal_solve(below, diagonal, above, b, perturb_singular=perturbs)

    gradients(solve, drawn(size), drawn(size) + 5, drawn(size), drawn(size, 3))


def test_a_singular_tridiagonal_system_has_a_finite_solution() -> None:
    zeros, b = np.zeros(4, np.float32), np.ones((4, 1), np.float32)

    def solve(diagonal: Any) -> Any:
        return lax.linalg.tridiagonal_solve(zeros, diagonal, zeros, b, perturb_singular=True)

    made = tj.from_jax(solve)(np.array([1, 2, 0, 4], np.float32))
    assert np.isfinite(made).all()
    np.testing.assert_allclose(made[[0, 1, 3], 0], [1, 0.5, 0.25])


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_products_with_sparse_rows(shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(2)
    dense = np.where(draw.random((4, 5)) > 0.5, draw.normal(size=(4, 5)), 0)
    with jax.enable_x64():
        matrix = sparse.BCSR.fromdense(dense, nse=np.count_nonzero(dense) + 2)
        places = np.asarray(matrix.indices), np.asarray(matrix.indptr)
        b = draw.normal(size=shape)

        def product(values: Any, b: Any) -> Any:
            return sparse.BCSR((values, *places), shape=(4, 5)) @ b

        def total(values: Any, b: Any) -> Any:
            return (product(values, b) ** 2).sum()

        def by_jax(values: Any, b: Any) -> Any:
            return ((sparse.BCSR((values, *places), shape=(4, 5)).todense() @ b) ** 2).sum()

        values = np.asarray(matrix.data)
        np.testing.assert_allclose(tj.from_jax(product)(values, b), dense @ b, rtol=1e-12)
        made = tj.grad(tj.from_jax(total), (0, 1))(values, b)
        wanted = jax.grad(by_jax, (0, 1))(values, b)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-9, atol=1e-12)
