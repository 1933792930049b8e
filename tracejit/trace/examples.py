"""Examples for the docstrings of functions that are made from a table: ufuncs, elementwise ops.

documented("The sum.", "numpy.add")
"""

from __future__ import annotations

from inspect import cleandoc


def documented(summary: str, name: str) -> str:
    """The docstring: a summary, the errors, and an example where there is one."""
    example = _EXAMPLES.get(name)
    return "\n\n".join([cleandoc(summary), _ERRORS] + ([] if example is None else [example]))


_ERRORS = """\
Raises `ArgumentError` for what is no array of numbers, `ElementTypeError` for an element type
that it does not take and `ShapeError` for shapes that do not fit together.\
"""


_EXAMPLES = {
    "lax.abs": (">>> tj.lax.abs(np.array([-1.5, 0.5]))\narray([1.5, 0.5])"),
    "lax.acos": (">>> tj.lax.acos(np.array([1.0, 0.5])).round(4)\narray([0.    , 1.0472])"),
    "lax.acosh": (">>> tj.lax.acosh(np.array([1.0, 2.0])).round(4)\narray([0.   , 1.317])"),
    "lax.add": (">>> tj.lax.add(np.array([1.0, 2.0]), np.array([10.0, 20.0]))\narray([11., 22.])"),
    "lax.approx_max_k": (
        ">>> tj.lax.approx_max_k(np.array([3.0, 1.0, 2.0]), 2)\n"
        "(array([3., 2.]), array([0, 2], dtype=int32))"
    ),
    "lax.approx_min_k": (
        ">>> tj.lax.approx_min_k(np.array([3.0, 1.0, 2.0]), 2)\n"
        "(array([1., 2.]), array([1, 2], dtype=int32))"
    ),
    "lax.asin": (">>> tj.lax.asin(np.array([0.0, 0.5])).round(4)\narray([0.    , 0.5236])"),
    "lax.asinh": (">>> tj.lax.asinh(np.array([-1.5, 0.5])).round(4)\narray([-1.1948,  0.4812])"),
    "lax.atan": (">>> tj.lax.atan(np.array([-1.5, 0.5])).round(4)\narray([-0.9828,  0.4636])"),
    "lax.atan2": (
        ">>> tj.lax.atan2(np.array([1.0, -1.0]), np.array([1.0, -1.0])).round(4)\n"
        "array([ 0.7854, -2.3562])"
    ),
    "lax.atanh": (">>> tj.lax.atanh(np.array([0.0, 0.5])).round(4)\narray([0.    , 0.5493])"),
    "lax.bitwise_and": (
        ">>> tj.lax.bitwise_and(np.array([6, 5]), np.array([3, 3]))\narray([2, 1])"
    ),
    "lax.bitwise_not": (">>> tj.lax.bitwise_not(np.int32([0, 5]))\narray([-1, -6], dtype=int32)"),
    "lax.bitwise_or": (">>> tj.lax.bitwise_or(np.array([6, 5]), np.array([3, 3]))\narray([7, 7])"),
    "lax.bitwise_xor": (
        ">>> tj.lax.bitwise_xor(np.array([6, 5]), np.array([3, 3]))\narray([5, 6])"
    ),
    "lax.cbrt": (">>> tj.lax.cbrt(np.array([-1.5, 0.5])).round(4)\narray([-1.1447,  0.7937])"),
    "lax.ceil": (">>> tj.lax.ceil(np.array([-1.5, 0.5]))\narray([-1.,  1.])"),
    "lax.clamp": (">>> tj.lax.clamp(0.0, np.array([-1.0, 0.5, 3.0]), 1.0)\narray([0. , 0.5, 1. ])"),
    "lax.clz": (">>> tj.lax.clz(np.int32([1, 255]))\narray([31, 24], dtype=int32)"),
    "lax.complex": (
        ">>> tj.lax.complex(np.array([1.0, 2.0]), np.array([0.5, -0.5]))\narray([1.+0.5j, 2.-0.5j])"
    ),
    "lax.conj": (">>> tj.lax.conj(np.array([1 + 2j]))\narray([1.-2.j])"),
    "lax.cos": (">>> tj.lax.cos(np.array([-1.5, 0.5])).round(4)\narray([0.0707, 0.8776])"),
    "lax.cosh": (">>> tj.lax.cosh(np.array([-1.5, 0.5])).round(4)\narray([2.3524, 1.1276])"),
    "lax.cummax": (">>> tj.lax.cummax(np.array([1, 3, 2]))\narray([1, 3, 3])"),
    "lax.cummin": (">>> tj.lax.cummin(np.array([3, 1, 2]))\narray([3, 1, 1])"),
    "lax.cumprod": (">>> tj.lax.cumprod(np.array([1, 2, 3]))\narray([1, 2, 6])"),
    "lax.cumsum": (">>> tj.lax.cumsum(np.array([1, 2, 3]), reverse=True)\narray([6, 5, 3])"),
    "lax.div": (">>> tj.lax.div(np.array([7, -7]), np.array([2, 2]))\narray([ 3, -3])"),
    "lax.eq": (">>> tj.lax.eq(np.array([1, 2]), np.array([2, 2]))\narray([False,  True])"),
    "lax.erf": (">>> tj.lax.erf(np.array([-1.5, 0.5])).round(4)\narray([-0.9661,  0.5205])"),
    "lax.exp": (">>> tj.lax.exp(np.array([-1.5, 0.5])).round(4)\narray([0.2231, 1.6487])"),
    "lax.expm1": (">>> tj.lax.expm1(np.array([-1.5, 0.5])).round(4)\narray([-0.7769,  0.6487])"),
    "lax.floor": (">>> tj.lax.floor(np.array([-1.5, 0.5]))\narray([-2.,  0.])"),
    "lax.ge": (">>> tj.lax.ge(np.array([1, 2]), np.array([2, 2]))\narray([False,  True])"),
    "lax.gt": (">>> tj.lax.gt(np.array([1, 3]), np.array([2, 2]))\narray([False,  True])"),
    "lax.imag": (">>> tj.lax.imag(np.array([1 + 2j]))\narray([2.])"),
    "lax.is_finite": (">>> tj.lax.is_finite(np.array([-1.5, 0.5]))\narray([ True,  True])"),
    "lax.le": (">>> tj.lax.le(np.array([1, 2]), np.array([2, 2]))\narray([ True,  True])"),
    "lax.log": (">>> tj.lax.log(np.array([1.0, 2.0])).round(4)\narray([0.    , 0.6931])"),
    "lax.log1p": (">>> tj.lax.log1p(np.array([0.0, 1.0])).round(4)\narray([0.    , 0.6931])"),
    "lax.logistic": (
        ">>> tj.lax.logistic(np.array([-1.5, 0.5])).round(4)\narray([0.1824, 0.6225])"
    ),
    "lax.lt": (">>> tj.lax.lt(np.array([1, 2]), np.array([2, 2]))\narray([ True, False])"),
    "lax.max": (">>> tj.lax.max(np.array([1, 5]), np.array([3, 2]))\narray([3, 5])"),
    "lax.min": (">>> tj.lax.min(np.array([1, 5]), np.array([3, 2]))\narray([1, 2])"),
    "lax.mul": (">>> tj.lax.mul(np.array([1.0, 2.0]), np.array([10.0, 20.0]))\narray([10., 40.])"),
    "lax.ne": (">>> tj.lax.ne(np.array([1, 2]), np.array([2, 2]))\narray([ True, False])"),
    "lax.neg": (">>> tj.lax.neg(np.array([-1.5, 0.5]))\narray([ 1.5, -0.5])"),
    "lax.population_count": (
        ">>> tj.lax.population_count(np.int32([7, 8]))\narray([3, 1], dtype=int32)"
    ),
    "lax.pow": (">>> tj.lax.pow(np.array([2.0, 3.0]), np.array([2.0, 2.0]))\narray([4., 9.])"),
    "lax.real": (">>> tj.lax.real(np.array([1 + 2j]))\narray([1.])"),
    "lax.reduce_and": (">>> tj.lax.reduce_and(np.array([True, False]), (0,))\nnp.False_"),
    "lax.reduce_max": (">>> tj.lax.reduce_max(np.array([1.0, 3.0]), (0,))\nnp.float64(3.0)"),
    "lax.reduce_min": (">>> tj.lax.reduce_min(np.array([1.0, 3.0]), (0,))\nnp.float64(1.0)"),
    "lax.reduce_or": (">>> tj.lax.reduce_or(np.array([True, False]), (0,))\nnp.True_"),
    "lax.reduce_prod": (">>> tj.lax.reduce_prod(np.array([2.0, 3.0]), (0,))\nnp.float64(6.0)"),
    "lax.reduce_sum": (">>> tj.lax.reduce_sum(np.array([1.0, 3.0]), (0,))\nnp.float64(4.0)"),
    "lax.reduce_xor": (">>> tj.lax.reduce_xor(np.array([6, 5]), (0,))\nnp.int64(3)"),
    "lax.rem": (">>> tj.lax.rem(np.array([7, -7]), np.array([3, 3]))\narray([ 1, -1])"),
    "lax.round_nearest_afz": (
        ">>> tj.lax.round_nearest_afz(np.array([-1.5, 0.5]))\narray([-2.,  1.])"
    ),
    "lax.round_nearest_even": (
        ">>> tj.lax.round_nearest_even(np.array([-1.5, 0.5]))\narray([-2.,  0.])"
    ),
    "lax.rsqrt": (">>> tj.lax.rsqrt(np.array([4.0, 16.0]))\narray([0.5 , 0.25])"),
    "lax.scatter": (
        ">>> tj.lax.scatter(\n"
        "...     np.zeros(3),\n"
        "...     np.array([[1]]),\n"
        "...     np.array([9.0]),\n"
        "...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),\n"
        "... )\n"
        "array([0., 9., 0.])"
    ),
    "lax.scatter_add": (
        ">>> tj.lax.scatter_add(\n"
        "...     np.ones(3),\n"
        "...     np.array([[1]]),\n"
        "...     np.array([9.0]),\n"
        "...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),\n"
        "... )\n"
        "array([ 1., 10.,  1.])"
    ),
    "lax.scatter_max": (
        ">>> tj.lax.scatter_max(\n"
        "...     np.ones(3),\n"
        "...     np.array([[1]]),\n"
        "...     np.array([9.0]),\n"
        "...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),\n"
        "... )\n"
        "array([1., 9., 1.])"
    ),
    "lax.scatter_min": (
        ">>> tj.lax.scatter_min(\n"
        "...     np.ones(3),\n"
        "...     np.array([[1]]),\n"
        "...     np.array([-9.0]),\n"
        "...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),\n"
        "... )\n"
        "array([ 1., -9.,  1.])"
    ),
    "lax.scatter_mul": (
        ">>> tj.lax.scatter_mul(\n"
        "...     np.ones(3),\n"
        "...     np.array([[1]]),\n"
        "...     np.array([9.0]),\n"
        "...     tj.lax.ScatterDimensionNumbers((), (0,), (0,), 1),\n"
        "... )\n"
        "array([1., 9., 1.])"
    ),
    "lax.shift_left": (
        ">>> tj.lax.shift_left(np.array([1, 2]), np.array([3, 3]))\narray([ 8, 16])"
    ),
    "lax.shift_right_arithmetic": (
        ">>> tj.lax.shift_right_arithmetic(np.array([-16, 9]), np.array([2, 2]))\narray([-4,  2])"
    ),
    "lax.shift_right_logical": (
        ">>> tj.lax.shift_right_logical(np.array([16, 9]), np.array([2, 2]))\narray([4, 2])"
    ),
    "lax.sign": (">>> tj.lax.sign(np.array([-1.5, 0.5]))\narray([-1.,  1.])"),
    "lax.sin": (">>> tj.lax.sin(np.array([-1.5, 0.5])).round(4)\narray([-0.9975,  0.4794])"),
    "lax.sinh": (">>> tj.lax.sinh(np.array([-1.5, 0.5])).round(4)\narray([-2.1293,  0.5211])"),
    "lax.sqrt": (">>> tj.lax.sqrt(np.array([4.0, 9.0]))\narray([2., 3.])"),
    "lax.sub": (
        ">>> tj.lax.sub(np.array([1.0, 2.0]), np.array([10.0, 20.0]))\narray([ -9., -18.])"
    ),
    "lax.tan": (">>> tj.lax.tan(np.array([-1.5, 0.5])).round(4)\narray([-14.1014,   0.5463])"),
    "lax.tanh": (">>> tj.lax.tanh(np.array([-1.5, 0.5])).round(4)\narray([-0.9051,  0.4621])"),
    "numpy.absolute": (">>> tnp.absolute([-1.5, 0.5])\narray([1.5, 0.5])"),
    "numpy.add": (">>> tnp.add([1, 2], 10)\narray([11, 12])"),
    "numpy.arccos": (">>> tnp.acos([1.0, 0.5]).round(4)\narray([0.    , 1.0472])"),
    "numpy.arccosh": (">>> tnp.acosh([1.0, 2.0]).round(4)\narray([0.   , 1.317])"),
    "numpy.arcsin": (">>> tnp.asin([0.0, 0.5]).round(4)\narray([0.    , 0.5236])"),
    "numpy.arcsinh": (">>> tnp.asinh([0.0, 1.0]).round(4)\narray([0.    , 0.8814])"),
    "numpy.arctan": (">>> tnp.atan([0.0, 1.0]).round(4)\narray([0.    , 0.7854])"),
    "numpy.arctan2": (
        ">>> tnp.atan2([1.0, -1.0], [1.0, -1.0]).round(4)\narray([ 0.7854, -2.3562])"
    ),
    "numpy.arctanh": (">>> tnp.atanh([0.0, 0.5]).round(4)\narray([0.    , 0.5493])"),
    "numpy.bitwise_and": (">>> tnp.bitwise_and([6, 5], 3)\narray([2, 1])"),
    "numpy.bitwise_count": (">>> tnp.bitwise_count([7, 8])\narray([3, 1], dtype=uint8)"),
    "numpy.bitwise_or": (">>> tnp.bitwise_or([6, 5], 3)\narray([7, 7])"),
    "numpy.bitwise_xor": (">>> tnp.bitwise_xor([6, 5], 3)\narray([5, 6])"),
    "numpy.cbrt": (">>> tnp.cbrt([8.0, -27.0])\narray([ 2., -3.])"),
    "numpy.ceil": (">>> tnp.ceil([-1.5, 0.5])\narray([-1.,  1.])"),
    "numpy.conjugate": (">>> tnp.conjugate([1 + 2j])\narray([1.-2.j])"),
    "numpy.copysign": (">>> tnp.copysign([1.0, 2.0], -1.0)\narray([-1., -2.])"),
    "numpy.cos": (">>> tnp.cos([-1.5, 0.5]).round(4)\narray([0.0707, 0.8776])"),
    "numpy.cosh": (">>> tnp.cosh([-1.5, 0.5]).round(4)\narray([2.3524, 1.1276])"),
    "numpy.deg2rad": (">>> tnp.deg2rad([0.0, 180.0]).round(4)\narray([0.    , 3.1416])"),
    "numpy.degrees": (">>> tnp.degrees([-1.5, 0.5]).round(4)\narray([-85.9437,  28.6479])"),
    "numpy.divide": (">>> tnp.true_divide([1, 2], 4)\narray([0.25, 0.5 ])"),
    "numpy.divmod": (">>> tnp.divmod([7, -7], 3)\n(array([ 2, -3]), array([1, 2]))"),
    "numpy.equal": (">>> tnp.equal([1, 2], 2)\narray([False,  True])"),
    "numpy.exp": (">>> tnp.exp([-1.5, 0.5]).round(4)\narray([0.2231, 1.6487])"),
    "numpy.exp2": (">>> tnp.exp2([3.0, -1.0])\narray([8. , 0.5])"),
    "numpy.expm1": (">>> tnp.expm1([-1.5, 0.5]).round(4)\narray([-0.7769,  0.6487])"),
    "numpy.fabs": (">>> tnp.fabs([-1.5, 0.5])\narray([1.5, 0.5])"),
    "numpy.float_power": (">>> tnp.float_power([2, 3], -1)\narray([0.5       , 0.33333333])"),
    "numpy.floor": (">>> tnp.floor([-1.5, 0.5])\narray([-2.,  0.])"),
    "numpy.floor_divide": (">>> tnp.floor_divide([7, -7], 2)\narray([ 3, -4])"),
    "numpy.fmax": (">>> tnp.fmax([1.0, np.nan], 0.0)\narray([1., 0.])"),
    "numpy.fmin": (">>> tnp.fmin([1.0, np.nan], 0.0)\narray([0., 0.])"),
    "numpy.fmod": (">>> tnp.fmod([7, -7], 3)\narray([ 1, -1])"),
    "numpy.frexp": (">>> tnp.frexp([6.0, 0.5])\n(array([0.75, 0.5 ]), array([3, 0], dtype=int32))"),
    "numpy.gcd": (">>> tnp.gcd([12, 18], 8)\narray([4, 2])"),
    "numpy.greater": (">>> tnp.greater([1, 2], 1)\narray([False,  True])"),
    "numpy.greater_equal": (">>> tnp.greater_equal([1, 2], 2)\narray([False,  True])"),
    "numpy.heaviside": (">>> tnp.heaviside([-1.0, 0.0, 1.0], 0.5)\narray([0. , 0.5, 1. ])"),
    "numpy.hypot": (">>> tnp.hypot(3.0, 4.0)\nnp.float64(5.0)"),
    "numpy.invert": (">>> tnp.bitwise_invert([0, 5])\narray([-1, -6])"),
    "numpy.isfinite": (">>> tnp.isfinite([1.0, np.inf])\narray([ True, False])"),
    "numpy.isinf": (">>> tnp.isinf([1.0, np.inf])\narray([False,  True])"),
    "numpy.isnan": (">>> tnp.isnan([1.0, np.nan])\narray([False,  True])"),
    "numpy.lcm": (">>> tnp.lcm([4, 6], 10)\narray([20, 30])"),
    "numpy.ldexp": (">>> tnp.ldexp([0.5, 3.0], 2)\narray([ 2., 12.])"),
    "numpy.left_shift": (">>> tnp.bitwise_left_shift([1, 2], 3)\narray([ 8, 16])"),
    "numpy.less": (">>> tnp.less([1, 2], 2)\narray([ True, False])"),
    "numpy.less_equal": (">>> tnp.less_equal([1, 2], 2)\narray([ True,  True])"),
    "numpy.log": (">>> tnp.log([1.0, np.e]).round(4)\narray([0., 1.])"),
    "numpy.log10": (">>> tnp.log10([1.0, 100.0])\narray([0., 2.])"),
    "numpy.log1p": (">>> tnp.log1p([0.0, 1.0]).round(4)\narray([0.    , 0.6931])"),
    "numpy.log2": (">>> tnp.log2([1.0, 8.0])\narray([0., 3.])"),
    "numpy.logaddexp": (">>> tnp.logaddexp([0.0, 1.0], 0.0).round(4)\narray([0.6931, 1.3133])"),
    "numpy.logaddexp2": (">>> tnp.logaddexp2([0.0, 1.0], 0.0).round(4)\narray([1.   , 1.585])"),
    "numpy.logical_and": (
        ">>> tnp.logical_and([True, True], [True, False])\narray([ True, False])"
    ),
    "numpy.logical_not": (">>> tnp.logical_not([True, False])\narray([False,  True])"),
    "numpy.logical_or": (
        ">>> tnp.logical_or([False, True], [False, False])\narray([False,  True])"
    ),
    "numpy.logical_xor": (
        ">>> tnp.logical_xor([True, True], [True, False])\narray([False,  True])"
    ),
    "numpy.maximum": (">>> tnp.maximum([1, 5], [3, 2])\narray([3, 5])"),
    "numpy.minimum": (">>> tnp.minimum([1, 5], [3, 2])\narray([1, 2])"),
    "numpy.modf": (">>> tnp.modf([1.5, -2.25])\n(array([ 0.5 , -0.25]), array([ 1., -2.]))"),
    "numpy.multiply": (">>> tnp.multiply([1, 2], 10)\narray([10, 20])"),
    "numpy.negative": (">>> tnp.negative([-1.5, 0.5])\narray([ 1.5, -0.5])"),
    "numpy.nextafter": (">>> tnp.nextafter(1.0, 2.0)\nnp.float64(1.0000000000000002)"),
    "numpy.not_equal": (">>> tnp.not_equal([1, 2], 2)\narray([ True, False])"),
    "numpy.positive": (">>> tnp.positive([-1.5, 0.5])\narray([-1.5,  0.5])"),
    "numpy.power": (">>> tnp.pow([2, 3], 2)\narray([4, 9])"),
    "numpy.rad2deg": (">>> tnp.rad2deg([-1.5, 0.5]).round(4)\narray([-85.9437,  28.6479])"),
    "numpy.radians": (">>> tnp.radians([0.0, 180.0]).round(4)\narray([0.    , 3.1416])"),
    "numpy.reciprocal": (">>> tnp.reciprocal([4.0, 0.5])\narray([0.25, 2.  ])"),
    "numpy.remainder": (">>> tnp.remainder([7, -7], 3)\narray([1, 2])"),
    "numpy.right_shift": (">>> tnp.bitwise_right_shift([16, 9], 2)\narray([4, 2])"),
    "numpy.rint": (">>> tnp.rint([0.5, 1.5])\narray([0., 2.])"),
    "numpy.sign": (">>> tnp.sign([-1.5, 0.5])\narray([-1.,  1.])"),
    "numpy.signbit": (">>> tnp.signbit([-1.5, 0.5])\narray([ True, False])"),
    "numpy.sin": (">>> tnp.sin([-1.5, 0.5]).round(4)\narray([-0.9975,  0.4794])"),
    "numpy.sinh": (">>> tnp.sinh([-1.5, 0.5]).round(4)\narray([-2.1293,  0.5211])"),
    "numpy.spacing": (">>> tnp.spacing([-1.5, 0.5])\narray([-2.22044605e-16,  1.11022302e-16])"),
    "numpy.sqrt": (">>> tnp.sqrt([4.0, 9.0])\narray([2., 3.])"),
    "numpy.square": (">>> tnp.square([2.0, 3.0])\narray([4., 9.])"),
    "numpy.subtract": (">>> tnp.subtract([1, 2], 10)\narray([-9, -8])"),
    "numpy.tan": (">>> tnp.tan([-1.5, 0.5]).round(4)\narray([-14.1014,   0.5463])"),
    "numpy.tanh": (">>> tnp.tanh([-1.5, 0.5]).round(4)\narray([-0.9051,  0.4621])"),
    "numpy.trunc": (">>> tnp.trunc([-1.5, 0.5])\narray([-1.,  0.])"),
    "scipy.special.agm": (">>> tj.scipy.special.agm(2.0, 0.5).round(4)\nnp.float64(1.1215)"),
    "scipy.special.airy": (
        ">>> [one.round(4) for one in tj.scipy.special.airy(0.5)]\n"
        "[np.float64(0.2317), np.float64(-0.2249), np.float64(0.8543), np.float64(0.5446)]"
    ),
    "scipy.special.bdtr": (">>> tj.scipy.special.bdtr(2, 6, 0.3).round(4)\nnp.float64(0.7443)"),
    "scipy.special.bdtrc": (">>> tj.scipy.special.bdtrc(2, 6, 0.3).round(4)\nnp.float64(0.2557)"),
    "scipy.special.betainccinv": (
        ">>> tj.scipy.special.betainccinv(2.0, 3.0, 0.5).round(4)\nnp.float64(0.3857)"
    ),
    "scipy.special.betaincinv": (
        ">>> tj.scipy.special.betaincinv(2.0, 3.0, 0.5).round(4)\nnp.float64(0.3857)"
    ),
    "scipy.special.chdtri": (">>> tj.scipy.special.chdtri(2.0, 0.5).round(4)\nnp.float64(1.3863)"),
    "scipy.special.dawsn": (">>> tj.scipy.special.dawsn(0.5).round(4)\nnp.float64(0.4244)"),
    "scipy.special.ellipe": (">>> tj.scipy.special.ellipe(0.5).round(4)\nnp.float64(1.3506)"),
    "scipy.special.ellipeinc": (
        ">>> tj.scipy.special.ellipeinc(1.0, 0.5).round(4)\nnp.float64(0.9273)"
    ),
    "scipy.special.ellipj": (
        ">>> [one.round(4) for one in tj.scipy.special.ellipj(0.8, 0.6)]\n"
        "[np.float64(0.6856), np.float64(0.728), np.float64(0.8473), np.float64(0.7554)]"
    ),
    "scipy.special.ellipk": (">>> tj.scipy.special.ellipk(0.5).round(4)\nnp.float64(1.8541)"),
    "scipy.special.ellipkinc": (
        ">>> tj.scipy.special.ellipkinc(1.0, 0.5).round(4)\nnp.float64(1.0832)"
    ),
    "scipy.special.ellipkm1": (">>> tj.scipy.special.ellipkm1(0.5).round(4)\nnp.float64(1.8541)"),
    "scipy.special.elliprc": (
        ">>> tj.scipy.special.elliprc(1.0, 2.0).round(4)\nnp.float64(0.7854)"
    ),
    "scipy.special.elliprd": (
        ">>> tj.scipy.special.elliprd(2.0, 3.0, 0.5).round(4)\nnp.float64(0.959)"
    ),
    "scipy.special.elliprf": (
        ">>> tj.scipy.special.elliprf(2.0, 3.0, 0.5).round(4)\nnp.float64(0.787)"
    ),
    "scipy.special.elliprg": (
        ">>> tj.scipy.special.elliprg(2.0, 3.0, 0.5).round(4)\nnp.float64(1.3294)"
    ),
    "scipy.special.erfi": (">>> tj.scipy.special.erfi(0.5).round(4)\nnp.float64(0.615)"),
    "scipy.special.fdtri": (
        ">>> tj.scipy.special.fdtri(2.0, 3.0, 0.5).round(4)\nnp.float64(0.8811)"
    ),
    "scipy.special.fresnel": (
        ">>> [one.round(4) for one in tj.scipy.special.fresnel(0.5)]\n"
        "[np.float64(0.0647), np.float64(0.4923)]"
    ),
    "scipy.special.gammainccinv": (
        ">>> tj.scipy.special.gammainccinv(2.0, 0.5).round(4)\nnp.float64(1.6783)"
    ),
    "scipy.special.gammaincinv": (
        ">>> tj.scipy.special.gammaincinv(2.0, 0.5).round(4)\nnp.float64(1.6783)"
    ),
    "scipy.special.gdtrix": (
        ">>> tj.scipy.special.gdtrix(2.0, 3.0, 0.5).round(4)\nnp.float64(1.337)"
    ),
    "scipy.special.jve": (">>> tj.scipy.special.jve(2.0, 0.5).round(4)\nnp.float64(0.0306)"),
    "scipy.special.k0": (">>> tj.scipy.special.k0(0.5).round(4)\nnp.float64(0.9244)"),
    "scipy.special.k0e": (">>> tj.scipy.special.k0e(0.5).round(4)\nnp.float64(1.5241)"),
    "scipy.special.k1": (">>> tj.scipy.special.k1(0.5).round(4)\nnp.float64(1.6564)"),
    "scipy.special.k1e": (">>> tj.scipy.special.k1e(0.5).round(4)\nnp.float64(2.731)"),
    "scipy.special.kn": (">>> tj.scipy.special.kn(2.0, 0.5).round(4)\nnp.float64(7.5502)"),
    "scipy.special.kv": (">>> tj.scipy.special.kv(2.0, 0.5).round(4)\nnp.float64(7.5502)"),
    "scipy.special.kve": (">>> tj.scipy.special.kve(2.0, 0.5).round(4)\nnp.float64(12.4481)"),
    "scipy.special.nbdtr": (">>> tj.scipy.special.nbdtr(2, 6, 0.3).round(4)\nnp.float64(0.0113)"),
    "scipy.special.nbdtrc": (">>> tj.scipy.special.nbdtrc(2, 6, 0.3).round(4)\nnp.float64(0.9887)"),
    "scipy.special.ndtri_exp": (
        ">>> tj.scipy.special.ndtri_exp(-0.9).round(4)\nnp.float64(-0.2364)"
    ),
    "scipy.special.nrdtrimn": (
        ">>> tj.scipy.special.nrdtrimn(0.3, 2.0, 1.1).round(4)\nnp.float64(2.1488)"
    ),
    "scipy.special.nrdtrisd": (
        ">>> tj.scipy.special.nrdtrisd(0.3, 0.7, 1.1).round(4)\nnp.float64(1.5256)"
    ),
    "scipy.special.pdtri": (">>> tj.scipy.special.pdtri(2.0, 0.5).round(4)\nnp.float64(2.6741)"),
    "scipy.special.shichi": (
        ">>> [one.round(4) for one in tj.scipy.special.shichi(0.5)]\n"
        "[np.float64(0.507), np.float64(-0.0528)]"
    ),
    "scipy.special.sici": (
        ">>> [one.round(4) for one in tj.scipy.special.sici(0.5)]\n"
        "[np.float64(0.4931), np.float64(-0.1778)]"
    ),
    "scipy.special.stdtrit": (">>> tj.scipy.special.stdtrit(2.0, 0.5).round(4)\nnp.float64(0.0)"),
    "scipy.special.voigt_profile": (
        ">>> tj.scipy.special.voigt_profile(2.0, 3.0, 0.5).round(4)\nnp.float64(0.0964)"
    ),
    "scipy.special.yv": (">>> tj.scipy.special.yv(2.0, 0.5).round(4)\nnp.float64(-5.4414)"),
    "scipy.special.yve": (">>> tj.scipy.special.yve(2.0, 0.5).round(4)\nnp.float64(-5.4414)"),
    "scipy.special.beta": (">>> tj.scipy.special.beta(2.0, 3.0).round(4)\nnp.float64(0.0833)"),
    "scipy.special.betainc": (
        ">>> tj.scipy.special.betainc(2.0, 3.0, 0.5).round(4)\nnp.float64(0.6875)"
    ),
    "scipy.special.betaincc": (
        ">>> tj.scipy.special.betaincc(2.0, 3.0, 0.5).round(4)\nnp.float64(0.3125)"
    ),
    "scipy.special.betaln": (">>> tj.scipy.special.betaln(2.0, 3.0).round(4)\nnp.float64(-2.4849)"),
    "scipy.special.binom": (">>> tj.scipy.special.binom(5, 2).round(4)\nnp.float64(10.0)"),
    "scipy.special.boxcox": (
        ">>> tj.scipy.special.boxcox([1.0, 4.0], 0.5).round(4)\narray([0., 2.])"
    ),
    "scipy.special.boxcox1p": (
        ">>> tj.scipy.special.boxcox1p([0.0, 3.0], 0.5).round(4)\narray([0., 2.])"
    ),
    "scipy.special.cbrt": (">>> tj.scipy.special.cbrt([8.0, 27.0]).round(4)\narray([2., 3.])"),
    "scipy.special.chdtr": (">>> tj.scipy.special.chdtr(2, 1.0).round(4)\nnp.float64(0.3935)"),
    "scipy.special.chdtrc": (">>> tj.scipy.special.chdtrc(2, 1.0).round(4)\nnp.float64(0.6065)"),
    "scipy.special.cosm1": (
        ">>> tj.scipy.special.cosm1([0.0, 1.0]).round(4)\narray([-0.    , -0.4597])"
    ),
    "scipy.special.entr": (
        ">>> tj.scipy.special.entr([0.0, 0.5]).round(4)\narray([0.    , 0.3466])"
    ),
    "scipy.special.erf": (">>> tj.scipy.special.erf([0.0, 1.0]).round(4)\narray([0.    , 0.8427])"),
    "scipy.special.erfc": (
        ">>> tj.scipy.special.erfc([0.0, 1.0]).round(4)\narray([1.    , 0.1573])"
    ),
    "scipy.special.erfcinv": (
        ">>> tj.scipy.special.erfcinv([1.0, 0.5]).round(4)\narray([0.    , 0.4769])"
    ),
    "scipy.special.erfcx": (
        ">>> tj.scipy.special.erfcx([0.0, 1.0]).round(4)\narray([1.    , 0.4276])"
    ),
    "scipy.special.erfinv": (
        ">>> tj.scipy.special.erfinv([0.0, 0.5]).round(4)\narray([0.    , 0.4769])"
    ),
    "scipy.special.exp1": (
        ">>> tj.scipy.special.exp1([1.0, 2.0]).round(4)\narray([0.2194, 0.0489])"
    ),
    "scipy.special.exp10": (">>> tj.scipy.special.exp10([0.0, 2.0]).round(4)\narray([  1., 100.])"),
    "scipy.special.exp2": (">>> tj.scipy.special.exp2([0.0, 3.0]).round(4)\narray([1., 8.])"),
    "scipy.special.expi": (
        ">>> tj.scipy.special.expi([1.0, 2.0]).round(4)\narray([1.8951, 4.9542])"
    ),
    "scipy.special.expit": (
        ">>> tj.scipy.special.expit([0.0, 2.0]).round(4)\narray([0.5   , 0.8808])"
    ),
    "scipy.special.expm1": (
        ">>> tj.scipy.special.expm1([0.0, 1.0]).round(4)\narray([0.    , 1.7183])"
    ),
    "scipy.special.expn": (
        ">>> tj.scipy.special.expn(2, [0.0, 1.0]).round(4)\narray([1.    , 0.1485])"
    ),
    "scipy.special.exprel": (
        ">>> tj.scipy.special.exprel([0.0, 1.0]).round(4)\narray([1.    , 1.7183])"
    ),
    "scipy.special.fdtr": (">>> tj.scipy.special.fdtr(2, 3, 1.0).round(4)\nnp.float64(0.5352)"),
    "scipy.special.fdtrc": (">>> tj.scipy.special.fdtrc(2, 3, 1.0).round(4)\nnp.float64(0.4648)"),
    "scipy.special.gamma": (
        ">>> tj.scipy.special.gamma([5.0, 0.5]).round(4)\narray([24.    ,  1.7725])"
    ),
    "scipy.special.gammainc": (
        ">>> tj.scipy.special.gammainc(2.0, 1.0).round(4)\nnp.float64(0.2642)"
    ),
    "scipy.special.gammaincc": (
        ">>> tj.scipy.special.gammaincc(2.0, 1.0).round(4)\nnp.float64(0.7358)"
    ),
    "scipy.special.gammaln": (
        ">>> tj.scipy.special.gammaln([5.0, 0.5]).round(4)\narray([3.1781, 0.5724])"
    ),
    "scipy.special.gammasgn": (
        ">>> tj.scipy.special.gammasgn([1.5, -0.5]).round(4)\narray([ 1., -1.])"
    ),
    "scipy.special.gdtr": (">>> tj.scipy.special.gdtr(1.0, 2.0, 1.0).round(4)\nnp.float64(0.2642)"),
    "scipy.special.gdtrc": (
        ">>> tj.scipy.special.gdtrc(1.0, 2.0, 1.0).round(4)\nnp.float64(0.7358)"
    ),
    "scipy.special.huber": (
        ">>> tj.scipy.special.huber(1.0, [0.5, 2.0]).round(4)\narray([0.125, 1.5  ])"
    ),
    "scipy.special.i0": (">>> tj.scipy.special.i0([0.0, 1.0]).round(4)\narray([1.    , 1.2661])"),
    "scipy.special.i0e": (">>> tj.scipy.special.i0e([0.0, 1.0]).round(4)\narray([1.    , 0.4658])"),
    "scipy.special.i1": (">>> tj.scipy.special.i1([0.0, 1.0]).round(4)\narray([0.    , 0.5652])"),
    "scipy.special.i1e": (">>> tj.scipy.special.i1e([0.0, 1.0]).round(4)\narray([0.    , 0.2079])"),
    "scipy.special.inv_boxcox": (
        ">>> tj.scipy.special.inv_boxcox([0.0, 2.0], 0.5).round(4)\narray([1., 4.])"
    ),
    "scipy.special.iv": (
        ">>> tj.scipy.special.iv(1, [0.0, 1.0]).round(4)\narray([0.    , 0.5652])"
    ),
    "scipy.special.ive": (
        ">>> tj.scipy.special.ive(1, [0.0, 1.0]).round(4)\narray([0.    , 0.2079])"
    ),
    "scipy.special.j0": (">>> tj.scipy.special.j0([0.0, 1.0]).round(4)\narray([1.    , 0.7652])"),
    "scipy.special.j1": (">>> tj.scipy.special.j1([0.0, 1.0]).round(4)\narray([0.    , 0.4401])"),
    "scipy.special.jv": (
        ">>> tj.scipy.special.jv(2, [0.0, 1.0]).round(4)\narray([0.    , 0.1149])"
    ),
    "scipy.special.kl_div": (">>> tj.scipy.special.kl_div(1.0, 2.0).round(4)\nnp.float64(0.3069)"),
    "scipy.special.log1p": (
        ">>> tj.scipy.special.log1p([0.0, 1.0]).round(4)\narray([0.    , 0.6931])"
    ),
    "scipy.special.log_expit": (
        ">>> tj.scipy.special.log_expit([0.0, -800.0]).round(4)\narray([-6.931e-01, -8.000e+02])"
    ),
    "scipy.special.log_ndtr": (
        ">>> tj.scipy.special.log_ndtr([0.0, -40.0]).round(4)\n"
        "array([-6.931000e-01, -8.046084e+02])"
    ),
    "scipy.special.logit": (
        ">>> tj.scipy.special.logit([0.5, 0.25]).round(4)\narray([ 0.    , -1.0986])"
    ),
    "scipy.special.ndtr": (
        ">>> tj.scipy.special.ndtr([0.0, 1.0]).round(4)\narray([0.5   , 0.8413])"
    ),
    "scipy.special.ndtri": (
        ">>> tj.scipy.special.ndtri([0.5, 0.975]).round(4)\narray([-0.  ,  1.96])"
    ),
    "scipy.special.pdtr": (">>> tj.scipy.special.pdtr(2, 1.0).round(4)\nnp.float64(0.9197)"),
    "scipy.special.pdtrc": (">>> tj.scipy.special.pdtrc(2, 1.0).round(4)\nnp.float64(0.0803)"),
    "scipy.special.poch": (">>> tj.scipy.special.poch(3.0, 2.0).round(4)\nnp.float64(12.0)"),
    "scipy.special.pseudo_huber": (
        ">>> tj.scipy.special.pseudo_huber(1.0, [0.5, 2.0]).round(4)\narray([0.118 , 1.2361])"
    ),
    "scipy.special.psi": (
        ">>> tj.scipy.special.psi([1.0, 2.0]).round(4)\narray([-0.5772,  0.4228])"
    ),
    "scipy.special.rel_entr": (
        ">>> tj.scipy.special.rel_entr(1.0, 2.0).round(4)\nnp.float64(-0.6931)"
    ),
    "scipy.special.rgamma": (
        ">>> tj.scipy.special.rgamma([5.0, 0.0]).round(4)\narray([0.0417, 0.    ])"
    ),
    "scipy.special.spence": (
        ">>> tj.scipy.special.spence([1.0, 2.0]).round(4)\narray([-0.    , -0.8225])"
    ),
    "scipy.special.stdtr": (">>> tj.scipy.special.stdtr(3, 1.0).round(4)\nnp.float64(0.8045)"),
    "scipy.special.wofz": (
        ">>> tj.scipy.special.wofz([0.0, 1.0]).round(4)\narray([1.    +0.j    , 0.3679+0.6072j])"
    ),
    "scipy.special.xlog1py": (
        ">>> tj.scipy.special.xlog1py([0.0, 2.0], 1.0).round(4)\narray([0.    , 1.3863])"
    ),
    "scipy.special.xlogy": (
        ">>> tj.scipy.special.xlogy([0.0, 2.0], 2.0).round(4)\narray([0.    , 1.3863])"
    ),
    "scipy.special.y0": (">>> tj.scipy.special.y0([1.0, 2.0]).round(4)\narray([0.0883, 0.5104])"),
    "scipy.special.y1": (">>> tj.scipy.special.y1([1.0, 2.0]).round(4)\narray([-0.7812, -0.107 ])"),
    "scipy.special.yn": (
        ">>> tj.scipy.special.yn(2, [1.0, 2.0]).round(4)\narray([-1.6507, -0.6174])"
    ),
}
