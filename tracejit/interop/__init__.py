"""Graphs from other people: JAX functions, StableHLO, serialised HLO.

tj.from_jax(f)                  a JAX function, compiled, differentiated and exported here
tj.from_stablehlo(text)         the module of StableHLO text, bytecode or a `jax.export` artifact

Both need ``pip install 'tracejit[jax]'``: reading StableHLO is left to the MLIR that jaxlib holds.
"""

from __future__ import annotations

from tracejit.interop.jax_functions import from_jax
from tracejit.interop.stablehlo import from_stablehlo, module_of_proto

__all__ = ["from_jax", "from_stablehlo", "module_of_proto"]


def __dir__() -> list[str]:
    return __all__
