"""Every keyword of SciPy's functions that we have is followed as SciPy follows it, or refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.fft
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.stats

import tracejit as tj
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4, 7))
Z = X + 1j * RNG.normal(size=(4, 7))
V = RNG.normal(size=9)
K = RNG.normal(size=(2, 3))
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
S = A @ A.T
B = RNG.normal(size=(4, 3))
P = RNG.uniform(-9, 14, (2, 40))
WHOLE = RNG.integers(0, 9, (4, 7))
LINE = np.cumsum(RNG.random(7) + 0.1)

TIMES_ONLY = frozenset(
    "overwrite_a overwrite_b overwrite_x check_finite workers plan lapack_driver driver lwork "
    "prefilter".split()
)
"""Keywords that change no result."""
REFUSED = frozenset(
    {
        ("eigh", "subset_by_value"),
        ("qr", "pivoting"),
    }
)
_ONE = {"n": (5, 9), "axis": (0,), "norm": ("ortho", "forward"), "overwrite_x": ()}
_MANY = {"s": ((3, 5), (2, 9)), "axes": ((1,), (1, 0)), "norm": ("ortho", "forward")}
_TURNS = {"type": (1, 3, 4), "norm": ("ortho", "forward"), "orthogonalize": (True,)}
_MODES = ("mirror", "nearest", "wrap", "grid-mirror", "grid-wrap", "grid-constant", "constant")
_FILTER = {"mode": _MODES, "cval": (1.5,), "output": (np.float32,)}
_PARTS = {"mode": ("same", "valid")}
_BORDERS = {"mode": ("same",), "boundary": ("wrap", "symm"), "fillvalue": (1.5,)}
_SINGLE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
_BOUNDED = {"x": (LINE,), "dx": (0.5,), "axis": (0,)}

Values = dict[str, tuple[Any, ...]]
TABLE: dict[str, dict[str, tuple[tuple[Any, ...], Values]]] = {
    "fft": {
        **{name: ((X,), _ONE) for name in _SINGLE},
        **{name: ((X,), _MANY) for name in _SEVERAL},
        **{n: ((X,), _TURNS | {"n": (5, 9), "axis": (0,)}) for n in ("dct", "idct", "dst", "idst")},
        **{n: ((X,), _TURNS | _MANY) for n in ("dctn", "idctn", "dstn", "idstn")},
        **{name: ((X,), {"axes": (1,)}) for name in ("fftshift", "ifftshift")},
    },
    "integrate": {
        "trapezoid": ((X,), _BOUNDED),
        "simpson": ((X,), _BOUNDED),
        "cumulative_trapezoid": ((X,), _BOUNDED | {"initial": (0,)}),
    },
    "linalg": {
        "block_diag": ((A, B), {}),
        "cholesky": ((S,), {"lower": (True,)}),
        "cho_factor": ((S,), {"lower": (True,)}),
        "cho_solve": (((np.tril(S), True), B), {}),
        "det": ((A,), {}),
        "eigh": (
            (S,),
            # Those of generalised problems have a test of their own, below.
            {
                "lower": (False,),
                "eigvals_only": (True,),
                "subset_by_index": ((1, 2),),
                "b": (),
                "type": (),
            },
        ),
        "expm": ((A,), {}),
        "inv": ((A,), {"assume_a": ("sym", "upper triangular"), "lower": (True,)}),
        "lu": ((A,), {"permute_l": (True,), "p_indices": (True,)}),
        "lu_factor": ((A,), {}),
        "lu_solve": ((scipy.linalg.lu_factor(A), B), {"trans": (1, 2)}),
        "norm": ((A,), {"ord": (1, "nuc"), "axis": (0,), "keepdims": (True,)}),
        "pinv": ((S,), {"atol": (9.0,), "rtol": (0.3,), "return_rank": (True,)}),
        "qr": ((B,), {"mode": ("economic", "r")}),
        "solve": (
            (A, B),
            {
                "lower": (True,),
                "assume_a": ("sym", "her", "diagonal", "tridiagonal", "lower triangular", "banded"),
                "transposed": (True,),
            },
        ),
        "solve_triangular": (
            (A, B),
            {"trans": (1, "C"), "lower": (True,), "unit_diagonal": (True,)},
        ),
        "svd": ((B,), {"full_matrices": (False,), "compute_uv": (False,)}),
        "toeplitz": ((V,), {"r": (V[::-1],)}),
    },
    "ndimage": {
        "convolve": ((X, K), _FILTER | {"origin": (-1, (0, 1)), "axes": ((0, 1),)}),
        "correlate": ((X, K), _FILTER | {"origin": (-1, (0, 1)), "axes": ((0, 1),)}),
        "convolve1d": ((X, V[:3]), _FILTER | {"axis": (0,), "origin": (1,)}),
        "correlate1d": ((X, V[:3]), _FILTER | {"axis": (0,), "origin": (1,)}),
        "gaussian_filter": (
            (X, 1.2),
            _FILTER | {"order": (1, (0, 2)), "truncate": (2.0,), "radius": (2,), "axes": ((1,),)},
        ),
        "gaussian_filter1d": (
            (X, 1.2),
            _FILTER | {"axis": (0,), "order": (2,), "truncate": (2.0,), "radius": (2,)},
        ),
        "map_coordinates": ((X, P), _FILTER | {"order": (0, 1)}),
        "uniform_filter": (
            (X,),
            _FILTER | {"size": (2, (3, 4)), "origin": (1,), "axes": ((0,),)},
        ),
    },
    "signal": {
        "convolve": ((X, K), _PARTS | {"method": ("fft", "direct")}),
        "correlate": ((X, K), _PARTS | {"method": ("fft", "direct")}),
        "convolve2d": ((X, K), _BORDERS),
        "correlate2d": ((X, K), _BORDERS),
        "fftconvolve": ((X, K), _PARTS | {"axes": ((0, 1),)}),
        "lfilter": ((V[:3], V[3:6], X), {"axis": (0,), "zi": (X[:, :2],)}),
        "sosfilt": (
            (np.array([[0.2, 0.3, 0.1, 1.0, -0.4, 0.2]] * 2), X),
            {"axis": (0,), "zi": (RNG.normal(size=(2, 4, 2)),)},
        ),
    },
}
NAMES = [(part, name) for part, functions in TABLE.items() for name in functions]


def _defaults(name: str) -> dict[str, Any]:
    """What other keywords must be for one to count."""
    return {"map_coordinates": {"order": 1}}.get(name, {})


def _near(got: Any, wanted: Any) -> None:
    mine, theirs = tj.tree.leaves(got), tj.tree.leaves(wanted)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        tolerance = 1e-5 if one.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_keywords(part: str, name: str) -> None:
    ours: Callable[..., Any] = getattr(getattr(tj.scipy, part), name)
    theirs: Callable[..., Any] = getattr(getattr(scipy, part), name)
    given, values = TABLE[part][name]
    for keyword, tried in values.items():
        for value in tried:
            options = _defaults(name) | {keyword: value}
            if keyword in ("cval", "fillvalue"):
                options |= {"mode": "constant"} if keyword == "cval" else {}
            if keyword == "lower" and name in ("solve", "inv"):
                options |= {"assume_a": "sym"}
            _near(ours(*given, **options), theirs(*given, **options))


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_no_keyword_is_forgotten(part: str, name: str) -> None:
    """A keyword of SciPy's is in the table above, changes no result, or is refused."""
    theirs = inspect.signature(getattr(getattr(scipy, part), name)).parameters.values()
    ours = inspect.signature(getattr(getattr(tj.scipy, part), name)).parameters
    assert not any(one.kind is one.VAR_KEYWORD for one in ours.values())
    values = TABLE[part][name][1]
    for one in theirs:
        if one.default is one.empty or one.name in TIMES_ONLY:
            continue
        assert one.name in values or (name, one.name) in REFUSED, one.name


