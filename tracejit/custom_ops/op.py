"""An op that a user defines: a Python function with an interface, kernels and a derivative.

zero_out = Op("ZeroOut").input("to_zero: int32").output("zeroed: int32").set_shape_fn(f)
zero_out(x)
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from tracejit.custom_ops.builder import DefinitionBuilder
from tracejit.custom_ops.calling import Bound, bind, signature
from tracejit.custom_ops.configured import ConfiguredCall
from tracejit.custom_ops.documentation import docstring, markdown
from tracejit.custom_ops.gradients import BatchingFunction, GradientFunction, Operation, cotangents
from tracejit.custom_ops.implementations import Implementations
from tracejit.custom_ops.kernels import LABEL, Kernel
from tracejit.custom_ops.running import as_traced, flat_outputs
from tracejit.custom_ops.types import is_text
from tracejit.custom_ops.values import decode, encode
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Computation, Instruction
from tracejit.ops.constants import elements_of
from tracejit.ops.custom import custom_call
from tracejit.sources import Source, is_entered_again, user_source
from tracejit.targets import DeviceFunction, Function, device_of_kernels
from tracejit.trace.context import current_trace, keep_effect
from tracejit.trace.convert import as_instruction
from tracejit.trace.table import find_traced
from tracejit.trace.tracer import lift
from tracejit.tracebacks import api_boundary


class _Generated:
    """What the definition of an op says of it as a function; of the class, ``own``."""

    def __init__(self, name: str, own: Any) -> None:
        self.name, self.own = name, own

    def __get__(self, op: Op | None, owner: type) -> Any:
        if op is None:
            return self.own
        return docstring(op.definition) if self.name == "__doc__" else op.signature


class Op(DefinitionBuilder):
    __doc__ = _Generated(
        "__doc__",
        """A registered op; calling it runs it, or records it where something is traced.

        Its interface may be added to until it is first used: called, given a kernel or a
        gradient, or asked for its documentation.
        """,
    )
    __signature__ = _Generated("__signature__", None)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name
        self.__name__ = self.__qualname__ = self._draft.function_name
        self._gradient: GradientFunction | None = None
        self._batching: BatchingFunction | None = None
        self._sources: dict[str, Source | None] = {}
        self._calls: dict[tuple[Any, ...], ConfiguredCall] = {}

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @cached_property
    def signature(self) -> inspect.Signature:
        """The parameters of the Python function: inputs, attributes, a name."""
        return signature(self.definition)

    @cached_property
    def implementations(self) -> Implementations:
        return Implementations(self.definition)

    @cached_property
    def _result(self) -> Any:
        """The class of several outputs, a named tuple."""
        names = [output.name for output in self.definition.outputs]
        return namedtuple(self.__name__, names, rename=True)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The registered implementations."""
        return tuple(self.implementations.kernels)

    def to_markdown(self) -> str:
        """A page of documentation, in Markdown."""
        return markdown(self.definition, [str(kernel) for kernel in self.kernels])

    def set_gradient(self, function: GradientFunction, replace: bool = False) -> None:
        """Sets the derivative. Raises `ArgumentError` for a second one from another line."""
        if self._gradient is not None and not (replace or self._is_set_again("gradient")):
            raise ArgumentError(f"gradient: {self.name} has a gradient already")
        if not callable(function):
            raise ArgumentError(f"gradient: {self.name}: {function!r} is no function")
        _ = self.definition
        self._gradient, self._sources["gradient"] = function, user_source()

    def set_batching(self, function: BatchingFunction, replace: bool = False) -> None:
        """Sets what `vmap` makes of a call. Raises `ArgumentError` for a second one likewise."""
        if self._batching is not None and not (replace or self._is_set_again("batching")):
            raise ArgumentError(f"batching: {self.name} has a rule already")
        if not callable(function):
            raise ArgumentError(f"batching: {self.name}: {function!r} is no function")
        _ = self.definition
        self._batching, self._sources["batching"] = function, user_source()

    def _is_set_again(self, what: str) -> bool:
        """Whether the line that sets it now is the one that set it before, or both are cells."""
        return is_entered_again(self._sources.get(what), user_source())

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op on arrays, or records it where anything is traced."""
        key = None if current_trace() is not None else _key(args, kwargs)
        call = None if key is None else self._calls.get(key)
        if call is not None and call.is_current:
            arrays = args if call.borrows else [array.copy() for array in args]
            (result,) = call(arrays, source=user_source())
            return result.copy()[()]
        traced = find_traced((args, kwargs))
        if current_trace() is None and traced is not None:
            with traced.owner.resumed():
                return self(*args, **kwargs)
        bound = bind(self.definition, self.signature, args, kwargs)
        if label := _labels.get().get(self.name):
            bound.attrs[LABEL] = label
        if self.definition.has_text(bound.attrs):
            return self._grouped(bound, self._of_text(bound))
        if current_trace() is not None:
            return self._grouped(bound, self._recorded(bound))
        if key is not None and self.implementations.is_array:
            self._keep(key, bound)
        made = self.implementations.run(bound.attrs, _copies(bound), user_source())
        return self._grouped(bound, [np.array(array)[()] for array in made])

    def _keep(self, key: tuple[Any, ...], bound: Bound) -> None:
        """Keeps the kernel of a call on arrays for calls with equal shapes and attributes."""
        text = encode(self.definition, bound.attrs)
        call = self.implementations.configured(text, bound.sizes, user_source())
        if call is not None:
            if len(self._calls) >= _MOST_CALLS:
                self._calls.clear()
            self._calls[key] = call

    def _of_text(self, bound: Bound) -> list[Any]:
        """The results of an op on text, which no graph holds; numbers become constants of it."""
        if not bound.is_known:
            raise UnsupportedError(
                f"{self.name}: has inputs or outputs of type string, which a graph cannot hold; "
                "it runs on values that are known while tracing"
            )
        made = self.implementations.run(bound.attrs, _copies(bound), user_source())
        if current_trace() is None:
            return made
        return [a if is_text(a.dtype) else lift(as_instruction(a), False) for a in made]

    def _recorded(self, bound: Bound) -> list[Any]:
        operands = [
            value if isinstance(value, Instruction) else as_instruction(value)
            for value in bound.values
        ]
        shapes = [operand.array_shape for operand in operands]
        dynamic = next((shape for shape in shapes if shape.is_dynamic), None)
        if dynamic is not None:
            raise UnsupportedError(f"{self.name}: takes no array of a dynamic shape, {dynamic}")
        outputs = self.implementations.output_shapes(bound.attrs, shapes)
        self.implementations.prepare(bound.attrs)
        made = custom_call(
            self.name,
            operands,
            self.implementations.result_shape(outputs),
            encode(self.definition, bound.attrs),
            has_side_effect=self.definition.stateful,
        )
        keep_effect(made)
        return [lift(element, False) for element in elements_of(made)]

    def _grouped(self, bound: Bound, values: Sequence[Any]) -> Any:
        """The outputs as a call returns them."""
        outputs = self.definition.outputs
        grouped = self.definition.grouped(outputs, bound.attrs, values)
        if len(outputs) == 1:
            return grouped[0]
        return self._result(*grouped) if outputs else None

    # What `targets.CustomOp` asks for.

    def call(self, *arrays: np.ndarray, backend_config: str = "") -> Any:
        """The op as custom calls run it."""
        call = self.implementations.configured(backend_config, [a.shape for a in arrays])
        if call is not None:
            made = call(arrays)
        else:
            made = self.implementations.run(decode(self.definition, backend_config), arrays)
        return made[0] if self.implementations.is_array else tuple(made)

    def host_call_of(self, instruction: Instruction) -> ConfiguredCall | None:
        """The NumPy kernel of a call, bound to its attributes and shapes; None for another form."""
        shapes = [operand.array_shape.dimensions for operand in instruction.operands]
        text: str = instruction.attributes["backend_config"]
        return self.implementations.configured(text, shapes, instruction.source)

    def gradient_of(self, instruction: Instruction) -> Function | None:
        """From operands, results and cotangents to the operands' cotangents; None without one."""
        function = self._gradient
        if function is None:
            return None
        attrs = self._attrs(instruction)
        differentiable = [
            o.array_shape.element_type.is_differentiable for o in instruction.operands
        ]
        count = len(differentiable)
        end = count + len(instruction.element_shapes)

        def gradient(*values: Any) -> tuple[Any, ...]:
            operation = Operation(self.definition, attrs, values[:count], values[count:end])
            made = cotangents(function, operation, values[end:])
            return tuple(
                c if takes_one else None for c, takes_one in zip(made, differentiable, strict=True)
            )

        return gradient

    def batching_of(self, instruction: Instruction) -> Function | None:
        """From the size of a batch and batched operands to batched results; None without one."""
        function = self._batching
        if function is None:
            return None
        attrs = self._attrs(instruction)

        def batched(size: int, *values: Any) -> list[Any]:
            operation = Operation(self.definition, attrs, values, ())
            return flat_outputs(self.definition, attrs, as_traced(function)(operation, size))

        return batched

    def kernel_of(self, instruction: Instruction, device: str = "CPU") -> Any:
        """The TVM function, or CUDA C, that compiled code contains for a call; None without one."""
        return self.implementations.primitive(
            self._attrs(instruction),
            [operand.array_shape for operand in instruction.operands],
            instruction.element_shapes,
            instruction.source,
            device,
        )

    def function_of(self, instruction: Instruction) -> DeviceFunction | None:
        """The function that takes arrays of the device for a call; None without one."""
        return self.implementations.device_function(self._attrs(instruction))

    def expansion_of(self, instruction: Instruction, device: str = "CPU") -> Computation | None:
        """The computation that a call means, from a traced kernel; None without one."""
        shapes = [operand.array_shape for operand in instruction.operands]
        return self.implementations.expansion(self._attrs(instruction), shapes, device)

    def _attrs(self, instruction: Instruction) -> Mapping[str, Any]:
        return decode(self.definition, instruction.attributes["backend_config"])


_MOST_CALLS = 64
_SIMPLE = (bool, int, float, str)
_labels: ContextVar[Mapping[str, str]] = ContextVar("labels", default=MappingProxyType({}))


@contextmanager
def labelled(labels: Mapping[str, str]) -> Iterator[None]:
    """Calls of the named ops inside ask for kernels with these labels."""
    token = _labels.set({**_labels.get(), **labels})
    try:
        yield
    finally:
        _labels.reset(token)


def _key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What decides on a call of NumPy's arrays and simple attributes; None for other calls."""
    if not args or _labels.get() or device_of_kernels() != "CPU":
        return None
    parts: list[Any] = []
    for array in args:
        if type(array) is not np.ndarray:
            return None
        parts.append((array.dtype, array.shape))
    for name, value in kwargs.items():
        if type(value) not in _SIMPLE or value != value:
            return None
        parts.append((name, type(value), value))
    return tuple(parts)


def _copies(bound: Bound) -> list[np.ndarray]:
    """The arrays of a call as kernels may keep and write to them."""
    return [np.array(value) for value in bound.values if isinstance(value, np.ndarray)]
