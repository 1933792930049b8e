"""The user's line: the innermost running frame that is not part of tracejit.

user_source()                         train.py:42
warn("…", RuntimeWarning)             a warning that names it
"""

from __future__ import annotations

import os
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

R = TypeVar("R")


class Source(NamedTuple):
    """A line of a file, printed as ``train.py:42``, or of a notebook: ``Cell In[9], line 3``."""

    file: str
    line: int

    def __str__(self) -> str:
        cell = _notebook_cell(self.file)
        if cell is not None:
            return f"{cell}, line {self.line}"
        return f"{os.path.basename(self.file)}:{self.line}"


def _notebook_cell(file: str) -> str | None:
    """``Cell In[9]`` for the file that IPython pretends a cell to be; None for other files."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return None
    try:
        kind, name = shell.compile.format_code_name(file)
    except (AttributeError, TypeError, ValueError):  # an older IPython; an ordinary file
        return None
    return f"{kind} {name}" if kind == "Cell" else None


def is_entered_again(old: Source | None, new: Source | None) -> bool:
    """Whether a definition is an earlier one, run again: from the same line, or both from cells.

    A notebook's cell is another file whenever its text changes, so all cells count as one place, as
    does what is typed at Python's prompt.
    """
    if old is None or new is None:
        return False
    return old == new or (_is_interactive(old.file) and _is_interactive(new.file))


def _is_interactive(file: str) -> bool:
    return file.startswith(_PROMPTS) or _notebook_cell(file) is not None


_PROMPTS = ("<stdin>", "<python-input-", "<ipython-input-")

_PACKAGE = Path(__file__).resolve().parent
_LIBRARY = Path(os.__file__).resolve().parent
# The checkout keeps autodiff/ and backends/ beside tracejit/ and links to them.
_INTERNAL = (
    *(str((_PACKAGE / part).resolve()) + os.sep for part in ("", "autodiff", "backends")),
    # What stands below a thread that tracejit has started.
    str(_LIBRARY / "threading.py"),
    str(_LIBRARY / "concurrent" / "futures") + os.sep,
)
_internal_files: dict[str, bool] = {}


def is_internal(code: CodeType) -> bool:
    """Whether ``code`` belongs to tracejit itself."""
    file = code.co_filename
    known = _internal_files.get(file)
    if known is None:
        # Mostly it can be told without following links, which asks the system for every folder.
        is_plain = ".." not in file and file.startswith(_INTERNAL)
        try:
            known = is_plain or os.path.realpath(file).startswith(_INTERNAL)
        except OSError:  # the current folder is gone, and the path relative to it
            known = False
        _internal_files[file] = known
    return known


def on_behalf_of(source: Source | None, function: Callable[..., R], *args: Any) -> R:
    """``function(*args)``; what it builds and raises belongs to ``source``.

    So a derivative's operations name the differentiated line. Lines of functions of the user's
    that are called inside come first.
    """
    return function(*args)


_ON_BEHALF = on_behalf_of.__code__


def _is_generated(frame: FrameType) -> bool:
    """Whether this is code that `dataclasses` wrote for a class of tracejit's."""
    module = str(frame.f_globals.get("__name__"))
    return module.partition(".")[0] == __name__.partition(".")[0]


_LONG = 4096
"""Bytes of a table of lines that Python reads from its beginning for each ``f_lineno``."""
_lines: dict[int, tuple[CodeType, list[int], list[int]]] = {}
"""For the last long functions, where in their code each line begins."""


def _line_of(frame: FrameType) -> int:
    """The line that runs; in long functions it is looked up by halves."""
    code = frame.f_code
    if len(code.co_linetable) < _LONG:
        return frame.f_lineno
    known = _lines.get(id(code))
    if known is None or known[0] is not code:
        starts = [(start, line or code.co_firstlineno) for start, _, line in code.co_lines()]
        known = code, [start for start, _ in starts], [line for _, line in starts]
        if len(_lines) >= 8:
            _lines.clear()
        _lines[id(code)] = known
    _, begins, lines = known
    return lines[bisect_right(begins, frame.f_lasti) - 1]


def user_source() -> Source | None:
    """The innermost line outside tracejit, or None when there is no such frame."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code is _ON_BEHALF:
            source: Source | None = frame.f_locals["source"]
            if source is not None:
                return source
        elif (
            not _internal_files.get(code.co_filename)
            and not is_internal(code)
            and not (code.co_filename == "<string>" and _is_generated(frame))
        ):
            return Source(code.co_filename, _line_of(frame))
        frame = frame.f_back  # type: ignore[assignment]
    return None


def source_of(error: BaseException) -> Source | None:
    """The innermost line outside tracejit that an exception has passed, if there is one."""
    found, at = None, error.__traceback__
    while at is not None:
        if not is_internal(at.tb_frame.f_code):
            found = Source(at.tb_frame.f_code.co_filename, at.tb_lineno)
        at = at.tb_next
    return found


def warn(message: str, category: type[Warning]) -> None:
    """Warns, naming the user's line; by Python's filters, once for each where that is wanted."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code):
        frame = frame.f_back
    if frame is None:  # a thread of our own
        warnings.warn(message, category, stacklevel=2)
        return
    known = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        known.get("__name__", frame.f_code.co_filename),  # None would silence it
        known.setdefault("__warningregistry__", {}),
    )
