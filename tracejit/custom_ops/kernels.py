"""Kernels: what computes an op on a device, for some element types.

A kernel is a function of NumPy arrays, or a class with a method ``compute``. ``select`` finds
the one for a call, among those registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracejit.custom_ops.definition import Argument, Definition
from tracejit.custom_ops.shape_inference import Sizes
from tracejit.custom_ops.types import STRING, as_type, type_name
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError
from tracejit.sources import Source

DEVICES = ("CPU", "GPU")
FORMS = ("numpy", "tracejit", "native", "tir", "cuda", "device")
LABEL = "_kernel"
"""The attribute of a call that asks for kernels with a label; see `kernel_labels`."""

OUT = "out"
"""The keyword of functions that write their results to arrays that they are given."""

ON_GPUS = ("cuda", "device")
"""The forms that kernels for GPUs alone have."""

Constraints = Mapping[str, tuple[np.dtype, ...]]


@dataclass(frozen=True, eq=False)
class Kernel:
    """One implementation; ``constraints`` are the types of type attributes it is for.

    ``form`` says what the implementation is: ``numpy``, a function of arrays or a class;
    ``tracejit``, a function that is traced, and fuses with what is around it; ``tir``, a function
    that makes TVM code; ``cuda``, one that makes a `CudaKernel`; ``device``, a function of
    arrays in a GPU's memory, but for those in ``host_memory``. ``attrs`` are the attributes that
    the function takes, None for all. ``source`` is the user's line that
    registered it. Of several kernels the one of the highest ``priority`` is taken; one with a
    ``label`` only if the call names it. ``borrows_inputs``: it neither keeps its inputs nor
    writes to them; ``takes_out``: it writes to arrays ``out=``.
    """

    implementation: Callable[..., Any]
    device: str
    form: str
    constraints: Constraints
    host_memory: tuple[str, ...]
    attrs: frozenset[str] | None
    source: Source | None = None
    priority: int = 0
    label: str = ""
    borrows_inputs: bool = False
    takes_out: bool = False

    @property
    def is_class(self) -> bool:
        return isinstance(self.implementation, type)

    def fits(self, attrs: Mapping[str, Any]) -> bool:
        """Whether the kernel is for calls with these attributes."""
        return all(
            all(t in types for t in (attrs[n] if isinstance(attrs[n], tuple) else (attrs[n],)))
            for n, types in self.constraints.items()
        )

    def overlaps(self, other: Kernel) -> bool:
        """Whether some call has both kernels."""
        if self._rank != other._rank:
            return False
        common = self.constraints.keys() & other.constraints.keys()
        return all(set(self.constraints[n]) & set(other.constraints[n]) for n in common)

    @property
    def _rank(self) -> tuple[str, str, int, str]:
        return self.device, self.form, self.priority, self.label

    def taken(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes that the implementation wants."""
        wanted = self.attrs
        return {n: v for n, v in attrs.items() if (n != LABEL if wanted is None else n in wanted)}

    def __str__(self) -> str:
        types = [
            f"{name} in {{{', '.join(map(type_name, types))}}}"
            for name, types in sorted(self.constraints.items())
        ]
        said = [self.device] if not self.label else [f"{self.device} (label {self.label!r})"]
        return " for ".join([*said, *([" and ".join(types)] if types else [])])


