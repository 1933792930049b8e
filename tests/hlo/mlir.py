"""StableHLO text as the real MLIR and XLA read it."""

from __future__ import annotations

import functools

from jaxlib import _hlo, _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo


@functools.cache
def _context() -> ir.Context:
    context = ir.Context()
    dialects = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(dialects)
    context.append_dialect_registry(dialects)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    return context


def verify_stablehlo(text: str) -> None:
    """Raises unless MLIR parses the module and its verifiers accept every operation."""
    with _context():
        ir.Module.parse(text).operation.verify()


def hlo_of_stablehlo(text: str) -> str:
    """The HLO text that XLA makes of a StableHLO module, every constant whole."""
    computation = _jax.mlir.mlir_module_to_xla_computation(text)
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(computation.get_hlo_module().to_string(options))
