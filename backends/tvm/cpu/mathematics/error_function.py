"""The vector formula of erf."""

from __future__ import annotations

from tracejit.backends.tvm.cpu.llvm.builder import Value
from tracejit.backends.tvm.cpu.mathematics.exponential import reduced
from tracejit.backends.tvm.cpu.mathematics.vocabulary import (
    absolute,
    copy_sign,
    fma,
    polynomial,
    select,
)

# erf(x) / x - 1 in powers of x**2, |x| <= 1; the error relative to erf(x) is below 2**-29, 2**-56.
ERF_NEAR = {
    "float32": (
        0.12837917,
        -0.3761263,
        0.11283618,
        -0.026855124,
        0.005190726,
        -0.0008030654,
        7.919902e-05,
    ),
    "float64": (
        0.12837916709551256,
        -0.3761263890318347,
        0.11283791670943208,
        -0.02686617064302342,
        0.005223977605694154,
        -0.0008548325917621774,
        0.00012055293395338043,
        -1.4924711011372833e-05,
        1.6447134648884967e-06,
        -1.620644131470308e-07,
        1.3711857145465496e-08,
        -7.781545155197645e-10,
    ),
}
# -log(1 - erf(x)) in powers of x - 1, up to where erf rounds to 1; the error it makes in erf is
# below 2**-26 and 2**-56.
ERF_FAR = {
    "float32": (
        1.8496056,
        2.6389654,
        0.84313035,
        0.041461717,
        -0.00983396,
        0.0017888192,
        -0.00017669958,
    ),
    "float64": (
        1.8496055099332482,
        2.638967514234781,
        0.8431072563592646,
        0.04156109802694058,
        -0.010033825191798334,
        0.001977901267500007,
        -0.00023731656731880178,
        -2.6296112038726018e-05,
        2.719876824820636e-05,
        -9.671310795348565e-06,
        2.1320383690842724e-06,
        -2.0497697575646158e-07,
        -5.788551050840831e-08,
        3.3331900600184476e-08,
        -8.500724807889392e-09,
        1.3156454026061548e-09,
        -1.1894621291022512e-10,
        4.84682178138611e-12,
    ),
}

ONE_FROM = {"float32": 4.0, "float64": 6.0}


def erf(x: Value) -> Value:
    """The error function, within 1 ulp."""
    name = x.kind.name
    size = absolute(x)
    near = fma(size, polynomial(x * x, ERF_NEAR[name]), size)
    limit = ONE_FROM[name]
    inside = select(size > limit, limit, size)  # lets NaN through
    far = 1.0 - reduced(-polynomial(inside - 1.0, ERF_FAR[name])).exp()
    return copy_sign(select(size < 1.0, near, far), x)
