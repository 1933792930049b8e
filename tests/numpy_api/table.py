"""The table of NumPy's names in docs/numpy.md: which ones there are, and why others are absent.

python -m tests.numpy_api.table          writes the page
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tracejit.numpy
from tracejit.numpy.universal import Ufunc

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"

VERSION = np.__version__.rpartition(".")[0]

FILES = "reads or writes files: load arrays outside the traced function and pass them in"
TEXT = "makes or reads text"
OBJECTS = "elements that are no numbers: XLA has no such element type"
DATES = "dates and calendars: XLA has no such element type"
SETTINGS = "settings of NumPy's own running; a graph has none"
BUILD = "speaks about NumPy's installation"
WIDE = "XLA has no element type of this width"
CLASSES = "a class of arrays with other rules than ndarray's; pass plain arrays"
MEMORY = "works on memory or iterates over it; a graph has none"
MODULE = "a module, not a function of arrays"
DEPRECATED = "deprecated, NumPy says so itself"


def _all(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


ABSENT = {
    **_all(FILES, "fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez"),
    "savez_compressed": FILES,
    **_all(TEXT, "array2string format_float_positional fromstring"),
    "format_float_scientific": TEXT,
    **_all(OBJECTS, "bytes_ str_ void"),
    "frompyfunc": "makes arrays of Python objects; use np.vectorize",
    **_all(DATES, "busday_count busday_offset busdaycalendar datetime64"),
    **_all(DATES, "datetime_as_string datetime_data is_busday isnat timedelta64"),
    **_all(SETTINGS, "getbufsize geterrcall setbufsize seterrcall"),
    **_all(BUILD, "get_include info show_config show_runtime"),
    **_all(WIDE, "clongdouble complex256 float128 longdouble"),
    **_all(CLASSES, "asmatrix bmat matrix poly1d recarray record"),
    **_all(MEMORY, "flatiter frombuffer nested_iters"),
    "random": "draws from a hidden state; use tracejit.random",
    "emath": "the result's dtype depends on the elements; convert to complex first",
    "polynomial": "NumPy's own works: its functions (not its classes) are arithmetic that records",
    **_all(MODULE, "char core ctypeslib exceptions f2py lib ma rec strings test testing typing"),
    "LinAlgError": "an exception: nothing raises it while a graph runs",
}


def kind(value: Any, ours: Any) -> str:
    """How we have a name, in a word."""
    if isinstance(ours, Ufunc):
        return "ufunc"
    if isinstance(value, types.ModuleType):
        return "namespace"
    if ours is value:
        return "NumPy's own"
    return "recorded"


def public_names(module: Any) -> list[str]:
    """The names a user of NumPy's module sees."""
    listed = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    return sorted({name for name in listed if not name.startswith("__")}, key=str.lower)


def rows(theirs: Any, ours: Any) -> Iterator[tuple[str, str]]:
    """(name, how we have it or why not)."""
    for name in public_names(theirs):
        value = getattr(theirs, name, None)
        if hasattr(ours, name):
            yield name, kind(value, getattr(ours, name))
        else:
            yield name, f"absent: {ABSENT.get(name, '?')}"


def page() -> str:
    """The page's text."""
    parts = [
        "# NumPy's names",
        "",
        "Which public names of NumPy's main namespace, `numpy.linalg` and `numpy.fft` there are in",
        "`tracejit.numpy`, and why each other one is absent. *Recorded* functions, and *ufuncs*",
        "with their methods, become part of the graph; *NumPy's own* names speak about types,",
        "shapes or texts and are NumPy's objects themselves.",
        "",
        "Where the size of a result depends on elements (`nonzero`, `unique`, `bincount` …) the",
        "elements must be known while tracing, or `size=` (`minlength=` for `bincount`) fixes it:",
        "what is missing is `fill_value`.",
        "",
        "Python's integers that do not fit raise, as NumPy's do (`int8 + 300`, `x[0] = 300`,",
        "`np.full(3, 300, np.int8)`), while tracing; comparisons take them as they are. A Python",
        "integer among the arguments is looked at by each call: `f(x, 300)` raises where `x + 300`",
        "would. Numbers computed from it wrap around, as arrays do. `np.where`, `np.select`,",
        "`np.pad` and `np.add.at`, in which NumPy wraps such integers silently, raise, too.",
        "",
        f"Written by `python -m tests.numpy_api.table` for NumPy {VERSION}.",
    ]
    ours = tracejit.numpy
    namespaces = ((np, ours), (np.linalg, ours.linalg), (np.fft, ours.fft))
    for theirs, ours in namespaces:
        title = theirs.__name__
        listed = list(rows(theirs, ours))
        there = sum(not how.startswith("absent") for _, how in listed)
        parts += ["", f"## {title}", "", f"{there} of {len(listed)} names.", ""]
        parts += ["| Name | |", "| --- | --- |"]
        parts += [f"| `{name}` | {how} |" for name, how in listed]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
