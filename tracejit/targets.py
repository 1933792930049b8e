"""The functions that custom calls call, by the name of their target.

    register_custom_call("scale", lambda x: 2 * x, gradient=lambda x, g: 2 * g)

    @register_custom_call("norm")
    def norm(x): ...

A function takes one NumPy array for each operand (a tuple operand as a tuple; tokens are left
out), and ``backend_config=`` where the call has one. It returns an array of exactly the call's
shape and dtype, or a tuple of arrays where the call's shape is a tuple.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, overload
from weakref import WeakValueDictionary

import numpy as np

from tracejit.attributes import OutputAlias
from tracejit.errors import (
    ArgumentError,
    ElementTypeError,
    InvalidArgumentError,
    ShapeError,
    UnknownTargetError,
    UnsupportedError,
)
from tracejit.graph import Computation, Instruction, Module
from tracejit.loading import supplied
from tracejit.native_calls import NativeFunction, call_on_arrays
from tracejit.ops.custom import CUSTOM_CALL, LINEAR_ALGEBRA
from tracejit.shapes import TOKEN, AnyShape, Shape, TokenShape, TupleShape, element_type_of
from tracejit.sources import Source, is_entered_again, user_source
from tracejit.tracebacks import names_misuse
from tracejit.traversal import called_computations, instructions

Function = Callable[..., Any]

LAPACK = "lapack_"
"""How the names of XLA's calls of LAPACK begin; those without an op run by `numpy.lapack_calls`."""


class CustomOp(Protocol):
    """An op whose calls hold attributes, which decide what is done; see `tracejit.custom_ops`."""

    def gradient_of(self, instruction: Instruction, /) -> Function | None:
        """From operands, results and cotangents of a call to the operands' cotangents."""

    def kernel_of(self, instruction: Instruction, device: str, /) -> Any:
        """The TVM PrimFunc or `CudaKernel` that compiled code runs for a call, or None."""

    def function_of(self, instruction: Instruction, /) -> DeviceFunction | None:
        """What is called with arrays of a GPU for a call; None where arrays of the host are."""

    def host_call_of(self, instruction: Instruction, /) -> HostCall | None:
        """A function of NumPy's arrays that computes a call; None where something else does."""

    def batching_of(self, instruction: Instruction, /) -> Function | None:
        """From the size of a batch and batched operands to batched results; None without one."""

    def expansion_of(self, instruction: Instruction, device: str, /) -> Computation | None:
        """The computation that a call means, or None where only a function knows."""


class HostCall(Protocol):
    """A function of NumPy's arrays, bound to the attributes and shapes of a call.

    ``is_current`` is whether it is still what is registered, ``borrows`` whether it may be given
    memory that changes after the call.
    """

    @property
    def is_current(self) -> bool: ...

    @property
    def borrows(self) -> bool: ...

    def into(
        self,
        operands: Sequence[np.ndarray],
        targets: Sequence[np.ndarray],
        source: Source | None = None,
        /,
    ) -> None:
        """Writes the results of ``operands`` to ``targets``."""


@dataclass(frozen=True)
class DeviceFunction:
    """A function of arrays in a device's memory, but for the operands that are ``on_host``."""

    function: Callable[[Sequence[Any]], Sequence[Any]]
    on_host: Sequence[bool]


@dataclass(frozen=True)
class Target:
    """The functions that are registered for one target.

    ``gradient`` is from operands and cotangents to the operands' cotangents, ``kernel`` TIR that
    compiled code runs in place of ``function``; see `register_custom_call`. ``title`` is what
    errors call it. ``op`` is used instead, where calls differ by their attributes. ``native`` is
    called in place of ``function``, on addresses. ``source`` is the user's line that registered it.
    """

    name: str
    function: Function
    gradient: Function | None = None
    kernel: Any = None
    title: str = ""
    op: CustomOp | None = None
    native: NativeFunction | None = None
    gpu_kernel: Any = None
    source: Source | None = field(default=None, compare=False)


_targets: dict[str, Target] = {}
_held: WeakValueDictionary[str, Target] = WeakValueDictionary()
_lock = threading.Lock()
_entering = threading.RLock()
_process = os.urandom(16).hex()
_numbers = itertools.count()

_device: ContextVar[str] = ContextVar("tracejit_device_of_kernels", default="CPU")


