"""Which statements and calls do nothing but compute: a loop of these may be recorded once.

Recording a body once in place of a hundred times must not be noticed: other side effects would
happen once, and are searched here, in the text of the body and in its callees.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from tracejit.sources import is_internal
from tracejit.trace.boolean_indexing import Masked
from tracejit.trace.recording import is_users
from tracejit.trace.table import Traced, find
from tracejit.tracebacks import inside_boundary
from tracejit.transforms.autograph.names import arguments_of, bound

_LOUD = (
    ast.Assert, ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.Await, ast.ClassDef,
    ast.Delete, ast.Global, ast.Import, ast.ImportFrom, ast.Match, ast.NamedExpr, ast.Nonlocal,
    ast.Try, ast.With, ast.Yield, ast.YieldFrom,
)  # fmt: skip
_BUILTINS = frozenset(
    {
        abs, all, any, bool, complex, dict, divmod, enumerate, float, int, isinstance, len, list,
        max, min, pow, range, reversed, round, slice, sorted, sum, tuple, type, zip,
    }
)  # fmt: skip
_OF_ARRAYS = frozenset(
    {
        "all", "any", "argmax", "argmin", "astype", "clip", "conj", "copy", "cumsum", "diagonal",
        "dot", "flatten", "item", "max", "mean", "min", "prod", "ravel", "repeat", "reshape",
        "round", "squeeze", "std", "sum", "swapaxes", "take", "tolist", "trace", "transpose", "var",
    }
)  # fmt: skip
"""Methods of NumPy's arrays that write to nothing."""
_STATEFUL = ("tracejit.callbacks", "tracejit.debug", "tracejit.trace.recording")
"""Modules of functions that do something when they are called, or give another value each time."""


def is_quiet(
    statements: Sequence[ast.stmt], own: Collection[str], declared: Collection[str]
) -> bool:
    """Whether statements assign to variables, and to elements of ``own`` variables, only.

    ``declared`` are names of variables of others: global or nonlocal.
    """
    nodes = [node for statement in statements for node in ast.walk(statement)]
    if any(isinstance(node, (*_LOUD, ast.FunctionDef)) for node in nodes):
        return False
    if not bound(statements).isdisjoint(declared):
        return False
    if any(isinstance(node, ast.Attribute) and node.attr.startswith("__") for node in nodes):
        return False
    return all(_written_name(node) in own for node in nodes if _is_written(node))


def is_quiet_function(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function, and what is defined inside, writes to its own variables only."""
    if any(isinstance(inner, _LOUD) for inner in ast.walk(node)):
        return False
    return writes_to_its_own(node)


def writes_to_its_own(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function, and what is defined inside, has no text that writes to another's."""
    nodes = [inner for inner in ast.walk(node) if inner is not node]
    if any(isinstance(inner, ast.Global | ast.Nonlocal) for inner in nodes):
        return False
    body: list[Any] = node.body if isinstance(node, ast.FunctionDef) else [node.body]
    own = bound(body) | arguments_of(node.args)
    for inner in nodes:
        if isinstance(inner, ast.FunctionDef | ast.Lambda) and not writes_to_its_own(inner):
            return False
        if _is_written(inner) and _written_name(inner) not in own:
            return False
        if isinstance(inner, ast.Expr) and _changed_name(inner.value) not in {*own, None}:
            return False
    return True


_CHANGING = frozenset(
    "append appendleft clear discard extend insert pop popleft remove setdefault update "
    "write".split()
)
"""The methods of containers and files that change them."""


def _changed_name(node: ast.expr) -> str | None:
    """The variable that a statement such as ``log.append(x)`` changes; None for other calls."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    method = node.func.attr
    is_changing = method in _CHANGING or (method == "add" and len(node.args) == 1)
    return (_written_name(node.func.value) or "") if is_changing else None


def _is_written(node: ast.AST) -> bool:
    """Whether something other than a variable is written to."""
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _written_name(node: ast.AST) -> str | None:
    """The variable of whose value it is an element, as in ``x[i]`` and ``x[i][j]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def is_quiet_call(function: Any) -> bool:
    """Whether a call computes a value and does nothing else; not of functions of the user's."""
    kind = type(function)
    if kind is type:
        module = function.__module__.partition(".")[0]
        return function in _BUILTINS or module in ("numpy", "ml_dtypes", "tracejit")
    if kind is BuiltinFunctionType:
        owner = function.__self__
        if owner is builtins or getattr(owner, "__name__", None) in ("math", "cmath"):
            return function in _BUILTINS or owner is not builtins
        return isinstance(owner, np.ndarray | np.generic) and function.__name__ in _OF_ARRAYS
    if kind is MethodType:
        owner = function.__self__
        if isinstance(owner, Traced | Masked):
            return True
        return isinstance(owner, type) and owner.__module__.partition(".")[0] == "tracejit"
    if isinstance(function, np.ufunc) or (kind is not FunctionType and find(function) is not None):
        return True
    if kind is FunctionType and is_internal(function.__code__):
        # Of transformations, those are looked at that they call.
        kind_module = inside_boundary(function).__globals__["__name__"]
    else:
        kind_module = kind.__module__
    if kind_module.startswith("tracejit.transforms."):
        return True
    module = getattr(function, "__module__", None) or kind.__module__
    return module.partition(".")[0] == "tracejit" and not module.startswith(_STATEFUL)


def is_users_function(function: Any) -> bool:
    """Whether it is a Python function whose text can be looked at."""
    return type(function) is FunctionType and is_users(function.__code__) and find(function) is None
