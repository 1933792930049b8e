"""Vector mathematics: functions of TIR expressions that vectorise, and never call the C library.

    exp(x, "float32")                   # an expression; put it into a vectorised loop
    module = link(module)               # once, after loops are vectorised

The dtype is that of the arguments. Floats of 16 bits are computed in f32 and rounded once. Each
formula's docstring states its error in units in the last place, for f32 and f64 alike; NaN,
infinities, signed zeros and subnormal numbers come out as in C. Functions of complex numbers take
`Complex` pairs and no dtype.
"""

from __future__ import annotations

from tracejit.backends.tvm.mathematics import (
    bits,
    complex_arithmetic,
    complex_elementary,
    complex_inverse,
    error_function,
    exponential,
    inverse_hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    roots,
    rounding,
    trigonometric,
)
from tracejit.backends.tvm.mathematics.operations import (
    binary,
    complex_function,
    complex_magnitude,
    link,
    unary,
)

exp = unary("exp", exponential.exp)
expm1 = unary("expm1", exponential.expm1)
logistic = unary("logistic", exponential.logistic)
tanh = unary("tanh", exponential.tanh)
sinh = unary("sinh", exponential.sinh)
cosh = unary("cosh", exponential.cosh)
log = unary("log", logarithm.log)
log1p = unary("log1p", logarithm.log1p)
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
sqrt = unary("sqrt", roots.sqrt)
rsqrt = unary("rsqrt", roots.rsqrt)
cbrt = unary("cbrt", roots.cbrt)
pow = binary("pow", power.pow_)
div = binary("div", remainder.div)
rem = binary("rem", remainder.rem)
floor = unary("floor", rounding.floor)
ceil = unary("ceil", rounding.ceil)
round_nearest_even = unary("round_nearest_even", rounding.round_even)
round_nearest_afz = unary("round_nearest_afz", rounding.round_away)
sign = unary("sign", rounding.sign)
is_finite = unary("is_finite", rounding.is_finite, returns="bool")
max = binary("max", rounding.max_)
min = binary("min", rounding.min_)
population_count = unary("population_count", bits.population_count)
clz = unary("clz", bits.clz)

complex_abs = complex_magnitude("abs", complex_arithmetic.magnitude)
complex_add = complex_function("add", complex_arithmetic.add, arity=2)
complex_sub = complex_function("sub", complex_arithmetic.sub, arity=2)
complex_mul = complex_function("mul", complex_arithmetic.mul, arity=2)
complex_div = complex_function("div", complex_arithmetic.div, arity=2)
complex_sign = complex_function("sign", complex_arithmetic.sign)
complex_sqrt = complex_function("sqrt", complex_arithmetic.sqrt_)
complex_rsqrt = complex_function("rsqrt", complex_arithmetic.rsqrt)
complex_exp = complex_function("exp", complex_elementary.exp)
complex_expm1 = complex_function("expm1", complex_elementary.expm1)
complex_logistic = complex_function("logistic", complex_elementary.logistic)
complex_log = complex_function("log", complex_elementary.log)
complex_log1p = complex_function("log1p", complex_elementary.log1p)
complex_pow = complex_function("pow", complex_elementary.pow_, arity=2)
complex_atan2 = complex_function("atan2", complex_elementary.atan2_, arity=2)
complex_sinh = complex_function("sinh", complex_elementary.sinh)
complex_cosh = complex_function("cosh", complex_elementary.cosh)
complex_tanh = complex_function("tanh", complex_elementary.tanh)
complex_sin = complex_function("sin", complex_elementary.sin)
complex_cos = complex_function("cos", complex_elementary.cos)
complex_tan = complex_function("tan", complex_elementary.tan)
complex_asin = complex_function("asin", complex_inverse.asin)
complex_acos = complex_function("acos", complex_inverse.acos)
complex_asinh = complex_function("asinh", complex_inverse.asinh)
complex_acosh = complex_function("acosh", complex_inverse.acosh)
complex_atanh = complex_function("atanh", complex_inverse.atanh)

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
    "complex_abs",
    "complex_acos",
    "complex_acosh",
    "complex_add",
    "complex_asin",
    "complex_asinh",
    "complex_atan2",
    "complex_atanh",
    "complex_cos",
    "complex_cosh",
    "complex_div",
    "complex_exp",
    "complex_expm1",
    "complex_log",
    "complex_log1p",
    "complex_logistic",
    "complex_mul",
    "complex_pow",
    "complex_rsqrt",
    "complex_sign",
    "complex_sin",
    "complex_sinh",
    "complex_sqrt",
    "complex_sub",
    "complex_tan",
    "complex_tanh",
    "cos",
    "cosh",
    "div",
    "erf",
    "exp",
    "expm1",
    "floor",
    "is_finite",
    "link",
    "log",
    "log1p",
    "logistic",
    "max",
    "min",
    "population_count",
    "pow",
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
]
