"""Statements and expressions that decide become calls of `tracejit.transforms.autograph.runtime`.

``if c: y = a`` becomes functions of the two branches, which share ``y`` with the function around
them, a getter and a setter for what they assign, and one call that runs one branch or records
both. Lines stay what they were.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

from tracejit.transforms.autograph.exits import RUNTIME, Exits, later, name, none_of, runtime
from tracejit.transforms.autograph.liveness import LIVE, note_live
from tracejit.transforms.autograph.names import (
    GENERATOR,
    arguments_of,
    assigned,
    bound,
    contains,
    declared,
    is_generator,
    mangled,
    own_nodes,
    rebound,
)
from tracejit.transforms.autograph.purity import is_quiet

OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is_",
    ast.IsNot: "is_not",
    ast.In: "contains",
    ast.NotIn: "lacks",
}
LEFT_ALONE = ("super", "locals", "globals", "vars", "dir", "breakpoint")
N = TypeVar("N", ast.Expr, ast.Call)
_NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


class Rewriter(ast.NodeTransformer):
    """Rewrites one function; functions inside get a rewriter of their own.

    ``owner`` is the class whose private names (``self.__x``) the function uses.
    """

    def __init__(self, owner: str | None) -> None:
        self._owner = owner
        self._count = 0
        self._first = ""
        self._state: set[str] = set()
        self._own: set[str] = set()
        self._declared: dict[str, type[ast.Global | ast.Nonlocal]] = {}

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """The function rewritten."""
        if is_generator(node):
            return node
        node.args = self.visit(node.args)
        positional = [*node.args.posonlyargs, *node.args.args]
        self._first = positional[0].arg if positional else ""
        documentation = node.body[:1] if ast.get_docstring(node) is not None else []
        body = Exits().function(node.body[len(documentation) :]) or [ast.Pass()]
        for statement in body:
            ast.fix_missing_locations(statement)
        self._declared = declared(body)
        note_live(body)
        mine = bound(body) | arguments_of(node.args)
        self._own = mine - set(self._declared)
        self._state = {
            target
            for inner in own_nodes(body)
            if isinstance(inner, ast.If | ast.While | ast.For)
            for target in assigned([inner])
            if target in mine and target not in self._declared
        }
        new = self._block(body)
        local = sorted(self._state - arguments_of(node.args))
        if local:
            # Never runs: makes the names the function's own.
            targets: list[ast.expr] = [ast.Name(one, ast.Store()) for one in local]
            binding = ast.If(ast.Constant(0), [ast.Assign(targets, ast.Constant(None))], [])
            new = [ast.copy_location(binding, node.body[0]), *new]
        node.body = [*documentation, *new]
        return node

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made

    # Functions and classes inside

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        return Rewriter(self._owner).function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        return node if contains([node.body], *GENERATOR) else self.generic_visit(node)  # type: ignore[return-value]

    # Statements

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        names = self._shared(assigned([*node.body, *node.orelse]))
        unbound = self._names(names, [*node.body, *node.orelse])
        number = self._number()
        test = self.visit(node.test)
        made = [
            self._part(f"autograph_body_{number}", node.body, names, node),
            self._part(f"autograph_else_{number}", node.orelse, names, node),
            *self._access(number, names, node),
        ]
        given = [test, *self._parts(number, ("body", "else", "get", "set"))]
        return [*made, self._call("if_", [*given, *unbound], node)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        names = self._shared(assigned([node]))
        unbound = self._names(names, [node])
        quiet = ast.Constant(is_quiet([node], self._own, self._declared))
        number = self._number()
        test = node.test
        leaving = getattr(node, "autograph_leaving", [])
        if leaving:
            both = ast.BoolOp(ast.And(), [none_of(leaving), test])
            test = ast.fix_missing_locations(ast.copy_location(both, test))
        made = [
            self._part(f"autograph_body_{number}", node.body, names, node),
            *self._access(number, names, node),
        ]
        given = [later(self.visit(test)), *self._parts(number, ("body", "get", "set"))]
        live = self._live(names, node)
        return [*made, self._call("while_", [*given, *unbound, live, quiet], node)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        names = self._shared(assigned([node]))
        unbound = self._names(names, [node])
        live, target = self._live(names, node), self._target(node)
        number = self._number()
        item = f"autograph_item_{number}"
        first = ast.copy_location(ast.Assign([node.target], name(item)), node.target)
        leaving = getattr(node, "autograph_leaving", [])
        goes_on: ast.expr = ast.Constant(None)
        if leaving:
            flags = ast.copy_location(none_of(leaving), node.iter)
            goes_on = later(self.visit(ast.fix_missing_locations(flags)))
        made = [
            self._part(f"autograph_body_{number}", [first, *node.body], names, node, item),
            *self._access(number, names, node),
        ]
        given = [self.visit(node.iter), goes_on, *self._parts(number, ("body", "get", "set"))]
        return [*made, self._call("for_", [*given, *unbound, live, target], node)]

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        message: ast.expr = ast.Constant(None)
        if node.msg is not None:
            message = later(self.visit(node.msg))
        return self._call("assert_", [self.visit(node.test), message], node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Names that functions share cannot be annotated."""
        if node.value is not None:
            made: ast.stmt = ast.Assign([self.visit(node.target)], self.visit(node.value))
        else:
            made = ast.Pass()
        return ast.copy_location(made, node)

    # Expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load) or node.id not in self._state:
            return node
        return self._replaced("use", [node], node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.visit(node.value)
        node.attr = mangled(node.attr, self._owner)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        if contains(node.values[1:], ast.NamedExpr):
            return node
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        return self._replaced(function, [node.values[0], *map(later, node.values[1:])], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return self._replaced("not_", [node.operand], node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if contains([node.body, node.orelse], ast.NamedExpr):
            return node
        return self._replaced("either", [node.test, later(node.body), later(node.orelse)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            if isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None:
                asked = self._replaced("is_none", [node.left], node)
                is_negated = isinstance(node.ops[0], ast.IsNot)
                return self._replaced("not_", [asked], node) if is_negated else asked
        is_simple = len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn)
        if is_simple or contains(node.comparators, ast.NamedExpr):
            return node
        operators: list[ast.expr] = [ast.Constant(OPERATORS[type(op)]) for op in node.ops]
        operands = [node.left, *map(later, node.comparators)]
        return self._replaced("compare", [ast.Tuple(operators, ast.Load()), *operands], node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        left_alone = isinstance(function, ast.Name) and function.id in LEFT_ALONE
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            left_alone |= function.value.id == RUNTIME
        if isinstance(function, ast.Name) and function.id == "super" and not node.args:
            # Parts of the function have no first argument that Python could take.
            node.args = [name("__class__"), name(self._first)]
        self.generic_visit(node)
        if not left_alone:
            node.func = self._replaced("call", [node.func], node.func)
        return node

    # Parts

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _shared(self, names: Sequence[str]) -> list[str]:
        return [one for one in names if one in self._state]

    def _part(
        self,
        title: str,
        body: Sequence[ast.stmt],
        names: Sequence[str],
        at: ast.stmt,
        argument: str | None = None,
    ) -> ast.stmt:
        """A function of the statements, which assigns to the names of the function around it."""
        touched = bound(body)
        mine: list[ast.Global | ast.Nonlocal] = [
            ast.Nonlocal([one for one in names if one in touched])
        ]
        for kind in (ast.Global, ast.Nonlocal):
            mine.append(kind([n for n, k in self._declared.items() if k is kind and n in touched]))
        given = _NO_ARGUMENTS
        if argument is not None:
            given = ast.arguments([], [ast.arg(argument)], None, [], [], None, [])
        written: list[ast.stmt] = [declaration for declaration in mine if declaration.names]
        made = ast.FunctionDef(title, given, [*written, *(self._block(body) or [ast.Pass()])], [])
        return ast.copy_location(made, at)

    def _access(self, number: int, names: Sequence[str], at: ast.stmt) -> list[ast.stmt]:
        """The functions that get and set the names."""
        values: list[ast.expr] = [
            ast.Call(runtime("peek"), [later(name(one)), ast.Constant(one)], []) for one in names
        ]
        get = ast.Return(ast.Tuple(values, ast.Load()))
        getter = ast.FunctionDef(f"autograph_get_{number}", _NO_ARGUMENTS, [get], [])
        body: list[ast.stmt] = [ast.Pass()]
        if names:
            targets = ast.Tuple([ast.Name(one, ast.Store()) for one in names], ast.Store())
            body = [ast.Nonlocal(list(names)), ast.Assign([targets], name("autograph_values"))]
        given = ast.arguments([], [ast.arg("autograph_values")], None, [], [], None, [])
        setter = ast.FunctionDef(f"autograph_set_{number}", given, body, [])
        return [ast.copy_location(getter, at), ast.copy_location(setter, at)]

    def _parts(self, number: int, kinds: Sequence[str]) -> list[ast.expr]:
        return [name(f"autograph_{kind}_{number}") for kind in kinds]

    def _names(self, names: Sequence[str], parts: Sequence[ast.stmt]) -> list[ast.expr]:
        """The names, and those that the parts never bind again."""
        again = rebound(parts)
        unbound = [one for one in names if one not in again]
        return [
            ast.Tuple([ast.Constant(one) for one in some], ast.Load()) for some in (names, unbound)
        ]

    def _target(self, loop: ast.For) -> ast.expr:
        """The target of a loop, if it is one name that the range alone gives values to, and
        whether loops are inside.

        None for a loop that does more than compute.
        """
        if not is_quiet([loop], self._own, self._declared):
            return ast.Constant(None)
        target = loop.target.id if isinstance(loop.target, ast.Name) else None
        if target in bound(loop.body) or getattr(loop, "autograph_leaving", []):
            # Its last value is another than the last of the range.
            target = None
        values: list[str | bool | None] = [target, contains(loop.body, ast.For, ast.While)]
        return ast.Tuple([ast.Constant(one) for one in values], ast.Load())

    def _live(self, names: Sequence[str], loop: ast.For | ast.While) -> ast.expr:
        """Those of the names that may be read after the loop."""
        live = getattr(loop, LIVE)
        return ast.Tuple([ast.Constant(one) for one in names if one in live], ast.Load())

    def _call(self, function: str, given: list[ast.expr], at: ast.stmt) -> ast.stmt:
        return _on_first_line(ast.Expr(ast.Call(runtime(function), given, [])), at)

    def _replaced(self, function: str, given: list[ast.expr], at: ast.expr) -> ast.expr:
        return _on_first_line(ast.Call(runtime(function), given, []), at)


def _on_first_line(made: N, at: ast.stmt | ast.expr) -> N:
    """A node where ``at`` begins: a call that ends on another line would report that one."""
    made.lineno = made.end_lineno = at.lineno
    made.col_offset = made.end_col_offset = at.col_offset
    return made
