"""The results of XLA itself, where jaxlib is installed: the other side of a comparison.

compile_on_xla(module)([x, y])          a list of arrays, the leaves of the root
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit.errors import UnsupportedError
from tracejit.graph import Module
from tracejit.hlo import to_text
from tracejit.interop.stablehlo import needed

_FUNCTION = "compile_on_xla"


def compile_on_xla(module: Module) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """A function from a module's arguments to its results, compiled by jaxlib's XLA for the CPU.

    Raises `UnsupportedError` where jaxlib is not installed, for what XLA refuses, and for element
    types that DLPack does not carry.
    """
    jax, hlo = needed("jaxlib._jax", _FUNCTION), needed("jaxlib._hlo", _FUNCTION)
    xla = needed("jaxlib.xla_client", _FUNCTION)
    client = _client()
    device = client.local_devices()[0]
    # On the way through StableHLO every computation called main is taken for the entry.
    text = re.sub(r"%main\b", "%main_computation", to_text(module))
    try:
        proto = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        program = jax.mlir.hlo_to_stablehlo(proto)
        devices = xla.DeviceList((device,))
        executable = client.compile_and_load(program, devices, xla.CompileOptions())
    except Exception as error:
        raise UnsupportedError(f"XLA refuses the module: {_first_line(error)}") from error

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        try:
            buffers = [
                jax.dlpack_managed_tensor_to_buffer(
                    np.array(array, order="C").__dlpack__(), device, None
                )
                for array in arrays
            ]
            made = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
            capsules = [_Capsule(jax.buffer_to_dlpack_managed_tensor(each[0])) for each in made]
            return [np.from_dlpack(capsule).copy() for capsule in capsules]
        except Exception as error:
            raise UnsupportedError(f"XLA cannot run the module: {_first_line(error)}") from error

    return run


@functools.cache
def _client() -> Any:
    return needed("jaxlib.xla_client", _FUNCTION).make_cpu_client()


class _Capsule:
    """A DLPack capsule as the object that NumPy wants."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