def make_kernel(
    definition: Definition,
    implementation: Callable[..., Any],
    device: str,
    form: str,
    host_memory: Sequence[str],
    constraints: Mapping[str, Any],
    source: Source | None = None,
    priority: int = 0,
    label: str = "",
    borrows_inputs: bool = False,
) -> Kernel:
    """A kernel whose registration makes sense for the op.

    Raises `ArgumentError` for an implementation that does not take the op's inputs,
    `AttributeValueError` for devices, forms, types and names that there are not.
    """
    title = f"kernel: {definition.name}"
    if device not in DEVICES:
        raise AttributeValueError(f"{title}: device must be CPU or GPU, not {device!r}")
    if form not in FORMS:
        raise AttributeValueError(f"{title}: form must be one of {', '.join(FORMS)}, not {form!r}")
    if form in ON_GPUS and device != "GPU":
        raise AttributeValueError(f"{title}: form {form!r} is for device='GPU', not {device!r}")
    if form == "native" and device != "CPU":
        raise AttributeValueError(f"{title}: form 'native' is for device='CPU', not {device!r}")
    if not callable(implementation):
        raise ArgumentError(f"{title}: {implementation!r} is no function")
    names = {part.name for part in (*definition.inputs, *definition.outputs)}
    for name in host_memory:
        if name not in names:
            raise AttributeValueError(f"{title}: host_memory names {name!r}, no input or output")
    if host_memory and form in ("cuda", "native", "tir", "tracejit"):
        raise AttributeValueError(
            f"{title}: a kernel of form {form!r} is code of the device, which does not read the "
            "host's memory; host_memory is for the forms 'device' and 'numpy'"
        )
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise AttributeValueError(f"{title}: priority must be an integer, not {priority!r}")
    if not isinstance(label, str):
        raise AttributeValueError(f"{title}: label must be a text, not {label!r}")
    if borrows_inputs and form != "numpy":
        raise AttributeValueError(
            f"{title}: borrows_inputs is for kernels of form 'numpy', not {form!r}"
        )
    types = {name: _constraint(definition, name, given) for name, given in constraints.items()}
    return Kernel(
        implementation,
        device,
        form,
        types,
        tuple(host_memory),
        _attributes_of(definition, implementation, form),
        source,
        priority,
        label,
        borrows_inputs,
        form == "numpy" and _takes_out(definition, implementation),
    )


def _takes_out(definition: Definition, implementation: Callable[..., Any]) -> bool:
    """Whether a function has a keyword ``out``, which is no name of the op's."""
    if isinstance(implementation, type) or OUT in definition.names:
        return False
    try:
        found = inspect.signature(implementation).parameters.get(OUT)
    except ValueError:
        return False
    return found is not None and found.kind is inspect.Parameter.KEYWORD_ONLY


def _constraint(definition: Definition, name: str, given: Any) -> tuple[np.dtype, ...]:
    title = f"kernel: {definition.name}"
    attr = definition.attr(name)
    if attr is None or attr.kind != "type":
        raise AttributeValueError(f"{title}: {name!r} is no type attribute of the op")
    several = given if isinstance(given, tuple | list | set | frozenset) else (given,)
    types = tuple(as_type(one) for one in several)
    for one in types:
        if attr.allowed is not None and one not in attr.allowed:
            raise AttributeValueError(
                f"{title}: {name!r} is never {type_name(one)}, it is {attr.type_text}"
            )
    return types


