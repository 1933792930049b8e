"""A loaded program for a CUDA device, called with arrays of the device or the host.

    executable = CudaExecutable(image, artifact)
    outputs = executable([x, y])        # DeviceArrays; NumPy arrays are copied to the device

Kernels are queued on the current stream; a call returns before they have run.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from tracejit import targets
from tracejit.backends.abi import ArraySpec
from tracejit.backends.artifact import Artifact
from tracejit.backends.launch_plan import (
    CONSTANT,
    INPUT,
    OUTPUT,
    WORKSPACE,
    DeviceAddress,
    HostCall,
    Launch,
    LaunchPlan,
    LibraryCall,
    Node,
    Repeat,
    every_node,
)
from tracejit.cuda.arrays import DeviceArray, device_of_arguments
from tracejit.cuda.cublas import WORKSPACE_BYTES, Cublas, Product, cublas
from tracejit.cuda.device import Device
from tracejit.cuda.driver import NO_BINARY, Driver
from tracejit.cuda.memory import ALIGNMENT, Memory, allocate, copy_in, copy_out
from tracejit.cuda.streams import Stream
from tracejit.cuda.transfer import is_on_a_device, to_device
from tracejit.errors import ArgumentError, DeviceError, ShapeError
from tracejit.loading import load
from tracejit.runtime.cuda_graphs import Graphs
from tracejit.runtime.executable import Executable, conformed
from tracejit.shapes import Shape

Watch = Callable[[Launch | HostCall | LibraryCall, Stream], AbstractContextManager[None]]
"""What is entered before a launch, or a call of a library or the host, and left afterwards."""
_product_of = cache(Product.from_json)
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_DEFAULT_SHARED = 48 << 10


class _Loaded:
    """A program on one device: its functions, and its constants there."""

    def __init__(self, image: bytes, plan: LaunchPlan, artifact: Artifact, device: Device) -> None:
        self.generation = device.generation
        self.functions: dict[str, int] = {}
        self.graphs = Graphs()
        self.constants = [to_device(array, device) for array in artifact.constants]
        with device.context() as call:
            module = ctypes.c_uint64()
            status = call.function("cuModuleLoadData")(ctypes.byref(module), image)
            if status == NO_BINARY:
                raise DeviceError(
                    f"cuda: the program is compiled for {artifact.processor}, and device "
                    f"{device.number} is {device.arch}"
                )
            if status:
                raise call.error(status, f"cuda: loading a program for {artifact.processor}")
            self._find(call, module.value, plan.nodes)

    def _find(self, call: Driver, module: int, nodes: Sequence[Node]) -> None:
        for node in every_node(nodes):
            if isinstance(node, Launch) and node.function not in self.functions:
                handle = call.handle("cuModuleGetFunction", module, node.function.encode())
                if node.shared_bytes > _DEFAULT_SHARED:
                    call("cuFuncSetAttribute", handle, _DYNAMIC_SHARED, node.shared_bytes)
                self.functions[node.function] = handle


class CudaExecutable(Executable):
    """What one program needs to run on the devices of its architecture; threads may share it."""

    def __init__(self, image: bytes, artifact: Artifact) -> None:
        self.artifact = artifact
        self.library = None
        self.plan = LaunchPlan.from_json(artifact.plan)
        self.inputs = tuple(artifact.inputs)
        self.outputs = tuple(artifact.outputs)
        self.donated = tuple(artifact.aliases.values())
        self.run = self._run_device_arrays
        self._image = image[: self.plan.image_bytes]
        self._loaded: dict[int, _Loaded] = {}
        self._lock = threading.Lock()

    def __call__(self, arguments: Sequence[object]) -> list[Any]:
        """New outputs on the device of the arguments, the first device where all are NumPy's.

        Raises `ArgumentError` for a wrong number of arguments, or for one that is not an array of
        the element type and shape compiled for, or for arrays of several devices; `DeviceError` for
        a program of another architecture; `DeviceMemoryError` where there is no room.
        """
        if len(arguments) != len(self.inputs):
            raise ArgumentError(
                f"compiled for {len(self.inputs)} arguments, called with {len(arguments)}"
            )
        device = device_of_arguments(arguments)
        pairs = enumerate(zip(arguments, self.inputs, strict=True))
        arrays = [_conformed(argument, spec, number, device) for number, (argument, spec) in pairs]
        return self._launched(arrays, device)

    def run_watched(self, arguments: Sequence[object], watch: Watch) -> None:
        """The same, each launch and call of the host watched; nothing is donated."""
        given = [np.asarray(a) if n in self.donated else a for n, a in enumerate(arguments)]
        device = device_of_arguments(given)
        pairs = enumerate(zip(given, self.inputs, strict=True))
        arrays = [_conformed(argument, spec, number, device) for number, (argument, spec) in pairs]
        self._launched(arrays, device, watch)

    def _run_device_arrays(self, arguments: Sequence[object]) -> list[Any] | None:
        """`run`: outputs, or None unless every argument is a fitting array on one device."""
        device = None
        for argument, spec in zip(arguments, self.inputs, strict=False):
            if type(argument) is not DeviceArray or argument.shape != spec.shape:
                return None
            if argument.dtype != spec.dtype or (device or argument.device) is not argument.device:
                return None
            device = argument.device
        if device is None or len(arguments) != len(self.inputs):
            return None
        return self._launched(arguments, device)  # type: ignore[arg-type]

    def _on(self, device: Device) -> _Loaded:
        with self._lock:
            found = self._loaded.get(device.number)
            if found is None or found.generation != device.generation:
                found = _Loaded(self._image, self.plan, self.artifact, device)
                self._loaded[device.number] = found
            return found

    def _launched(
        self, arguments: Sequence[DeviceArray], device: Device, watch: Watch | None = None
    ) -> list[Any]:
        loaded = self._on(device)
        inputs = [argument.address for argument in arguments]
        outputs = [self._output(n, spec, arguments, device) for n, spec in enumerate(self.outputs)]
        stream = Stream.current(device)
        bases = {
            INPUT: inputs,
            OUTPUT: [output.address for output in outputs],
            CONSTANT: [constant.address for constant in loaded.constants],
        }

        def queue(call: Driver, on: Stream, workspace: Memory) -> None:
            memory = {**bases, WORKSPACE: [workspace.address]}
            for_libraries = workspace.address + self._own_bytes
            run = _Run(device, loaded.functions, memory, on, watch, self._products, for_libraries)
            run.nodes(call, self.plan.nodes)

        with device.context() as call:
            graph = None
            if self.plan.is_static and watch is None:
                key = (stream.handle, *inputs, *bases[OUTPUT])
                graph = loaded.graphs.found(
                    call, key, self._workspace(device), partial(queue, call)
                )
            if graph is not None:
                graph.launch(call, stream)
            else:
                queue(call, stream, self._workspace(device)())
        return outputs

    def _workspace(self, device: Device) -> Callable[[], Memory]:
        """A function that allocates the memory between kernels."""
        size = self._own_bytes + (WORKSPACE_BYTES if self._products else 0)
        return partial(allocate, device, size, "a program's workspace")

    @property
    def _own_bytes(self) -> int:
        """The memory between kernels; that of libraries follows."""
        return -(-self.artifact.workspace_bytes // ALIGNMENT) * ALIGNMENT

    @cached_property
    def _products(self) -> Cublas | None:
        """The library for products, if the program has some for it."""
        return cublas() if self.plan.calls_libraries else None

    def _output(
        self, number: int, spec: ArraySpec, arguments: Sequence[DeviceArray], device: Device
    ) -> DeviceArray:
        given = self.artifact.aliases.get(number)
        if given is not None:
            address = arguments[given].address
            owner = arguments[given].give_away()
            return DeviceArray(device, spec.dtype, spec.shape, address, owner)
        memory = allocate(device, spec.nbytes, f"result {number}, {spec},")
        return DeviceArray.over(memory, spec.dtype, spec.shape)


class _Run:
    """One call of a program."""

    def __init__(
        self,
        device: Device,
        functions: Mapping[str, int],
        bases: Mapping[str, Sequence[int]],
        stream: Stream,
        watch: Watch | None,
        products: Cublas | None,
        for_libraries: int,
    ) -> None:
        self._device = device
        self._products = products
        self._for_libraries = for_libraries
        self._watch = watch
        self._functions = functions
        self._bases = bases
        self._stream = stream

    def nodes(self, call: Driver, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Launch | HostCall):
                watched = nullcontext() if self._watch is None else self._watch(node, self._stream)
                with watched:
                    self._do(call, node)
            elif isinstance(node, LibraryCall):
                watched = nullcontext() if self._watch is None else self._watch(node, self._stream)
                with watched:
                    is_done = self._call_library(node)
                    for launch in node.after if is_done else node.otherwise:
                        self._launch(call, launch)
            elif isinstance(node, Repeat):
                self.nodes(call, node.condition)
                while self._number(node.predicate, np.uint8):
                    self.nodes(call, node.body)
                    self.nodes(call, node.condition)
            else:
                number = self._number(node.selector, np.int32)
                last = len(node.branches) - 1
                self.nodes(call, node.branches[number if 0 <= number < last else last])

    def _address(self, place: DeviceAddress) -> int:
        return self._bases[place.memory][place.index] + place.offset

    def _number(self, place: DeviceAddress, dtype: type) -> int:
        """What kernels have written at a place, when they have."""
        made: np.ndarray = np.empty(1, dtype)
        copy_out(self._device, self._address(place), made)
        return int(made[0])

    def _do(self, call: Driver, node: Launch | HostCall) -> None:
        if isinstance(node, Launch):
            self._launch(call, node)
        else:
            self._call_host(node)

    def _call_library(self, node: LibraryCall) -> bool:
        """Queues a library's call; False where kernels of our own do it."""
        if self._products is None:
            return False
        self._stream.last = f"cuBLAS{node.source and f' ({node.source})'}"
        addresses = [*map(self._address, node.arguments)]
        product = _product_of(node.text)
        given = product, addresses, self._for_libraries, self._stream
        return self._products.multiply(self._device, *given)

    def _call_host(self, node: HostCall) -> None:
        """Copies the operands here, when they are computed, and the results there."""
        # The interpreter is imported by programs that need it.
        computation = load("tracejit.runtime.host_op_callback").host_computation(node.text)
        addresses = [*map(self._address, node.arguments)]
        count = len(computation.given)
        on_device = computation.device_function
        stays = [not each for each in on_device.on_host] if on_device else [False] * count
        operands = [
            self._operand(shape, address, stays_there)
            for shape, address, stays_there in zip(
                computation.given, addresses[:count], stays, strict=True
            )
        ]
        self._stream.synchronize()
        with targets.computing_for("GPU"):
            results = on_device.function(operands) if on_device else computation(operands)
        for shape, address, result in zip(
            computation.made, addresses[count:], results, strict=True
        ):
            self._keep(shape, address, result, node)

    def _operand(self, shape: Shape, address: int, stays: bool) -> Any:
        """An operand of a call of the host: where it lies, or copied."""
        if stays:
            return DeviceArray(self._device, shape.dtype, shape.dimensions, address, self)
        array: np.ndarray = np.empty(shape.dimensions, shape.dtype)
        copy_out(self._device, address, array)
        return array

    def _keep(self, shape: Shape, address: int, result: Any, node: HostCall) -> None:
        """Copies what the host was returned to where the program wants it."""
        there = to_device(result, self._device) if is_on_a_device(result) else None
        array = np.asarray(result) if there is None else there
        if (array.shape, array.dtype) != (shape.dimensions, shape.dtype):
            where = f" ({node.source})" if node.source else ""
            raise ShapeError(
                f"custom_call: a kernel must return {shape}, not "
                f"{ArraySpec(array.dtype, array.shape)}{where}"
            )
        if there is None:
            made = np.ascontiguousarray(result, shape.dtype)
            copy_in(self._device, address, made.reshape(shape.dimensions))
        elif there.nbytes:
            with self._device.context() as call:
                sides = address, there.address, there.nbytes
                call("cuMemcpyDtoDAsync_v2", *sides, self._stream.handle)
                self._stream.synchronize()  # the kernel's own array may be freed now

    def _launch(self, call: Driver, node: Launch) -> None:
        values = (ctypes.c_uint64 * len(node.arguments))(*map(self._address, node.arguments))
        begin, size = ctypes.addressof(values), ctypes.sizeof(ctypes.c_uint64)
        pointers = (ctypes.c_void_p * len(values))(
            *(begin + size * number for number in range(len(values)))
        )
        before = self._stream.last and f" after {self._stream.last}"
        self._stream.last = f"kernel {node.function}{node.source and f' ({node.source})'}"
        call(
            "cuLaunchKernel",
            self._functions[node.function],
            *(node.blocks, 1, 1, node.threads, 1, 1),
            node.shared_bytes,
            self._stream.handle,
            pointers,
            None,
            doing=f"cuda: {self._stream.last}{before}",  # an earlier one may have failed
        )


def _conformed(argument: object, spec: ArraySpec, number: int, device: Device) -> DeviceArray:
    if is_on_a_device(argument):
        array = to_device(argument, device)
        if array.shape != spec.shape or array.dtype != spec.dtype:
            given = ArraySpec(array.dtype, array.shape)
            raise ArgumentError(f"argument {number} must be {spec}; it is {given}")
        return array
    return to_device(conformed(argument, spec, number), device)
