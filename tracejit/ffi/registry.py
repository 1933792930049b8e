"""Registers compiled functions by name, and calls them: the names of `jax.ffi`."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tracejit import backends, tree
from tracejit.backends.native_attributes import text_of
from tracejit.errors import ArgumentError, AttributeValueError, UnsupportedError
from tracejit.ffi.addresses import address_of, capsule_of
from tracejit.ffi.handlers import STAGES, NativeHandler
from tracejit.ffi.host import register_type
from tracejit.lax.calls import custom_call
from tracejit.layouts import Layout
from tracejit.ops.custom import VMAP_METHODS
from tracejit.shapes import stated_shape
from tracejit.sources import user_source
from tracejit.targets import Target, enter_target

Order = Sequence[int] | None
"""Dimensions from the slowest to the fastest in memory; None for row-major."""


def pycapsule(function: Any) -> Any:
    """A capsule of a function that ctypes found in a library, for `register_ffi_target`."""
    return capsule_of(address_of("pycapsule", function))


def register_ffi_target(
    name: str,
    fn: Any,
    platform: str = "cpu",
    api_version: int = 1,
    *,
    replace: bool = False,
) -> None:
    """Registers a compiled function that custom calls with the target ``name`` call.

    ``fn`` is a handler of XLA's FFI (what ``XLA_FFI_DEFINE_HANDLER_SYMBOL`` defines): a capsule, a
    function that ctypes found in a library, or its address; or a dict of these by stage,
    "instantiate", "prepare", "initialize" and "execute". Libraries written for JAX work unchanged.

    Raises `ArgumentError` for a name that is taken (unless ``replace`` is set or the same line is
    run again), for what is no function, and for a library of another version of the interface;
    `UnsupportedError` for another platform or an older interface.

    >>> library = ctypes.CDLL("librms.so")                                      # doctest: +SKIP
    >>> tj.ffi.register_ffi_target("rms_norm", tj.ffi.pycapsule(library.RmsNorm))  # doctest: +SKIP
    """
    _require_cpu("register_ffi_target", platform)
    if api_version != 1:
        raise UnsupportedError(
            f"register_ffi_target: api_version must be 1, the typed interface, not {api_version!r}"
        )
    stages = fn if isinstance(fn, Mapping) else {"execute": fn}
    unknown = sorted(set(stages) - set(STAGES))
    if unknown or "execute" not in stages:
        raise ArgumentError(
            f"register_ffi_target: {name!r} has the stages {sorted(stages)}; they must be among "
            f"{', '.join(STAGES)}, execute one of them"
        )
    addresses = {stage: address_of("register_ffi_target", each) for stage, each in stages.items()}
    native = NativeHandler(name, addresses)
    enter_target(Target(name, _never, native=native, source=user_source()), replace)


def register_ffi_type(
    name: str, type_registration: Mapping[str, Any], platform: str = "cpu"
) -> None:
    """Registers a type of states that stages of handlers leave for later ones.

    ``type_registration`` holds "type_id" and, for states that are freed, "type_info": capsules of
    pointers to an ``XLA_FFI_TypeId``, which is set, and to an ``XLA_FFI_TypeInfo``, or addresses.
    Raises `ArgumentError` without a "type_id", `UnsupportedError` for another platform.
    """
    _require_cpu("register_ffi_type", platform)
    unknown = sorted(set(type_registration) - {"type_id", "type_info"})
    if unknown or "type_id" not in type_registration:
        raise ArgumentError(
            f"register_ffi_type: {name!r} is given {sorted(type_registration)}; it must be "
            "'type_id' and perhaps 'type_info'"
        )
    at = {key: address_of("register_ffi_type", each) for key, each in type_registration.items()}
    register_type(name, at["type_id"], at.get("type_info"))


def _require_cpu(what: str, platform: str) -> None:
    if platform.lower() not in ("cpu", "host"):
        raise UnsupportedError(f"{what}: platform must be 'cpu', not {platform!r}")


def _never(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("a native function is called on addresses")


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = "sequential",
    input_layouts: Sequence[Order] | None = None,
    output_layouts: Sequence[Order] | Order = None,
    input_output_aliases: Mapping[int, int] | None = None,
) -> Callable[..., Any]:
    """A function of arrays that calls the compiled function registered as ``target_name``.

    ``result_shape_dtypes`` is what it returns: a tree of anything with a ``shape`` and a
    ``dtype``. Keywords of the call are the function's typed attributes: Python's numbers are i64
    and f64, NumPy's have their own type. Arrays lie row by row, or as ``input_layouts`` and
    ``output_layouts`` say: for each array None, or its dimensions from the slowest to the fastest,
    (0, 1) for row-major; a single result's may be given without a list. ``input_output_aliases``
    maps the index of an operand to that of the result that begins with its memory. The function has
    no derivative: see `custom_vjp`.

    ``vmap_method`` says how the function is called under `vmap`: "sequential", for one element
    after the other; once with the batch as first dimension of results and of operands, where
    "broadcast_all" repeats operands without it, "expand_dims" gives them a first dimension of size
    1, and "legacy_vectorized" leaves them as they are; None refuses `vmap`.

    Raises `AttributeValueError` for an attribute of another type and for another number of layouts,
    `DimensionError` for a layout that is no permutation, `ShapeError` for one of another rank.

    >>> def rms_norm(x, eps=1e-5):                                              # doctest: +SKIP
    ...     call = tj.ffi.ffi_call("rms_norm", tj.ShapeDtypeStruct(x.shape, x.dtype))
    ...     return call(x, eps=np.float32(eps))
    """
    if vmap_method not in VMAP_METHODS:
        methods = ", ".join(map(repr, VMAP_METHODS))
        raise AttributeValueError(
            f"ffi_call: vmap_method must be one of {methods}, not {vmap_method!r}"
        )

    def call(*args: Any, **attributes: Any) -> Any:
        return custom_call(
            target_name,
            _laid_out(result_shape_dtypes, output_layouts),
            *args,
            operand_layouts=_layouts("input_layouts", input_layouts, len(args)),
            backend_config=text_of(attributes),
            has_side_effect=has_side_effect,
            input_output_aliases=input_output_aliases,
            vmap_method=vmap_method,
            api_version="API_VERSION_TYPED_FFI",
        )

    return call


def _laid_out(result_shape_dtypes: Any, orders: Any) -> Any:
    """The tree of results with these layouts."""
    wanted, structure = tree.flatten(result_shape_dtypes)
    is_one = orders is not None and all(isinstance(number, int) for number in orders)
    layouts = _layouts("output_layouts", [orders] if is_one else orders, len(wanted))
    shapes = [
        value if layout is None else stated_shape(value).with_layout(layout)
        for value, layout in zip(wanted, layouts, strict=True)
    ]
    return tree.unflatten(structure, shapes)


def _layouts(name: str, orders: Sequence[Order] | None, count: int) -> list[Layout | None]:
    """The layouts of some arrays, None for row-major ones."""
    if orders is None:
        return [None] * count
    if len(orders) != count:
        raise AttributeValueError(
            f"ffi_call: {name} must have one for each of {count} arrays, not {len(orders)}"
        )
    return [None if order is None else Layout(tuple(order)[::-1]) for order in orders]


def include_dir() -> str:
    """The folder of XLA's headers, ``xla/ffi/api/ffi.h``, which jaxlib ships.

    Raises `UnsupportedError` where jaxlib is not installed.
    """
    found = importlib.util.find_spec("jaxlib")
    folder = Path(found.origin).parent / "include" if found and found.origin else None
    if folder is None or not (folder / "xla" / "ffi" / "api" / "ffi.h").exists():
        raise UnsupportedError("include_dir: XLA's headers come with jaxlib: pip install jaxlib")
    return str(folder)


def header_dir() -> str:
    """The folder of this package's own header, ``tracejit/ops.h``, for C and C++."""
    return str(Path(backends.__file__).parent / "include")


def cflags() -> Sequence[str]:
    """The options by which a C or C++ compiler makes a library of handlers."""
    folders = [header_dir()]
    with suppress(UnsupportedError):
        folders.append(include_dir())
    return ["-O2", "-fPIC", "-shared", *(f"-I{folder}" for folder in folders)]
