"""The grammar of HLO text: computations and instructions, with names still unresolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tracejit.attributes import REQUIRED, Attribute, Kind
from tracejit.errors import HloParseError, TracejitError
from tracejit.graph import OPS, Op
from tracejit.hlo import skipped
from tracejit.hlo.attributes import ELSEWHERE, ComputationName, read_attribute
from tracejit.hlo.header import Header, read_header
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.literals import read_literal
from tracejit.hlo.metadata import read_fields
from tracejit.hlo.shapes import read_shape
from tracejit.ops.constants import CONSTANT, PARAMETER
from tracejit.ops.control import CALL
from tracejit.ops.dumps import ASYNC_DONE, ASYNC_START, ASYNC_UPDATE
from tracejit.shapes import AnyShape, Shape, TupleShape
from tracejit.sources import Source

_ASYNC_PARTS = {"start": ASYNC_START, "update": ASYNC_UPDATE, "done": ASYNC_DONE}
_THREAD = next(a for a in ASYNC_START.attributes if a.name == "async_execution_thread")


# What attributes were called in older text.
_OLD_NAMES = {"opaque": "backend_config"}


@dataclass
class Statement:
    """One line of a computation, its operands and computations still names.

    ``shape`` is None where the text leaves it to be inferred; ``declared`` has the shapes that the
    text gives operands. A constant without a literal is one that the text leaves out.
    """

    name: str
    offset: int
    op: Op
    shape: AnyShape | None
    operands: list[tuple[str, int]]
    attributes: dict[str, Any]
    source: Source | None
    declared: dict[int, AnyShape] = field(default_factory=dict)


@dataclass
class Block:
    """One computation as written."""

    name: str
    offset: int
    statements: list[Statement]
    root: str
    result: AnyShape | None = None


@dataclass
class Program:
    """A whole module as written."""

    header: Header
    blocks: dict[str, Block]
    entry: str


class Reader:
    """Reads one text from front to back; `program` does it all."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.header = Header()
        self.opcodes = {op.opcode: op for op in OPS.values()}
        self.wrapped: dict[str, Block] = {}

    def program(self) -> Program:
        """Everything in the text, checked for grammar."""
        lexer = self.lexer
        self.header = read_header(lexer)
        blocks: dict[str, Block] = {}
        entry: str | None = None
        while lexer.token.kind != "end":
            offset = lexer.token.offset
            is_entry = lexer.accept("ENTRY")
            block = self.block()
            if block.name in blocks:
                raise lexer.error(f"computation {block.name} is defined twice", offset)
            if is_entry and entry is not None:
                raise lexer.error("there are two ENTRY computations", offset)
            blocks[block.name] = block
            entry = block.name if is_entry else entry
        if not blocks:
            raise lexer.error("a module needs at least one computation")
        entry = block.name if entry is None else entry
        self.header.name = self.header.name or f"module_{entry}"
        blocks |= {name: block for name, block in self.wrapped.items() if name not in blocks}
        return Program(self.header, blocks, entry)

    def block(self) -> Block:
        lexer = self.lexer
        offset = lexer.token.offset
        name = lexer.word("the name of a computation")
        result: AnyShape | None = None
        if lexer.at("("):
            lexer.parenthesised()
            if lexer.token.kind != "arrow":
                raise lexer.error("expected -> and the shape of the result")
            lexer.advance()
            result = read_shape(lexer)
        lexer.expect("{")
        statements: dict[str, Statement] = {}
        root: str | None = None
        while not lexer.at("}"):
            is_root = lexer.accept("ROOT")
            statement = self.statement()
            if statement.name in statements:
                raise lexer.error(f"{statement.name} is defined twice", statement.offset)
            statements[statement.name] = statement
            if is_root and root is not None:
                raise lexer.error("there are two ROOT instructions", statement.offset)
            root = statement.name if is_root else root
        if not statements:
            raise lexer.error("a computation needs at least one instruction")
        lexer.expect("}")
        while lexer.accept(","):
            place = lexer.token.offset
            attribute = lexer.word("an attribute of the computation")
            if attribute not in skipped.COMPUTATION:
                raise lexer.error(f"attribute {attribute} of a computation is not known", place)
            lexer.expect("=")
            lexer.skip_value()
        return Block(name, offset, list(statements.values()), root or statement.name, result)

    def statement(self) -> Statement:
        lexer = self.lexer
        offset = lexer.token.offset
        name = lexer.word("the name of an instruction")
        lexer.expect("=")
        # Without a shape the opcode comes first, and its operands' parenthesis after it.
        written = lexer.at("(") or lexer.peek().text == "["
        shape = read_shape(lexer) if written else None
        opcode_offset = lexer.token.offset
        opcode = lexer.word("an opcode")
        op = self.opcodes.get(opcode)
        if op is None:
            statement = Statement(name, offset, CALL, shape, [], {}, None)
            return self.asynchronous(statement, opcode, opcode_offset)
        statement = Statement(name, offset, op, shape, [], {}, None)
        if op is CONSTANT:
            self.literal(statement)
        elif op is PARAMETER:
            lexer.expect("(")
            statement.attributes["parameter_number"] = lexer.integer("the parameter's number")
            lexer.expect(")")
        else:
            self.operands(statement)
        self.attributes(statement)
        return statement

    def asynchronous(self, statement: Statement, opcode: str, offset: int) -> Statement:
        """A part of an async op written short: ``negate-start(x)`` for an async-start.

        What it calls, a computation of the one op, is then nowhere in the text and is made here.
        """
        lexer = self.lexer
        base, _, part = opcode.rpartition("-")
        op = self.opcodes.get(base)
        if op is None or part not in _ASYNC_PARTS:
            raise lexer.error(f"opcode {opcode} is not known", offset)
        statement.op = _ASYNC_PARTS[part]
        if part != "start":
            self.operands(statement)
            self.attributes(statement)
            return statement
        shapes = statement.shape.elements if isinstance(statement.shape, TupleShape) else ()
        if len(shapes) < 2 or not isinstance(shapes[0], TupleShape):
            raise lexer.error(f"{opcode} makes a bundle ((operands), result, contexts)")
        called = f"{statement.name}.wrapped"
        inner = Statement("result", statement.offset, op, shapes[1], [], {}, None)
        self.operands(inner)
        statement.operands, inner.operands = inner.operands, []
        self.attributes(inner, _THREAD)
        thread = inner.attributes.pop(_THREAD.name)
        parameters = []
        for number, shape in enumerate(shapes[0].elements):
            attributes = {"parameter_number": number, "shape": shape}
            name = f"parameter.{number}"
            parameters.append(
                Statement(name, statement.offset, PARAMETER, shape, [], attributes, None)
            )
            inner.operands.append((name, statement.offset))
        self.wrapped[called] = Block(called, statement.offset, [*parameters, inner], "result")
        statement.source = inner.source
        statement.attributes = {
            _THREAD.name: thread,
            "calls": ComputationName(called),
            "shape": statement.shape,
        }
        return statement

    def literal(self, statement: Statement) -> None:
        lexer = self.lexer
        if statement.shape is None:
            raise lexer.error("a constant needs its shape", statement.offset)
        offset = lexer.token.offset
        text = lexer.parenthesised()
        if text.replace(" ", "") == "{...}":
            return
        if not isinstance(statement.shape, Shape):
            raise lexer.error(f"a constant of shape {statement.shape} is not supported", offset)
        try:
            literal = read_literal(text, statement.shape)
        except ValueError as error:
            raise lexer.error(str(error), offset) from error
        literal.flags.writeable = False
        statement.attributes["literal"] = literal

    def operands(self, statement: Statement) -> None:
        lexer = self.lexer
        lexer.expect("(")
        while not lexer.accept(")"):
            if lexer.at("(") or lexer.peek().text == "[":
                statement.declared[len(statement.operands)] = read_shape(lexer)
            offset = lexer.token.offset
            statement.operands.append((lexer.word("the name of an operand"), offset))
            if not lexer.at(")"):
                lexer.expect(",")

    def attributes(self, statement: Statement, *more: Attribute) -> None:
        lexer = self.lexer
        values = statement.attributes
        written = [a for a in (*statement.op.attributes, *more) if a.kind not in ELSEWHERE]
        known = {a.name: a for a in written}
        while lexer.accept(","):
            offset = lexer.token.offset
            name = lexer.word("the name of an attribute")
            name = _OLD_NAMES.get(name, name)
            lexer.expect("=")
            if name == "metadata":
                statement.source = self.header.tables.source(read_fields(lexer))
            elif (name in skipped.INSTRUCTION and name not in known) or (
                name in ("calls", _THREAD.name) and statement.op in (ASYNC_DONE, ASYNC_UPDATE)
            ):
                lexer.skip_value()
            elif name not in known:
                raise lexer.error(f"attribute {name} of {statement.op.opcode} is not known", offset)
            elif name in values:
                raise lexer.error(f"attribute {name} is given twice", offset)
            else:
                values[name] = self.attribute(known[name].kind)
        for name, attribute in known.items():
            if values.setdefault(name, attribute.default) is REQUIRED:
                raise lexer.error(
                    f"{statement.op.opcode} needs the attribute {name}", statement.offset
                )
        for attribute in statement.op.attributes:
            if attribute.kind is Kind.UNWRITTEN:
                values[attribute.name] = attribute.default
            elif attribute.kind is Kind.SHAPE:
                values[attribute.name] = statement.shape
                if statement.shape is None:
                    raise lexer.error(
                        f"{statement.op.opcode} needs the shape of its result", statement.offset
                    )

    def attribute(self, kind: Kind) -> Any:
        offset = self.lexer.token.offset
        try:
            return read_attribute(kind, self.lexer)
        except HloParseError:
            raise
        except TracejitError as error:
            raise self.lexer.error(error.message, offset) from error
