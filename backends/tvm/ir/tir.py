"""Short names for the TIR that kernels consist of: buffers, loops, statements, constants.

Every statement is built directly (no TE), because TE assumes 64-byte aligned arguments and crashes
on ordinary NumPy arrays; a buffer from here promises nothing beyond its item size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tvm import DataType, tirx
from tvm.tirx import (
    AllocBuffer,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Var,
    While,
)
from tvm_ffi import register_error

# An exception from a Python function that TVM calls arrives by its name, or as an empty
# RuntimeError.
register_error("KeyboardInterrupt", KeyboardInterrupt)

# TVM's expression and statement classes overload operators dynamically; to a type checker they
# are opaque.
Expr = Any
Stmt = Any
Buffer = Any

SERIAL = ForKind.SERIAL
PARALLEL = ForKind.PARALLEL
VECTORIZED = ForKind.VECTORIZED
UNROLLED = ForKind.UNROLLED

_fresh = itertools.count()
_NOTHING = Evaluate(tirx.const(0, "int32"))


def const(value: bool | int | float, dtype: str) -> Expr:
    """A literal of TVM element type ``dtype``."""
    return tirx.const(value, dtype)


def real(value: float, dtype: str) -> Expr:
    """A floating-point literal for arithmetic.

    Zeros are hidden from TVM, which simplifies 0 * x to 0 and x + 0 to x, and rejects x / 0.
    """
    if value != 0:
        return tirx.const(value, dtype)
    bits = DataType(dtype).itemsize * 8
    sign = int(math.copysign(1, value) < 0)
    return reinterpret(dtype, tirx.const(sign << (bits - 1), f"uint{bits}"))


def reinterpret(dtype: str, value: Expr) -> Expr:
    """The bits of ``value`` as a type of the same width.

    The literal 0 is hidden from TVM, which would treat its bits as the null pointer.
    """
    if isinstance(value, tirx.IntImm) and int(value) == 0:
        value = tirx.Cast(str(value.ty), i32(0))
    return tirx.reinterpret(dtype, value)


def i32(value: int) -> Expr:
    return tirx.const(value, "int32")


def i64(value: int) -> Expr:
    return tirx.const(value, "int64")


def var(name: str, dtype: str = "int64") -> Expr:
    """A scalar variable with a fresh name."""
    return Var(f"{name}_{next(_fresh)}", dtype)


def buffer(name: str, shape: Sequence[int], dtype: str, *, scope: str = "global") -> Buffer:
    """A buffer that promises alignment to one item only, whatever NumPy hands over."""
    return tirx.decl_buffer(
        tuple(shape),
        dtype,
        name=f"{name}_{next(_fresh)}",
        data_alignment=DataType(dtype).itemsize,
        scope=scope,
    )


def nbytes(memory: Buffer) -> int:
    """The bytes of a buffer of constant shape."""
    return math.prod(int(extent) for extent in memory.shape) * itemsize(memory)


def itemsize(memory: Buffer) -> int:
    """The bytes of one item of a buffer."""
    return int(DataType(str(memory.dtype)).itemsize)


def seq(*statements: Stmt | Iterable[Stmt]) -> Stmt:
    """Statements one after the other; nested lists are flattened and empty ones dropped.

    An empty sequence is a statement without effect.
    """
    flat: list[Stmt] = []
    for statement in statements:
        if isinstance(statement, (list, tuple)):
            flat.extend(s for s in statement if s is not None and s is not _NOTHING)
        elif statement is not None and statement is not _NOTHING:
            flat.append(statement)
    if not flat:
        return _NOTHING
    return flat[0] if len(flat) == 1 else SeqStmt(flat)


def loop(
    extent: int | Expr,
    body: Callable[[Expr], Stmt | Sequence[Stmt]],
    kind: ForKind = SERIAL,
    *,
    dtype: str = "int32",
) -> Stmt:
    """``for v in range(extent): body(v)``; ``body`` may return one statement or several.

    ``body`` is not called for extent 0.
    """
    if isinstance(extent, (int, tirx.IntImm)) and int(extent) <= 0:
        return seq()
    index = var("i", dtype)
    inner = body(index)
    statement = seq(*inner) if isinstance(inner, (list, tuple)) else inner
    end = const(extent, dtype) if isinstance(extent, int) else extent
    return For(index, const(0, dtype), end, kind, statement)


def store(target: Buffer, index: Expr | Sequence[Expr], value: Expr) -> Stmt:
    indices = list(index) if isinstance(index, (list, tuple)) else [index]
    return BufferStore(target, value, indices)


IMPORT = "pragma_import_llvm"
"""The attribute key of statements that import LLVM text."""


def importing(text: str, body: Stmt) -> Stmt:
    """``body``, which may call the functions that LLVM's ``text`` defines; they are inlined."""
    return tirx.AttrStmt(0, IMPORT, text, body)


__all__ = [
    "IMPORT",
    "PARALLEL",
    "SERIAL",
    "UNROLLED",
    "VECTORIZED",
    "AllocBuffer",
    "Buffer",
    "BufferStore",
    "DeclBuffer",
    "Evaluate",
    "Expr",
    "For",
    "IfThenElse",
    "SeqStmt",
    "Stmt",
    "While",
    "buffer",
    "const",
    "i32",
    "i64",
    "importing",
    "itemsize",
    "loop",
    "nbytes",
    "real",
    "reinterpret",
    "seq",
    "store",
    "tirx",
    "var",
]
