"""The kernels of one op, and how each kind of them is run.

run          a NumPy kernel is called, a traced one interpreted, TVM code compiled and called
expansion    what a traced kernel records, which stands in compiled code in place of the call
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.api import compile
from tracejit.backends.numpy.interpreter import evaluate
from tracejit.cuda.kernels import CudaKernel
from tracejit.custom_ops import running
from tracejit.custom_ops.configured import ConfiguredCall
from tracejit.custom_ops.definition import Definition
from tracejit.custom_ops.kernels import Kernel, fitting, select
from tracejit.custom_ops.shape_inference import Sizes, infer
from tracejit.custom_ops.values import decode, encode
from tracejit.errors import ArgumentError, ShapeError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import parameter, tuple_
from tracejit.ops.custom import custom_call
from tracejit.shapes import AnyShape, Shape, TupleShape, shape_of
from tracejit.sources import Source, is_entered_again
from tracejit.targets import DeviceFunction, device_of_kernels
from tracejit.trace.body import Abstract, record_body

COMPILED_FORMS = ("cuda", "tir", "tracejit", "device", "numpy")
"""In compiled code the form that needs no call back into Python comes first."""
HOST_FORMS = ("numpy", "tracejit", "tir")
"""What the host calls with arrays of its own, best first."""


_MOST_CONFIGURED = 256


class Implementations:
    """The kernels of an op, and the instances that calls so far have constructed."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.kernels: list[Kernel] = []
        self._lock = threading.RLock()
        self._instances: dict[tuple[Kernel, str], Any] = {}
        self._expansions: dict[tuple[Any, ...], Computation] = {}
        self._programs: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._configured: dict[tuple[Any, ...], ConfiguredCall] = {}

    def add(self, kernel: Kernel, replace: bool = False) -> None:
        """Enters a kernel, replacing those that the same line, or a notebook's cell, entered
        before; with ``replace`` others too.

        Raises `ArgumentError` when a call would have two.
        """
        name = self.definition.name
        replaced = [other for other in self.kernels if kernel.overlaps(other)]
        for other in replaced:
            if not replace and not is_entered_again(other.source, kernel.source):
                raise ArgumentError(
                    f"kernel: {name} has a kernel of form {kernel.form!r} on {other} already; "
                    f"a call may want that one and the one on {kernel}"
                )
        if kernel.form not in ("numpy", "device") and self.definition.stateful:
            raise ArgumentError(f"kernel: {name} is stateful, its kernels must be of form 'numpy'")
        with self._lock:
            self.kernels = [*(k for k in self.kernels if k not in replaced), kernel]
            self._expansions.clear()
            self._programs.clear()
            self._configured.clear()

    @contextmanager
    def only(self, form: str) -> Iterator[None]:
        """Calls inside take kernels of one form alone. For tests: other threads see it as well."""
        kept = self.kernels
        with self._lock:
            self.kernels = [kernel for kernel in kept if kernel.form == form]
            try:
                yield
            finally:
                self.kernels = kept

    def infer(self, attrs: Mapping[str, Any], inputs: Sequence[Sizes]) -> tuple[Sizes, ...]:
        """The shapes of all outputs as the shape function has them, None for unknown sizes."""
        with running.named(self.definition.name):
            return infer(self.definition, attrs, inputs)

    def output_shapes(self, attrs: Mapping[str, Any], inputs: Sequence[Shape]) -> list[Shape]:
        """The shapes of all outputs.

        Raises `ShapeError` where neither the shape function nor a traced kernel tells them.
        """
        definition = self.definition
        sizes = self.infer(attrs, [shape.dimensions for shape in inputs])
        types = definition.flat_types(definition.outputs, attrs)
        known = [_known(shape) for shape in sizes]
        if all(shape is not None for shape in known):
            return [Shape(t, s or ()) for t, s in zip(types, known, strict=True)]  # type: ignore[arg-type]
        expansion = self.expansion(attrs, inputs)
        if expansion is not None:
            return [s for s in expansion.root.element_shapes if isinstance(s, Shape)]
        names = [o.name for o in definition.outputs for _ in definition.types(o, attrs)]
        raise ShapeError(
            f"{definition.name}: the shape of output {names[known.index(None)]!r} is not known "
            "while tracing; give the op a shape function that tells it (set_shape_fn)"
        )

    def result_shape(self, outputs: Sequence[Shape]) -> AnyShape:
        """The shape of the op's instruction: an array for one output that is no list."""
        return outputs[0] if self.is_array else TupleShape(tuple(outputs))

    @property
    def is_array(self) -> bool:
        """Whether the op has one output, which is no list."""
        outputs = self.definition.outputs
        return len(outputs) == 1 and not self.definition.is_list(outputs[0])

    def prepare(self, attrs: Mapping[str, Any]) -> None:
        """Constructs kernel classes for these attributes, so that invalid ones are reported now."""
        for kernel in self.kernels:
            if kernel.is_class and kernel.device == "CPU" and kernel.fits(attrs):
                with running.named(self.definition.name):
                    self._instance(kernel, attrs)

    def run(
        self, attrs: Mapping[str, Any], arrays: Sequence[np.ndarray], source: Source | None = None
    ) -> list[np.ndarray]:
        """The arrays of all outputs, made by a kernel for the CPU, or one for `device_of_kernels`.

        Raises `UnsupportedError` when there is none, and what the kernel raises.
        """
        device = self._device_for(attrs, device_of_kernels(), HOST_FORMS)
        kernel = select(self.definition, self.kernels, attrs, HOST_FORMS, device, source)
        if kernel.form == "numpy":
            call = self._configure(kernel, attrs, [array.shape for array in arrays], source)
            return call(arrays, source=source)
        shapes = [shape_of(array) for array in arrays]
        if kernel.form == "tracejit":
            expansion = self.expansion(attrs, shapes)
            assert expansion is not None, f"{self.definition.name} has a traced kernel"
            made = evaluate(expansion, arrays)
        else:
            made = self._program(attrs, shapes)(*arrays)
        return list(made) if isinstance(made, tuple) else [made]

    def configured(
        self, text: str, shapes: Sequence[tuple[int, ...]], source: Source | None = None
    ) -> ConfiguredCall | None:
        """The NumPy kernel of calls with attributes as ``text`` on arrays of these sizes.

        None where kernels of another form run. Kernels and shape functions are chosen once.
        """
        key = (text, *shapes)
        found = self._configured.get(key)
        if found is None:
            attrs = decode(self.definition, text)
            device = self._device_for(attrs, device_of_kernels(), HOST_FORMS)
            kernel = select(self.definition, self.kernels, attrs, HOST_FORMS, device, source)
            if kernel.form != "numpy" or device != "CPU":
                return None
            found = self._configure(kernel, attrs, shapes, source)
            if len(self._configured) >= _MOST_CONFIGURED:
                self._configured.clear()
            if found.is_current:
                self._configured[key] = found
        return found

    def _configure(
        self,
        kernel: Kernel,
        attrs: Mapping[str, Any],
        shapes: Sequence[tuple[int, ...]],
        source: Source | None,
    ) -> ConfiguredCall:
        with running.named(self.definition.name, source):
            sizes = infer(self.definition, attrs, shapes)
            instance = self._instance(kernel, attrs) if kernel.is_class else None
        return ConfiguredCall(self, kernel, instance, attrs, sizes)

    def _instance(self, kernel: Kernel, attrs: Mapping[str, Any]) -> Any:
        key = (kernel, encode(self.definition, attrs))
        with self._lock:
            if key not in self._instances:
                self._instances[key] = running.construct(kernel, self.definition, attrs)
            return self._instances[key]

    def _program(self, attrs: Mapping[str, Any], shapes: Sequence[Shape]) -> Callable[..., Any]:
        """The op alone as machine code, for a kernel that only compiled code has."""
        definition, text = self.definition, encode(self.definition, attrs)
        key = (text, *shapes)
        with self._lock:
            if key not in self._programs:
                parameters = tuple(parameter(n, shape) for n, shape in enumerate(shapes))
                shape = self.result_shape(self.output_shapes(attrs, shapes))
                call = custom_call(definition.name, parameters, shape, text)
                self._programs[key] = compile(
                    Computation(definition.function_name, parameters, call)
                )
            return self._programs[key]

    def primitive(
        self,
        attrs: Mapping[str, Any],
        inputs: Sequence[Shape],
        outputs: Sequence[AnyShape],
        source: Source | None,
        device: str = "CPU",
    ) -> Any:
        """What a kernel of form ``tir`` or ``cuda`` makes, None where another kernel is chosen.

        Raises `UnsupportedError` when there is no kernel, `ArgumentError` for one of form ``cuda``
        that makes no `CudaKernel`.
        """
        kernel = self._compiled(attrs, device, source)
        if kernel.form not in ("tir", "cuda"):
            return None
        made = kernel.implementation(list(inputs), list(outputs), **kernel.taken(attrs))
        if kernel.form == "cuda" and not isinstance(made, CudaKernel):
            raise ArgumentError(
                f"{self.definition.name}: a kernel of form 'cuda' must return a CudaKernel, not "
                f"{type(made).__name__}",
                source,
            )
        return made

    def device_function(self, attrs: Mapping[str, Any]) -> DeviceFunction | None:
        """The kernel of form ``device`` that a call on a GPU has; None where it has another."""
        kernel = self._compiled(attrs, "GPU", None)
        if kernel.form != "device":
            return None
        definition = self.definition

        def call(arrays: Sequence[Any]) -> list[Any]:
            inputs = definition.grouped(definition.inputs, attrs, arrays)
            with running.named(definition.name):
                made = kernel.implementation(*inputs, **kernel.taken(attrs))
            return running.flat_outputs(definition, attrs, made)

        on_host = [
            given.name in kernel.host_memory
            for given in definition.inputs
            for _ in definition.types(given, attrs)
        ]
        return DeviceFunction(call, on_host)

    def _compiled(self, attrs: Mapping[str, Any], device: str, source: Source | None) -> Kernel:
        """The kernel of a call in compiled code. Raises `UnsupportedError` where there is none."""
        device = self._device_for(attrs, device, COMPILED_FORMS)
        return select(self.definition, self.kernels, attrs, COMPILED_FORMS, device, source)

    def _device_for(self, attrs: Mapping[str, Any], device: str, forms: Sequence[str]) -> str:
        """The device, or the CPU where that alone has a kernel: the host is called."""
        having = {k.device for k in self.kernels if k.form in forms and k.fits(attrs)}
        return "CPU" if device not in having and "CPU" in having else device

    def expansion(
        self, attrs: Mapping[str, Any], shapes: Sequence[Shape], device: str = "CPU"
    ) -> Computation | None:
        """What a traced kernel records for arrays of these shapes; None where there is none."""
        device = self._device_for(attrs, device, COMPILED_FORMS)
        found = fitting(self.kernels, attrs, COMPILED_FORMS, device)
        kernel = next((k for k in found if k.form == "tracejit"), None)
        if kernel is None or kernel.priority < found[0].priority:
            return None
        key = (kernel, encode(self.definition, attrs), *shapes)
        with self._lock:
            if key not in self._expansions:
                self._expansions[key] = self._recorded(kernel, attrs, shapes)
            return self._expansions[key]

    def _recorded(
        self, kernel: Kernel, attrs: Mapping[str, Any], shapes: Sequence[Shape]
    ) -> Computation:
        definition = self.definition
        title = f"{definition.name}: the kernel on {kernel}"

        def kernel_on(*arrays: Any) -> list[Any]:
            inputs = definition.grouped(definition.inputs, attrs, arrays)
            made = running.as_traced(kernel.implementation)(*inputs, **kernel.taken(attrs))
            return running.flat_outputs(definition, attrs, made)

        with running.named(definition.name):
            body = record_body(kernel_on, title, [Abstract(shape) for shape in shapes])
        if body.captured or body.effects:
            what = "has side effects" if body.effects else "uses traced values that are no inputs"
            raise ArgumentError(f"{title} {what}")
        types = definition.flat_types(definition.outputs, attrs)
        sizes = self.infer(attrs, [shape.dimensions for shape in shapes])
        for result, dtype, said in zip(body.results, types, sizes, strict=True):
            _require_shape(title, result, dtype, said)
        root = body.results[0] if self.is_array else tuple_(body.results)
        return Computation(definition.function_name, body.parameters, root)


def _known(sizes: Sizes) -> tuple[int, ...] | None:
    """A shape with all sizes known, else None."""
    if sizes is None:
        return None
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def _require_shape(title: str, result: Instruction, dtype: np.dtype, said: Sizes) -> None:
    made = result.array_shape
    dimensions = made.dimensions
    if said is not None and len(said) == made.rank:
        pairs = zip(said, dimensions, strict=True)
        dimensions = tuple(own if size is None else size for size, own in pairs)
    elif said is not None:
        dimensions = tuple(size or 0 for size in said)
    wanted = Shape(dtype, dimensions)  # type: ignore[arg-type]
    if made != wanted:
        raise ShapeError(f"{title} must return {wanted}, not {made}")
