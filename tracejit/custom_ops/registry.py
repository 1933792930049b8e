"""The registered ops, and what decorates their kernels and gradients.

register_op("ZeroOut").input("to_zero: int32").output("zeroed: int32")

@kernel("ZeroOut", device="CPU")
def zero_out(to_zero): ...

@gradient("ZeroOut")
def zero_out_gradient(op, grad): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from tracejit.custom_ops.gradients import BatchingFunction, GradientFunction
from tracejit.custom_ops.kernels import make_kernel
from tracejit.custom_ops.native import NativeLibrary, address_kernel
from tracejit.custom_ops.op import Op, labelled
from tracejit.errors import ArgumentError, UnknownTargetError
from tracejit.sources import user_source
from tracejit.targets import (
    Target,
    all_or_none,
    enter_target,
    find_target,
    unregister_custom_call,
)

Implementation = TypeVar("Implementation", bound=Callable[..., Any])

_libraries: list[list[Op]] = []
"""The ops of each file that is being loaded."""


def register_op(name: str, *, replace: bool = False) -> Op:
    """A new op of that name, whose interface is written by the methods that follow.

    The op is a Python function. Give it a name with your project's first (``Mine>ZeroOut``) when
    others will use it. Running the same line, or a notebook's cell, again replaces the op with its
    kernels. Otherwise raises `ArgumentError` for a name that is taken, unless ``replace`` is set.
    """
    made = Op(name)
    enter_target(Target(name, made.call, op=made, source=user_source()), replace)
    for library in _libraries:
        library.append(made)
    return made


def get_op(name: str | Op) -> Op:
    """The op of that name. Raises `UnknownTargetError` when none is registered."""
    if isinstance(name, Op):
        return name
    try:
        found = find_target(name).op
    except UnknownTargetError:
        found = None
    if not isinstance(found, Op):
        raise UnknownTargetError(f"get_op: there is no op {name!r}; call register_op first")
    return found


def unregister_op(name: str | Op) -> None:
    """Forgets an op. Raises `UnknownTargetError` when it is not registered."""
    unregister_custom_call(get_op(name).name)


def kernel(
    op: str | Op,
    *,
    device: str = "CPU",
    form: str = "numpy",
    host_memory: Sequence[str] = (),
    priority: int = 0,
    label: str = "",
    borrows_inputs: bool = False,
    replace: bool = False,
    **types: Any,
) -> Callable[[Implementation], Implementation]:
    """Registers the decorated function or class as the op's kernel on a device.

    ``types`` restrict it to some types of the op's type attributes: ``T=np.int32``, or several:
    ``T=(np.float32, np.float64)``. Forms:

    - ``numpy``: a function of NumPy arrays, one for each input (a list for an input that is one),
      and of those attributes that it names; it returns the outputs. Or a class, constructed once
      for each set of attributes with an `OpKernelConstruction`, whose ``compute`` is called with
      an `OpKernelContext`. Compiled code calls it back.
    - ``tracejit``: the same function written with traced functions; in compiled code it fuses
      with what is around it, and without a gradient of its own the op has its derivative.
    - ``tir``: a function of the inputs' and the outputs' shapes (two lists) and of attributes,
      that returns a TVM PrimFunc with a buffer for each array, which compiled code contains.
    - ``native``: the same, that returns a C function ``void f(void **outputs, void **inputs)``: one
      of ctypes or of Numba's (``cfunc``), or its address. It gets the arrays' memory, row by row,
      and compiled code calls it without Python. Such a kernel counts as one of form ``tracejit``.

    With ``device="GPU"`` there are two more:

    - ``cuda``: a function like one of ``tir`` that returns a `tj.cuda.CudaKernel`, CUDA C.
    - ``device``: a function of arrays in the device's memory, which have ``__dlpack__`` and
      ``__cuda_array_interface__``, to such arrays or NumPy's. ``host_memory`` names inputs and
      outputs that are NumPy's arrays.

    There may be one of each form; a program uses ``cuda`` before ``tir`` before ``tracejit``
    before ``device`` before ``numpy``, outside compiled code it is the other way round. Kernels
    for the GPU are for programs with ``target="cuda"``; these call the CPU's where there are no
    others, with copies of the arrays.

    Of several that fit a call the one with the highest ``priority`` is taken. One with a ``label``
    is taken only inside `kernel_labels`. A function of NumPy arrays with a keyword ``out`` writes
    its results there, a list for several, and may return None. With ``borrows_inputs`` compiled
    code lends it the program's own memory, uncopied, which it must not write to or keep.

    Raises `ArgumentError` for another signature, and where the op has such a kernel already, unless
    it comes from the same line, both are from cells of a notebook, or ``replace`` is set.
    """

    def register(implementation: Implementation) -> Implementation:
        found = get_op(op)
        made = make_kernel(
            found.definition,
            implementation,
            device,
            form,
            tuple(host_memory),
            types,
            user_source(),
            priority,
            label,
            borrows_inputs,
        )
        if form == "native":
            made = address_kernel(found, made, replace)
        found.implementations.add(made, replace)
        return implementation

    return register


@contextmanager
def kernel_labels(labels: Mapping[str, str]) -> Iterator[None]:
    """Calls of ops inside take kernels with these labels, by the ops' names, and no others.

    A call that is traced inside keeps its label. Raises `UnknownTargetError` for a name that is no
    op, and `UnsupportedError` in a call without such a kernel.
    """
    with labelled({get_op(op).name: label for op, label in labels.items()}):
        yield


def gradient(
    op: str | Op, *, replace: bool = False
) -> Callable[[GradientFunction], GradientFunction]:
    """Registers the decorated function as the op's derivative: ``gradient(op, grad)``.

    ``op`` is an `Operation`; ``grad`` the cotangent of the output, a list of them for several
    outputs. It is traced, and returns one cotangent for each input, None for zero.
    """

    def register(function: GradientFunction) -> GradientFunction:
        get_op(op).set_gradient(function, replace)
        return function

    return register


def batching(
    op: str | Op, *, replace: bool = False
) -> Callable[[BatchingFunction], BatchingFunction]:
    """Registers the decorated function as what `vmap` makes of the op: ``rule(op, size)``.

    ``op`` is an `Operation` whose inputs all have the batch, of ``size``, as their first dimension
    (and which has no outputs). The rule is traced and returns the outputs, batched likewise; often
    it calls the op itself. Without a rule the op is called for one element after the other.
    """

    def register(function: BatchingFunction) -> BatchingFunction:
        get_op(op).set_batching(function, replace)
        return function

    return register


def not_differentiable(op: str | Op) -> None:
    """Says that nothing the op returns changes with its inputs: the derivative is zero."""
    get_op(op).set_gradient(lambda operation, grad: [None] * len(operation.inputs), False)


def load_op_library(path: str | Path, *, replace: bool = False) -> ModuleType:
    """Loads ops: a compiled library, or a Python file; a module with them as functions.

    A Python file (``.py``) is run. A library describes its ops as ``tracejit/ops.h`` says (see
    `tracejit.ffi.cflags`); loading one a second time gives the same module. With ``replace`` ops of
    a library may have names that are taken.

    Raises `ArgumentError` for a file that cannot be loaded or holds no ops, and what registering
    them raises; nothing is registered then.
    """
    file = Path(path)
    if file.suffix == ".py":
        return _of_python(file)
    resolved = file.resolve()
    known = _loaded.get(resolved)
    if known is not None and all(_is_registered(op) for op in known.ops):
        return known.module
    with all_or_none():
        library = NativeLibrary(resolved)
        ops = library.register(replace, register_op)
        if not ops:
            raise ArgumentError(f"load_op_library: {file} registers no op")
    made = _module(file, ops)
    _loaded[resolved] = _Loaded(made, tuple(ops))
    return made


class _Loaded(NamedTuple):
    """A library that was loaded, and its ops."""

    module: ModuleType
    ops: tuple[Op, ...]


_loaded: dict[Path, _Loaded] = {}


def _is_registered(op: Op) -> bool:
    try:
        return find_target(op.name).op is op
    except UnknownTargetError:
        return False


def _of_python(file: Path) -> ModuleType:
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    made: list[Op] = []
    _libraries.append(made)
    try:
        with all_or_none():
            exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
            if not made:
                raise ArgumentError(f"load_op_library: {file} registers no op")
    finally:
        _libraries.remove(made)
    return _module(file, made, module)


def _module(file: Path, ops: Sequence[Op], module: ModuleType | None = None) -> ModuleType:
    """A module with the ops as functions, in snake case."""
    made = module or ModuleType(file.name.partition(".")[0].removeprefix("lib"))
    made.__file__ = str(file)
    for op in ops:
        setattr(made, op.__name__, op)
    return made
