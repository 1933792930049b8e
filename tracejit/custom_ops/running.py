"""Kernels at work: from arrays to the arrays of the outputs, checked.

run(op, attrs, arrays)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.custom_ops.definition import Argument, Definition
from tracejit.custom_ops.kernels import Kernel, OpKernelConstruction, OpKernelContext
from tracejit.custom_ops.shape_inference import Sizes
from tracejit.custom_ops.types import STRING, is_text, type_name
from tracejit.errors import ArgumentError, ElementTypeError, InvalidArgumentError, ShapeError
from tracejit.sources import Source
from tracejit.trace.context import current_trace
from tracejit.trace.recording import recording


@contextmanager
def named(op: str, source: Source | None = None) -> Iterator[None]:
    """Adds the op's name and its call's line to errors of `require` inside."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{op}: {error.message}", source or error.source) from error


def as_traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function as the running trace calls it, ``np`` and ``math`` recording there."""
    trace = current_trace()
    return recording(function) if trace is not None and trace.record_numpy else function


def construct(kernel: Kernel, definition: Definition, attrs: Mapping[str, Any]) -> Any:
    """An instance of a kernel class; its constructor may check the attributes."""
    return kernel.implementation(OpKernelConstruction(definition, attrs, kernel.device))


def computed(
    kernel: Kernel,
    instance: Any,
    definition: Definition,
    attrs: Mapping[str, Any],
    arrays: Sequence[np.ndarray],
    shapes: Sequence[Sizes],
    targets: Sequence[np.ndarray] | None = None,
) -> FlatOutputs:
    """What an ``instance`` of a kernel class makes, in ``targets`` where it allocates outputs."""
    context = OpKernelContext(definition, attrs, kernel.device, arrays, shapes, targets)
    instance.compute(context)
    return FlatOutputs(context.outputs)


class FlatOutputs(list[Any]):
    """The arrays of all outputs in order, lists taken apart."""


def checked_outputs(
    kernel: Kernel,
    definition: Definition,
    attrs: Mapping[str, Any],
    returned: Any,
    shapes: Sequence[Sizes],
) -> list[np.ndarray]:
    """The arrays that a kernel of form ``numpy`` returned, in order.

    Raises `ArgumentError`, `ElementTypeError` or `ShapeError` for what is no result of the op.
    """
    is_flat = isinstance(returned, FlatOutputs)
    made = returned if is_flat else flat_outputs(definition, attrs, returned)
    names = [o for o in definition.outputs for _ in definition.types(o, attrs)]
    types = definition.flat_types(definition.outputs, attrs)
    return [
        _checked(f"{definition.name}: the kernel for {kernel}", *expected)
        for expected in zip(names, made, types, shapes, strict=True)
    ]


def flat_outputs(definition: Definition, attrs: Mapping[str, Any], returned: Any) -> list[Any]:
    """The arrays that a function returned, in order."""
    outputs = definition.outputs
    parts = [returned] if len(outputs) == 1 else [] if returned is None else returned
    if not isinstance(parts, list | tuple) or len(parts) != len(outputs):
        raise ArgumentError(
            f"{definition.name}: must return {len(outputs)} outputs, not {returned!r}"
        )
    made: list[Any] = []
    for output, part in zip(outputs, parts, strict=True):
        count = len(definition.types(output, attrs))
        if not definition.is_list(output):
            made.append(part)
        elif isinstance(part, list | tuple) and len(part) == count:
            made.extend(part)
        else:
            raise ArgumentError(
                f"{definition.name}: must return {count} arrays for output {output.name!r}"
            )
    return made


def _checked(title: str, output: Argument, made: Any, dtype: np.dtype, sizes: Sizes) -> np.ndarray:
    if made is None:
        raise ArgumentError(f"{title} made nothing for output {output.name!r}")
    is_number = type(made) in (bool, int, float, complex)
    array = np.asarray(made, dtype) if is_number and dtype != STRING else np.asarray(made)
    fits = is_text(array.dtype) if dtype == STRING else array.dtype == dtype
    if not fits:
        raise ElementTypeError(
            f"{title} made output {output.name!r} of type {array.dtype}, not {type_name(dtype)}"
        )
    is_known = sizes is not None and None not in sizes
    if is_known and array.shape != sizes:
        raise ShapeError(
            f"{title} made output {output.name!r} of dimensions {list(array.shape)}; the shape "
            f"function says {list(sizes or ())}"
        )
    return array
