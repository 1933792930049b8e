"""Functions of complex numbers, which are `Complex` pairs of TIR expressions.

    complex.exp(z, "float32")           # the dtype of the real and imaginary parts

Errors are within 4 ulp of the magnitude of the result; those of pow and atan2 of f64 grow with the
logarithms inside them. Functions that lose precision in f32 are computed in f64. Infinities, zeros
and NaN are NumPy's.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.mathematics import (
    complex_arithmetic,
    complex_elementary,
    complex_inverse,
)
from tracejit.backends.tvm.cpu.mathematics.operations import (
    complex_binary,
    complex_magnitude,
    complex_unary,
)

abs = complex_magnitude("abs", complex_arithmetic.magnitude)
add = complex_binary("add", complex_arithmetic.add)
sub = complex_binary("sub", complex_arithmetic.sub)
mul = complex_binary("mul", complex_arithmetic.mul)
div = complex_binary("div", complex_arithmetic.div)
sign = complex_unary("sign", complex_arithmetic.sign)
sqrt = complex_unary("sqrt", complex_arithmetic.sqrt_)
rsqrt = complex_unary("rsqrt", complex_arithmetic.rsqrt)
exp = complex_unary("exp", complex_elementary.exp)
expm1 = complex_unary("expm1", complex_elementary.expm1)
logistic = complex_unary("logistic", complex_elementary.logistic)
log = complex_unary("log", complex_elementary.log)
log1p = complex_unary("log1p", complex_elementary.log1p)
pow = complex_binary("pow", complex_elementary.pow_)
atan2 = complex_binary("atan2", complex_elementary.atan2_)
sinh = complex_unary("sinh", complex_elementary.sinh)
cosh = complex_unary("cosh", complex_elementary.cosh)
tanh = complex_unary("tanh", complex_elementary.tanh)
sin = complex_unary("sin", complex_elementary.sin)
cos = complex_unary("cos", complex_elementary.cos)
tan = complex_unary("tan", complex_elementary.tan)
asin = complex_unary("asin", complex_inverse.asin)
acos = complex_unary("acos", complex_inverse.acos)
asinh = complex_unary("asinh", complex_inverse.asinh)
acosh = complex_unary("acosh", complex_inverse.acosh)
atanh = complex_unary("atanh", complex_inverse.atanh)

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "div",
    "exp",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "mul",
    "pow",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "tan",
    "tanh",
]
