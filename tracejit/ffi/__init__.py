"""Functions of compiled libraries in traced programs, by XLA's FFI: the names of `jax.ffi`.

register_ffi_target("rms_norm", pycapsule(library.RmsNorm))
ffi_call("rms_norm", tj.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=np.float32(1e-5))

Compiled code hands the arrays' addresses to the function. ``python -m tracejit.ffi --cflags`` says
how to compile one.
"""

from __future__ import annotations

from tracejit.ffi.registry import (
    cflags,
    ffi_call,
    header_dir,
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_type,
)

__all__ = [
    "cflags",
    "ffi_call",
    "header_dir",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_type",
]


def __dir__() -> list[str]:
    return __all__
