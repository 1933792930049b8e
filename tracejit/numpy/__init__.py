"""NumPy's functions on traced arrays, and at once on NumPy arrays: the same names and signatures.

import tracejit.numpy as np

A module of the package is imported when a name of it is first used; `__init__.pyi` has the same
names for type checkers.
"""

from __future__ import annotations

from tracejit.loading import members_of, on_first_use

SUBMODULES = ("fft", "linalg")
NAMES = {
    "arithmetic": (
        "abs absolute add cbrt divide divmod fabs float_power floor_divide fmod heaviside hypot "
        "mod multiply negative positive pow power reciprocal remainder sign sqrt square subtract "
        "true_divide"
    ),
    "bits": "gcd lcm packbits unpackbits",
    "comparison": (
        "equal fmax fmin greater greater_equal isfinite isinf isnan isneginf isposinf less "
        "less_equal maximum minimum not_equal signbit"
    ),
    "complex_numbers": (
        "angle conj conjugate imag iscomplex iscomplexobj isreal isrealobj real real_if_close"
    ),
    "covariance": "corrcoef cov",
    "creation": (
        "array asanyarray asarray ascontiguousarray asfortranarray astype copy copyto empty "
        "empty_like from_dlpack full full_like meshgrid ones ones_like vander zeros zeros_like"
    ),
    "cumulative": (
        "cumprod cumsum cumulative_prod cumulative_sum diff ediff1d gradient nancumprod nancumsum "
        "trapezoid"
    ),
    "diagonals": "diag diagflat diagonal eye fill_diagonal identity trace tri tril triu",
    "einstein": "einsum einsum_path",
    "exponential": "exp exp2 expm1 log log10 log1p log2 logaddexp logaddexp2",
    "functional": "apply_along_axis apply_over_axes fromfunction fromiter piecewise vectorize",
    "grids": (
        "c_ diag_indices diag_indices_from indices ix_ mask_indices mgrid ndenumerate ogrid r_ "
        "ravel_multi_index tril_indices tril_indices_from triu_indices triu_indices_from "
        "unravel_index"
    ),
    "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "inspection": (
        "__array_namespace_info__ array_repr array_str asarray_chkfinite common_type isfortran "
        "isscalar may_share_memory min_scalar_type require result_type shares_memory"
    ),
    "iteration": "broadcast nditer",
    "joining": (
        "append array_split block column_stack concat concatenate delete dsplit dstack flip fliplr "
        "flipud hsplit hstack insert repeat resize roll rot90 row_stack split stack tile unstack "
        "vsplit vstack"
    ),
    "logic": (
        "allclose array_equal array_equiv bitwise_and bitwise_count bitwise_invert "
        "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor invert isclose "
        "left_shift logical_and logical_not logical_or logical_xor right_shift"
    ),
    "manipulation": (
        "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to expand_dims "
        "matrix_transpose moveaxis ndim permute_dims ravel reshape rollaxis shape size squeeze "
        "swapaxes transpose"
    ),
    "means": "average mean nanmean nanstd nanvar std var",
    "narrow_types": (
        "bfloat16 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu int2 int4 uint2 uint4"
    ),
    "padding": "pad",
    "plain": (
        "False_ ScalarType True_ base_repr binary_repr bool bool_ broadcast_shapes byte can_cast "
        "cdouble character complex128 complex64 complexfloating csingle double dtype dtypes e "
        "errstate euler_gamma finfo flexible float16 float32 float64 floating generic "
        "get_printoptions geterr half iinfo index_exp inexact inf int16 int32 int64 int8 int_ intc "
        "integer intp isdtype issubdtype iterable little_endian long longlong mintypecode nan "
        "ndarray ndindex newaxis number object_ pi printoptions promote_types s_ sctypeDict "
        "set_printoptions seterr short signedinteger single typecodes typename ubyte ufunc uint "
        "uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort"
    ),
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
    "products": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "ranges": "arange geomspace linspace logspace",
    "reduction": (
        "all amax amin any argmax argmin count_nonzero max min nanargmax nanargmin nanmax nanmin "
        "nanprod nansum prod ptp sum"
    ),
    "rounding": (
        "around ceil copysign fix floor frexp ldexp modf nextafter rint round spacing trunc"
    ),
    "selecting": (
        "argwhere choose clip compress extract flatnonzero nan_to_num nonzero place put "
        "put_along_axis putmask select take take_along_axis where"
    ),
    "sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts "
        "unique_inverse unique_values"
    ),
    "signals": "convolve correlate interp trim_zeros unwrap",
    "sorting": "argpartition argsort digitize lexsort partition searchsorted sort sort_complex",
    "trigonometric": (
        "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 "
        "atanh cos cosh deg2rad degrees rad2deg radians sin sinc sinh tan tanh"
    ),
    "windows": "bartlett blackman hamming hanning i0 kaiser",
}
"""The public names, by the module that defines each."""

UNLISTED = {"iteration": "sliding_window_view"}
"""What NumPy has elsewhere, and is found here by its name."""

__array_api_version__ = "2024.12"
_members = members_of(__name__, NAMES)
__all__ = sorted([*_members, *SUBMODULES])
__getattr__ = on_first_use(__name__, SUBMODULES, _members | members_of(__name__, UNLISTED))


def __dir__() -> list[str]:
    return [*__all__, "__array_api_version__"]
