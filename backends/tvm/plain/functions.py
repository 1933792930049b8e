"""The intrinsics in C, on the C library's functions of doubles."""

from __future__ import annotations

from collections.abc import Iterator

from tracejit.backends.tvm.ir import complex_mathematics, mathematics
from tracejit.backends.tvm.ir.intrinsics import VOCABULARY

__all__ = ["FUNCTIONS", "NAMES", "PREAMBLE", "c_name", "complex_mathematics", "mathematics"]

_REAL = {
    name: f"{name}(x)"
    for name in (
        "exp exp2 expm1 tanh sinh cosh log log10 log1p log2 asinh acosh atanh sin cos tan asin "
        "acos erf sqrt cbrt floor ceil"
    ).split()
} | {
    "logistic": "1 / (1 + exp(-x))",
    "rsqrt": "1 / sqrt(x)",
    "round_nearest_even": "nearbyint(x)",
    "round_nearest_afz": "round(x)",
    "sign": "x > 0 ? 1 : x < 0 ? -1 : x",
    "erf_inv": "inverse_erf(x)",
    "atan2": "atan2(x, y)",
    "pow": "pow(x, y)",
    "max": "x != x || y != y ? x + y : x == y ? (signbit(x) ? y : x) : x > y ? x : y",
    "min": "x != x || y != y ? x + y : x == y ? (signbit(x) ? x : y) : x < y ? x : y",
    "div": "x / y",
    "rem": "fmod(x, y)",
    "offset": "x + y",
}
_COMPLEX = {
    name: f"c{name}(z)"
    for name in "sqrt exp log sinh cosh tanh sin cos tan asin acos asinh acosh atanh".split()
} | {
    "add": "z + w",
    "sub": "z - w",
    "mul": "z * w",
    "div": "z / w",
    "sign": "cabs(z) == 0 ? z : z / cabs(z)",
    "rsqrt": "1 / csqrt(z)",
    "expm1": "CMPLX(expm1(creal(z)) * cos(cimag(z)) - 2 * pow(sin(cimag(z) / 2), 2), "
    "exp(creal(z)) * sin(cimag(z)))",
    "log1p": "clog(1 + z)",
    "logistic": "1 / (1 + cexp(-z))",
    "pow": "cexp(w * clog(z))",
    "atan2": "-I * clog((w + I * z) / csqrt(z * z + w * w))",
}
_TWO = {"add", "sub", "mul", "div", "pow", "atan2", "max", "min", "rem", "offset"}
_INTEGER = {
    "div": "y == 0 ? (T)-1 : y == (T)-1 && (T)-1 < 0 ? (T)(0 - (U)x) : (T)(x / y)",
    "rem": "y == 0 ? x : y == (T)-1 && (T)-1 < 0 ? 0 : (T)(x % y)",
    "offset": "x + y",
    "pow": "integer_power(x, y, (T)-1 < 0)",
    "population_count": "__builtin_popcountll((U)x)",
    "clz": "(U)x ? __builtin_clzll((U)x) - (64 - 8 * (int)sizeof(T)) : 8 * (int)sizeof(T)",
}
_RANDOM = """
static uint64_t threefry_u32(uint32_t a, uint32_t b, uint32_t x, uint32_t y) {
  const int turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const uint32_t keys[3] = {a, b, a ^ b ^ 0x1BD11BDAu};
  x += a; y += b;
  for (int round = 0; round < 20; ++round) {
    const int turn = turns[round % 8];
    x += y; y = (y << turn) | (y >> (32 - turn)); y ^= x;
    if (round % 4 == 3) {
      const int step = round / 4 + 1;
      x += keys[step % 3]; y += keys[(step + 1) % 3] + step;
    }
  }
  return x | (uint64_t)y << 32;
}
static void philox(uint32_t a, uint32_t b, uint32_t *c) {
  for (int round = 0; round < 10; ++round, a += 0x9E3779B9u, b += 0xBB67AE85u) {
    const uint64_t first = (uint64_t)c[0] * 0xD2511F53u, second = (uint64_t)c[2] * 0xCD9E8D57u;
    const uint32_t one = (second >> 32) ^ c[1] ^ a, three = (first >> 32) ^ c[3] ^ b;
    c[0] = one; c[1] = (uint32_t)second; c[2] = three; c[3] = (uint32_t)first;
  }
}
#define PHILOX(name, n) static uint64_t name##_u32(uint32_t a, uint32_t b, uint32_t c, \\
    uint32_t d, uint32_t e, uint32_t f) { \\
  uint32_t x[4] = {c, d, e, f}; philox(a, b, x); return x[n] | (uint64_t)x[n + 1] << 32; }
PHILOX(philox_low, 0)
PHILOX(philox_high, 2)
"""
_POWERS = """
static int64_t integer_power(int64_t x, int64_t y, bool is_signed) {
  if (is_signed && y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t made = 1, factor = x;
  for (uint64_t left = y; left; left >>= 1, factor *= factor) made *= left & 1 ? factor : 1;
  return made;
}
"""
_INVERSE_ERF = """
static double inverse_erf(double x) {
  if (!(fabs(x) < 1)) return fabs(x) == 1 ? copysign(INFINITY, x) : NAN;
  const double l = log1p(-x * x), a = 4.330746750799873 + l / 2;
  double y = copysign(sqrt(sqrt(a * a - l / 0.147) - a), x);
  for (int n = 0; n < 4; ++n) y -= (erf(y) - x) / (1.1283791670955126 * exp(-y * y));
  return y;
}
"""


