"""Methods that a traced function calls record as well: ``self.helper(x)``, ``model.loss(x)``.

Names lead to a function's globals and closure, which a copy can show differently; attributes do
not. So in methods, and in functions that name objects with methods or attributes that may be
methods of an argument, calls of attributes are rewritten.
"""

from __future__ import annotations

import ast
import inspect
from types import FunctionType, MethodType
from typing import Any

from tracejit.loading import load
from tracejit.trace.recording import copied, is_users
from tracejit.trace.table import find
from tracejit.transforms.autograph.definitions import Known, rewritten
from tracejit.transforms.autograph.exits import runtime
from tracejit.transforms.autograph.names import mangled

_known: Known = {}


def calling_copies(function: FunctionType) -> FunctionType:
    """A function whose calls ``x.f()`` reach copies that record; itself if it has no source."""
    made: FunctionType | None = rewritten(function, _rewrite, _known, load(__name__))
    return made or function


def recorded(value: Any) -> Any:
    """What a method calls for an attribute of its object."""
    kind = type(value)
    if kind is FunctionType:
        return copied(value) if is_users(value.__code__) and find(value) is None else value
    if kind is MethodType:
        function = recorded(value.__func__)
        return value if function is value.__func__ else MethodType(function, value.__self__)
    method = inspect.getattr_static(kind, "__call__", None)
    if isinstance(method, FunctionType) and is_users(method.__code__):
        return MethodType(copied(method), value)
    return value


def _rewrite(node: ast.FunctionDef, owner: str | None) -> ast.FunctionDef:
    rewriter = _Calls(owner)
    node.body = [rewriter.visit(statement) for statement in node.body]
    return node


class _Calls(ast.NodeTransformer):
    def __init__(self, owner: str | None) -> None:
        self._owner = owner

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = mangled(node.attr, self._owner)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and _has_methods(node.func.value):
            called = ast.Call(runtime("recorded"), [node.func], [])
            called.lineno = called.end_lineno = node.func.lineno
            called.col_offset = called.end_col_offset = node.func.col_offset
            node.func = called
        return node


def _has_methods(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name | ast.Attribute)
