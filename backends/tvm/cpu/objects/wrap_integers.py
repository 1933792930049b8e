"""Integers of elements wrap; integers of addresses do not.

    module = wrapping(module)           # once, after loops are vectorised

TVM promises LLVM that no sum, difference or product of 32 or 64 bits overflows. LLVM then takes
``x + 1 < x`` for false, ``abs(x) < 0`` too, and ``x + 0x80000000`` for ``x | 0x80000000``. Of
addresses the promise is true, and LLVM needs it to foresee them; of elements it is not.
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
    """An IRModule whose functions' sums, differences and products of elements are operations.

    What an address is added up from stays as it is, except where it was computed: below a
    conversion, a choice or a call. So do sums of nothing but loop variables and constants, such as
    the bounds of a padded array; where such a number is an element it stands below a conversion.
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
    """Whether an integer is made of loop variables and constants alone."""
    if isinstance(value, tirx.Broadcast):
        return _is_place(value.value)
    if isinstance(value, _DIVISIONS):
        return _is_place(value.a) and _is_place(value.b)
    # Sums and products that are left as they are have been found to be places before.
    return isinstance(value, (tirx.Var, tirx.IntImm, tirx.Ramp, *_WRAPPING))
