"""What JAX lowers runs here, with JAX's numbers; its linear algebra is calls of LAPACK."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.experimental import io_callback
from jax.lax import linalg
from jaxlib import _hlo

import tracejit as tj
from tests.project import checkout
from tracejit.errors import ArgumentError, TracejitError, UnsupportedError

TYPES = ["f4", "f8", "c8", "c16"]


@pytest.fixture(autouse=True, scope="module")
def _wide() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def matrices(dtype: str, *sizes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = rng.normal(size=sizes)
    if np.dtype(dtype).kind == "c":
        made = made + 1j * rng.normal(size=sizes)
    return made.astype(dtype)


def positive(dtype: str) -> np.ndarray:
    a = matrices(dtype, 3, 4, 4)
    made: np.ndarray = a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(4, dtype=dtype)
    return made


SQUARE: dict[str, Callable[..., Any]] = {
    "solve": lambda a: jnp.linalg.solve(a, a[..., :2]),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "slogdet": jnp.linalg.slogdet,
    "lu": linalg.lu,
    "eigvals": jnp.linalg.eigvals,
    "expm": jax.scipy.linalg.expm,
    "schur": lambda a: jax.scipy.linalg.schur(a[0]),
    "hessenberg": linalg.hessenberg,
    "left eigenvectors": lambda a: [abs(x) for x in linalg.eig(a)],
    "tridiagonal_solve": lambda a: linalg.tridiagonal_solve(a[..., 0], a[..., 1] + 5, a[..., 2], a),
}
HERMITIAN: dict[str, Callable[..., Any]] = {
    "cholesky": jnp.linalg.cholesky,
    "upper cholesky": lambda a: jax.scipy.linalg.cholesky(a[0], lower=False),
    "eigvalsh": jnp.linalg.eigvalsh,
    "eigh": lambda a: [abs(x) for x in linalg.eigh(a)],
    "tridiagonal": linalg.tridiagonal,
    "triangular": lambda a: linalg.triangular_solve(
        a, a, left_side=False, lower=True, transpose_a=True, conjugate_a=True, unit_diagonal=True
    ),
}
TALL: dict[str, Callable[..., Any]] = {
    "qr": jnp.linalg.qr,
    "complete qr": lambda a: jnp.linalg.qr(a, "complete"),
    "pivoted qr": lambda a: linalg.qr(a, pivoting=True, full_matrices=False),
    "products of reflections": lambda a: jax.scipy.linalg.qr_multiply(a[0], a[0].T)[0],
    "singular values": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "svd": lambda a: [abs(x) for x in jnp.linalg.svd(a, full_matrices=False)],
    "full svd": lambda a: [abs(x) for x in jnp.linalg.svd(a)][1:],
    "svd by QR": lambda a: linalg.svd(a, algorithm=linalg.SvdAlgorithm.QR)[1],
    "lu": linalg.lu,
    "pinv": jnp.linalg.pinv,
}
CASES = [
    *(("square", name, f) for name, f in SQUARE.items()),
    *(("hermitian", name, f) for name, f in HERMITIAN.items()),
    *(("tall", name, f) for name, f in TALL.items()),
]


def given(kind: str, dtype: str) -> np.ndarray:
    if kind == "hermitian":
        return positive(dtype)
    return matrices(dtype, 3, *((5, 3) if kind == "tall" else (4, 4)))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("kind", "name", "function"), CASES, ids=[f"{k} {n}" for k, n, _ in CASES])
def test_linear_algebra(kind: str, name: str, function: Any, dtype: str) -> None:
    a = given(kind, dtype)
    expected = jax.tree.leaves(jax.jit(function)(a))
    actual = jax.tree.leaves(tj.from_jax(function)(a))
    tolerance = 2e-3 if np.dtype(dtype).char in "fF" else 1e-9
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (5, 3), (2, 3, 3)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_lu_has_jaxs_derivative(sizes: tuple[int, ...], dtype: str) -> None:
    def loss(a: Any) -> Any:
        packed = linalg.lu(a)[0]
        weights = jnp.arange(packed.size).reshape(packed.shape)
        return jnp.sum(jnp.abs(packed) ** 2 * weights)

    a = matrices(dtype, *sizes)
    np.testing.assert_allclose(tj.grad(tj.from_jax(loss))(a), jax.grad(loss)(a), rtol=1e-8)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 5), (5, 3), (2, 4, 3), (3, 1)])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_qr_has_jaxs_derivative(sizes: tuple[int, ...], dtype: str) -> None:
    def loss(a: Any) -> Any:
        factors = jnp.linalg.qr(a)
        weights = (jnp.arange(f.size).reshape(f.shape) + 1 for f in factors)
        return sum(jnp.sum((f.real + f.imag**2) * w) for f, w in zip(factors, weights, strict=True))

    a = matrices(dtype, *sizes)
    made = tj.jit(tj.grad(tj.from_jax(loss)))(a)
    np.testing.assert_allclose(made, jax.grad(loss)(a), rtol=1e-8, atol=1e-10)


def test_qr_twice_differentiated_and_of_triangles() -> None:
    def loss(a: Any) -> Any:
        return jnp.sum(jnp.linalg.qr(a)[0] ** 3)

    a = matrices("f8", 3, 2)
    made = tj.hessian(tj.from_jax(loss))(a)
    np.testing.assert_allclose(made, jax.hessian(loss)(a), rtol=1e-7, atol=1e-9)
    triangle = np.triu(matrices("f8", 3, 3))
    assert np.isfinite(tj.grad(tj.from_jax(loss))(triangle)).all()


EVERYDAY: dict[str, tuple[Callable[..., Any], str]] = {
    "cholesky": (jnp.linalg.cholesky, "hermitian"),
    "qr": (jnp.linalg.qr, "tall"),
    "lu": (jax.scipy.linalg.lu, "square"),
    "eigh": (jnp.linalg.eigh, "hermitian"),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), "tall"),
    "eigvals": (jnp.linalg.eigvals, "square"),
    "sort": (lambda a: jnp.sort(a, axis=0), "tall"),
    "top_k": (lambda a: lax.top_k(a, 2)[0], "tall"),
    "bits": (lambda a: a * jax.random.bits(jax.random.key(0), a.shape, "uint8"), "tall"),
    "normal": (lambda a: a * jax.random.normal(jax.random.key(0), a.shape), "tall"),
    "categorical": (lambda a: a[jax.random.categorical(jax.random.key(1), a[0])], "square"),
    "erf": (jax.scipy.special.erf, "tall"),
    "fft": (jnp.fft.fft, "tall"),
    "triangular": (
        lambda a: jax.scipy.linalg.solve_triangular(a, a[:, 0], lower=True),
        "hermitian",
    ),
    "cumsum": (lambda a: jnp.cumsum(a, axis=0), "tall"),
    "cumlogsumexp": (lambda a: lax.cumlogsumexp(a, axis=0), "tall"),
    "lstsq": (lambda a: jnp.linalg.lstsq(a, a[:, 0])[0], "tall"),
    "quantile": (lambda a: jnp.quantile(a, 0.3, axis=0), "tall"),
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_functions_and_their_derivatives(name: str) -> None:
    function, kind = EVERYDAY[name]
    a = given(kind, "f8")[0]

    def loss(a: Any) -> Any:
        """Of squared sizes: signs and phases of vectors are LAPACK's affair."""
        made = [f for f in jax.tree.leaves(function(a)) if jnp.issubdtype(f.dtype, jnp.inexact)]
        return sum(
            jnp.sum(jnp.abs(f) ** 2 * jnp.cos(jnp.arange(f.size)).reshape(f.shape)) for f in made
        )

    ours = tj.from_jax(loss)
    np.testing.assert_allclose(tj.jit(ours)(a), jax.jit(loss)(a), rtol=1e-7)
    wanted = jax.grad(loss)(a)
    np.testing.assert_allclose(tj.jit(tj.grad(ours))(a), wanted, rtol=1e-6, atol=1e-7)


