"""A TIR pass that makes integer arithmetic on elements wrap, as XLA defines it.

    module = wrapping(module)           # once, after loops are vectorised

TVM marks every 32- or 64-bit sum, difference and product as `nsw` (no signed wrap). LLVM then
simplifies ``x + 1 < x`` to false, ``abs(x) < 0`` too, and ``x + 0x80000000`` to ``x |
0x80000000``. For addresses the promise is true, and LLVM needs it to analyse them; for elements it
is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm_ffi import StructuralMutator, structural_mutate

from tracejit.backends.tvm.cpu.mathematics.operations import Operation, register
from tracejit.backends.tvm.ir.tir import Expr

_WRAPPING = {
    tirx.Add: register(Operation("wrapping_add", lambda x, y: x + y, 2, None)),
    tirx.Sub: register(Operation("wrapping_sub", lambda x, y: x - y, 2, None)),
    tirx.Mul: register(Operation("wrapping_mul", lambda x, y: x * y, 2, None)),
}
_WIDE = ("int32", "int64", "uint32", "uint64")
_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def wrapping(module: Any) -> Any:
    """An IRModule whose sums, differences and products of elements are wrapping operations.

    Address arithmetic stays as it is, except below a conversion, a choice or a call, where it is
    an element. So do sums of loop variables and constants, such as the bounds of a padded array;
    where such a number is an element it is below a conversion.
    """
    functions = {
        variable: function.with_body(_Wrapping().statement(function.body))
        for variable, function in module.functions.items()
    }
    return tvm.IRModule(functions, attrs=module.attrs)


class _Wrapping:
    def __init__(self) -> None:
        self._in_address = False

    def statement(self, body: Any) -> Any:
        return structural_mutate(
            body,
            [
                ((tirx.Add, tirx.Sub, tirx.Mul), self._arithmetic),
                (TensorLoad, self._load),
                (tirx.BufferStore, self._store),
                ((tirx.Cast, tirx.Select, Call), self._computed),
            ],
        )

    def _arithmetic(self, node: Any, mutator: StructuralMutator) -> Any:
        made = mutator.default_mutate(node)
        if self._in_address or (_is_place(made.a) and _is_place(made.b)):
            return made
        if str(made.ty).partition("x")[0] not in _WIDE:
            return made
        return Call(_WRAPPING[type(made)].op, [made.a, made.b], ret_ty=made.ty)

    def _load(self, node: Any, mutator: StructuralMutator) -> Any:
        return self._within(True, lambda: mutator.default_mutate(node))

    def _store(self, node: Any, mutator: StructuralMutator) -> Any:
        value = mutator.mutate(node.value)
        indices = self._within(True, lambda: mutator.mutate(node.indices))
        return tirx.BufferStore(node.buffer, value, indices)

    def _computed(self, node: Any, mutator: StructuralMutator) -> Any:
        return self._within(False, lambda: mutator.default_mutate(node))

    def _within(self, in_address: bool, mutate: Callable[[], Any]) -> Any:
        before, self._in_address = self._in_address, in_address
        try:
            return mutate()
        finally:
            self._in_address = before


def _is_place(value: Expr) -> bool:
    """Whether an integer depends on loop variables and constants only."""
    if isinstance(value, tirx.Broadcast):
        return _is_place(value.value)
    if isinstance(value, _DIVISIONS):
        return _is_place(value.a) and _is_place(value.b)
    # Sums and products that are not wrapped were found to be index arithmetic before.
    return isinstance(value, (tirx.Var, tirx.IntImm, tirx.Ramp, *_WRAPPING))
