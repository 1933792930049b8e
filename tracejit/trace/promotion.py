"""NumPy 2's promotion (NEP 50), where Python scalars are weak: they take the arrays' type.

result_dtype([np.float32, float])                   float32
ufunc_dtypes(np.sin, (np.dtype("int8"),))           ((float16,), (float16,))

An operand's type is a dtype, or one of bool, int, float, complex for a weak one. The element
types of ml_dtypes, which NumPy promotes as if unrelated, keep to the same idea: a weak
float does not widen bfloat16.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import numpy as np

from tracejit.errors import ElementTypeError
from tracejit.shapes import ElementType, element_type_of

Weak = type[bool] | type[int] | type[float] | type[complex]
Promotable = np.dtype | Weak

_WEAK: dict[type, tuple[int, np.dtype, complex]] = {
    bool: (0, np.dtype(np.bool_), False),
    int: (1, np.dtype(np.int64), 0),
    float: (2, np.dtype(np.float64), 0.0),
    complex: (3, np.dtype(np.complex128), 0j),
}


def weak_dtype(weak: Weak) -> np.dtype:
    """The dtype a weak operand has when it meets no array: int64, float64 …"""
    return _WEAK[weak][1]


def weak_type(dtype: np.dtype) -> Weak:
    """The Python type whose scalars have this dtype's kind."""
    element_type = element_type_of(dtype)
    if element_type.is_complex:
        return complex
    if element_type.is_floating:
        return float
    return int if element_type.is_integral else bool


def is_extended(dtype: np.dtype) -> bool:
    """Whether the dtype is one of ml_dtypes' (bfloat16, float8, int4)."""
    return dtype.kind == "V" or type(dtype).__module__ != "numpy.dtypes"


def result_dtype(operands: Iterable[Promotable]) -> np.dtype:
    """The dtype that operands of these types have in common.

    Raises `ElementTypeError` when they have none.
    """
    return _result_dtype(tuple(operands))


@functools.lru_cache(maxsize=4096)
def _result_dtype(operands: tuple[Promotable, ...]) -> np.dtype:
    strong = [o for o in operands if isinstance(o, np.dtype)]
    weak = max(
        (o for o in operands if isinstance(o, type)), key=lambda w: _WEAK[w][0], default=bool
    )
    if not strong:
        return weak_dtype(weak)
    try:
        common = np.result_type(*strong)
    except TypeError as error:
        names = ", ".join(str(dtype) for dtype in strong)
        raise ElementTypeError(f"{names} have no common element type; convert one") from error
    element_type = element_type_of(common)
    if _WEAK[weak_type(common)][0] >= _WEAK[weak][0]:
        return common
    if is_extended(common):
        if weak is complex and element_type.is_floating:
            return np.dtype(np.complex64)
        return weak_dtype(weak)
    return np.result_type(common, _WEAK[weak][2])


Dtypes = tuple[np.dtype, ...]


@functools.lru_cache(maxsize=4096)
def ufunc_dtypes(
    ufunc: np.ufunc, operands: tuple[Promotable, ...], dtype: np.dtype | None = None
) -> tuple[Dtypes, Dtypes]:
    """The dtypes a ufunc computes with: those of its inputs and those of its results.

    ``dtype`` asks for a result's dtype, as the ufunc's argument of that name does. Raises
    `ElementTypeError` where NumPy has no loop for the operands.
    """
    if any(isinstance(o, np.dtype) and is_extended(o) for o in operands) or (
        dtype is not None and is_extended(dtype)
    ):
        return _extended_dtypes(ufunc, operands, dtype)
    # NumPy takes weak bools, and operands that are all weak, for arrays of Python objects.
    all_weak = not any(isinstance(o, np.dtype) for o in operands)
    given = tuple(
        weak_dtype(o) if isinstance(o, type) and (all_weak or o is bool) else o for o in operands
    )
    resolve: Callable[..., tuple[np.dtype, ...]] = ufunc.resolve_dtypes
    if dtype is not None:
        signature = (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
        resolve = functools.partial(resolve, signature=signature)
    try:
        found = resolve((*given, *[None] * ufunc.nout))
        element_types = [element_type_of(d) for d in found]
    except TypeError as error:
        names = ", ".join(o.__name__ if isinstance(o, type) else str(o) for o in operands)
        made = "" if dtype is None else f" making {dtype}"
        raise ElementTypeError(
            f"{ufunc.__name__}: not defined for {names}{made}: {error}"
        ) from error
    dtypes = tuple(t.dtype for t in element_types)
    return dtypes[: ufunc.nin], dtypes[ufunc.nin :]


def _extended_dtypes(
    ufunc: np.ufunc, operands: tuple[Promotable, ...], dtype: np.dtype | None
) -> tuple[Dtypes, Dtypes]:
    """For ml_dtypes' types: everything in the common type, results in kind as for float32."""
    common = result_dtype(operands) if dtype is None else dtype
    element_type = element_type_of(common)
    if not is_extended(common):
        return ufunc_dtypes(ufunc, (common,) * ufunc.nin, dtype)
    model = np.dtype(np.float32 if element_type.is_floating else np.int8)
    inputs, outputs = ufunc_dtypes(ufunc, (model,) * ufunc.nin)

    def instead(modelled: np.dtype) -> np.dtype:
        return common if modelled == model else modelled

    return tuple(map(instead, inputs)), tuple(map(instead, outputs))


def common_element_type(operands: Iterable[Promotable]) -> ElementType:
    """`result_dtype` as an element type."""
    return element_type_of(result_dtype(operands))