def c_name(name: str, dtype: str) -> str:
    """The C function of an intrinsic on TVM's dtype."""
    return f"tj_{name}_{dtype}" if not name.startswith(("threefry", "philox")) else f"{name}_u32"


def _function(name: str, kind: str, returns: str, parameters: str, body: str) -> tuple[str, str]:
    """The name and the text of an intrinsic's function on TVM's dtype ``kind``."""
    called = c_name(name, kind)
    return called, f"static {returns} {called}({parameters}) {{ {body} }}"


def _functions() -> Iterator[tuple[str, str]]:
    for dtype, kind in (("float32", "float"), ("float64", "double")):
        for name, formula in _REAL.items():
            parameters = f"{kind} x, {kind} y" if name in _TWO else f"{kind} x"
            # A quotient of doubles, rounded, is that of floats.
            yield _function(name, dtype, kind, parameters, f"return ({kind})({formula});")
        yield _function("is_finite", dtype, "bool", f"{kind} x", "return isfinite(x);")
        for name, formula in _COMPLEX.items():
            two = name in _TWO
            parameters = ", ".join(f"{kind} {p}" for p in ("a", "b", "c", "d")[: 4 if two else 2])
            start = "double complex z = CMPLX(a, b);" + (" double complex w = CMPLX(c, d);" * two)
            for part, taken in (("re", "creal"), ("im", "cimag")):
                body = f"{start} return ({kind}){taken}({formula});"
                yield _function(f"complex_{name}_{part}", dtype, kind, parameters, body)
        body = f"return ({kind})hypot(a, b);"
        yield _function("complex_abs", dtype, kind, f"{kind} a, {kind} b", body)
    for bits in (8, 16, 32, 64):
        for sign in ("", "u"):
            dtype = f"{sign}int{bits}"
            kind, unsigned = f"{dtype}_t", f"uint{bits}_t"
            for name, formula in _INTEGER.items():
                text = formula.replace("(T)", f"({kind})").replace("(U)", f"({unsigned})")
                text = text.replace("sizeof(T)", f"sizeof({kind})")
                parameters = f"{kind} x, {kind} y" if name in _TWO else f"{kind} x"
                yield _function(name, dtype, kind, parameters, f"return {text};")
            if bits < 64:
                wide = f"(uint64_t)(x < 0 ? -(int64_t)x : x) * ({unsigned})m"
                body = f"uint64_t q = ({wide}) >> ({bits} + (int)s); return x < 0 ? -q : q;"
                parameters = f"{kind} x, {kind} m, {kind} s"
                yield _function("known_quotient", dtype, kind, parameters, body)


_MACROS = """
#define tj_bits(T, v) ({ __typeof__(v) from_ = (v); T to_; __builtin_memcpy(&to_, &from_, sizeof to_); to_; })
#define tj_smaller(T, a, b) ({ T a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define tj_larger(T, a, b) ({ T a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define tj_fabs(a) __builtin_fabs(a)
#define tj_half_to_float(v) ((float)tj_bits(_Float16, v))
#define tj_float_to_half(v) tj_bits(unsigned short, (_Float16)(v))
"""  # noqa: E501

FUNCTIONS = dict(_functions())
"""The text of each function that kernels may call, by its name in C."""

PREAMBLE = (
    "#include <complex.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>" + _MACROS
)

_HELPERS = {
    "integer_power(": _POWERS,
    "inverse_erf(": _INVERSE_ERF,
    "threefry_": _RANDOM,
    "philox_": _RANDOM,
}


def helpers(text: str) -> str:
    """The functions that functions and kernels in ``text`` call beside the C library's."""
    return "".join(dict.fromkeys(own for called, own in _HELPERS.items() if called in text))


NAMES = frozenset(
    name
    for name in VOCABULARY
    if c_name(name, "float32") in FUNCTIONS
    or c_name(name, "int32") in FUNCTIONS
    or name.startswith(("threefry", "philox"))
)