def test_every_function_has_a_row() -> None:
    for part, functions in TABLE.items():
        names = {*getattr(tj.scipy, part).__all__} - {"fftfreq", "rfftfreq"}
        assert names == {*functions}, part


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "complex cosines": (lambda s, x: s.fft.dctn(x), (Z,)),
    "complex sines": (lambda s, x: s.fft.idst(x, 1, norm="ortho"), (Z,)),
    "half precision": (lambda s, x: s.fft.irfft(x), (X.astype(np.float16),)),
    "ortho without": (lambda s, x: s.fft.dct(x, norm="ortho", orthogonalize=False), (X,)),
    "forward with": (lambda s, x: s.fft.idst(x, 2, norm="forward", orthogonalize=True), (X,)),
    "hermitian": (lambda s, a: s.linalg.solve(a + 1j * a.T, B, assume_a="her"), (A,)),
    "weights complex": (lambda s, x: s.ndimage.correlate(x, K + 1j, mode="wrap"), (X,)),
    "weights complex 1d": (lambda s, x: s.ndimage.convolve1d(x, V[:3] + 1j), (X,)),
    "both complex": (lambda s, x: s.ndimage.correlate(x, K + 1j), (Z,)),
    "bytes wrap": (lambda s, x: s.ndimage.correlate(x, WHOLE[:2, :3]), (WHOLE.astype("u1") * 28,)),
    "derivative of bytes": (
        lambda s, x: s.ndimage.gaussian_filter(x, 1.3, order=1),
        (WHOLE.astype("u1") * 20,),
    ),
    "means of integers": (lambda s, x: s.ndimage.uniform_filter(x, (3, 2)), (WHOLE * 9,)),
    "axes in any order": (
        lambda s, x: s.ndimage.correlate(x, K, axes=(2, 0), origin=(0, -1)),
        (RNG.normal(size=(4, 3, 5)),),
    ),
    "halves mirrored": (
        lambda s, p: s.ndimage.map_coordinates(X, p, order=0, mode="mirror"),
        (RNG.integers(-9, 9, (2, 40)) + 0.5,),
    ),
    "halves reflected": (
        lambda s, p: s.ndimage.map_coordinates(X, p, order=0, mode="reflect"),
        (RNG.integers(-9, 9, (2, 40)) + 0.5,),
    ),
    "whole turns": (
        lambda s, p: s.ndimage.map_coordinates(X, p, order=1, mode="wrap"),
        (RNG.integers(-20, 20, (2, 60)),),
    ),
    "an image of nothing": (lambda s, x: s.ndimage.correlate(x, K), (X[:0],)),
    "a matrix of nothing": (lambda s, x: s.signal.convolve2d(x, K, "same"), (X[:0],)),
    "samples in one place": (
        lambda s, y: s.integrate.simpson(y, x=np.array([0, 1, 1, 2, 2, 2.0])),
        (X[:, :6],),
    ),
    "x of more precision": (lambda s, y: s.integrate.trapezoid(y, LINE), (X.astype("f4"),)),
    "truth values": (lambda s, y: s.integrate.cumulative_trapezoid(y), (X > 0,)),
    "falling grid": (
        lambda s, v: s.interpolate.RegularGridInterpolator(
            (LINE[3::-1], np.arange(7.0)), v, bounds_error=False
        )(np.array([[0.5, 2.0], [LINE[1] + 0.01, 3.5]])),
        (X,),
    ),
    "before the first": (
        lambda s, y: s.interpolate.interp1d(LINE, y, "previous", fill_value="extrapolate")(
            np.array([-1.0, 2.0, 99.0])
        ),
        (X,),
    ),
    "far tails": (lambda s, x: s.stats.norm.logcdf(x * 40), (X,)),
    "far tails of laplace": (lambda s, x: s.stats.laplace.logsf(x * 40), (X,)),
    "quantiles": (lambda s, x: s.stats.norm.ppf(abs(x) / 4, 1.0, 2.0), (X,)),
    "frozen": (lambda s, x: s.stats.gamma(2.0, scale=3.0).logpdf(abs(x)), (X,)),
    "infinite freedom": (lambda s, x: s.stats.t.cdf(x, np.inf), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, given = CASES[name]
    _near(tj.jit(lambda *xs: function(scipy, *xs))(*given), function(scipy, *given))


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("lower", [True, False])
def test_generalised_eigenvalues(kind: int, lower: bool) -> None:
    """Eigenvectors are the same up to a factor of magnitude 1; the normalisation is SciPy's."""
    for a in (A + A.T, A + A.T + 1j * (A - A.T)):
        b = S + (0.1j * (A - A.T) if np.iscomplexobj(a) else 0)

        def function(linalg: Any, a: Any, b: Any) -> Any:
            return linalg.eigh(a, b, type=kind, lower=lower)

        values, vectors = tj.jit(lambda a, b: function(scipy.linalg, a, b))(a, b)
        wanted, theirs = function(scipy.linalg, a, b)
        np.testing.assert_allclose(values, wanted, 1e-10)
        turned = (vectors.conj() * theirs).sum(0)
        np.testing.assert_allclose(vectors * (turned / abs(turned)), theirs, 1e-9, atol=1e-11)
        some = tj.scipy.linalg.eigh(
            a, b, type=kind, lower=lower, eigvals_only=True, subset_by_index=(1, 2)
        )
        np.testing.assert_allclose(some, wanted[1:3], 1e-10)
    h = 1e-6
    slope = tj.grad(lambda t: tj.scipy.linalg.eigh(A + A.T, S + t * np.eye(4), type=kind)[0][1])
    sides = [scipy.linalg.eigh(A + A.T, S + t * np.eye(4), type=kind)[0][1] for t in (-h, h)]
    np.testing.assert_allclose(slope(0.0), (sides[1] - sides[0]) / 2 / h, 1e-5)


def test_objects_made_outside() -> None:
    made = scipy.stats.norm(0.5, 2.0)
    _near(tj.jit(lambda x: made.logpdf(x))(X), made.logpdf(X))
    _near(tj.jit(lambda x, d=made: d.cdf(x))(X), made.cdf(X))
    known = tj.jit(lambda x: x * scipy.stats.gamma.ppf(0.975, 2.0) + scipy.stats.norm.mean())
    _near(known(X), X * scipy.stats.gamma.ppf(0.975, 2.0))


def test_refused() -> None:
    with pytest.raises(AttributeValueError, match="subset_by_value decides shapes by values"):
        tj.jit(lambda x: scipy.linalg.eigh(x, subset_by_value=(0, 1)))(S)
    with pytest.raises(AttributeValueError, match="subset_by_index must be two indices in order"):
        tj.jit(lambda x: scipy.linalg.eigh(x, subset_by_index=(2, 9)))(S)
    with pytest.raises(AttributeValueError, match="type must be 1, 2 or 3, not 4"):
        tj.jit(lambda x: scipy.linalg.eigh(x, x, type=4))(S)
    with pytest.raises(ValueError, match="must have equal sizes"):
        tj.jit(lambda x: scipy.linalg.eigh(x, x[:2, :2]))(S)
    with pytest.raises(ArgumentError, match=r"norm\.pdf: takes real numbers, not complex128"):
        tj.jit(lambda x: scipy.stats.norm.pdf(x))(Z)
    with pytest.raises(UnsupportedError, match=r"scipy\.stats\.gamma\.ppf: cannot be traced"):
        tj.jit(lambda x: scipy.stats.gamma.ppf(x, 2.0))(X)
    with pytest.raises(AttributeValueError, match="coordinates must be real"):
        tj.jit(lambda p: scipy.ndimage.map_coordinates(X, p + 1j, order=1))(P)
    with pytest.raises(AttributeValueError, match="output must be complex"):
        tj.jit(lambda x: scipy.ndimage.correlate(x, K, output="f4"))(Z)
    with pytest.raises(AttributeValueError, match="must rise or fall strictly"):
        tj.jit(lambda v: scipy.interpolate.RegularGridInterpolator(([0, 2, 1, 3], LINE), v))(X)
    with pytest.raises(AttributeValueError, match="origin must be an integer"):
        tj.jit(lambda x: scipy.ndimage.correlate(x, K, origin=0.5))(X)
    with pytest.raises(AttributeValueError, match="axes must be unique"):
        tj.jit(lambda x: scipy.fft.fftn(x, axes=(0, 0)))(X)
