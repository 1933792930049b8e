"""Operations: the CPU's intrinsics, formulas over LLVM values that TIR expressions can call.

Each function of vector mathematics is one intrinsic (see `ir.intrinsics`), so that TVM's passes see
a small expression and vectorise it. `link` then replaces the calls by calls of LLVM functions on
whole vectors and imports the text of those; LLVM inlines them.

A formula written out as a TIR expression would not do: values used more than once need a let, and
passes and code generation expand lets, which doubles the work with each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import tvm
from tvm import DataType, tirx
from tvm.ir import Call
from tvm_ffi import structural_map

from tracejit.backends.tvm.cpu.llvm.builder import Function, Value, module_text
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS, MOVED, Kind
from tracejit.backends.tvm.cpu.mathematics.complex_arithmetic import Pair
from tracejit.backends.tvm.ir.complex import Complex
from tracejit.backends.tvm.ir.intrinsics import REGISTERS, Intrinsic, declare, intrinsic_of
from tracejit.backends.tvm.ir.tir import Expr, importing

Formula = Callable[..., Value]
_Function = TypeVar("_Function", bound=Callable[..., Expr])


@dataclass(frozen=True)
class Operation:
    """A function that is applied lane by lane: its formula, and the intrinsic that calls it.

    ``fast`` is the formula under the target option ``fast-math``.
    """

    name: str
    formula: Formula
    arity: int
    returns: str | None
    fast: Formula | None = None
    dtypes: tuple[str, ...] = REGISTERS

    @property
    def intrinsic(self) -> Intrinsic:
        return declare(self.name, self.arity, self.returns, self.dtypes)

    @property
    def op(self) -> Any:
        return self.intrinsic.op


@functools.cache
def _text(made: Operation, name: str, kind: Kind, lanes: int, fast: bool) -> str:
    """The LLVM function ``name`` that applies the formula to ``lanes`` elements of ``kind``."""
    function = Function(name, [kind] * made.arity, lanes)
    formula = (made.fast if fast else None) or made.formula
    return function.text(formula(*function.arguments))


_OPERATIONS: dict[str, Operation] = {}


def llvm_text(intrinsic: str, name: str, kind: Kind) -> str:
    """The LLVM function ``name`` that computes an intrinsic of single numbers of ``kind``.

    Raises KeyError for one without a formula.
    """
    return _text(_OPERATIONS[intrinsic], name, kind, 1, False)


def register(made: Operation) -> Operation:
    """Register an operation with TVM and `link`. Raises ValueError for a name that is taken."""
    if made.name in _OPERATIONS:
        raise ValueError(f"operation {made.name} is registered twice")
    _OPERATIONS[made.intrinsic.name] = made
    return made


def operation(
    name: str,
    formula: Formula,
    *,
    arity: int = 1,
    returns: str | None = None,
    kinds: Mapping[str, Kind] = KINDS,
    fast: Formula | None = None,
) -> Callable[..., Expr]:
    """A function of TIR expressions and their TVM element type that applies ``formula``.

    The formula receives ``arity`` values of one kind and returns one of the same kind, or of TVM
    element type ``returns``. The function raises ValueError for a dtype not among ``kinds``.
    """
    kept = REGISTERS if kinds is KINDS else tuple(kinds)
    made = register(Operation(name, formula, arity, returns, fast, kept)).intrinsic

    def apply(*arguments: Expr, dtype: str) -> Expr:
        return made(*arguments, dtype=dtype)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = formula.__doc__
    return apply


def unary(
    name: str, formula: Formula, *, returns: str | None = None
) -> Callable[[Expr, str], Expr]:
    """``formula`` as a function of one TIR expression and its TVM element type."""
    apply = operation(name, formula, returns=returns)
    return _documented(lambda x, dtype: apply(x, dtype=dtype), apply)


def binary(
    name: str,
    formula: Formula,
    kinds: Mapping[str, Kind] = KINDS,
    fast: Formula | None = None,
) -> Callable[[Expr, Expr, str], Expr]:
    """``formula`` as a function of two TIR expressions and their TVM element type."""
    apply = operation(name, formula, arity=2, kinds=kinds, fast=fast)
    return _documented(lambda x, y, dtype: apply(x, y, dtype=dtype), apply)


def complex_unary(name: str, formula: Callable[[Pair], Pair]) -> Callable[[Complex, str], Complex]:
    """``formula`` as a function of one complex number and the TVM element type of its parts."""
    apply = _complex_function(name, formula, arity=1)
    return _documented(lambda z, dtype: apply(z, dtype=dtype), apply)


def complex_binary(
    name: str, formula: Callable[[Pair, Pair], Pair]
) -> Callable[[Complex, Complex, str], Complex]:
    """``formula`` as a function of two complex numbers and the TVM element type of their parts."""
    apply = _complex_function(name, formula, arity=2)
    return _documented(lambda z, w, dtype: apply(z, w, dtype=dtype), apply)


def complex_magnitude(
    name: str, formula: Callable[[Pair], Value]
) -> Callable[[Complex, str], Expr]:
    """``formula`` as a real function of one complex number and the element type of its parts."""

    def of_parts(re: Value, im: Value) -> Value:
        return formula(Pair(re, im))

    of_parts.__doc__ = formula.__doc__
    apply = operation(f"complex_{name}", of_parts, arity=2)
    return _documented(lambda z, dtype: apply(z.re, z.im, dtype=dtype), apply)


def _complex_function(
    name: str, formula: Callable[..., Pair], *, arity: int
) -> Callable[..., Complex]:
    """Each part of the result is one operation; LLVM shares what the two have in common."""

    def part(index: int) -> Formula:
        def of_parts(*parts: Value) -> Value:
            numbers = [Pair(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
            return formula(*numbers)[index]

        of_parts.__doc__ = formula.__doc__
        return of_parts

    re = operation(f"complex_{name}_re", part(0), arity=2 * arity)
    im = operation(f"complex_{name}_im", part(1), arity=2 * arity)

    def apply(*numbers: Complex, dtype: str) -> Complex:
        parts = [part for number in numbers for part in number]
        return Complex(re(*parts, dtype=dtype), im(*parts, dtype=dtype))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = formula.__doc__
    return apply


def _documented(function: _Function, model: Callable[..., Expr]) -> _Function:
    function.__name__ = function.__qualname__ = model.__name__
    function.__doc__ = model.__doc__
    return function


def formulas() -> frozenset[str]:
    """The names of the intrinsics that have a formula."""
    return frozenset(_OPERATIONS)


def is_operation(call: Any) -> bool:
    """Whether a TVM call calls an operation of this module."""
    return intrinsic_of(call) is not None


def is_division(call: Any) -> bool:
    """Whether an operation is an integer quotient or remainder."""
    found = intrinsic_of(call)
    return found is not None and found.name in ("div", "rem")


def is_identity(call: Any) -> bool:
    """Whether an operation returns its operand, and only hides it from LLVM's passes."""
    found = intrinsic_of(call)
    return found is not None and found.name in ("opaque", "kept", "once")


