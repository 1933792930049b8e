"""The functions of complex numbers that element rules call; each target implements them all.

    complex_mathematics.exp(z, "float32")       # the dtype is that of the parts

A function is two intrinsics, ``complex_exp_re`` and ``complex_exp_im``, of all parts. Infinities,
zeros and NaN are NumPy's.
"""

from __future__ import annotations

from tracejit.backends.tvm.ir.intrinsics import complex_binary, complex_magnitude, complex_unary

abs = complex_magnitude("abs")
add = complex_binary("add")
sub = complex_binary("sub")
mul = complex_binary("mul")
div = complex_binary("div")
sign = complex_unary("sign")
sqrt = complex_unary("sqrt")
rsqrt = complex_unary("rsqrt")
exp = complex_unary("exp")
expm1 = complex_unary("expm1")
logistic = complex_unary("logistic")
log = complex_unary("log")
log1p = complex_unary("log1p")
pow = complex_binary("pow")
atan2 = complex_binary("atan2")
sinh = complex_unary("sinh")
cosh = complex_unary("cosh")
tanh = complex_unary("tanh")
sin = complex_unary("sin")
cos = complex_unary("cos")
tan = complex_unary("tan")
asin = complex_unary("asin")
acos = complex_unary("acos")
asinh = complex_unary("asinh")
acosh = complex_unary("acosh")
atanh = complex_unary("atanh")
