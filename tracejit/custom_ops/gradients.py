"""The derivative of an op, as its author writes it.

@gradient("ZeroOut")
def zero_out_gradient(op: Operation, grad):
    made = np.zeros(op.inputs[0].shape, grad.dtype)
    made[0] = grad[0]
    return [made]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracejit.custom_ops.definition import Definition
from tracejit.custom_ops.running import as_traced
from tracejit.custom_ops.users_functions import raised_by
from tracejit.errors import ArgumentError, DerivativeError

GradientFunction = Callable[..., Any]
"""``gradient(operation, cotangents)``, which returns the inputs' cotangents."""
BatchingFunction = Callable[..., Any]
"""``rule(operation, size)``, which returns the outputs for a batch of inputs."""


class Operation:
    """The call that is differentiated: its traced inputs and outputs, its attributes.

    ``inputs`` and ``outputs`` are all arrays in order, those of lists one after the other.
    """

    def __init__(
        self,
        definition: Definition,
        attrs: Mapping[str, Any],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        self._definition = definition
        self.type = definition.name
        self.attrs = dict(attrs)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    def get_attr(self, name: str) -> Any:
        """An attribute's value. Raises `ArgumentError` for a name the op does not have."""
        if name not in self.attrs:
            raise ArgumentError(f"{self.type}: has no attribute {name!r}")
        return self.attrs[name]

    def input(self, name: str) -> Any:
        """An input by its name; a list of arrays for one that is a list."""
        return self._named(self._definition.inputs, self.inputs, name)

    def output(self, name: str) -> Any:
        """An output by its name; a list of arrays for one that is a list."""
        return self._named(self._definition.outputs, self.outputs, name)

    def _named(self, arguments: Sequence[Any], values: Sequence[Any], name: str) -> Any:
        grouped = self._definition.grouped(arguments, self.attrs, values)
        for argument, value in zip(arguments, grouped, strict=True):
            if argument.name == name:
                return value
        raise ArgumentError(f"{self.type}: has no input or output {name!r}")


def cotangents(
    function: GradientFunction, operation: Operation, arriving: Sequence[Any]
) -> list[Any]:
    """What a gradient function returns, one for each input array, None for zero.

    It is called with the operation and the cotangent of the output, a list where there are
    several outputs. Raises `DerivativeError` for another number of results.
    """
    given = arriving[0] if len(arriving) == 1 else list(arriving)
    with raised_by(operation.type, "the gradient"):
        made = as_traced(function)(operation, given)
    parts = list(made) if isinstance(made, list | tuple) else [made]
    flat: list[Any] = []
    for part in parts:
        flat += part if isinstance(part, list | tuple) else [part]
    if len(flat) != len(operation.inputs):
        raise DerivativeError(
            f"{operation.type}: its gradient must return one cotangent for each of "
            f"{len(operation.inputs)} inputs, not {len(flat)}"
        )
    return flat
