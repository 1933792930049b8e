"""Which names the statements of a function read and assign, as Python's scopes have it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
GENERATOR = (ast.Yield, ast.YieldFrom, ast.Await)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """The nodes below, without what stands in functions and classes inside."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SCOPES):
            stack.extend(ast.iter_child_nodes(node))


def assigned(statements: Sequence[ast.stmt]) -> list[str]:
    """The names that the statements may bind or write into (``x[i] = v``), sorted."""
    found: set[str] = set()
    _assigned(statements, found, True)
    return sorted(found)


def bound(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that the statements may bind."""
    found: set[str] = set()
    _assigned(statements, found, False)
    return found


def rebound(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that the statements may bind otherwise than by ``x += v``."""
    found: set[str] = set()
    _assigned(statements, found, False, False)
    return found


def _assigned(
    nodes: Iterable[ast.AST], found: set[str], written: bool, augmented: bool = True
) -> None:
    for node in nodes:
        if not augmented and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            _assigned([node.value], found, written, augmented)
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif written and isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base: ast.expr = node
            while isinstance(base, ast.Subscript):  # an object's attribute is no variable
                base = base.value
            if isinstance(base, ast.Name):
                found.add(base.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            found.add(node.name)
        if isinstance(node, COMPREHENSIONS):
            inside: set[str] = set()
            _assigned(ast.iter_child_nodes(node), inside, written, augmented)
            targets: set[str] = set()
            _assigned([g.target for g in node.generators], targets, False)
            found |= inside - targets
        else:
            _assigned(ast.iter_child_nodes(node), found, written, augmented)


def declared(statements: Sequence[ast.stmt]) -> dict[str, type[ast.Global | ast.Nonlocal]]:
    """The names that the function declares to be global or nonlocal."""
    return {
        name: type(node)
        for node in own_nodes(statements)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }


def arguments_of(arguments: ast.arguments) -> set[str]:
    """The names of a function's parameters."""
    many = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    many += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return {argument.arg for argument in many}


def contains(nodes: Iterable[ast.AST], *kinds: type[ast.AST]) -> bool:
    """Whether one of these stands below, outside of inner functions."""
    return any(isinstance(node, kinds) for node in own_nodes(nodes))


def leaves_loop(statements: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether a ``break`` (or ``continue``) of the loop with this body stands in it."""
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            return True
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            stack.extend(node.orelse)
        elif not isinstance(node, SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return False


def is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether calling a function makes a generator or a coroutine."""
    return isinstance(node, ast.AsyncFunctionDef) or contains(node.body, *GENERATOR)


def mangled(attribute: str, owner: str | None) -> str:
    """A private name (``__x``) as the methods of a class know it."""
    if owner is None or not attribute.startswith("__") or attribute.endswith("__"):
        return attribute
    return f"_{owner.lstrip('_')}{attribute}"
