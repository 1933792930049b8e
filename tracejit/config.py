"""`jax.config`, as far as it applies: `update` accepts what is so here, and refuses the rest.

tj.config.update("jax_enable_x64", True)
"""

from __future__ import annotations

from typing import Any

from tracejit.errors import ArgumentError

__all__ = ["update"]

_HERE: dict[str, tuple[tuple[Any, ...], str]] = {
    "jax_enable_x64": (
        (True,),
        "float64 stays float64; make arrays float32 to compute so",
    ),
    "jax_platforms": (("cpu", None), "write jit(f, target='cuda')"),
    "jax_platform_name": (("cpu", None), "write jit(f, target='cuda')"),
    "jax_debug_nans": ((False,), "write jit(f, check=True)"),
    "jax_debug_infs": ((False,), "write jit(f, check=True)"),
    "jax_disable_jit": ((False,), "write with tracejit.disable_jit():"),
    "jax_default_matmul_precision": (
        (None, "default", "high", "highest", "float32", "tensorfloat32"),
        "products are of the precision of their operands",
    ),
    "jax_numpy_dtype_promotion": (("standard",), "types are promoted as NumPy 2 does"),
    "jax_numpy_rank_promotion": (("allow",), "arrays are broadcast as NumPy does"),
    "jax_threefry_partitionable": ((True,), "numbers drawn do not depend on the devices"),
    "jax_check_tracer_leaks": ((True, False), ""),
    "jax_traceback_filtering": (("auto", "off", "tracebackhide", "remove_frames"), ""),
}
"""The values that change nothing here, by the names of settings, and what to write for others."""


def update(name: str, value: Any) -> None:
    """Accepts a setting of JAX's where this is how it is here.

    Raises `ArgumentError` for other settings and values, with what to write.
    """
    if name not in _HERE:
        raise ArgumentError(
            f"config.update: {name!r} is no setting of tracejit; jit has options, and the page on "
            f"what to know lists the environment variables"
        )
    accepted, advice = _HERE[name]
    if value not in accepted:
        raise ArgumentError(f"config.update: {name} cannot be {value!r}; {advice}")


def __dir__() -> list[str]:
    return __all__