@contextmanager
def computing_for(device: str) -> Iterator[None]:
    """Within the block, custom ops choose their kernels for a device: ``"CPU"`` or ``"GPU"``."""
    token = _device.set(device)
    try:
        yield
    finally:
        _device.reset(token)


def device_of_kernels() -> str:
    """The device whose kernels custom ops choose now."""
    return _device.get()


CALLBACK = "tracejit.callback."
"""How the names of callbacks begin, which mean nothing in another process."""


def hold(function: Function, title: str) -> Target:
    """A target of its own for ``function``, known as long as someone holds it."""
    target = Target(f"{CALLBACK}{_process}.{next(_numbers)}", function, title=title)
    _held[target.name] = target
    return target


def calls_back(module: Module) -> bool:
    """Whether a module calls functions that are known to this process alone."""
    return any(
        instruction.op is CUSTOM_CALL
        and instruction.attributes["custom_call_target"].startswith(CALLBACK)
        for computation in called_computations(module)
        for instruction in instructions(computation)
    )


@overload
def register_custom_call(
    name: str,
    function: Function,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    gpu_kernel: Any = None,
    replace: bool = False,
) -> Function: ...


@overload
def register_custom_call(
    name: str,
    function: None = None,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    gpu_kernel: Any = None,
    replace: bool = False,
) -> Callable[[Function], Function]: ...


@names_misuse
def register_custom_call(
    name: str,
    function: Function | None = None,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    gpu_kernel: Any = None,
    replace: bool = False,
) -> Any:
    """Registers what a custom call with the target ``name`` runs; also a decorator.

    Names that begin with "tracejit." are the library's own.

    ``gradient(*operands, *cotangents)``, recorded like any traced function, returns one cotangent
    for each operand, None for zero; without it the call has no derivative.

    ``kernel`` is a TVM PrimFunc, or a function from the shapes of operands and results (two lists)
    to one, with a buffer parameter for each array: operands first, then results. Compiled code
    contains it and does not call ``function``. ``gpu_kernel`` takes its place under
    ``target="cuda"``, and may also be a `tj.cuda.CudaKernel` or a function to one; without either
    the host calls ``function``.

    Raises `ArgumentError` for a name that is taken, unless ``replace`` is set or the same line, or
    a notebook's cell, is run again.

    >>> _ = tj.register_custom_call("thrice", lambda x: 3 * x, replace=True)
    >>> tj.lax.custom_call("thrice", np.ones(2), np.array([1.0, 2.0]))
    array([3., 6.])
    """

    def register(function: Function) -> Function:
        if not callable(function):
            raise ArgumentError(f"register_custom_call: {function!r} is no function")
        source = user_source()
        made = Target(name, function, gradient, kernel, source=source, gpu_kernel=gpu_kernel)
        enter_target(made, replace)
        return function

    return register if function is None else register(function)


def enter_target(target: Target, replace: bool = False) -> None:
    """Enters one of the users' targets.

    Raises `ArgumentError` for a name that is none, or that is taken, unless ``replace`` is set or
    the same definition is run again.
    """
    what = "register_custom_call" if target.op is None else "register_op"
    name = target.name
    if not name or name.startswith("tracejit."):
        raise ArgumentError(f"{what}: {name!r} is no name for a target")
    with _entering, _lock:
        known = _targets.get(name)
        again = known is not None and is_entered_again(known.source, target.source)
        if known is not None and not (replace or again):
            raise ArgumentError(
                f"{what}: target {name!r} is registered already; replace=True replaces it"
            )
        _targets[name] = target


@contextmanager
def all_or_none() -> Iterator[None]:
    """Forgets the targets that are entered inside if it fails; other threads wait to enter any."""
    with _entering:
        before = dict(_targets)
        try:
            yield
        except BaseException:
            _targets.clear()
            _targets.update(before)
            raise


# What supplies the library's own targets, by the beginnings of their names.
_DEFINED = {
    LINEAR_ALGEBRA: "factorizations",
    LAPACK: "lapack_calls",
    "tridiagonal_solve_": "lapack_calls",
    "cpu_csr_sparse_": "sparse_calls",
}


_CALLBACK = "a Python function called back by JAX ({}), which the graph does not hold"

