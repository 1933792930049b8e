"""Records of functions whose axes, dtypes and modes are drawn as well as their arrays."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.numpy_api.linear import FFT, LINALG
from tests.numpy_api.options import (
    DTYPES,
    TRUTH,
    axes,
    axis,
    drawn,
    function,
    of_list,
    one_of,
    permutation,
    plain_reduction,
    reduction,
    sections,
)
from tests.numpy_api.records import Record

INITIAL = one_of(None, None, 0, 3)
METHODS = one_of(
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
)  # fmt: skip
FLOAT_DTYPES = one_of(None, "float32", "float64")


def extreme(name: str) -> Record:
    """max or min: without ``initial`` nothing may be left out."""

    def call(np: Any, x: Any, mask: Any, initial: Any, **kwargs: Any) -> Any:
        if initial is not None:
            kwargs |= {"where": mask, "initial": initial}
        return getattr(np, name)(x, **kwargs)

    return Record(call, ("a*!", "bb"), None, {"axis": axes, "keepdims": TRUTH, "initial": INITIAL})


FAMILIES: dict[str, Record] = {
    **{n: reduction(n, "a*", dtype=DTYPES) for n in ("sum", "prod")},
    **{n: reduction(n, "a*", dtype=DTYPES) for n in ("nansum", "nanprod")},
    **{n: reduction(n, "a*#") for n in ("all", "any")},
    "count_nonzero": plain_reduction("count_nonzero", "a*#"),
    "mean": reduction("mean", "a+", 1e-3, dtype=FLOAT_DTYPES),
    "nanmean": reduction("nanmean", "r+!", 1e-3),
    **{
        n: reduction(n, "x+", 1e-3, ddof=one_of(0, 1, 0.5))
        for n in ("std", "var", "nanstd", "nanvar")
    },
    **{n: extreme(n) for n in ("max", "min", "amax", "amin")},
    **{n: plain_reduction(n, "a*!") for n in ("nanmax", "nanmin")},
    "ptp": plain_reduction("ptp", "o*!"),
    **{n: plain_reduction(n, "r+!", 1e-3) for n in ("median", "nanmedian")},
    **{n: drawn(n, "a+!", axis=axis, keepdims=TRUTH) for n in ("argmax", "argmin")},
    **{n: drawn(n, "r+", axis=axis, keepdims=TRUTH) for n in ("nanargmax", "nanargmin")},
    **{
        n: drawn(n, "a*", axis=lambda arrays: st.none() | axis(arrays), dtype=DTYPES)
        for n in ("cumsum", "cumprod", "nancumsum", "nancumprod")
    },
    **{
        n: drawn(n, "a+", axis=axis, dtype=DTYPES, include_initial=TRUTH)
        for n in ("cumulative_sum", "cumulative_prod")
    },
    **{
        n: drawn(
            n,
            "o+",
            rtol=1e-3,
            q=one_of(0.0, 0.25, 1.0, [0.5, 0.75]),
            axis=axes,
            method=METHODS,
            keepdims=TRUTH,
        )
        for n in ("quantile", "nanquantile")
    },
    **{
        n: drawn(
            n,
            "o+",
            rtol=1e-3,
            q=one_of(0, 30, 100, [50, 75.5]),
            axis=axes,
            method=METHODS,
            keepdims=TRUTH,
        )
        for n in ("percentile", "nanpercentile")
    },
    "diff": drawn("diff", "a+", n=st.integers(0, 3), axis=axis),
    "trapezoid": drawn("trapezoid", "h+", axis=axis, dx=one_of(1.0, 0.25)),
    "sort": drawn(
        "sort", "a+#", axis=lambda arrays: st.none() | axis(arrays), stable=one_of(None, True)
    ),
    "argsort": drawn(
        "argsort", "a+#", axis=lambda arrays: st.none() | axis(arrays), stable=one_of(True)
    ),
    "lexsort": Record(
        lambda np, x, y, axis: np.lexsort((x, y), axis=axis), ("r+", "r="), None, {"axis": axis}
    ),
    "searchsorted": Record(
        lambda np, x, v, side: np.searchsorted(np.sort(x), v, side),
        ("ov!", "o*!"),
        None,
        {"side": one_of("left", "right")},
    ),
    "digitize": Record(
        lambda np, x, v, right: np.digitize(v, np.sort(x), right=right),
        ("dv", "o*"),
        None,
        {"right": TRUTH},
    ),
    "isin": drawn("isin", "a*", "a+", invert=TRUTH),
    "where": drawn("where", "b*", "ab#", "ab#"),
    "take": Record(
        lambda np, x, i, axis, mode: np.take(x, i, axis=axis, mode=mode),
        ("a+", "i*"),
        None,
        {"axis": lambda arrays: st.none() | axis(arrays), "mode": one_of("wrap", "clip")},
    ),
    "clip": Record(
        lambda np, x, low, high: np.clip(x, low, high),
        ("o*#",),
        None,
        {"low": one_of(None, 0, 1), "high": one_of(None, 2, 3)},
    ),
    "nan_to_num": drawn("nan_to_num", "a*#", nan=one_of(0.0, 2.0), posinf=one_of(None, 9.0)),
    "diag": drawn("diag", "am", k=st.integers(-4, 4)),
    "diagflat": drawn("diagflat", "a+", k=st.integers(-3, 3)),
    "diagonal": drawn(
        "diagonal", "aC", offset=st.integers(-3, 3), axis1=one_of(0, -1), axis2=one_of(1, 2)
    ),
    "trace": drawn(
        "trace", "aC", offset=st.integers(-3, 3), axis1=one_of(0, -1), axis2=one_of(1, 2)
    ),
    "reshape": Record(
        lambda np, x, shape, order: np.reshape(x.copy(), shape, order=order),
        ("a*",),
        None,
        {"shape": one_of(-1, (1, -1), (2, -1), (-1, 1, 2), ()), "order": one_of("C", "F", "A")},
    ),
    "ravel": Record(
        lambda np, x, order: np.ravel(x.copy(), order),
        ("a*",),
        None,
        {"order": one_of("C", "F", "A", "K")},
    ),
    "transpose": drawn("transpose", "a*", axes=permutation),
    "permute_dims": drawn("permute_dims", "a*", axes=permutation),
    "expand_dims": drawn("expand_dims", "a*", axis=one_of(0, -1, (0, 1), (0, -1), 9)),
    "squeeze": drawn("squeeze", "a*", axis=axes),
    "moveaxis": Record(
        lambda np, x, source, destination: np.moveaxis(x, source, destination),
        ("a+",),
        None,
        {"source": axis, "destination": axis},
    ),
    "rollaxis": Record(
        lambda np, x, axis, start: np.rollaxis(x, axis, start),
        ("a+",),
        None,
        {"axis": axis, "start": one_of(0, 1)},
    ),
    "swapaxes": Record(
        lambda np, x, one, two: np.swapaxes(x, one, two), ("a+",), None, {"one": axis, "two": axis}
    ),
    **{n: of_list(n, "a+", "a=", axis=axis) for n in ("concatenate", "concat", "stack")},
    "unstack": drawn("unstack", "a+", axis=axis),
    "append": drawn("append", "a+", "a=", axis=lambda arrays: st.none() | axis(arrays)),
    "split": drawn("split", "a+", indices_or_sections=sections, axis=axis),
    "array_split": drawn("array_split", "a+", indices_or_sections=sections, axis=axis),
    "flip": drawn("flip", "a+", axis=axes),
    "rot90": drawn(
        "rot90", "aC", k=st.integers(-2, 5), axes=one_of((0, 1), (2, 0), (-1, 1), (1, 1))
    ),
    "roll": drawn(
        "roll", "a+", shift=st.integers(-5, 5), axis=lambda arrays: st.none() | axis(arrays)
    ),
    "tile": drawn("tile", "a*", reps=one_of(2, (2, 1), (1, 0), (2, 1, 3), ())),
    "repeat": drawn(
        "repeat", "a+", repeats=st.integers(0, 3), axis=lambda arrays: st.none() | axis(arrays)
    ),
    "insert": drawn(
        "insert", "a+", obj=one_of(0, 1, -1, [0, 1]), values=one_of(2, True), axis=axis
    ),
    "delete": drawn("delete", "a+", obj=one_of(0, -1, [0], slice(0, 1)), axis=axis),
    "pad": drawn(
        "pad",
        "n+",
        pad_width=one_of(1, 0, (1, 2), ((2, 0),)),
        mode=one_of(
            "constant",
            "edge",
            "reflect",
            "symmetric",
            "wrap",
            "maximum",
            "minimum",
            "mean",
            "linear_ramp",
            "median",
        ),
    ),
    "tril": drawn("tril", "a+", k=st.integers(-3, 3)),
    "triu": drawn("triu", "a+", k=st.integers(-3, 3)),
    "vander": drawn("vander", "hv", N=one_of(None, 1, 3), increasing=TRUTH),
    "matmul": Record(lambda np, x, y: np.matmul(x, np.matrix_transpose(y)), ("aC", "a=")),
    "cov": drawn("cov", "hM", rtol=1e-4, rowvar=TRUTH, bias=TRUTH),
    "average": Record(
        lambda np, x, w, axis: np.average(x, axis=axis, weights=w * w + 1),
        ("h+", "h="),
        1e-4,
        {"axis": axis},
    ),
    "gradient": drawn("gradient", "hM", axis=one_of(None, 0, -1), edge_order=one_of(1, 2)),
    "convolve": drawn("convolve", "nv", "nv", mode=one_of("full", "same", "valid")),
    "correlate": drawn("correlate", "nv", "nv", mode=one_of("full", "same", "valid")),
    "unwrap": drawn("unwrap", "h+", axis=axis, discont=one_of(None, 4.0)),
    "packbits": drawn(
        "packbits",
        "b+",
        axis=lambda arrays: st.none() | axis(arrays),
        bitorder=one_of("big", "little"),
    ),
    "unpackbits": drawn(
        "unpackbits",
        "u+#",
        axis=lambda arrays: st.none() | axis(arrays),
        bitorder=one_of("big", "little"),
    ),
    "isclose": Record(
        function("isclose"),
        ("n*!", "nb!"),
        None,
        {"rtol": one_of(1e-5, 0.1), "atol": one_of(0.0, 0.3), "equal_nan": TRUTH},
    ),
    "round": drawn("round", "g*", decimals=st.integers(-1, 2)),
    "around": drawn("around", "h*!", decimals=st.integers(-1, 2)),
    **{n: drawn(n, "f*#") for n in ("isneginf", "isposinf", "fix")},
    # Of infinite complex numbers these have no agreed values.
    **{
        n: Record(lambda np, x, z, n=n: (getattr(np, n)(x), getattr(np, n)(z)), ("r*#", "c*"), 1e-5)
        for n in ("exp2", "expm1")
    },
    # Of complex numbers with NaN in one part quotients have no agreed values.
    **{
        n: Record(
            lambda np, x, y, z, n=n: (getattr(np, n)(x, y), getattr(np, n)(z, 1.5 - 2j)),
            ("r*#", "rb#", "c*"),
            1e-5,
        )
        for n in ("divide", "true_divide")
    },
    # Of the integer 0 it has no agreed value.
    "reciprocal": Record(lambda np, x: np.reciprocal(x + 20), ("n*",)),
    "arange": Record(
        lambda np, start, stop, step, dtype: np.arange(start, stop, step, dtype),
        (),
        None,
        {
            "start": st.integers(-5, 5),
            "stop": st.integers(-5, 9),
            "step": one_of(1, 2, -1, 0.5, -1.5),
            "dtype": DTYPES,
        },
    ),
    "linspace": Record(
        lambda np, x, y, **o: np.linspace(x, y, **o),
        ("h*", "h="),
        None,
        {"num": st.integers(0, 5), "endpoint": TRUTH, "dtype": FLOAT_DTYPES},
    ),
    "eye": Record(
        lambda np, n, m, k, dtype: np.eye(n, m, k, dtype or float),
        (),
        None,
        {
            "n": st.integers(0, 4),
            "m": st.none() | st.integers(0, 4),
            "k": st.integers(-4, 4),
            "dtype": DTYPES,
        },
    ),
    "tri": Record(
        lambda np, n, m, k: np.tri(n, m, k),
        (),
        None,
        {"n": st.integers(0, 4), "m": st.none() | st.integers(0, 4), "k": st.integers(-4, 4)},
    ),
    "meshgrid": drawn("meshgrid", "av", "av", indexing=one_of("xy", "ij"), sparse=TRUTH),
    "histogram": drawn("histogram", "o+", bins=one_of(1, 5, [-2, 0, 1, 3]), density=TRUTH),
    "kron": drawn("kron", "a+", "a="),
    "cross": Record(lambda np, x, y: np.cross(x, y), ("ns", "n=")),
    "tensordot": drawn(
        "tensordot", "nC", "n=", axes=one_of(3, ([0, 1], [0, 1]), ([2], [2]), (1, 1), 0)
    ),
    "vecdot": drawn("vecdot", "nC", "n=", axis=axis),
    **LINALG,
    **FFT,
}
