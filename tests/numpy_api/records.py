"""One record for each function of tracejit.numpy: how it is called, on which arrays.

"sort": Record(lambda np, x: np.sort(x, axis=-1), "r+!")

The words say which arrays are drawn (tests/numpy_api/drawn.py). A function without arrays is
called once. Ufuncs have their records from their own numbers of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hypothesis.strategies import SearchStrategy

Option = SearchStrategy[Any] | Callable[..., SearchStrategy[Any]]


class Record(NamedTuple):
    """A call and the arrays it takes; ``rtol`` where the default of `compare` is too strict.

    ``options`` are keyword arguments of the call that are drawn, maybe as the arrays require.
    """

    call: Callable[..., Any]
    words: tuple[str, ...] = ()
    rtol: float | None = None
    options: Mapping[str, Option] = {}


def R(call: Callable[..., Any], *words: str, rtol: float | None = None) -> Record:
    """A record written shortly."""
    return Record(call, words, rtol)


def plain(name: str, *words: str, **kwargs: Any) -> Record:
    """The function of arrays alone."""
    return Record(lambda np, *arrays: getattr(np, name)(*arrays, **kwargs), words)


def along(name: str, word: str) -> Record:
    """A reduction of all, along the last axis, and kept."""

    def call(np: Any, x: Any) -> Any:
        function = getattr(np, name)
        return function(x), function(x, axis=-1), function(x, axis=0, keepdims=True)

    return Record(call, (word,))


RECORDS: dict[str, Record] = {
    # Reductions
    **{name: along(name, "a+") for name in ("all", "any", "count_nonzero", "prod", "sum", "mean")},
    **{name: along(name, "r+!") for name in ("max", "min", "amax", "amin")},
    **{name: along(name, "h+") for name in ("std", "var", "nanstd", "nanvar")},
    **{name: along(name, "r+") for name in ("ptp", "median", "nanmedian")},
    **{name: along(name, "r+!") for name in ("nanmax", "nanmin", "nansum", "nanprod", "nanmean")},
    **{
        n: R(lambda np, x, n=n: (getattr(np, n)(x), getattr(np, n)(x, 0)), "r+!")
        for n in ("argmax", "argmin")
    },
    **{n: R(lambda np, x, n=n: getattr(np, n)(x), "r+") for n in ("nanargmax", "nanargmin")},
    **{
        n: R(lambda np, x, n=n: (getattr(np, n)(x), getattr(np, n)(x, -1)), "a+")
        for n in ("cumsum", "cumprod", "nancumsum", "nancumprod")
    },
    **{
        n: R(lambda np, x, n=n: getattr(np, n)(x, axis=0, include_initial=True), "a+")
        for n in ("cumulative_sum", "cumulative_prod")
    },
    "average": R(lambda np, x, w: np.average(x, weights=w * w + 1), "h+", "h="),
    "quantile": R(lambda np, x: np.quantile(x, [0.25, 0.5], axis=0), "o+!"),
    "percentile": R(lambda np, x: np.percentile(x, 40, method="weibull"), "o+!"),
    "nanquantile": R(lambda np, x: np.nanquantile(x, [0.25, 1.0], axis=-1), "o+"),
    "nanpercentile": R(lambda np, x: np.nanpercentile(x, 40, method="nearest"), "o+!"),
    "cov": R(lambda np, x: np.cov(x), "hM"),
    "corrcoef": R(lambda np, x: np.corrcoef(x + np.arange(4.0) ** 2), "hM"),
    "diff": R(lambda np, x: (np.diff(x), np.diff(x, 2, axis=0, prepend=x[:1])), "a+"),
    "ediff1d": R(lambda np, x: np.ediff1d(x, to_end=x.ravel()[:1]), "n+"),
    "gradient": R(lambda np, x: np.gradient(x, 2.0, edge_order=2), "dM"),
    "trapezoid": R(lambda np, x: np.trapezoid(x, dx=0.5, axis=0), "h+"),
    # Sorting, searching, sets
    "sort": R(lambda np, x: (np.sort(x), np.sort(x, axis=None)), "a+"),
    "argsort": R(lambda np, x: np.argsort(x, axis=0, stable=True), "a+"),
    "lexsort": R(lambda np, x, y: np.lexsort((x, y)), "rv", "r="),
    "partition": R(lambda np, x: np.partition(x, 1)[1], "dV"),
    "argpartition": R(lambda np, x: x[np.argpartition(x, 1)][1], "dV"),
    "sort_complex": plain("sort_complex", "av"),
    "searchsorted": R(lambda np, x, v: np.searchsorted(np.sort(x), v), "ov!", "o*!"),
    "digitize": R(lambda np, x, v: np.digitize(v, np.sort(x), right=True), "dv", "o*"),
    "unique": R(lambda np, x: np.isin(x, np.unique(np.array([1, 2, 2, 0]))), "j+"),
    "unique_all": R(lambda np, x: x[np.unique_all(np.array([1, 2, 2, 0])).indices], "jV"),
    "unique_counts": R(lambda np, x: x[0] * np.unique_counts(np.array([1, 2, 2])).counts, "jV"),
    "unique_inverse": R(lambda np, x: x[np.unique_inverse(np.array([1, 2, 2]))[1]], "jV"),
    "unique_values": R(lambda np, x: x[np.sort(np.unique_values(np.array([1, 2, 2])))], "jV"),
    "isin": R(lambda np, x, y: (np.isin(x, y), np.isin(x, y, invert=True)), "a*", "a+"),
    "union1d": R(lambda np, x: x[np.union1d(np.array([1, 2]), np.array([2, 3]))], "aV"),
    "intersect1d": R(lambda np, x: x[np.intersect1d(np.array([1, 2]), np.array([2, 3]))], "aV"),
    "setdiff1d": R(lambda np, x: x[np.setdiff1d(np.array([1, 2]), np.array([2, 3]))], "aV"),
    "setxor1d": R(lambda np, x: x[np.setxor1d(np.array([1, 2]), np.array([2, 3]))], "aV"),
    "nonzero": R(lambda np, x: x[np.nonzero(np.array([1, 0, 2]))], "aV"),
    "flatnonzero": R(lambda np, x: x[np.flatnonzero(np.array([1, 0, 2]))], "aV"),
    "argwhere": R(lambda np, x: x[np.argwhere(np.array([1, 0, 2]))], "aV"),
    "where": R(lambda np, x, y: np.where(x > y, x, y), "o*", "ob"),
    "extract": R(lambda np, x: np.extract(np.array([True, False, True, True]), x), "a4"),
    "compress": R(lambda np, x: np.compress([True, False, True], x, axis=0), "aM"),
    # Selecting and writing
    "take": R(lambda np, x, i: np.take(x, i, mode="wrap"), "a+", "i*"),
    "take_along_axis": R(lambda np, x: np.take_along_axis(x, np.argsort(x, -1), -1), "r+"),
    "put_along_axis": R(lambda np, x: np.put_along_axis(x * 2, np.argsort(x, -1), 3, -1), "oC"),
    "put": R(lambda np, x: np.put(x * 2, [0, 2], 3), "oC"),
    "putmask": R(lambda np, x: np.putmask(x * 2, x > 0, x), "oC"),
    "place": R(lambda np, x: np.place(x * 2, x > 0, [1, 2]), "oC"),
    "copyto": R(lambda np, x: np.copyto(x * 2, x, where=x > 0), "oC"),
    "fill_diagonal": R(lambda np, x: np.fill_diagonal(x * 2, 1), "os"),
    "choose": R(lambda np, i, x, y: np.choose(i, [x, y], mode="clip"), "i*", "a=", "a="),
    "select": R(lambda np, x: np.select([x > 1, x < 0], [x, x * 2], 5), "o*"),
    "clip": R(lambda np, x: (np.clip(x, 1, 3), np.clip(x, None, 2)), "o*!"),
    "nan_to_num": R(lambda np, x: np.nan_to_num(x, nan=2.0), "a*!"),
    "diag": R(lambda np, x: (np.diag(x), np.diag(x[0], 1)), "aM"),
    "diagflat": plain("diagflat", "a+"),
    "diagonal": R(lambda np, x: np.diagonal(x, 1, 0, -1), "aC"),
    "trace": R(lambda np, x: np.trace(x, 1), "aM"),
    "piecewise": R(lambda np, x: np.piecewise(x, [x < 0], [lambda t: -t, 1]), "d*"),
    # Shapes
    **{n: plain(n, "a*") for n in ("ravel", "shape", "size", "ndim", "copy", "atleast_1d")},
    **{
        n: plain(n, "a*")
        for n in ("atleast_2d", "atleast_3d", "transpose", "permute_dims", "squeeze")
    },
    "reshape": R(lambda np, x: (np.reshape(x, -1), np.reshape(x, x.shape[::-1], order="F")), "a+"),
    "expand_dims": R(lambda np, x: np.expand_dims(x, (0, -1)), "a*"),
    "moveaxis": R(lambda np, x: np.moveaxis(x, 0, -1), "aC"),
    "rollaxis": R(lambda np, x: np.rollaxis(x, 2), "aC"),
    "swapaxes": R(lambda np, x: np.swapaxes(x, 0, -1), "a+"),
    "matrix_transpose": plain("matrix_transpose", "aC"),
    "nditer": R(lambda np, x: [2 * v for v in np.nditer(x.copy().T)], "om"),
    "broadcast_to": R(lambda np, x: np.broadcast_to(x, (2, *x.shape)), "a*"),
    "broadcast_arrays": plain("broadcast_arrays", "a*", "ab"),
    "concatenate": R(lambda np, x, y: np.concatenate([x, y], -1), "a+", "a="),
    "concat": R(lambda np, x, y: np.concat([x, y], axis=None), "a+", "a="),
    "append": R(lambda np, x, y: np.append(x, y), "a*", "ab"),
    "stack": R(lambda np, x, y: np.stack([x, y], -1), "a*", "a="),
    "unstack": R(lambda np, x: np.unstack(x, axis=-1), "a+"),
    **{
        n: R(lambda np, x, y, n=n: getattr(np, n)([x, y]), "a+", "a=")
        for n in ("vstack", "hstack", "dstack")
    },
    "row_stack": R(lambda np, x, y: np.vstack([x, y]), "a+", "a="),
    "column_stack": R(lambda np, x, y: np.column_stack([x, y]), "aV", "a="),
    "block": R(lambda np, x, y: np.block([[x, y], [y, x]]), "am", "a="),
    "split": R(lambda np, x: np.split(x, [1, 2]), "a+"),
    "array_split": R(lambda np, x: np.array_split(x, 3, axis=-1), "a+"),
    "hsplit": R(lambda np, x: np.hsplit(x, 2), "aM"),
    "vsplit": R(lambda np, x: np.vsplit(x, 3), "aM"),
    "dsplit": R(lambda np, x: np.dsplit(x, 2), "aC"),
    "flip": R(lambda np, x: (np.flip(x), np.flip(x, 0)), "a+"),
    "fliplr": plain("fliplr", "aM"),
    "flipud": plain("flipud", "aM"),
    "rot90": R(lambda np, x: np.rot90(x, 3), "aM"),
    "roll": R(lambda np, x: (np.roll(x, 3), np.roll(x, -1, 0)), "a+"),
    "tile": R(lambda np, x: np.tile(x, (2, 1, 3)), "a*"),
    "repeat": R(lambda np, x: (np.repeat(x, 2), np.repeat(x, 3, axis=0)), "a+"),
    "resize": R(lambda np, x: np.resize(x, (3, 5)), "a+"),
    "insert": R(lambda np, x: np.insert(x, 1, 2, axis=0), "a+"),
    "delete": R(lambda np, x: np.delete(x, 0, axis=-1), "a+"),
    "pad": R(lambda np, x: (np.pad(x, 2), np.pad(x, 2, "reflect"), np.pad(x, 1, "edge")), "a+"),
    "trim_zeros": R(lambda np, x: x[0] * np.trim_zeros(np.array([0, 1, 0])), "dV"),
    "tril": R(lambda np, x: np.tril(x, 1), "aC"),
    "triu": R(lambda np, x: np.triu(x, -1), "aC"),
    "vander": R(lambda np, x: np.vander(x, 3), "hv"),
    # Products
    "matmul": R(lambda np, x, y: np.matmul(x, np.matrix_transpose(y)), "aC", "a="),
    "matvec": R(lambda np, x, v: np.matvec(x, v), "nC", "n4"),
    "vecmat": R(lambda np, x: np.vecmat(x[:, 0], x), "nM"),
    "vecdot": plain("vecdot", "nC", "n="),
    "spacing": plain("spacing", "h*!"),
    "dot": R(lambda np, x, y: np.dot(x, y.T), "aM", "a="),
    "inner": plain("inner", "aM", "a="),
    "outer": plain("outer", "a+", "a+"),
    "vdot": plain("vdot", "aM", "a="),
    "kron": plain("kron", "am", "am"),
    "cross": R(lambda np, x, y: np.cross(x, y), "hs", "h="),
    "tensordot": R(lambda np, x, y: np.tensordot(x, y, ([0, 1], [0, 1])), "nC", "n="),
    "einsum": R(lambda np, x, y: np.einsum("ij,kj->ik", x, y), "nM", "n="),
    "einsum_path": R(lambda np, x, y: np.einsum_path("ij,kj->ik", x, y)[0][1], "nM", "n="),
    # Signals, polynomials, histograms
    "convolve": R(lambda np, x, y: (np.convolve(x, y), np.convolve(x, y, "same")), "nv", "nv"),
    "correlate": R(lambda np, x, y: (np.correlate(x, y, "full"), np.correlate(x, y)), "nv", "nv"),
    "interp": R(lambda np, x, p: np.interp(x, np.arange(4.0), p, left=9), "o*!", "d4"),
    "unwrap": R(lambda np, x: np.unwrap(x * 3), "h+"),
    "poly": R(lambda np, x: np.poly(x), "hv"),
    "polyadd": plain("polyadd", "nv", "nv"),
    "polysub": plain("polysub", "nv", "nv"),
    "polymul": R(lambda np, x: np.polymul(x * x + 1, np.array([2.0, 1.0])), "hv"),
    "polydiv": R(lambda np, x: np.polydiv(x, np.array([2.0, 1.0]))[0], "dV"),
    "polyder": plain("polyder", "nV"),
    "polyint": R(lambda np, x: np.polyint(x, 2, 3.0), "dV"),
    "polyval": plain("polyval", "nv", "n*"),
    "polyfit": R(lambda np, y: np.polyfit(np.arange(4.0), y, 2), "d4", rtol=1e-9),
    "roots": R(lambda np, x: x[0] * np.sort(np.roots(np.array([1.0, -3.0, 2.0])).real), "dV"),
    "bincount": R(lambda np, w: np.bincount(np.array([0, 2, 2, 1]), w, 6), "o4"),
    "histogram": R(lambda np, x: (np.histogram(x, 5), np.histogram(x, [-2, 0, 1, 3])), "o+"),
    "histogram_bin_edges": R(lambda np, x: np.histogram_bin_edges(x, 3), "o+"),
    "histogram2d": R(lambda np, x, y: np.histogram2d(x, y, 3), "dV", "d="),
    "histogramdd": R(lambda np, x: np.histogramdd(x, (2, 3, 2, 2), density=False), "dM"),
    "i0": plain("i0", "h*"),
    "sinc": plain("sinc", "h*"),
    "packbits": R(lambda np, x: (np.packbits(x), np.packbits(x, -1, "little")), "b+"),
    "unpackbits": R(lambda np, x: (np.unpackbits(x), np.unpackbits(x, -1)), "u+"),
    # Functions of functions
    "apply_along_axis": R(lambda np, x: np.apply_along_axis(lambda r: r * r[0], 0, x), "o+"),
    "apply_over_axes": R(lambda np, x: np.apply_over_axes(np.sum, x, [0, 2]), "oC"),
    "fromfunction": R(lambda np: np.fromfunction(lambda i, j: i * 2 + j, (2, 3))),
    "fromiter": R(lambda np: np.fromiter((k * k for k in range(4)), float)),
    # Comparisons and questions
    "isclose": R(lambda np, x, y: np.isclose(x, y, atol=0.3, equal_nan=True), "n*!", "nb"),
    "allclose": R(lambda np, x, y: np.allclose(x, y, atol=1), "n*", "nb"),
    "array_equal": plain("array_equal", "a*", "a="),
    "array_equiv": plain("array_equiv", "a*", "ab"),
    **{
        n: plain(n, "a*")
        for n in ("iscomplex", "isreal", "iscomplexobj", "isrealobj", "real", "imag")
    },
    **{n: plain(n, "f*!") for n in ("isneginf", "isposinf", "fix")},
    "angle": R(lambda np, x: np.angle(x, deg=True), "x*"),
    "real_if_close": plain("real_if_close", "f+"),
    "round": R(lambda np, x: np.round(x, 1), "h*"),
    "around": R(lambda np, x: np.around(x), "g*!"),
    "asarray_chkfinite": plain("asarray_chkfinite", "aV"),
    "common_type": R(lambda np, x: np.common_type(x, x).__name__ == "", "aV"),
    "isfortran": R(lambda np, x: (np.isfortran(x.copy()), np.isfortran(x.copy().T)), "aM"),
    "isscalar": R(lambda np, x: (np.isscalar(x), np.isscalar(x[0]), np.isscalar(2)), "a+"),
    "require": R(lambda np, x: np.require(x * 2, np.float64, ["F", "O"]), "hM"),
    "may_share_memory": R(lambda np, x: np.may_share_memory(x, x), "aV"),
    "shares_memory": R(lambda np, x: np.shares_memory(x, x), "aV"),
    "min_scalar_type": R(lambda np: str(np.min_scalar_type(7)) == ""),
    "result_type": R(lambda np, x: np.zeros(2, np.result_type(x, np.float32)), "a*"),
    "array_repr": R(lambda np: np.array_repr(np.arange(3)) == "array([0, 1, 2])"),
    "array_str": R(lambda np: np.array_str(np.arange(3)) == "[0 1 2]"),
    "astype": R(lambda np, x: np.astype(x, np.float32), "r*"),
    # Creation
    **{n: plain(n, "a*") for n in ("array", "asarray", "asanyarray", "zeros_like", "ones_like")},
    **{n: plain(n, "a+") for n in ("ascontiguousarray", "asfortranarray", "from_dlpack")},
    "empty_like": R(lambda np, x: np.empty_like(x) * 0, "n*"),
    "full_like": R(lambda np, x: np.full_like(x, 3), "a*"),
    "full": R(lambda np, x: np.full((2, 3), x), "a0"),
    "zeros": R(lambda np: np.zeros((2, 3), np.int8)),
    "ones": R(lambda np: np.ones((2, 3))),
    "empty": R(lambda np: np.empty((2, 3)).shape),
    "arange": R(lambda np: (np.arange(5), np.arange(1, 9, 2.5), np.arange(20, dtype=np.float32))),
    "linspace": R(lambda np, x: np.linspace(0, x, 5), "h*"),
    "logspace": R(lambda np, x: np.logspace(0, x, 4), "h*"),
    "geomspace": R(lambda np, x: np.geomspace(1, x * x + 1, 4), "d*"),
    "eye": R(lambda np: np.eye(3, 4, 1)),
    "identity": R(lambda np: np.identity(3)),
    "tri": R(lambda np: np.tri(3, 4, 1)),
    "meshgrid": R(lambda np, x, y: np.meshgrid(x, y), "av", "av"),
    "indices": R(lambda np: np.indices((2, 3))),
    "diag_indices": R(lambda np: np.diag_indices(3)),
    "diag_indices_from": R(lambda np, x: x[np.diag_indices_from(x)], "as"),
    "tril_indices": R(lambda np: np.tril_indices(3, 1)),
    "triu_indices": R(lambda np: np.triu_indices(3, -1, 4)),
    "tril_indices_from": R(lambda np, x: x[np.tril_indices_from(x)], "aM"),
    "triu_indices_from": R(lambda np, x: x[np.triu_indices_from(x, 1)], "aM"),
    "mask_indices": R(lambda np: np.mask_indices(3, np.triu)),
    "ix_": R(lambda np, x: x[np.ix_([0, 2], [1, 3])], "aM"),
    "unravel_index": R(lambda np, i: np.unravel_index(np.clip(i, 0, 9), (3, 4)), "j*"),
    "ravel_multi_index": R(lambda np, i: np.ravel_multi_index((i, i), (3, 4), mode="wrap"), "j*"),
    **{
        n: R(lambda np, n=n: (getattr(np, n)(5), getattr(np, n)(1), getattr(np, n)(0)))
        for n in ("bartlett", "blackman", "hamming", "hanning")
    },
    "kaiser": R(lambda np: np.kaiser(6, 4.0)),
}
