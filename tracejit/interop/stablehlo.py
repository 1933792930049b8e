"""Modules from StableHLO and from serialised HLO, which jaxlib's MLIR and XLA read.

from_stablehlo(Path("model.mlir").read_text())      a `Module`
module_of_proto(Path("model.pb").read_bytes())      from a serialised HloModuleProto
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Module
from tracejit.hlo import parse
from tracejit.interop.protos import module_bytes
from tracejit.loading import load_if_any
from tracejit.system.processes import in_a_copy
from tracejit.tracebacks import api_boundary

_BYTECODE = b"ML\xefR"
"""How MLIR's bytecode begins, StableHLO's portable artifacts as well."""


def needed(module: str, function: str) -> ModuleType:
    """A module of JAX or jaxlib. Raises `UnsupportedError` where it is not installed."""
    found = load_if_any(module)
    if found is None:
        raise UnsupportedError(f"{function}: {module} is needed; pip install 'tracejit[jax]'")
    return found


@api_boundary
def from_stablehlo(source: str | bytes | Any) -> Module:
    """The module that StableHLO describes.

    ``source`` is MLIR text, MLIR bytecode, a portable artifact as ``jax.export`` and
    ``stablehlo.serialize_portable_artifact`` write it, or an object of ``jax.export.Exported``.
    Parameters and results are those of the function ``main``; several results are a tuple.

        module = tj.from_stablehlo(jax.export.export(jax.jit(f))(x))
        tj.compile(module)(x)

    Raises `ArgumentError` for text or bytes that MLIR does not accept, with what it says, and
    `UnsupportedError` where jaxlib is not installed. Source: the StableHLO specification.

    >>> text = tj.hlo.to_stablehlo(tj.jit(np.square).lower(3.0).module)
    >>> tj.compile(tj.from_stablehlo(text))(3.0)
    array(9.)
    """
    if hasattr(source, "mlir_module_serialized"):
        source = source.mlir_module_serialized
    if not isinstance(source, str | bytes | bytearray):
        raise ArgumentError(
            f"from_stablehlo: text, bytes or an exported function is needed, not "
            f"{type(source).__name__}"
        )
    mlir = needed("jaxlib._jax", "from_stablehlo").mlir
    try:
        computation = mlir.mlir_module_to_xla_computation(_text_of(source))
    except Exception as error:
        raise ArgumentError(f"from_stablehlo: {_first_lines(error)}") from None
    return parse(_hlo_text(computation.get_hlo_module()))


@api_boundary
def module_of_proto(data: bytes) -> Module:
    """The module of a serialised HloModuleProto, or of the HloProto that XLA dumps.

    Raises `ArgumentError` for what are no bytes, for bytes that are neither and for bytes that end
    early, `UnsupportedError` without jaxlib.

    >>> from pathlib import Path
    >>> tj.interop.module_of_proto(Path("module.hlo.pb").read_bytes())  # doctest: +SKIP
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ArgumentError(f"module_of_proto: bytes are needed, not {type(data).__name__}")
    hlo = needed("jaxlib._hlo", "module_of_proto")
    whole = module_bytes(bytes(data))
    try:
        module = hlo.HloModule.from_serialized_hlo_module_proto(whole)
    except Exception as error:
        raise ArgumentError(f"module_of_proto: {_first_lines(error)}") from None
    return parse(_hlo_text(module))


def hlo_of(computation: Any) -> Module:
    """The module of an XlaComputation of jaxlib's."""
    return parse(_hlo_text(computation.get_hlo_module()))


def _hlo_text(module: Any) -> str:
    options = needed("jaxlib._hlo", "from_stablehlo").HloPrintOptions()
    options.print_large_constants = True
    return str(module.to_string(options))


def _text_of(source: str | bytes | bytearray) -> str:
    """StableHLO as MLIR text; portable artifacts are upgraded to this version of the dialect.

    MLIR's reader of bytecode crashes on some that is damaged, so a copy of this process reads it.
    """
    if isinstance(source, str):
        return source
    data = bytes(source)
    if not data.startswith(_BYTECODE):
        return data.decode("utf-8")
    _context()  # is loaded once, here
    return in_a_copy(lambda: _text_of_bytecode(data).encode()).decode()


def _text_of_bytecode(data: bytes) -> str:
    context, ir, stablehlo = _context()
    with context:
        try:
            return str(stablehlo.deserialize_portable_artifact(context, data))
        except Exception:
            # Bytecode that holds StableHLO itself.
            return str(ir.Module.parse(data))


@functools.cache
def _context() -> tuple[Any, Any, Any]:
    """MLIR with StableHLO's dialects: the context, and its modules ir and stablehlo."""
    ir = needed("jaxlib.mlir.ir", "from_stablehlo")
    stablehlo = needed("jaxlib.mlir.dialects.stablehlo", "from_stablehlo")
    extension = needed("jaxlib.mlir._mlir_libs._jax_mlir_ext", "from_stablehlo")
    context = ir.Context()
    context.enable_multithreading(False)  # a copy of the process has no threads
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    # The dialect of shardings, which JAX mentions on one device as well.
    needed("jaxlib.mlir.dialects.sdy", "from_stablehlo").register_dialect(context)
    return context, ir, stablehlo


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
