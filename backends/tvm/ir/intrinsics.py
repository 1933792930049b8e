"""Functions of numbers that kernels call by name, and that each target writes in its own way.

    exp = unary("exp")
    exp(x, "float32")              # a TIR expression that TVM vectorises, of one call

A call is of a TVM op, ``tirx.tracejit.exp``, so that TVM's passes see a small expression. The build
of a target replaces the calls: by LLVM text on whole vectors, by functions of C or of CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm.ir import Call, Op, register_op_attr
from tvm.ir import _ffi_api as _ir

from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.tir import Expr

_PREFIX = "tirx.tracejit."
_PURE = 1  # tvm::tirx::CallEffectKind::kPure

REGISTERS = (
    "bool",
    "float32",
    "float64",
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
)
"""The element types that registers hold to compute with (see `ir.dtypes`)."""


@dataclass(frozen=True)
class Intrinsic:
    """A function that is applied lane by lane, of ``arity`` values of one element type.

    It returns that element type, or ``returns``.
    """

    name: str
    arity: int = 1
    returns: str | None = None
    dtypes: tuple[str, ...] = REGISTERS

    @property
    def op(self) -> Any:
        return Op.get(_PREFIX + self.name)

    def __call__(self, *arguments: Expr, dtype: str) -> Expr:
        """The call. Raises ValueError for a dtype that no register holds."""
        if dtype not in self.dtypes:
            known = ", ".join(self.dtypes)
            raise ValueError(f"{self.name}: no register holds {dtype}; one of {known} does")
        return Call(self.op, list(arguments), ret_ty=self.returns or dtype)


_DECLARED: dict[str, Intrinsic] = {}
VOCABULARY: set[str] = set()
"""The names of those that portable code calls, which every target implements."""


def declare(
    name: str, arity: int = 1, returns: str | None = None, dtypes: tuple[str, ...] = REGISTERS
) -> Intrinsic:
    """Makes a function known to TVM; one that is declared alike already is the same."""
    made = Intrinsic(name, arity, returns, dtypes)
    known = _DECLARED.setdefault(name, made)
    if known is not made:
        if known != made:
            raise ValueError(f"intrinsic {name} is declared twice, with different parameters")
        return known
    _ir.RegisterOp(_PREFIX + name, "")
    made.op.set_num_inputs(arity)
    register_op_attr(_PREFIX + name, "TScriptPrinterName", name)
    register_op_attr(_PREFIX + name, "TVectorizable", True)
    register_op_attr(_PREFIX + name, "TCallEffectKind", _PURE)
    return made


def intrinsic_of(call: Any) -> Intrinsic | None:
    """The intrinsic that a TVM call is of, if it is of one."""
    if not isinstance(call.op, Op):
        return None
    name = str(call.op.name)
    return _DECLARED[name.removeprefix(_PREFIX)] if name.startswith(_PREFIX) else None


def function(name: str, arity: int, returns: str | None = None) -> Intrinsic:
    """An intrinsic that portable code calls."""
    VOCABULARY.add(name)
    return declare(name, arity, returns)


def unary(name: str, returns: str | None = None) -> Callable[[Expr, str], Expr]:
    """A function of one expression and its element type."""
    made = function(name, 1, returns)
    return lambda x, dtype: made(x, dtype=dtype)


def binary(name: str) -> Callable[[Expr, Expr, str], Expr]:
    """A function of two expressions and their element type."""
    made = function(name, 2)
    return lambda x, y, dtype: made(x, y, dtype=dtype)


def complex_unary(name: str) -> Callable[[Complex, str], Complex]:
    """A function of one complex number and the element type of its parts."""
    apply = _complex(name, 1)
    return lambda z, dtype: apply(z, dtype=dtype)


def complex_binary(name: str) -> Callable[[Complex, Complex, str], Complex]:
    """A function of two complex numbers and the element type of their parts."""
    apply = _complex(name, 2)
    return lambda z, w, dtype: apply(z, w, dtype=dtype)


def complex_magnitude(name: str) -> Callable[[Complex, str], Expr]:
    """A real function of one complex number and the element type of its parts."""
    made = function(f"complex_{name}", 2)
    return lambda z, dtype: made(z.re, z.im, dtype=dtype)


def _complex(name: str, arity: int) -> Callable[..., Complex]:
    """Each part of the result is one intrinsic, of the parts of the numbers one after the other."""
    re, im = (function(f"complex_{name}_{part}", 2 * arity) for part in ("re", "im"))

    def apply(*numbers: Complex, dtype: str) -> Complex:
        parts = [part for number in numbers for part in number]
        return Complex(re(*parts, dtype=dtype), im(*parts, dtype=dtype))

    return apply