# Calls that mean nothing here, by the beginnings of their names.
_REFUSED = {
    "xla_ffi_python_cpu_callback": _CALLBACK.format("jax.pure_callback, jax.debug.print"),
    "xla_ffi_partitioned_python_cpu_callback": _CALLBACK.format("jax.pure_callback"),
    "xla_buffer_python_cpu_callback": _CALLBACK.format("buffer_callback"),
    "xla_python_cpu_callback": _CALLBACK.format("jax.pure_callback"),
    "__onednn$": "what XLA's CPU compiler makes of a product or a convolution for a library of its "
    "own; dump the module before optimizations",
    "PadToStatic": "for arrays whose shape is known when the program runs",
    "SliceToDynamic": "for arrays whose shape is known when the program runs",
    "shape_assertion": "for arrays whose shape is known when the program runs",
    "stablehlo.dynamic_": "for arrays whose shape is known when the program runs",
}


def define_target(target: Target) -> None:
    """Enters one of the library's own targets, whose names begin as `_DEFINED` lists them."""
    assert target.name not in _targets, f"target {target.name!r} is defined twice"
    _targets[target.name] = target


# What keeps an operand from being left out, as `jax` calls it.
define_target(Target("dce_sink", lambda *_: ()))


@names_misuse
def unregister_custom_call(name: str) -> None:
    """Forgets a target. Raises `UnknownTargetError` for a name that is not registered.

    >>> _ = tj.register_custom_call("halve", lambda x: x / 2, replace=True)
    >>> tj.unregister_custom_call("halve")
    """
    find_target(name)
    with _lock:
        _targets.pop(name, None)


def find_target(name: str, source: Source | None = None) -> Target:
    """What is registered for ``name``. Raises `UnknownTargetError`."""
    if name not in _targets:
        for beginning, module in _DEFINED.items():
            if name.startswith(beginning):
                supplied(module)
    found = _targets.get(name) or _held.get(name)
    for beginning, reason in _REFUSED.items():
        if found is None and name.startswith(beginning):
            raise UnsupportedError(f"custom_call: target {name!r} is {reason}", source)
    if found is None:
        raise UnknownTargetError(
            f"custom_call: target {name!r} is not registered in this process; "
            "call register_custom_call first",
            source,
        )
    return found


def native_function(name: str) -> NativeFunction | None:
    """The compiled library's function that is registered for ``name``; None without one."""
    target = _targets.get(name)
    return None if target is None else target.native


def op_of(instruction: Instruction) -> CustomOp | None:
    """The op of a user's that a custom call is of; None for another target."""
    target = _targets.get(instruction.attributes["custom_call_target"])
    return None if target is None else target.op


def kernel_for(instruction: Instruction, device: str = "CPU") -> Any:
    """The TVM PrimFunc that compiled code runs for a custom call; None where there is none.

    For a ``"GPU"`` it may be a `CudaKernel`.
    """
    target = _targets.get(instruction.attributes["custom_call_target"])
    if target is not None and target.op is not None:
        return target.op.kernel_of(instruction, device)
    if target is None:
        return None
    kernel = target.kernel
    if device == "GPU" and target.gpu_kernel is not None:
        kernel = target.gpu_kernel
    if kernel is None:
        return None
    operands = [operand.shape for operand in instruction.operands]
    results = list(instruction.element_shapes)
    if not all(isinstance(shape, Shape) for shape in (*operands, *results)):
        raise ArgumentError(
            f"custom_call: {target.name!r} has a kernel, which takes and returns arrays alone",
            instruction.source,
        )
    is_made = not callable(kernel) or hasattr(kernel, "script")
    return kernel if is_made else kernel(operands, results)


def expansion_for(instruction: Instruction, device: str = "CPU") -> Computation | None:
    """The computation that a custom call means; None where only a function knows."""
    target = _targets.get(instruction.attributes["custom_call_target"])
    if target is None or target.op is None:
        return None
    return target.op.expansion_of(instruction, device)


def device_function_for(instruction: Instruction) -> DeviceFunction | None:
    """What is called with arrays of a GPU for a custom call; None where there is nothing."""
    if instruction.op is not CUSTOM_CALL:
        return None
    target = _targets.get(instruction.attributes["custom_call_target"])
    return None if target is None or target.op is None else target.op.function_of(instruction)