def _attributes_of(
    definition: Definition, implementation: Callable[..., Any], form: str
) -> frozenset[str] | None:
    """The attributes among a function's parameters, which follow the inputs."""
    title = f"kernel: {definition.name}"
    if isinstance(implementation, type):
        if form != "numpy" or not callable(getattr(implementation, "compute", None)):
            raise ArgumentError(
                f"{title}: a class is a kernel of form 'numpy' with a method compute(context)"
            )
        return None
    try:
        parameters = list(inspect.signature(implementation).parameters.values())
    except ValueError:  # some functions written in C do not say what they take
        return frozenset()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    of_shapes = form in ("native", "tir", "cuda")
    count = 2 if of_shapes else len(definition.inputs)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has_rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(positional) < count and not has_rest:
        raise ArgumentError(
            f"{title}: the function must take {count} arguments"
            f"{' (shapes of inputs, shapes of outputs)' if of_shapes else ''} and then "
            f"attributes; it takes {len(positional)}"
        )
    rest = positional[count:] + [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    known = {attr.name for attr in definition.attrs}
    for p in rest:
        is_out = p.name == OUT and form == "numpy" and p.kind is p.KEYWORD_ONLY
        if p.name not in known and p.default is p.empty and not is_out:
            raise ArgumentError(f"{title}: the op has no attribute {p.name!r}")
    return frozenset(p.name for p in rest) & known


def select(
    definition: Definition,
    kernels: Sequence[Kernel],
    attrs: Mapping[str, Any],
    forms: Sequence[str],
    device: str = "CPU",
    source: Source | None = None,
) -> Kernel:
    """The kernel for a call on a device: of the highest priority, then of the first of ``forms``.

    Raises `UnsupportedError`, with the kernels that there are, when there is none.
    """
    found = fitting(kernels, attrs, forms, device)
    if found:
        return found[0]
    types = [
        f"{attr.name}={_types_text(attrs[attr.name])}"
        for attr in definition.attrs
        if attr.kind == "type"
    ]
    types += [f"label={attrs[LABEL]!r}"] if LABEL in attrs else []
    wanted = f" for {', '.join(types)}" if types else ""
    there = "; ".join(map(str, kernels)) or "none"
    raise UnsupportedError(
        f"{definition.name}: has no kernel on {device}{wanted}; registered are: {there}", source
    )


def fitting(
    kernels: Sequence[Kernel], attrs: Mapping[str, Any], forms: Sequence[str], device: str
) -> list[Kernel]:
    """The kernels that a call may have, the best first."""
    label = attrs.get(LABEL, "")
    found = [
        k
        for k in kernels
        if k.device == device and k.form in forms and k.label == label and k.fits(attrs)
    ]
    return sorted(found, key=lambda k: (-k.priority, forms.index(k.form)))


def _types_text(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(type_name, value)) + "]"
    return type_name(value)


class OpKernelConstruction:
    """What the constructor of a kernel class is given: attributes and the device."""

    def __init__(self, definition: Definition, attrs: Mapping[str, Any], device: str) -> None:
        self._definition = definition
        self.attrs = dict(attrs)
        self.device = device

    def get_attr(self, name: str) -> Any:
        """An attribute's value. Raises `ArgumentError` for a name the op does not have."""
        if name not in self.attrs:
            raise ArgumentError(f"{self._definition.name}: has no attribute {name!r}")
        return self.attrs[name]


class OpKernelContext(OpKernelConstruction):
    """What ``compute`` of a kernel class is given: inputs, and where the outputs go.

    Inputs and outputs are known by their number among all arrays, or by name.
    """

    def __init__(
        self,
        definition: Definition,
        attrs: Mapping[str, Any],
        device: str,
        inputs: Sequence[np.ndarray],
        shapes: Sequence[Sizes],
        targets: Sequence[np.ndarray] | None = None,
    ) -> None:
        super().__init__(definition, attrs, device)
        self._targets = targets
        self._inputs = list(inputs)
        self._types = definition.flat_types(definition.outputs, attrs)
        self._shapes = list(shapes)
        self.outputs: list[np.ndarray | None] = [None] * len(self._types)

    @property
    def num_inputs(self) -> int:
        return len(self._inputs)

    @property
    def num_outputs(self) -> int:
        return len(self.outputs)

    def _place(self, arguments: Sequence[Argument], which: int | str) -> int:
        if isinstance(which, int):
            return which
        start = 0
        for argument in arguments:
            if argument.name == which:
                return start
            start += len(self._definition.types(argument, self.attrs))
        raise ArgumentError(f"{self._definition.name}: has no input or output {which!r}")

    def input(self, which: int | str) -> np.ndarray:
        """An input's array; of a list, its first one."""
        return self._inputs[self._place(self._definition.inputs, which)]

    def inputs(self, name: str) -> list[np.ndarray]:
        """All arrays of one input."""
        start = self._place(self._definition.inputs, name)
        own = next(i for i in self._definition.inputs if i.name == name)
        return self._inputs[start : start + len(self._definition.types(own, self.attrs))]

    def allocate_output(self, which: int | str, shape: Sequence[int] | None = None) -> np.ndarray:
        """A new array for an output, of zeros, to be written to.

        ``shape`` left out is what the shape function says.
        """
        place = self._place(self._definition.outputs, which)
        sizes = self._shapes[place] if shape is None else tuple(shape)
        known = [size for size in sizes or () if size is not None]
        if sizes is None or len(known) < len(sizes):
            raise ArgumentError(
                f"{self._definition.name}: the shape of output {which!r} is unknown; "
                "give it to allocate_output"
            )
        dtype = self._types[place]
        target = None if self._targets is None else self._targets[place]
        if target is not None and target.dtype == dtype and list(target.shape) == known:
            target[...] = 0
            self.outputs[place] = target
            return target
        made: np.ndarray = np.zeros(known, np.dtype(object) if dtype == STRING else dtype)
        self.outputs[place] = made
        return made

    def set_output(self, which: int | str, array: Any) -> None:
        """Makes an array an output as it is."""
        self.outputs[self._place(self._definition.outputs, which)] = np.asarray(array)
