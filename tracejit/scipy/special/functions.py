"""How a formula becomes a function that users call: SciPy's ufunc, with its types and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.errors import ElementTypeError
from tracejit.graph import Instruction
from tracejit.numpy.universal import Ufunc
from tracejit.ops.element_types import convert_element_type
from tracejit.scipy.special.terms import Term
from tracejit.shapes import ElementType
from tracejit.trace.convert import broadcast_together, operand
from tracejit.trace.promotion import common_element_type


def special(
    like: np.ufunc,
    formula: Callable[..., Any] | None,
    of_complex: Callable[[Term], Term] | None = None,
) -> Ufunc:
    """SciPy's ufunc ``like``, recorded: ``formula`` takes and returns Terms of one real type.

    Types narrower than 32 bits are worked out in f32, complex numbers by ``of_complex`` in c128.
    Raises `ElementTypeError` for complex numbers where there is none.
    """

    def kernel(*operands: Instruction) -> Any:
        kinds = [o.array_shape.element_type for o in operands]
        if any(kind.is_complex for kind in kinds) and of_complex is not None:
            value = of_complex(Term(convert_element_type(operands[0], ElementType.C128)))
            return convert_element_type(value.value, kinds[0])
        if formula is None or any(kind.is_complex for kind in kinds):
            raise ElementTypeError(f"{like.__name__}: not defined for complex numbers here")
        own = max(
            (k for k in kinds if k.is_floating), key=lambda k: k.bits, default=ElementType.F64
        )
        work = own if own.bits >= 32 else ElementType.F32
        made = formula(*(Term(convert_element_type(o, work)) for o in operands))
        if isinstance(made, tuple):
            return tuple(convert_element_type(one.value, own) for one in made)
        return convert_element_type(made.value, own)

    return Ufunc(like, kernel)


def floats(name: str, *values: Any) -> list[Any]:
    """Terms of one real floating type and one shape. Raises `ElementTypeError` for complex ones."""
    given = [operand(value) for value in values]
    if any(o.element_type.is_complex for o in given):
        raise ElementTypeError(f"{name}: not defined for complex numbers here")
    common = common_element_type(
        o.type if o.element_type.is_floating else np.dtype(np.float64) for o in given
    )
    work = common if common.bits >= 32 else ElementType.F32
    return [Term(x) for x in broadcast_together(name, *(o.to(work) for o in given))]
