"""Compiled programs as files: a shared library, a header for C, a module for Python."""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

from tracejit.autodiff.reverse import is_differentiable
from tracejit.backends.export_report import ExportReport
from tracejit.backends.machine import thread_count
from tracejit.backends.target import CPU, Target
from tracejit.errors import ArgumentError, UnsupportedError
from tracejit.graph import Module
from tracejit.passes.native_calls import symbols_of, with_native_calls
from tracejit.runtime.code_generator import generate, has_own_kernels
from tracejit.shapes import AnyShape, TupleShape
from tracejit.transforms.module_gradient import gradient_of

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Function:
    """A module, and what its arrays are called, tuples taken apart: x, parameters['w'], result.

    ``has_lost_derivatives`` says that it was pickled without derivatives of the user's own.
    """

    module: Module
    arguments: Sequence[str]
    results: Sequence[str]
    has_lost_derivatives: bool = False


def export(
    function: Function,
    path: PathLike,
    *,
    header: PathLike | None = None,
    python: PathLike | None = None,
    name: str | None = None,
    gradients: bool = False,
    threads: int | None = None,
    target: Target = CPU,
    objects: Sequence[PathLike] = (),
    libraries: Sequence[PathLike] = (),
) -> ExportReport:
    """Writes a library with one function for C, which needs neither Python nor TVM.

    It is a shared library, or a static one where the path ends in ``.a``; the result says how large
    its parts are.

    The function's ``name`` is that of the file by default: ``int model(const float *x, float
    *result)`` in model.so. ``header`` is written for C and C++, ``python`` as a module that calls
    the library through ctypes. With ``gradients`` a second function, ``model_value_and_grad``,
    also returns the gradient of the result, one real number, with respect to every floating
    argument. It uses ``threads`` threads at most, by default as many as there are here. ``target``
    is the processor to compile for.

    Functions of compiled libraries that the function calls are linked: ``objects`` are object files
    and archives that become part of the library, ``libraries`` shared libraries that it finds
    where they are now.

    Raises `ArgumentError` for a name that C does not allow, `UnsupportedError` for ops that only
    Python can compute, `DerivativeError` where there is no gradient, `CompilationError` without a
    C compiler, and `OSError` for a file that cannot be written.
    """
    paths = [Path(path), *(Path(each) for each in (header, python) if each is not None)]
    for each in paths:
        _require_place(each)
    library = paths[0]
    if len({each.resolve() for each in paths}) < len(paths):
        raise ArgumentError("export: library, header and Python module must be different files")
    if python is not None and Path(python).with_suffix("") == library.with_suffix(""):
        raise ArgumentError(
            f"export: Python would import {library.name} in place of {Path(python).name}; give one "
            "of them another name"
        )
    called = _name_of(library) if name is None else name
    count = thread_count() if threads is None else threads
    if not isinstance(count, Integral) or count < 1:
        raise ArgumentError(f"export: threads must be at least 1, not {count!r}")
    functions = {called: function}
    if gradients and function.has_lost_derivatives:
        raise UnsupportedError(
            "export: gradients=True, but the function was pickled, which leaves out "
            "derivatives of its own (custom_vjp, custom_jvp …); export it where it was traced"
        )
    if gradients:
        functions[f"{called}_value_and_grad"] = _with_gradient(function)
    linked = [[str(Path(p).resolve(strict=True)) for p in each] for each in (objects, libraries)]
    given = [
        (title, with_native_calls(f.module), [*f.arguments], [*f.results])
        for title, f in functions.items()
    ]
    if library.suffix == ".a" and (linked[1] or python is not None):
        raise ArgumentError(
            "export: a static library is linked with shared ones later, and Python cannot load it: "
            "leave out libraries= and python="
        )
    symbols = symbols_of(module for _, module, _, _ in given)
    if symbols and not any(linked):
        raise UnsupportedError(
            f"export: the function calls {', '.join(sorted(symbols))} of a compiled library; name "
            "its object files (objects=) or shared libraries (libraries=)"
        )
    built, header_text, loader_text, sizes = generate(
        "export.files.files",
        given,
        called,
        library.name,
        target,
        int(count),
        *linked,
        symbols,
        title="export",
        graph=function.module,
        is_new=has_own_kernels(function.module, target),
    )
    _write(library, built)
    if header is not None:
        _write(Path(header), header_text.encode())
    if python is not None:
        _write(Path(python), loader_text.encode())
    return ExportReport(len(built), sizes)


def to_c(function: Function, name: str) -> str:
    """The function as one file of C, scalar loops to read or to compile anywhere.

    ``name`` is what it is called there. Raises `ArgumentError` for a name that C does not allow,
    `CompilationError` for an op that has no loops, such as a factorisation of LAPACK's.
    """
    graph, arrays = function.module, ([*function.arguments], [*function.results])
    made: str = generate(
        "export.c_program.c_program", graph, name, *arrays, title="to-c", graph=graph
    )
    return made


def of_module(module: Module) -> Function:
    """A module whose arrays have no names of their own."""
    arguments = [
        f"argument{number}{path}"
        for number, parameter in enumerate(module.entry.parameters)
        for path in _paths(parameter.shape)
    ]
    return Function(
        module, arguments, [f"result{path}" for path in _paths(module.entry.root.shape)]
    )


def _paths(shape: AnyShape) -> list[str]:
    """How each array of a shape is reached: [0][1]."""
    if not isinstance(shape, TupleShape):
        return [""]
    return [f"[{n}]{rest}" for n, part in enumerate(shape.elements) for rest in _paths(part)]


def _with_gradient(function: Function) -> Function:
    module = gradient_of(function.module, value=True)
    gradients = [
        f"gradient of {name}"
        for name, parameter in zip(
            function.arguments, function.module.entry.parameters, strict=True
        )
        if is_differentiable(parameter)
    ]
    return Function(module, function.arguments, [*function.results, *gradients])


def _name_of(path: Path) -> str:
    """model for model.so and libmodel.so.1."""
    stem = path.name.partition(".")[0].removeprefix("lib") or path.name
    return re.sub(r"[^A-Za-z0-9_]", "_", stem)


def _write(path: Path, data: bytes) -> None:
    """Aside first, then into place: a program that has the old file loaded goes on with it."""
    if path.exists() and not path.is_file():  # a device
        path.write_bytes(data)
        return
    target = path.resolve()
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(unfinished, "xb") as file:
            file.write(data)
        if target.exists():
            unfinished.chmod(target.stat().st_mode)
        os.replace(unfinished, target)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _require_place(path: Path) -> None:
    """Raises `OSError` before the work is done, for a file that surely cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    folder = path.parent
    if not folder.is_dir():
        code = errno.ENOTDIR if folder.exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(path))
    is_device = path.exists() and not path.is_file()
    may_write = os.access(path, os.W_OK) or not path.exists()
    if not may_write or not (is_device or os.access(path.resolve().parent, os.W_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
