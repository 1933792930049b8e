"""The operations themselves, spelled as in `jax.lax`: nothing is promoted or stretched.

lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.scan(step, carry, xs)

A module of the package is imported when a name of it is first used; `__init__.pyi` has the same
names for type checkers.
"""

from __future__ import annotations

from tracejit.loading import members_of, on_first_use

SUBMODULES = ("linalg",)
NAMES = {
    "tracejit.attributes": "ConvDimensionNumbers",
    "calls": "composite custom_call optimization_barrier",
    "contraction": "batch_matmul dot dot_general",
    "control": "cond fori_loop switch while_loop",
    "convolution": "conv conv_dimension_numbers conv_general_dilated conv_transpose",
    "elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh bitcast_convert_type bitwise_and "
        "bitwise_not bitwise_or bitwise_xor cbrt ceil clamp clz complex conj convert_element_type "
        "cos cosh div dtype eq erf exp exp2 expm1 floor ge gt imag integer_pow is_finite le log "
        "log1p logistic lt max min mul ne neg population_count pow real reciprocal "
        "reduce_precision rem round round_nearest_afz round_nearest_even RoundingMethod rsqrt "
        "select select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt "
        "square sub tan tanh"
    ),
    "grouped": "ragged_dot ragged_dot_general RaggedDotDimensionNumbers scaled_dot",
    "logarithms": "cumlogsumexp",
    "parallel": (
        "all_gather all_to_all axis_index axis_size pbroadcast pmax pmean pmin ppermute psum "
        "psum_scatter"
    ),
    "precision": "Precision",
    "reductions": (
        "approx_max_k approx_min_k argmax argmin batch_norm_grad batch_norm_inference "
        "batch_norm_training cummax cummin cumprod cumsum reduce reduce_and reduce_max reduce_min "
        "reduce_or reduce_prod reduce_sum reduce_window reduce_xor sort sort_key_val top_k"
    ),
    "replicas": "cross_replica_sum",
    "scanning": "associative_scan map scan",
    "shapes": (
        "broadcast broadcast_in_dim broadcast_shapes broadcast_to_rank broadcasted_iota collapse "
        "concatenate dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
        "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim empty "
        "expand_dims full full_like gather index_in_dim iota pad reshape rev scatter scatter_add "
        "scatter_max scatter_min scatter_mul scatter_sub slice slice_in_dim split squeeze stack "
        "tile transpose unstack"
    ),
    "spectra": "fft",
    "stopping": "stop_gradient",
    "tracejit.ops.contraction": "DotDimensionNumbers",
    "tracejit.ops.indexing": "GatherDimensionNumbers ScatterDimensionNumbers",
    "tracejit.scipy.special.lax_names": (
        "bessel_i0e bessel_i1e betainc digamma erf_inv erfc igamma igammac lgamma nextafter "
        "polygamma zeta"
    ),
}
"""The public names, by the module that defines each."""

_members = members_of(__name__, NAMES)
__all__ = sorted([*_members, *SUBMODULES])
__getattr__ = on_first_use(__name__, SUBMODULES, _members)


def __dir__() -> list[str]:
    return __all__
