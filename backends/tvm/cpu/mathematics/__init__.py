"""Vector mathematics: functions of TIR expressions that vectorise, without calls of the C library.

    exp(x, "float32")                   # an expression; put it into a vectorised loop
    module = link(module)               # once, after loops are vectorised

The dtype is that of the arguments in registers, where narrower floats are f32. Each function's
docstring states its error in units in the last place, for f32 and f64 alike; NaN, infinities,
signed zeros and subnormal numbers come out as in C. The module `complex` holds the functions of
complex numbers.

When: TIR calls the functions as intrinsics; `link` puts in their formulas when a kernel is built.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.mathematics import (
    bits,
    error_function,
    exponential,
    generators,
    inverse_error,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    ordered_integers,
    power,
    remainder,
    rounding,
    square_roots,
    trigonometric,
)
from tracejit.backends.tvm.cpu.mathematics.operations import binary, link, operation, unary

exp = unary("exp", exponential.exp)
exp2 = unary("exp2", exponential.exp2)
expm1 = unary("expm1", exponential.expm1)
logistic = unary("logistic", exponential.logistic)
tanh = unary("tanh", exponential.tanh)
sinh = unary("sinh", exponential.sinh)
cosh = unary("cosh", exponential.cosh)
log = unary("log", logarithm.log)
log10 = unary("log10", logarithm.log10)
log1p = unary("log1p", logarithm.log1p)
log2 = unary("log2", logarithm.log2)
asinh = unary("asinh", inverse_hyperbolic.asinh)
acosh = unary("acosh", inverse_hyperbolic.acosh)
atanh = unary("atanh", inverse_hyperbolic.atanh)
sin = unary("sin", trigonometric.sin)
cos = unary("cos", trigonometric.cos)
tan = unary("tan", trigonometric.tan)
asin = unary("asin", inverse_trigonometric.asin)
acos = unary("acos", inverse_trigonometric.acos)
atan = unary("atan", inverse_trigonometric.atan)
atan2 = binary("atan2", inverse_trigonometric.atan2)
erf = unary("erf", error_function.erf)
erf_inv = unary("erf_inv", inverse_error.erf_inv)
sqrt = unary("sqrt", square_roots.sqrt)
rsqrt = unary("rsqrt", square_roots.rsqrt)
cbrt = unary("cbrt", square_roots.cbrt)
pow = binary("pow", power.pow_, fast=power.fast_pow)
div = binary("div", remainder.div)
rem = binary("rem", remainder.rem)
known_quotient = operation("known_quotient", remainder.known_quotient, arity=3)
floor = unary("floor", rounding.floor)
ceil = unary("ceil", rounding.ceil)
round_nearest_even = unary("round_nearest_even", rounding.round_even)
round_nearest_afz = unary("round_nearest_afz", rounding.round_away)
sign = unary("sign", rounding.sign)
is_finite = unary("is_finite", rounding.is_finite, returns="bool")
max = binary("max", rounding.max_)
combined_max = binary("combined_max", rounding.combined_max)
combined_min = binary("combined_min", rounding.combined_min)
min = binary("min", rounding.min_)
rank_for_maximum = unary("rank_for_maximum", ordered_integers.rank_for_maximum)
rank_for_minimum = unary("rank_for_minimum", ordered_integers.rank_for_minimum)
maximum_of_rank = unary("maximum_of_rank", ordered_integers.maximum_of_rank)
minimum_of_rank = unary("minimum_of_rank", ordered_integers.minimum_of_rank)
higher_rank = binary("higher_rank", ordered_integers.higher_rank)
population_count = unary("population_count", bits.population_count)
clz = unary("clz", bits.clz)
opaque = unary("opaque", bits.opaque)
kept = unary("kept", bits.kept)
once = unary("once", bits.once)
offset = binary("offset", bits.offset)
threefry = operation("threefry", generators.threefry, arity=4, returns="uint64")
philox_low = operation("philox_low", generators.philox_low, arity=6, returns="uint64")
philox_high = operation("philox_high", generators.philox_high, arity=6, returns="uint64")

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clz",
    "cos",
    "cosh",
    "div",
    "erf",
    "erf_inv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "higher_rank",
    "is_finite",
    "kept",
    "known_quotient",
    "link",
    "log",
    "log1p",
    "log2",
    "log10",
    "logistic",
    "max",
    "maximum_of_rank",
    "min",
    "minimum_of_rank",
    "offset",
    "once",
    "opaque",
    "philox_high",
    "philox_low",
    "population_count",
    "pow",
    "rank_for_maximum",
    "rank_for_minimum",
    "rem",
    "round_nearest_afz",
    "round_nearest_even",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "threefry",
]
