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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload
from weakref import WeakValueDictionary

import numpy as np

from tracejit.errors import ArgumentError, ElementTypeError, ShapeError, UnknownTargetError
from tracejit.graph import Computation, Instruction
from tracejit.loading import load
from tracejit.ops.custom import CUSTOM_CALL
from tracejit.shapes import TOKEN, AnyShape, Shape, TokenShape, TupleShape, element_type_of
from tracejit.sources import Source
from tracejit.traversal import instructions

Function = Callable[..., Any]

LINEAR_ALGEBRA = "tracejit.linalg."
"""How the names of the library's own targets begin, those of `lax.factorizations`."""


@dataclass(frozen=True)
class Target:
    """What is registered for one target.

    ``gradient`` is from operands and cotangents to the operands' cotangents, ``kernel`` TIR that
    compiled code runs in place of ``function``; see `register_custom_call`. ``title`` is what
    errors call it.
    """

    name: str
    function: Function
    gradient: Function | None = None
    kernel: Any = None
    title: str = ""


_targets: dict[str, Target] = {}
_held: WeakValueDictionary[str, Target] = WeakValueDictionary()
_lock = threading.Lock()
_process = os.urandom(16).hex()
_numbers = itertools.count()

CALLBACK = "tracejit.callback."
"""How the names of callbacks begin, which mean nothing in another process."""


def hold(function: Function, title: str) -> Target:
    """A target of its own for ``function``, known as long as someone holds it."""
    target = Target(f"{CALLBACK}{_process}.{next(_numbers)}", function, title=title)
    _held[target.name] = target
    return target


@overload
def register_custom_call(
    name: str,
    function: Function,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    replace: bool = False,
) -> Function: ...


@overload
def register_custom_call(
    name: str,
    function: None = None,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    replace: bool = False,
) -> Callable[[Function], Function]: ...


def register_custom_call(
    name: str,
    function: Function | None = None,
    *,
    gradient: Callable[..., Any] | None = None,
    kernel: Any = None,
    replace: bool = False,
) -> Any:
    """Registers what a custom call with the target ``name`` runs; also a decorator.

    Names that begin with "tracejit." are the library's own.

    ``gradient(*operands, *cotangents)``, recorded like any traced function, returns one cotangent
    for each operand, None for zero; without it the call has no derivative.

    ``kernel`` is a TVM PrimFunc, or a function from the shapes of operands and results (two lists)
    to one, with a buffer parameter for each array: operands first, then results. Compiled code
    contains it and does not call ``function``.

    Raises `ArgumentError` for a name that is taken, unless ``replace`` is set.
    """

    def register(function: Function) -> Function:
        if not callable(function):
            raise ArgumentError(f"register_custom_call: {function!r} is no function")
        if not name or name.startswith("tracejit."):
            raise ArgumentError(f"register_custom_call: {name!r} is no name for a target")
        with _lock:
            if name in _targets and not replace:
                raise ArgumentError(
                    f"register_custom_call: target {name!r} is registered already; "
                    "replace=True replaces it"
                )
            _targets[name] = Target(name, function, gradient, kernel)
        return function

    return register if function is None else register(function)


def define_target(target: Target) -> None:
    """Enters one of the library's own targets, whose names begin with "tracejit."."""
    assert target.name not in _targets, f"target {target.name!r} is defined twice"
    _targets[target.name] = target


def unregister_custom_call(name: str) -> None:
    """Forgets a target. Raises `UnknownTargetError` for a name that is not registered."""
    find_target(name)
    with _lock:
        _targets.pop(name, None)


def find_target(name: str, source: Source | None = None) -> Target:
    """What is registered for ``name``. Raises `UnknownTargetError`."""
    if name not in _targets and name.startswith(LINEAR_ALGEBRA):
        load("tracejit.numpy.factorization_gradients")
    found = _targets.get(name) or _held.get(name)
    if found is None:
        raise UnknownTargetError(
            f"custom_call: target {name!r} is not registered in this process; "
            "call register_custom_call first",
            source,
        )
    return found


def kernel_for(instruction: Instruction) -> Any:
    """The TVM PrimFunc that compiled code runs for a custom call; None where there is none."""
    target = _targets.get(instruction.attributes["custom_call_target"])
    if target is None or target.kernel is None:
        return None
    operands = [operand.shape for operand in instruction.operands]
    results = list(instruction.element_shapes)
    if not all(isinstance(shape, Shape) for shape in (*operands, *results)):
        raise ArgumentError(
            f"custom_call: {target.name!r} has a kernel, which takes and returns arrays alone",
            instruction.source,
        )
    is_made = not callable(target.kernel) or hasattr(target.kernel, "script")
    return target.kernel if is_made else target.kernel(operands, results)


def kernel_texts(computations: Iterable[Computation]) -> str:
    """The kernels that compiled code of these computations contains, as text."""
    kernels = [
        kernel_for(instruction)
        for computation in computations
        for instruction in instructions(computation)
        if instruction.op is CUSTOM_CALL
    ]
    return "\n".join(kernel.script() for kernel in kernels if kernel is not None)


def call_target(
    name: str,
    operands: Sequence[Any],
    shape: AnyShape,
    backend_config: str = "",
    source: Source | None = None,
) -> Any:
    """What the registered function makes of ``operands``, checked against ``shape``.

    Raises `UnknownTargetError`, and `ArgumentError`, `ShapeError` or `ElementTypeError` for a
    result that is not of ``shape``.
    """
    target = find_target(name, source)
    function = target.function
    arrays = [_copied(o) for o in operands if not isinstance(o, TokenShape)]
    config = {"backend_config": backend_config} if backend_config else {}
    with np.errstate(all="warn"):
        made = function(*arrays, **config)
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
