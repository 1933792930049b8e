"""Live variables of structured code: `note_live` says of each loop which it must leave behind.

for i in range(n):
    t = x[i]                    # t is not live after the loop, y is
    y = t + 1
t = y

Statements that leave have been taken out before (`tracejit.transforms.autograph.exits`), so that
control only enters blocks at their beginning and leaves them at their end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from tracejit.transforms.autograph.names import SCOPES, own_nodes

LIVE = "autograph_live"
"""The attribute of a loop's node: the names that may be read after it, before they are bound."""


def note_live(body: Sequence[ast.stmt]) -> None:
    """Marks each loop in a function's body with what is live after it.

    What a function inside reads is live everywhere.
    """
    scopes = [node for node in own_nodes(body) if isinstance(node, SCOPES)]
    _before(body, frozenset(_read(scopes)))


def _before(block: Sequence[ast.stmt], live: frozenset[str]) -> frozenset[str]:
    """What is live before a block, if ``live`` is so behind it."""
    for statement in reversed(block):
        live = _before_statement(statement, live)
    return live


def _before_statement(statement: ast.stmt, live: frozenset[str]) -> frozenset[str]:
    if isinstance(statement, ast.If):
        ways = _before(statement.body, live) | _before(statement.orelse, live)
        return ways | _read([statement.test])
    if isinstance(statement, ast.While | ast.For):
        setattr(statement, LIVE, live | getattr(statement, LIVE, frozenset()))
        test = statement.test if isinstance(statement, ast.While) else statement.iter
        target = _bound(statement.target) if isinstance(statement, ast.For) else frozenset()
        # What a step needs is live at the end of the step before.
        live |= _read([test, *_flags(statement)])
        live |= _before(statement.body, live) - target
        return live | (_before(statement.body, live) - target)
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return live.difference(*map(_bound, targets)) | _read([statement])
    if isinstance(statement, ast.AugAssign):
        return live | _read([statement]) | _bound(statement.target)
    live |= _read([statement])
    for block in _blocks(statement):
        # What runs after it, an exception's handler perhaps, is not followed.
        _before(block, live)
    return live


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of a ``with``, a ``try`` or a ``match``."""
    if not isinstance(statement, SCOPES):
        for part in (
            statement,
            *getattr(statement, "handlers", ()),
            *getattr(statement, "cases", ()),
        ):
            for field in ("body", "orelse", "finalbody"):
                yield getattr(part, field, ())


def _flags(loop: ast.While | ast.For) -> list[ast.expr]:
    return [ast.Name(flag, ast.Load()) for flag in getattr(loop, "autograph_leaving", ())]


def _bound(target: ast.expr) -> frozenset[str]:
    """The names that a target surely binds."""
    if isinstance(target, ast.Name):
        return frozenset({target.id})
    if isinstance(target, ast.Starred):
        return _bound(target.value)
    if isinstance(target, ast.Tuple | ast.List):
        return frozenset().union(*map(_bound, target.elts))
    return frozenset()


def _read(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that are read below, in functions inside as well."""
    return frozenset(
        inner.id
        for node in nodes
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load | ast.Del)
    )
