"""Functions traced through SciPy's own names, judged by SciPy; gradients by differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.stats

import tracejit as tj
from tests.project import checkout
from tracejit.errors import ArgumentError, AttributeValueError, MatrixError, ShapeError

RNG = np.random.default_rng(3)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B = RNG.normal(size=(4, 3))
S = A @ A.T
BATCH = RNG.normal(size=(2, 3, 3))
SIGNAL = RNG.normal(size=(3, 9))
KERNEL = RNG.normal(size=(2, 4))
IMAGE = RNG.normal(size=(6, 7))
WHOLE = RNG.integers(-9, 9, (6, 7))
LINE = np.cumsum(RNG.random(6) + 0.1)
PLACES = RNG.uniform(-4, 10, (2, 20))
SOS = np.asarray(scipy.signal.butter(4, 0.3, output="sos"))
UP, DOWN = (np.asarray(c) for c in scipy.signal.butter(3, 0.4))
STATE = RNG.normal(size=(3, 3))

Case = tuple[Callable[..., Any], tuple[Any, ...]]

LINALG: dict[str, Case] = {
    "norm": (lambda a: scipy.linalg.norm(a), (A,)),
    "norm of rows": (lambda a: scipy.linalg.norm(a, 1, axis=1, keepdims=True), (A,)),
    "pinv": (lambda a: scipy.linalg.pinv(a[:, :2]), (A,)),
    "solve": (lambda a, b: scipy.linalg.solve(a, b), (A, B)),
    "solve vector": (lambda a, b: scipy.linalg.solve(a, b), (A, B[:, 0])),
    "solve transposed": (lambda a, b: scipy.linalg.solve(a, b, transposed=True), (A, B)),
    "solve pos": (lambda a, b: scipy.linalg.solve(a, b, assume_a="pos"), (S, B)),
    "solve sym": (lambda a, b: scipy.linalg.solve(a, b, assume_a="sym", lower=True), (A, B)),
    "solve upper": (lambda a, b: scipy.linalg.solve(a, b, assume_a="upper triangular"), (A, B)),
    "solve_triangular": (lambda a, b: scipy.linalg.solve_triangular(a, b, "T", True), (A, B)),
    "cholesky": (lambda a: scipy.linalg.cholesky(a), (S,)),
    "cho_factor": (lambda a: scipy.linalg.cho_factor(a, lower=True)[0], (S,)),
    "cho_solve": (
        lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(a), b),
        (S, B[:, 0]),
    ),
    "lu_factor": (lambda a: scipy.linalg.lu_factor(a), (A[::-1].copy(),)),
    "lu_solve": (lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b), (A[::-1], B)),
    "lu_solve T": (
        lambda a, b: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), b, trans=1),
        (A[::-1], B),
    ),
    "lu": (lambda a: scipy.linalg.lu(a), (A[::-1].copy(),)),
    "lu tall": (lambda a: scipy.linalg.lu(a, permute_l=True), (B,)),
    "lu wide": (lambda a: scipy.linalg.lu(a, p_indices=True), (B.T.copy(),)),
    "expm": (lambda a: scipy.linalg.expm(a), (BATCH,)),
    "expm large": (lambda a: scipy.linalg.expm(a * 9), (BATCH,)),
    "toeplitz": (lambda c, r: scipy.linalg.toeplitz(c, r), (B[:, 0], B[1])),
    "toeplitz alone": (lambda c: scipy.linalg.toeplitz(c), (B[:, 0],)),
    "block_diag": (lambda a, b: scipy.linalg.block_diag(a, b, [1.0, 2.0]), (A, B)),
    "pinv with rank": (lambda a: scipy.linalg.pinv(a[:, :2], atol=1e-9)[0], (A,)),
    "solve tridiagonal": (
        lambda a, b: scipy.linalg.solve(a, b, assume_a="tridiagonal"),
        (A, B),
    ),
    "qr": (lambda a: scipy.linalg.qr(a, mode="economic"), (B,)),
    "inv": (lambda a: scipy.linalg.inv(a), (A,)),
    "det": (lambda a: scipy.linalg.det(a), (BATCH,)),
    "svd": (lambda a: scipy.linalg.svd(a, compute_uv=False), (B,)),
    "eigh": (lambda a: scipy.linalg.eigh(a, eigvals_only=True), (S,)),
}
SIGNALS: dict[str, Case] = {
    **{
        f"{name} {mode}": (
            lambda x, k, name=name, mode=mode: getattr(scipy.signal, name)(x, k, mode),
            (SIGNAL, KERNEL),
        )
        for name in ("convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
    },
    "valid swapped": (lambda x, k: scipy.signal.correlate(x, k, "valid"), (KERNEL, SIGNAL)),
    "complex": (lambda x, k: scipy.signal.correlate(x, k, "same"), (SIGNAL * 1j, KERNEL + 2j)),
    "by fft": (lambda x, k: scipy.signal.convolve(x, k, method="fft"), (SIGNAL, KERNEL)),
    "fftconvolve axes": (lambda x, k: scipy.signal.fftconvolve(x, k, axes=1), (SIGNAL, KERNEL[:1])),
    "lfilter": (lambda b, a, x: scipy.signal.lfilter(b, a, x), (UP, DOWN, SIGNAL)),
    "lfilter axis": (lambda b, a, x: scipy.signal.lfilter(b, a, x, axis=0), (UP, 2 * DOWN, SIGNAL)),
    "lfilter fir": (lambda b, x: scipy.signal.lfilter(b, [2.0], x), (UP, SIGNAL)),
    "lfilter zi": (
        lambda b, a, x, z: scipy.signal.lfilter(b, a, x, zi=z),
        (UP, DOWN, SIGNAL, STATE),
    ),
    "convolve2d wrap": (
        lambda x, k: scipy.signal.convolve2d(x, k, boundary="wrap"),
        (SIGNAL, KERNEL),
    ),
    "sosfilt": (lambda s, x: scipy.signal.sosfilt(s, x), (SOS, SIGNAL)),
    "sosfilt zi": (
        lambda s, x, z: scipy.signal.sosfilt(s, x, zi=z),
        (SOS, SIGNAL, RNG.normal(size=(2, 3, 2))),
    ),
}
MODES = ("reflect", "mirror", "nearest", "wrap", "constant")
IMAGES: dict[str, Case] = {
    **{
        f"{name} {mode}": (
            lambda x, k, name=name, mode=mode: getattr(scipy.ndimage, name)(
                x, k, mode=mode, cval=0.5
            ),
            (IMAGE, KERNEL),
        )
        for name in ("convolve", "correlate")
        for mode in MODES
    },
    "origin": (lambda x, k: scipy.ndimage.convolve(x, k, origin=(0, 1)), (IMAGE, KERNEL)),
    "convolve1d": (lambda x, k: scipy.ndimage.convolve1d(x, k, axis=0), (IMAGE, KERNEL[0])),
    "gaussian": (lambda x: scipy.ndimage.gaussian_filter(x, 1.3), (IMAGE,)),
    "gaussian axes": (
        lambda x: scipy.ndimage.gaussian_filter(x, (0.5, 2), order=(1, 2), mode="nearest"),
        (IMAGE,),
    ),
    "gaussian1d": (lambda x: scipy.ndimage.gaussian_filter1d(x, 2.0, axis=0, radius=3), (IMAGE,)),
    "uniform": (lambda x: scipy.ndimage.uniform_filter(x, (3, 2)), (IMAGE,)),
    **{
        f"map {order} {mode}": (
            lambda x, c, order=order, mode=mode: scipy.ndimage.map_coordinates(
                x, c, order=order, mode=mode, cval=0.25
            ),
            (IMAGE, PLACES),
        )
        for order in (0, 1)
        for mode in (*MODES, "grid-constant", "grid-wrap")
    },
    "map integers": (lambda x, c: scipy.ndimage.map_coordinates(x, c, order=1), (WHOLE, PLACES)),
}
INTEGRALS: dict[str, Case] = {
    "trapezoid": (lambda y, x: scipy.integrate.trapezoid(y, x, axis=0), (IMAGE, LINE)),
    "cumulative": (lambda y: scipy.integrate.cumulative_trapezoid(y, dx=0.5), (IMAGE,)),
    "cumulative initial": (
        lambda y, x: scipy.integrate.cumulative_trapezoid(y, x, axis=0, initial=0),
        (IMAGE, LINE),
    ),
    "simpson odd": (lambda y: scipy.integrate.simpson(y, dx=0.3), (IMAGE,)),
    "simpson even": (lambda y, x: scipy.integrate.simpson(y, x=x, axis=0), (IMAGE, LINE)),
    "simpson two": (lambda y: scipy.integrate.simpson(y[:2], axis=0), (IMAGE,)),
    "simpson four": (lambda y: scipy.integrate.simpson(y[:4], axis=0, dx=2.0), (IMAGE,)),
}
FOURIER: dict[str, Case] = {
    "fft": (lambda x: scipy.fft.fft(x, 12), (SIGNAL,)),
    "rfft": (lambda x: scipy.fft.rfft(x, axis=0, norm="ortho"), (SIGNAL,)),
    "irfft": (lambda x: scipy.fft.irfft(x), (SIGNAL,)),
    "fftn": (lambda x: scipy.fft.ifftn(scipy.fft.fftn(x), s=(4, 4)), (SIGNAL,)),
    "rfft2": (lambda x: scipy.fft.irfft2(scipy.fft.rfft2(x)), (SIGNAL,)),
    "fftshift": (lambda x: scipy.fft.fftshift(x, 1), (SIGNAL,)),
    "dct": (lambda x: scipy.fft.dct(x), (SIGNAL,)),
    "dct ortho": (lambda x: scipy.fft.dct(x, n=8, norm="ortho"), (SIGNAL,)),
    "idct": (lambda x: scipy.fft.idct(x, axis=0), (SIGNAL,)),
    "idct ortho": (lambda x: scipy.fft.idct(x, norm="ortho", n=10), (SIGNAL,)),
    **{
        f"{name} {kind}": (
            lambda x, name=name, kind=kind: getattr(scipy.fft, name)(x, kind, norm="ortho"),
            (SIGNAL,),
        )
        for name in ("dct", "idst")
        for kind in (1, 3, 4)
    },
    "dctn": (lambda x: scipy.fft.dctn(x, norm="forward"), (SIGNAL,)),
    "idctn": (lambda x: scipy.fft.idctn(x), (SIGNAL,)),
}
GRID = scipy.interpolate.RegularGridInterpolator(
    (LINE, np.arange(7.0)), IMAGE, bounds_error=False, fill_value=None
)
CURVE = scipy.interpolate.interp1d(LINE, IMAGE, axis=0, fill_value="extrapolate")
POINTS = RNG.uniform(0.2, 3.0, (5, 2))
POINTS[:, 0] = RNG.uniform(LINE[0], LINE[-1], 5)
INTERPOLATION: dict[str, Case] = {
    "grid": (
        lambda v, p: scipy.interpolate.RegularGridInterpolator((LINE, np.arange(7.0)), v)(p),
        (IMAGE, POINTS),
    ),
    "grid from outside": (lambda p: GRID(p), (POINTS * 3 - 4,)),
    "grid nearest": (lambda p: GRID(p, method="nearest"), (POINTS,)),
    "curve": (lambda p: CURVE(p), (POINTS * 3 - 4,)),
    **{
        kind: (
            lambda y, p, kind=kind: scipy.interpolate.interp1d(
                LINE, y, kind, 0, bounds_error=False, fill_value=(-1.0, 2.0)
            )(p),
            (IMAGE, POINTS[:, 0] * 3 - 4),
        )
        for kind in ("linear", "nearest", "nearest-up", "previous", "next")
    },
}
FAMILIES = {
    "linalg": LINALG,
    "signal": SIGNALS,
    "ndimage": IMAGES,
    "integrate": INTEGRALS,
    "fft": FOURIER,
    "interpolate": INTERPOLATION,
}
CASES = [(family, name) for family, cases in FAMILIES.items() for name in cases]
STEPS = ("map 0", "nearest", "previous", "next", "integers", "det")
"""What has no gradient, or one that is checked elsewhere."""


def same(got: Any, wanted: Any, tolerance: float, single: bool = False) -> None:
    mine, theirs = tj.tree.leaves(got), tj.tree.leaves(wanted)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape
        if not single:
            assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("family", "name"), CASES)
def test_as_scipy(family: str, name: str) -> None:
    function, given = FAMILIES[family][name]
    traced = tj.jit(lambda *xs: function(*xs))
    same(traced(*given), function(*given), 1e-9)
    single = [x.astype(np.float32) if x.dtype == float else x for x in given]
    if "complex" not in name:
        same(traced(*single), function(*given), 3e-3 if "large" not in name else 1, True)


@pytest.mark.parametrize(("family", "name"), CASES)
def test_gradients(family: str, name: str) -> None:
    function, given = FAMILIES[family][name]
    if any(word in name for word in (*STEPS, "complex", "lu tall", "lu wide")):
        return

    def total(*xs: Any) -> Any:
        made = [leaf for leaf in tj.tree.leaves(function(*xs)) if leaf.dtype.kind in "fc"]
        return sum((abs(leaf) ** 2).sum() for leaf in made)

    scale = 0.1 if "large" in name else 1.0
    tj.check_grads(tj.jit(total), [x * scale for x in given], order=1)


DISTRIBUTIONS: dict[str, tuple[Any, ...]] = {
    "norm": (), "logistic": (), "laplace": (), "cauchy": (), "expon": (), "uniform": (),
    "gamma": (2.5,), "chi2": (3.0,), "beta": (2.0, 3.5), "t": (4.5,), "poisson": (2.5,),
}  # fmt: skip
X = np.concatenate([RNG.normal(size=12) * 3, [-1.0, 0.0, 0.5, 1.0, 3.0, np.inf, -np.inf, np.nan]])


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name: str, method: str) -> None:
    theirs = getattr(scipy.stats, name)
    shapes = DISTRIBUTIONS[name]
    at, options = X, {"loc": 0.25, "scale": 1.5}
    if name == "poisson":
        at, method, options = np.append(np.round(X), 0.5), method.replace("pdf", "pmf"), {"loc": 1}
    with np.errstate(all="ignore"):
        wanted = getattr(theirs, method)(at, *shapes, **options)
        bad = getattr(theirs, method)(at, *[-one for one in shapes], **options)
    traced = tj.jit(lambda x, *s: getattr(theirs, method)(x, *s, **options))
    # SciPy subtracts infinities there; the density is zero.
    kept = ~(np.isinf(at) & np.isnan(wanted))
    at, wanted, bad = at[kept], wanted[kept], bad[kept]
    np.testing.assert_allclose(traced(at, *shapes), wanted, rtol=1e-9, atol=1e-12)
    if shapes:
        refused, finite = traced(at, *[-one for one in shapes]), np.isfinite(at)
        np.testing.assert_array_equal(np.isnan(refused[finite]), np.isnan(bad[finite]))
    single = traced(at.astype("f4"), *[np.float32(one) for one in shapes])
    assert single.dtype == np.float32
    if "log" not in method:
        np.testing.assert_allclose(single, wanted, rtol=1e-4, atol=1e-5)
    if method in ("logpdf", "cdf") and name != "uniform":
        inside = np.array([0.6, 0.8, 1.1])
        tj.check_grads(
            tj.jit(lambda x: getattr(theirs, method)(x, *shapes).sum()), (inside * 0.8,), order=1
        )


def test_derivative_in_parameters() -> None:
    function = tj.jit(lambda m, s: -scipy.stats.norm.logpdf(X[:12], m, s).sum())
    tj.check_grads(function, (0.3, 1.2), order=2)


def test_outside_traces() -> None:
    np.testing.assert_allclose(tj.scipy.stats.norm.cdf(X[:4]), scipy.stats.norm.cdf(X[:4]))
    np.testing.assert_allclose(
        tj.scipy.signal.convolve(SIGNAL, KERNEL), scipy.signal.convolve(SIGNAL, KERNEL)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(tj.scipy.linalg.solve(A, B), scipy.linalg.solve(A, B))


def test_errors() -> None:
    with pytest.raises(MatrixError, match="b must have a row for each of a"):
        tj.jit(lambda a, b: scipy.linalg.solve(a, b))(A, B[:2])
    with pytest.raises(AttributeValueError, match="not a known structure"):
        tj.jit(lambda a: scipy.linalg.solve(a, a, assume_a="odd"))(A)
    with pytest.raises(AttributeValueError, match="trans must be 0, 1 or 2"):
        tj.jit(lambda a: scipy.linalg.solve_triangular(a, a, 3))(A)
    with pytest.raises(ShapeError, match="must have the same rank"):
        tj.jit(lambda x: scipy.signal.convolve(x, x[0]))(SIGNAL)
    with pytest.raises(AttributeValueError, match="mode must be full, same or valid"):
        tj.jit(lambda x: scipy.signal.fftconvolve(x, x, "whole"))(SIGNAL)
    with pytest.raises(ShapeError, match=r"sos must be \[n, 6\]"):
        tj.jit(lambda x: scipy.signal.sosfilt(x, x))(SIGNAL)
    with pytest.raises(ShapeError, match="weights must have a dimension for each of 2 axes"):
        tj.jit(lambda x: scipy.ndimage.convolve(x, x[0]))(IMAGE)
    with pytest.raises(AttributeValueError, match="order must be 0 or 1"):
        tj.jit(lambda x: scipy.ndimage.map_coordinates(x, x[:2]))(IMAGE)
    with pytest.raises(AttributeValueError, match="type must be 1, 2, 3 or 4"):
        tj.jit(lambda x: scipy.fft.dct(x, 5))(SIGNAL)
    with pytest.raises(AttributeValueError, match="initial must be None or 0"):
        tj.jit(lambda x: scipy.integrate.cumulative_trapezoid(x, initial=1))(SIGNAL)
    with pytest.raises(ArgumentError, match=r"norm\.pdf: takes x, loc, scale"):
        tj.jit(lambda x: scipy.stats.norm.pdf(x, mean=2))(X)
    with pytest.raises(AttributeValueError, match="'cubic' is not one of linear"):
        tj.jit(lambda x: scipy.interpolate.interp1d(LINE, x, "cubic", 0)(2.0))(IMAGE)


def test_the_page_names_every_function() -> None:
    page = (checkout.ROOT / "docs" / "scipy.md").read_text(encoding="utf-8")
    for part in tj.scipy.__all__:
        section = page.partition(f"\n## scipy.{part}\n")[2].partition("\n## ")[0]
        missing = [name for name in getattr(tj.scipy, part).__all__ if f"`{name}`" not in section]
        assert missing == [], part
