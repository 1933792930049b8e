"""A NumPy kernel with the attributes and shapes of a call: found out and checked once.

call = ConfiguredCall(implementations, attrs, shapes)
call([x, y])                    the arrays of the outputs
call.into([x, y], [z])          the same, written to the memory of z
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracejit.custom_ops import running
from tracejit.custom_ops.kernels import Kernel
from tracejit.custom_ops.shape_inference import Sizes
from tracejit.custom_ops.types import STRING
from tracejit.errors import ArgumentError, InvalidArgumentError
from tracejit.sources import Source

if TYPE_CHECKING:
    from tracejit.custom_ops.implementations import Implementations


class ConfiguredCall:
    """A kernel of form ``numpy``, bound to attributes and to the sizes that its outputs have."""

    def __init__(
        self,
        implementations: Implementations,
        kernel: Kernel,
        instance: Any,
        attrs: Mapping[str, Any],
        sizes: Sequence[Sizes],
    ) -> None:
        definition = implementations.definition
        self._owner, self._kernels = implementations, implementations.kernels
        self._kernel, self._instance = kernel, instance
        self._attrs, self._sizes = attrs, tuple(sizes)
        self._taken = kernel.taken(attrs)
        self._types = definition.flat_types(definition.outputs, attrs)
        self._has_lists = any(map(definition.is_list, definition.inputs))
        self._function: Callable[..., Any] = kernel.implementation
        # The type and the sizes of a result that needs no other check.
        self._one = None
        if implementations.is_array and self._types[0] != STRING:
            self._one = (self._types[0], self._sizes[0])

    @property
    def is_current(self) -> bool:
        """Whether no kernel was registered since."""
        return self._owner.kernels is self._kernels

    @property
    def borrows(self) -> bool:
        """Whether the kernel takes memory that is the caller's, and keeps none of it."""
        return self._kernel.borrows_inputs

    def __call__(
        self,
        arrays: Sequence[np.ndarray],
        targets: Sequence[np.ndarray] | None = None,
        source: Source | None = None,
    ) -> list[np.ndarray]:
        """The arrays of the outputs, ``targets`` where the kernel writes to what it is given.

        Raises the kernel's errors, and errors for arrays that are no results of the op.
        """
        try:
            made = self._made(arrays, targets)
        except InvalidArgumentError as error:
            name = self._owner.definition.name
            raise InvalidArgumentError(
                f"{name}: {error.message}", source or error.source
            ) from error
        one = self._one
        if one and type(made) is np.ndarray and made.dtype == one[0] and made.shape == one[1]:
            return [made]
        return running.checked_outputs(
            self._kernel, self._owner.definition, self._attrs, made, self._sizes
        )

    def _made(self, arrays: Sequence[np.ndarray], targets: Sequence[np.ndarray] | None) -> Any:
        definition, kernel, attrs = self._owner.definition, self._kernel, self._attrs
        if kernel.is_class:
            return running.computed(
                kernel, self._instance, definition, attrs, arrays, self._sizes, targets
            )
        if self._has_lists:
            arrays = definition.grouped(definition.inputs, attrs, arrays)
        if not kernel.takes_out:
            return self._function(*arrays, **self._taken)
        outputs = self._allocated() if targets is None else targets
        out = definition.grouped(definition.outputs, attrs, outputs)
        given = out[0] if len(out) == 1 else out
        made = self._function(*arrays, **self._taken, out=given)
        return given if made is None else made

    def _allocated(self) -> list[np.ndarray]:
        for sizes in self._sizes:
            if sizes is None or None in sizes:
                raise ArgumentError(
                    f"{self._owner.definition.name}: the kernel takes out=, so the op's shape "
                    "function must tell the shapes of its outputs"
                )
        pairs = zip(self._sizes, self._types, strict=True)
        return [np.empty(sizes or (), dtype) for sizes, dtype in pairs]  # type: ignore[arg-type]

    def into(
        self,
        operands: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        source: Source | None = None,
    ) -> None:
        """Writes the results to ``targets``. Lent operands must not be kept by the kernel.

        Raises `ArgumentError` where a reference to one is left.
        """
        made = self(operands, targets, source)
        for target, result in zip(targets, made, strict=True):
            if result is not target:
                target[...] = result
        if not self.borrows:
            return
        made.clear()
        result = target = None  # type: ignore[assignment]
        for number in range(len(operands)):
            if sys.getrefcount(operands[number]) > 2:  # the list's and the question's own
                raise ArgumentError(
                    f"{self._owner.definition.name}: the kernel for {self._kernel} keeps input "
                    f"{number}, which it borrows (borrows_inputs=True) for the call alone; keep a "
                    "copy",
                    source,
                )
