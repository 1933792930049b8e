"""The functions of integers and floats that element rules call; each target implements them all.

    mathematics.exp(x, "float32")       # an expression; the dtype is that of the arguments

Narrower floats are f32 in registers. NaN, infinities, signed zeros and subnormal numbers come out
as in C; `complex_mathematics` has the functions of complex numbers.
"""

from __future__ import annotations

from tracejit.backends.tvm.ir.intrinsics import binary, function, unary

exp = unary("exp")
exp2 = unary("exp2")
expm1 = unary("expm1")
logistic = unary("logistic")
tanh = unary("tanh")
sinh = unary("sinh")
cosh = unary("cosh")
log = unary("log")
log10 = unary("log10")
log1p = unary("log1p")
log2 = unary("log2")
asinh = unary("asinh")
acosh = unary("acosh")
atanh = unary("atanh")
sin = unary("sin")
cos = unary("cos")
tan = unary("tan")
asin = unary("asin")
acos = unary("acos")
atan2 = binary("atan2")
erf = unary("erf")
erf_inv = unary("erf_inv")
sqrt = unary("sqrt")
rsqrt = unary("rsqrt")
cbrt = unary("cbrt")
pow = binary("pow")
floor = unary("floor")
ceil = unary("ceil")
round_nearest_even = unary("round_nearest_even")
round_nearest_afz = unary("round_nearest_afz")
sign = unary("sign")
is_finite = unary("is_finite", returns="bool")

# Of floats: NaN if either is, and +0 above -0.
max = binary("max")
min = binary("min")

# Integers towards zero: by zero a quotient has all bits set, and a remainder is the dividend.
div = binary("div")
rem = binary("rem")

population_count = unary("population_count")
clz = unary("clz")

# The quotient of a narrow integer by a constant: of the number, a factor and a shift.
known_quotient = function("known_quotient", 3)

# A number, and what each lane is away from it: their sum.
offset = binary("offset")

# Random words: of two halves of a key and two of a counter, and of four of a counter.
threefry = function("threefry", 4, "uint64")
philox_low = function("philox_low", 6, "uint64")
philox_high = function("philox_high", 6, "uint64")