def batching_for(instruction: Instruction) -> Function | None:
    """What makes a call on batched operands, all with the batch in front; None without one."""
    target = _targets.get(instruction.attributes["custom_call_target"])
    return None if target is None or target.op is None else target.op.batching_of(instruction)


def differentiable_expansion_for(instruction: Instruction) -> Computation | None:
    """`expansion_for`, where the call's derivative is that of the computation as well."""
    target = _targets.get(instruction.attributes["custom_call_target"])
    if target is None or target.op is None or target.op.gradient_of(instruction) is not None:
        return None
    return target.op.expansion_of(instruction, "CPU")


def kernel_texts(computations: Iterable[Computation], device: str = "CPU") -> str:
    """What compiled code of these computations contains in place of custom calls, as text."""
    texts = []
    waiting = list(computations)
    while waiting:
        for instruction in instructions(waiting.pop()):
            if instruction.op is not CUSTOM_CALL:
                continue
            kernel = kernel_for(instruction, device)
            expansion = None if kernel is not None else expansion_for(instruction, device)
            if kernel is not None:
                texts.append(kernel.script())
            if expansion is not None:
                module = Module("expansion", expansion)
                texts.append(str(module))
                waiting += called_computations(module)
    return "\n".join(texts)


def call_target(
    name: str,
    operands: Sequence[Any],
    shape: AnyShape,
    backend_config: str = "",
    source: Source | None = None,
    aliasing: Sequence[OutputAlias] = (),
    constraints: Sequence[AnyShape] | None = None,
) -> Any:
    """What the registered function makes of ``operands``, checked against ``shape``.

    ``constraints`` are the operands' shapes with the layouts that the function wants.

    Raises `UnknownTargetError`, and `ArgumentError`, `ShapeError` or `ElementTypeError` for a
    result that is not of ``shape``.
    """
    target = find_target(name, source)
    if target.native is not None:
        return call_on_arrays(
            name, target.native, operands, shape, backend_config, source, aliasing, constraints
        )
    function = target.function
    arrays = [_copied(o) for o in operands if not isinstance(o, TokenShape)]
    config = {"backend_config": backend_config} if backend_config else {}
    try:
        with np.errstate(all="warn"):
            made = function(*arrays, **config)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(error.message, source or error.source) from error
    return _checked(target.title or f"custom_call: {name!r}", made, shape, source)


def _copied(value: Any) -> Any:
    """An array that may be kept and written to, or a tuple of them; tokens left out."""
    if isinstance(value, tuple):
        return tuple(_copied(v) for v in value if not isinstance(v, TokenShape))
    return np.array(value)


def _checked(name: str, made: Any, shape: AnyShape, source: Source | None) -> Any:
    if shape == TOKEN:
        _checked(name, made, TupleShape(()), source)
        return TOKEN
    if isinstance(shape, TupleShape):
        wanted = [element for element in shape.elements if element != TOKEN]
        if not wanted and made is None:
            made = ()
        elif len(wanted) == 1 and not isinstance(made, tuple | list):
            made = (made,)
        if not isinstance(made, tuple | list) or len(made) != len(wanted):
            found = f"{len(made)} values" if isinstance(made, tuple | list) else _kind(made)
            raise ArgumentError(
                f"{name} must return {len(wanted)} values for {shape}; it returned {found}",
                source,
            )
        parts = iter(made)
        return tuple(
            TOKEN if element == TOKEN else _checked(name, next(parts), element, source)
            for element in shape.elements
        )
    assert isinstance(shape, Shape)
    return _checked_array(name, made, shape, source)


def _checked_array(name: str, made: Any, shape: Shape, source: Source | None) -> np.ndarray:
    if not isinstance(made, np.ndarray | np.generic | int | float | complex | bool):
        raise ArgumentError(
            f"{name} must return an array {shape}, not {_kind(made)}",
            source,
        )
    is_number = not isinstance(made, np.ndarray | np.generic)
    array = np.asarray(made, shape.dtype) if is_number else np.asarray(made)
    if array.shape != shape.dimensions:
        raise ShapeError(
            f"{name} must return an array {shape}; "
            f"it returned one of dimensions {list(array.shape)}",
            source,
        )
    if element_type_of(array.dtype) is not shape.element_type:
        raise ElementTypeError(
            f"{name} must return an array {shape}; it returned one of dtype {array.dtype}",
            source,
        )
    return array.astype(shape.dtype, copy=False)


def _kind(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