def test_second_derivative_of_a_solution() -> None:
    a, b = matrices("f8", 3, 3), matrices("f8", 3)
    f = tj.from_jax(lambda b: jnp.sum(jnp.linalg.solve(a, b) ** 3))
    expected = jax.hessian(lambda b: jnp.sum(jnp.linalg.solve(a, b) ** 3))(b)
    np.testing.assert_allclose(tj.hessian(f)(b), expected, rtol=1e-8)


def network(p: Any, x: Any, *, depth: int = 2) -> Any:
    for _ in range(depth):
        x = jax.nn.gelu(x @ p["w"] + p["b"])
    return {"y": x, "size": jnp.sum(x**2)}


def test_trees_static_arguments_and_composition() -> None:
    p, x = {"w": matrices("f8", 3, 3), "b": matrices("f8", 3)}, matrices("f8", 2, 3)
    f = tj.from_jax(network, static_argnames="depth")
    for depth in (1, 3):
        ours, theirs = f(p, x, depth=depth), network(p, x, depth=depth)
        assert jax.tree.structure(ours) == jax.tree.structure(theirs)
        jax.tree.map(np.testing.assert_allclose, ours, theirs)
    step = tj.jit(tj.grad(lambda p, x: f(p, x)["size"]))
    expected = jax.grad(lambda p: network(p, x)["size"])(p)
    np.testing.assert_allclose(step(p, x)["w"], expected["w"], rtol=1e-9)
    mapped = tj.vmap(lambda x: f(p, x)["size"])(x[:, None])
    np.testing.assert_allclose(mapped, [network(p, row[None])["size"] for row in x])


def test_the_tree_of_results_may_depend_on_shapes() -> None:
    f = tj.from_jax(lambda x: {"one": x} if x.ndim == 1 else [x, 2 * x])
    assert list(f(np.ones(2))) == ["one"]
    assert len(f(np.ones((2, 2)))) == 2
    np.testing.assert_array_equal(f(np.ones(3))["one"], np.ones(3))


def test_numbers_are_weak_as_in_jax() -> None:
    f = tj.from_jax(lambda x, k: x * k)
    assert f(np.ones(2, np.float32), 2.0).dtype == np.float32
    assert f(np.ones(2, np.float32), np.float64(2)).dtype == np.float64


