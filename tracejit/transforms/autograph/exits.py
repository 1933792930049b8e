"""Statements that leave: ``return``, ``break`` and ``continue`` as flags and guards.

A block that may leave sets a flag, and what follows it stands under ``if not flag``. A branch that
always returns takes the rest of its block into the other one first, so that most early returns
need no guard.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tracejit.transforms.autograph.names import contains, leaves_loop

RETURNED = "autograph_returned"
VALUE = "autograph_value"
RUNTIME = "autograph_"
Block = list[ast.stmt]


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def runtime(text: str) -> ast.expr:
    """What the rewritten function calls for ``text``; see
    `tracejit.transforms.autograph.runtime`."""
    return ast.Attribute(name(RUNTIME), text, ast.Load())


def later(expression: ast.expr) -> ast.expr:
    """``lambda: expression``."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(nothing, expression), expression)


def assign(target: str, value: ast.expr, at: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(target, ast.Store())], value)
    return ast.copy_location(made, at)


def none_of(flags: Sequence[str]) -> ast.expr:
    """``not a and not b``."""
    negated: list[ast.expr] = [ast.UnaryOp(ast.Not(), name(flag)) for flag in flags]
    return negated[0] if len(negated) == 1 else ast.BoolOp(ast.And(), negated)


def always_returns(block: Sequence[ast.stmt]) -> bool:
    """Whether every way through the block ends in ``return`` or ``raise``."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return always_returns(last.body) and always_returns(last.orelse)
    if isinstance(last, ast.With):
        return always_returns(last.body)
    if isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value:
        return not leaves_loop(last.body, ast.Break)
    return isinstance(last, ast.Return | ast.Raise)


def absorbed(block: Sequence[ast.stmt]) -> Block:
    """``if c: return a; rest`` becomes ``if c: return a else: rest``, all the way down."""
    made: Block = []
    for position, statement in enumerate(block):
        rest = block[position + 1 :]
        if isinstance(statement, ast.If):
            body, orelse = absorbed(statement.body), absorbed(statement.orelse)
            if rest and _returns(body) and not _returns(orelse):
                orelse, rest = absorbed([*orelse, *rest]), []
            elif rest and _returns(orelse) and not _returns(body):
                body, rest = absorbed([*body, *rest]), []
            taken = len(rest) < len(block) - position - 1
            new = ast.If(statement.test, body, orelse)
            made.append(ast.copy_location(new, statement))
            if taken:
                return made
        else:
            made.append(statement)
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return made
    return made


def _returns(block: Sequence[ast.stmt]) -> bool:
    return always_returns(block) and isinstance(block[-1], ast.Return | ast.If)


class Exits:
    """Takes the exits out of one function's body."""

    def __init__(self) -> None:
        self._count = 0

    def function(self, body: Sequence[ast.stmt]) -> Block:
        """The body; where returns stand under control flow, one return at its end."""
        block = absorbed(body)
        last = bool(block) and isinstance(block[-1], ast.Return | ast.Raise)
        if not contains(block[:-1] if last else block, ast.Return, ast.Raise):
            return self._block(block, None)
        at = body[0]
        start = [
            assign(VALUE, runtime("NO_VALUE"), at),
            assign(RETURNED, ast.Constant(False), at),
        ]
        flag: ast.expr = ast.Constant(True) if always_returns(block) else name(RETURNED)
        ending = ast.Call(runtime("returned"), [name(VALUE), flag], [])
        end = ast.copy_location(ast.Return(ending), body[-1])
        return [*start, *self._block(block, RETURNED), end]

    def _block(
        self,
        block: Sequence[ast.stmt],
        returned: str | None,
        broken: str | None = None,
        skipped: str | None = None,
    ) -> Block:
        """Statements with flags set in place of exits, and guards after what may set them."""
        made: Block = []
        for position, statement in enumerate(block):
            exits = self._flags(statement, returned, broken, skipped)
            made += self._statement(statement, returned, broken, skipped)
            rest = block[position + 1 :]
            if exits and rest:
                guarded = self._block(rest, returned, broken, skipped)
                guard = ast.If(none_of(exits), guarded, [])
                made.append(ast.copy_location(guard, rest[0]))
                return made
        return made

    def _flags(
        self, statement: ast.stmt, returned: str | None, broken: str | None, skipped: str | None
    ) -> list[str]:
        """The flags that a statement may set."""
        found = []
        if returned and contains([statement], ast.Return, ast.Raise):
            found.append(returned)
        if broken and leaves_loop([statement], ast.Break):
            found.append(broken)
        if skipped and leaves_loop([statement], ast.Continue):
            found.append(skipped)
        return found

    def _statement(
        self, statement: ast.stmt, returned: str | None, broken: str | None, skipped: str | None
    ) -> Block:
        if isinstance(statement, ast.Return) and returned:
            value = statement.value or ast.Constant(None)
            return [
                assign(VALUE, value, statement),
                assign(returned, ast.Constant(True), statement),
            ]
        if isinstance(statement, ast.Raise) and returned and statement.exc is not None:
            error = ast.Call(runtime("raise_"), [later(statement.exc)], [])
            if statement.cause is not None:
                error.args.append(later(statement.cause))
            return [
                ast.copy_location(ast.Expr(error), statement),
                assign(returned, ast.Constant(True), statement),
            ]
        if isinstance(statement, ast.Break) and broken:
            return [assign(broken, ast.Constant(True), statement)]
        if isinstance(statement, ast.Continue) and skipped:
            return [assign(skipped, ast.Constant(True), statement)]
        if isinstance(statement, ast.While | ast.For):
            return self._loop(statement, returned, broken, skipped)
        self._inside(statement, lambda b: self._block(b, returned, broken, skipped))
        return [statement]

    def _inside(self, statement: ast.stmt, change: Callable[[Block], Block]) -> None:
        """Changes every block of a statement that is no loop and no function."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        for field in ("body", "orelse", "finalbody"):
            block = getattr(statement, field, None)
            if block:
                setattr(statement, field, change(block))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            part.body = change(part.body)

    def _loop(
        self,
        loop: ast.While | ast.For,
        returned: str | None,
        broken: str | None,
        skipped: str | None,
    ) -> Block:
        self._count += 1
        number = self._count
        mine = f"autograph_broken_{number}" if leaves_loop(loop.body, ast.Break) else None
        skip = f"autograph_skipped_{number}" if leaves_loop(loop.body, ast.Continue) else None
        leaving = [flag for flag in (mine,) if flag]
        if returned and contains(loop.body, ast.Return, ast.Raise):
            leaving.append(returned)
        body = self._block(loop.body, returned, mine, skip)
        if skip:
            body = [assign(skip, ast.Constant(False), loop), *body]
        after = self._block(loop.orelse, returned, broken, skipped)
        before = [assign(mine, ast.Constant(False), loop)] if mine else []
        loop.body, loop.orelse = body, []
        loop.autograph_leaving = leaving  # type: ignore[union-attr]
        made: Block = [*before, loop]
        if after and leaving:
            made.append(ast.copy_location(ast.If(none_of(leaving), after, []), after[0]))
        else:
            made += after
        return made
