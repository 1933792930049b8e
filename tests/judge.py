"""The real XLA, as jaxlib holds it: parses, verifies, compiles and runs HLO text on the CPU.

    run_xla(module, x, y)        the array, or a tuple of arrays when the root is a tuple

Arrays cross the border by DLPack, which lacks some element types; those go as integers of the same
width (int4 as int8) and are converted back by instructions around the module.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np
from jaxlib import _hlo, _jax, xla_client

from tests.plain import plain
from tracejit.graph import Module
from tracejit.hlo import to_text
from tracejit.ops.expansions import expand
from tracejit.shapes import AnyShape, ElementType, Shape, TupleShape, element_type_of


def _carrier_of(element_type: ElementType) -> list[tuple[ElementType, str]]:
    """The types on the way to one that DLPack carries, each with the opcode that leads to it."""
    bits = element_type.bits
    if element_type.is_integral and bits < 8:
        return [(ElementType(f"{str(element_type)[0]}8"), "convert")]
    if element_type.is_small_float or element_type is ElementType.BF16:
        same = ElementType(f"u{bits}")
        return [(same, "bitcast-convert"), *_carrier_of(same)]
    return []


_BORDER = {t: ways for t in ElementType if (ways := _carrier_of(t))}


def parse_xla(text: str) -> str:
    """The module as XLA prints it after parsing and verifying ``text``, every constant whole."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return str(_hlo.hlo_module_from_text(text).to_string(options))


def run_xla(module: Module, *arrays: np.ndarray) -> Any:
    """What XLA computes: an array, or a tuple of arrays, of the root's shape.

    Opcodes that XLA parses but has no code for on the CPU, or takes from its own passes only, are
    composed of others first.
    """
    module = Module(module.name, plain(expand(module.entry)))
    parameters = tuple(p.shape for p in module.entry.parameters)
    root = module.entry.root.shape
    executable, device = _compile(_with_border(to_text(module), parameters, root))
    buffers = []
    for array, shape in zip(arrays, parameters, strict=True):
        assert isinstance(shape, Shape)
        given = np.asarray(array)
        assert given.dtype == shape.dtype, f"{given.dtype} given for {shape}"
        assert given.shape == shape.dimensions, f"{given.shape} given for {shape}"
        buffers.append(_to_device(given, shape, device))
    results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    outputs = root.elements if isinstance(root, TupleShape) else (root,)
    made = tuple(_from_device(r[0], s) for r, s in zip(results, outputs, strict=True))
    return made if isinstance(root, TupleShape) else made[0]


def run_text(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """What XLA computes of HLO text that is not read here first; of types that DLPack carries."""
    executable, device = _compile(text)
    buffers = [_to_device(a, Shape(element_type_of(a.dtype), a.shape), device) for a in arrays]
    results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
    capsules = [_Capsule(_jax.buffer_to_dlpack_managed_tensor(r[0])) for r in results]
    return [np.from_dlpack(capsule).copy() for capsule in capsules]


@functools.lru_cache(maxsize=1)
def _client() -> Any:
    return xla_client.make_cpu_client()


@functools.lru_cache(maxsize=256)
def _compile(text: str) -> tuple[Any, Any]:
    # On the way through StableHLO every computation called main is taken for the entry.
    text = re.sub(r"%main\b", "%main_computation", text)
    client = _client()
    device = client.local_devices()[0]
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    options = xla_client.CompileOptions()
    # Each op rounds to its own element type, as the specification says.
    options.env_option_overrides = [("xla_allow_excess_precision", False)]
    debug = options.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0  # the code runs once, so it is compiled fast
    debug.xla_llvm_disable_expensive_passes = True
    program = _jax.mlir.hlo_to_stablehlo(proto)
    return client.compile_and_load(program, xla_client.DeviceList((device,)), options), device


def _with_border(text: str, parameters: tuple[AnyShape, ...], root: AnyShape) -> str:
    """The text with an entry around it whose arrays DLPack can carry, where that is needed."""
    outputs = root.elements if isinstance(root, TupleShape) else (root,)
    if not any(s.element_type in _BORDER for s in (*parameters, *outputs) if isinstance(s, Shape)):
        return text
    text = re.sub(r", entry_computation_layout=.*", "", text, count=1)
    text, _, entry = text.rpartition("ENTRY %")
    name = entry.split(" ", 1)[0]
    lines = []
    for i, shape in enumerate(parameters):
        way = _way(shape)
        lines.append(f"given.{i}.0 = {way[-1][0]} parameter({i})")
        steps = [(to, opcode) for (to, _), (_, opcode) in zip(way[-2::-1], way[:0:-1], strict=True)]
        for n, (to, opcode) in enumerate(steps):
            lines.append(f"given.{i}.{n + 1} = {to} {opcode}(given.{i}.{n})")
        lines.append(f"in.{i} = {shape} copy(given.{i}.{len(steps)})")
    arguments = ", ".join(f"in.{i}" for i in range(len(parameters)))
    lines.append(f"made = {root} call({arguments}), to_apply=%{name}")
    for i, shape in enumerate(outputs):
        many = isinstance(root, TupleShape)
        taken = f"get-tuple-element(made), index={i}" if many else "copy(made)"
        lines.append(f"out.{i}.0 = {shape} {taken}")
        out = _way(shape)[1:]
        for n, (to, opcode) in enumerate(out):
            lines.append(f"out.{i}.{n + 1} = {to} {opcode}(out.{i}.{n})")
        carrier = _way(shape)[-1][0]
        lines.append(f"back.{i} = {carrier} copy(out.{i}.{len(out)})")
    if isinstance(root, TupleShape):
        carriers = ", ".join(str(_way(s)[-1][0]) for s in outputs)
        back = ", ".join(f"back.{i}" for i in range(len(outputs)))
        lines.append(f"all = ({carriers}) tuple({back})")
    lines[-1] = f"ROOT {lines[-1]}"
    body = "\n".join(f"  {line}" for line in lines)
    return f"{text}%{entry}\n\nENTRY %border {{\n{body}\n}}\n"


def _way(shape: AnyShape) -> list[tuple[AnyShape, str]]:
    """The shapes from ``shape`` to the one that carries it, each with the opcode to it."""
    if not isinstance(shape, Shape):
        return [(shape, "")]
    ways = _BORDER.get(shape.element_type, [])
    return [(shape, ""), *((shape.with_element_type(t), opcode) for t, opcode in ways)]


def _to_device(array: np.ndarray, shape: Shape, device: Any) -> Any:
    carrier, opcode = _way(shape)[-1]
    assert isinstance(carrier, Shape)
    is_integer = shape.element_type.is_integral and opcode
    carried = array.astype(carrier.dtype) if is_integer else array.copy().view(carrier.dtype)
    capsule = np.array(carried, order="C").__dlpack__()
    return _jax.dlpack_managed_tensor_to_buffer(capsule, device, None)


class _Capsule:
    """A DLPack capsule as the object that NumPy wants."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _from_device(buffer: Any, shape: AnyShape) -> np.ndarray:
    assert isinstance(shape, Shape)
    carried = np.from_dlpack(_Capsule(_jax.buffer_to_dlpack_managed_tensor(buffer))).copy()
    is_integer = shape.element_type.is_integral and shape.element_type in _BORDER
    return np.asarray(carried.astype(shape.dtype) if is_integer else carried.view(shape.dtype))