def test_an_exported_library_has_the_function() -> None:
    a, b = matrices("f4", 4, 4), matrices("f4", 4)
    f = tj.from_jax(lambda a, b: jnp.tanh(a @ b))
    compiled = tj.jit(f).lower(a, b).compile()
    np.testing.assert_allclose(compiled(a, b), np.tanh(a @ b), rtol=1e-5)


@pytest.mark.parametrize("form", ["text", "exported", "artifact", "bytecode"])
def test_stablehlo(form: str) -> None:
    x = matrices("f8", 3, 3)
    function = jax.jit(lambda x: (jnp.sin(x) @ x, x.sum()))
    exported = export.export(function)(x)
    source: Any = {  # type: ignore[no-untyped-call]
        "text": lambda: function.lower(x).as_text(),
        "exported": lambda: exported,
        "artifact": lambda: bytes(exported.mlir_module_serialized),
        "bytecode": lambda: exported.mlir_module(),
    }[form]()
    made = tj.compile(tj.from_stablehlo(source))(x)
    for ours, theirs in zip(made, function(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_serialised_hlo() -> None:
    text = "HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT r = f32[2] negate(p)\n}\n"
    data = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    np.testing.assert_array_equal(
        tj.compile(tj.interop.module_of_proto(data))(np.ones(2, np.float32)), [-1, -1]
    )


@pytest.mark.parametrize("source", ["nonsense", b"ML\xefRxx", b"\xff\xfe", 3])
def test_what_is_no_stablehlo_is_refused(source: Any, capfd: Any) -> None:
    with pytest.raises(ArgumentError, match="from_stablehlo: "):
        tj.from_stablehlo(source)


@pytest.mark.parametrize("data", [b"nonsense", b"", b"\x00", b"\x0a\xff", b"\xff" * 20, 3])
def test_what_is_no_proto_is_refused(data: Any) -> None:
    with pytest.raises(ArgumentError, match="module_of_proto: "):
        tj.interop.module_of_proto(data)


def _protos() -> tuple[bytes, bytes]:
    """A module of a function with donated memory, as a message and in what XLA's dumps are."""
    lowered = jax.jit(lambda x: jnp.sin(x) @ x, donate_argnums=0).lower(np.ones((2, 2)))
    module = lowered.compiler_ir("hlo").get_hlo_module().as_serialized_hlo_module_proto()
    size = bytes([len(module) & 127 | 128, len(module) >> 7])
    assert len(module) < 1 << 14
    return module, b"\x0a" + size + module + b"\x1a\x00"  # fields hlo_module and buffer_assignment


def test_a_dump_of_xlas_holds_a_module() -> None:
    x = matrices("f8", 2, 2)
    for data in _protos():
        made = tj.compile(tj.interop.module_of_proto(data))(x)
        np.testing.assert_allclose(made, np.sin(x) @ x, rtol=1e-12)


def test_protos_that_are_cut_short_are_refused_wherever_they_end() -> None:
    for data, least in zip(_protos(), (0, 2), strict=True):
        for length in range(len(data) - least):
            with pytest.raises(ArgumentError, match="module_of_proto: "):
                tj.interop.module_of_proto(data[:length])


def test_damaged_bytecode_never_ends_the_process() -> None:
    """MLIR's reader of bytecode crashes on some of these."""
    whole = bytes(export.export(jax.jit(jnp.sort))(np.ones((3, 3))).mlir_module_serialized)
    draw = np.random.default_rng(0)
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[draw.integers(len(whole))] = draw.integers(256)
        with suppress(TracejitError):
            tj.from_stablehlo(bytes(damaged))
    for length in range(4, len(whole), 16):
        with pytest.raises(ArgumentError, match="from_stablehlo: "):
            tj.from_stablehlo(whole[:length])


def test_bytecode_of_a_later_version_is_refused() -> None:
    whole = bytes(export.export(jax.jit(jnp.sort))(np.ones(3)).mlir_module_serialized)
    with pytest.raises(ArgumentError, match=r"bytecode version .* is newer than the current"):
        tj.from_stablehlo(whole[:4] + b"n" + whole[5:])


def test_functions_of_the_other_process_are_refused() -> None:
    def calling_back(x: Any) -> Any:
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(UnsupportedError, match=r"jax\.pure_callback"):
        tj.from_jax(calling_back)(np.ones(2))


def test_effects_in_order_are_refused_with_target_and_line() -> None:
    def ordered(x: Any) -> Any:
        io_callback(lambda value: None, None, x, ordered=True)
        return x + 1

    match = r"'xla_ffi_python_cpu_callback' is a Python function called back .*test_jax_functions"
    with pytest.raises(UnsupportedError, match=match):
        tj.from_jax(ordered)(np.ones(2))


def test_no_function() -> None:
    with pytest.raises(ArgumentError, match="a function is needed"):
        tj.from_jax(3)  # type: ignore[arg-type]


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (checkout.ROOT / "docs" / "interoperability.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, "interoperability.md", "exec"), names)
    expected = re.findall(r"  # (True.*)", text)
    assert capsys.readouterr().out.splitlines() == expected
