"""Errors of tracing that a traced function has caught: they come to light when the trace ends.

try: y = x if x > 0 else -x         # a traced x: if needs a number that is not known
except Exception: y = 0             # NumPy would never come here
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np

from tracejit.errors import ConcretizationError, TracejitError
from tracejit.sources import Source, is_internal

_NAMED = ("ConcretizationError", "UnsupportedError", "TracejitError", "TracerLeakError")
"""A handler with one of these names knows that it handles a trace."""
_NUMPY = str(Path(np.__file__).parent)
_STANDARD = ("<frozen", str(Path(ast.__file__).parent))


def require_seen(errors: Sequence[TracejitError], ending: BaseException | None) -> None:
    """Raises `ConcretizationError` for the first of the ``errors`` that the user's code has caught.

    ``ending`` is what the trace ends with. Errors caught by tracejit, NumPy and the standard
    library are theirs, and so is a handler's that names one of tracejit's errors.
    """
    if ending is not None and not isinstance(ending, Exception):
        return
    for error in errors:
        if error is ending or error.__traceback__ is None:
            continue
        handler = _handler_of(error, error.__traceback__)
        if handler is not None:
            raise ConcretizationError(
                f"{error.message}; the except at {handler} has caught this error, and its code "
                f"does not do what NumPy would do; move the traced value out of the try",
                error.source,
            ) from error


def _handler_of(error: TracejitError, traceback: TracebackType) -> Source | None:
    """The ``except`` that caught an error; None where it is no matter of the user's."""
    # A traceback begins with the frame that has handled the error.
    frame = traceback.tb_frame
    file = frame.f_code.co_filename
    if is_internal(frame.f_code) or _is_probing(file):
        return None
    line = traceback.tb_lineno
    for handler in _handlers(file, line):
        if _catches(handler, error, frame):
            text = "" if handler.type is None else ast.unparse(handler.type)
            return None if any(name in text for name in _NAMED) else Source(file, handler.lineno)
    return Source(file, line)


@functools.cache
def _is_probing(file: str) -> bool:
    """Whether a file asks values what they are, and takes an error for a no."""
    if file.startswith(_NUMPY):
        return True
    return file.startswith(_STANDARD) and "site-packages" not in file


def _handlers(file: str, line: int) -> Iterator[ast.ExceptHandler]:
    """The handlers around a line, the innermost first."""
    around = [
        node
        for node in _tries(file)
        if node.body[0].lineno <= line <= (node.body[-1].end_lineno or line)
    ]
    for node in sorted(around, key=lambda node: -node.lineno):
        yield from node.handlers


@functools.lru_cache(maxsize=16)
def _tries_of(text: str) -> list[ast.Try]:
    try:
        module = ast.parse(text)
    except SyntaxError:
        return []
    kinds = (ast.Try, getattr(ast, "TryStar", ast.Try))  # TryStar: Python 3.11
    return [node for node in ast.walk(module) if isinstance(node, kinds)]


def _tries(file: str) -> list[ast.Try]:
    return _tries_of("".join(linecache.getlines(file)))


def _catches(handler: ast.ExceptHandler, error: TracejitError, frame: FrameType) -> bool:
    if handler.type is None:
        return True
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = [ast.unparse(part).rpartition(".")[2] for part in parts]
    own = {kind.__name__ for kind in type(error).__mro__}
    known = {**vars(sys.modules["builtins"]), **frame.f_globals, **frame.f_locals}
    # Under a name that is none of a class the error has, it may be a tuple of classes, or another
    # name of one.
    return any(name in own or _is_other(known.get(name), error) for name in names)


def _is_other(value: object, error: TracejitError) -> bool:
    try:
        return isinstance(error, value)  # type: ignore[arg-type]
    except TypeError:
        return False