def formula_of(call: Any) -> Formula:
    """The formula of the operation that is called."""
    found = intrinsic_of(call)
    assert found is not None
    return _OPERATIONS[found.name].formula


def link(module: Any, fast: bool = False) -> Any:
    """Replace the operations in an IRModule by LLVM functions, and import those.

    With ``fast``, operations that have a fast-math formula use it. To be run after loops are
    vectorised and before code generation; a module that uses no operation comes back as it is.
    """
    texts: dict[str, str] = {}

    def replace(call: Any) -> Any:
        found = intrinsic_of(call)
        if found is None:
            return call
        made = _OPERATIONS[found.name]
        element = DataType(str(call.args[0].ty))
        kind, lanes = MOVED[str(element.with_lanes(1))], element.lanes
        name = f"tracejit_{made.name}_{kind.name}x{lanes}"
        if name not in texts:
            texts[name] = _text(made, name, kind, lanes, fast)
        return tirx.call_pure_extern(str(call.ty), name, *call.args)

    bodies = {
        variable: structural_map(function.body, (Call, replace))
        for variable, function in module.functions.items()
    }
    if not texts:
        return module
    functions = {v: f.with_body(bodies[v]) for v, f in module.functions.items()}
    first = next(iter(functions))
    body = importing(module_text(list(texts.values())), functions[first].body)
    functions[first] = functions[first].with_body(body)
    return tvm.IRModule(functions, attrs=module.attrs)
