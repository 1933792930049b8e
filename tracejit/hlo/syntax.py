"""The grammar of HLO text: computations and instructions, with names still unresolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tracejit.attributes import REQUIRED, Attribute, Kind
from tracejit.errors import HloParseError, TracejitError
from tracejit.graph import OPS, Op
from tracejit.hlo import ignored_syntax
from tracejit.hlo.attributes import ELSEWHERE, ComputationName, read_attribute
from tracejit.hlo.header import Header, read_header
from tracejit.hlo.inferred_attributes import LEFT_OUT
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.literals import read_literal, split_tuple
from tracejit.hlo.metadata import read_fields
from tracejit.hlo.program import Block, ParsedModule, Statement
from tracejit.hlo.shapes import BUFFER, NO_BUFFERS, read_shape
from tracejit.ops.constants import CONSTANT, PARAMETER, TUPLE
from tracejit.ops.control import CALL
from tracejit.ops.dumps import ASYNC_DONE, ASYNC_START, ASYNC_UPDATE
from tracejit.shapes import AnyShape, Shape, TupleShape

_ASYNC_PARTS = {"start": ASYNC_START, "update": ASYNC_UPDATE, "done": ASYNC_DONE}
_THREAD = next(a for a in ASYNC_START.attributes if a.name == "async_execution_thread")

# What attributes were called in older text.
_OLD_NAMES = {"opaque": "backend_config"}
# How deeply instructions, and bodies of computations, may be written inside each other.
_MOST_NESTED = 50


class Reader:
    """Reads one text from front to back; `program` does it all."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.header = Header()
        self.opcodes = {op.opcode: op for op in OPS.values()}
        self.nested: dict[str, Block] = {}
        self.depth = 0

    def program(self) -> ParsedModule:
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
        return ParsedModule(self.header, blocks | self.nested, entry)

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
        block = self.body(name, offset, result)
        while lexer.accept(","):
            place = lexer.token.offset
            attribute = lexer.word("an attribute of the computation")
            if attribute not in ignored_syntax.COMPUTATION:
                raise lexer.error(f"attribute {attribute} of a computation is not known", place)
            lexer.expect("=")
            lexer.skip_value()
        return block

    def body(self, name: str, offset: int, result: AnyShape | None = None) -> Block:
        """The instructions of a computation, in braces."""
        lexer = self.lexer
        lexer.expect("{")
        statements: dict[str, Statement] = {}
        root: str | None = None
        while not lexer.at("}"):
            is_root = lexer.accept("ROOT")
            statement = self.statement()
            if statement.name in statements:
                raise lexer.error(f"{statement.name} is defined twice", statement.offset)
            statements |= {inner.name: inner for inner in statement.inner}
            statements[statement.name] = statement
            if is_root and root is not None:
                raise lexer.error("there are two ROOT instructions", statement.offset)
            root = statement.name if is_root else root
        if not statements:
            raise lexer.error("a computation needs at least one instruction")
        lexer.expect("}")
        return Block(name, offset, list(statements.values()), root or statement.name, result)

    def hidden(self, name: str, block: Block) -> ComputationName:
        """The name of a computation that the text does not name; no name in it has a slash."""
        hidden = f"{name}/{len(self.nested)}"
        self.nested[hidden] = block
        return ComputationName(hidden)

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
        self.arguments(statement)
        self.attributes(statement)
        return statement

    def arguments(self, statement: Statement) -> None:
        """What stands in the parentheses after the opcode."""
        lexer = self.lexer
        if statement.op is CONSTANT:
            self.literal(statement)
        elif statement.op is PARAMETER:
            lexer.expect("(")
            statement.attributes["parameter_number"] = lexer.integer("the parameter's number")
            lexer.expect(")")
        else:
            self.operands(statement)

    def asynchronous(self, statement: Statement, opcode: str, offset: int) -> Statement:
        """A part of an async op written short: ``negate-start(x)`` for an async-start.

        What it calls, a computation of the one op, is then nowhere in the text and is made here.
        """
        lexer = self.lexer
        base, _, part = opcode.rpartition("-")
        op = self.opcodes.get(base)
        if op is None or part not in _ASYNC_PARTS:
            raise self.no_opcode(opcode, offset)
        statement.op = _ASYNC_PARTS[part]
        if part != "start":
            self.operands(statement)
            self.attributes(statement)
            return statement
        shapes = statement.shape.elements if isinstance(statement.shape, TupleShape) else ()
        if len(shapes) < 2 or not isinstance(shapes[0], TupleShape):
            raise lexer.error(f"{opcode} makes a bundle ((operands), result, contexts)")
        name = f"{statement.name}.wrapped"
        inner = Statement("result", statement.offset, op, shapes[1], [], {}, None)
        self.operands(inner)
        statement.operands, inner.operands = inner.operands, []
        statement.inner, inner.inner = inner.inner, []
        self.attributes(inner, _THREAD)
        thread = inner.attributes.pop(_THREAD.name)
        parameters = []
        for number, shape in enumerate(shapes[0].elements):
            attributes = {"parameter_number": number, "shape": shape}
            taken = f"parameter.{number}"
            parameters.append(
                Statement(taken, statement.offset, PARAMETER, shape, [], attributes, None)
            )
            inner.operands.append((taken, statement.offset))
        block = Block(name, statement.offset, [*parameters, inner], "result")
        statement.source = inner.source
        statement.attributes = {
            _THREAD.name: thread,
            "calls": self.hidden(name, block),
            "shape": statement.shape,
        }
        return statement

    def literal(self, statement: Statement) -> None:
        lexer = self.lexer
        if statement.shape is None:
            raise lexer.error("a constant needs its shape", statement.offset)
        offset = lexer.token.offset
        self.constant(statement, lexer.parenthesised(), offset)

    def constant(self, statement: Statement, text: str, offset: int) -> None:
        """Gives a constant its value; one of a tuple becomes a Tuple of constants."""
        shape = statement.shape
        if text.replace(" ", "") == "{...}":
            return
        try:
            if isinstance(shape, Shape):
                literal = read_literal(text, shape)
                literal.flags.writeable = False
                statement.attributes["literal"] = literal
                return
            if not isinstance(shape, TupleShape):
                raise self.lexer.error(f"a constant of shape {shape} is not supported", offset)
            parts = split_tuple(text, len(shape.elements))
        except ValueError as error:
            raise self.lexer.error(str(error), offset) from error
        statement.op = TUPLE
        for element, part in zip(shape.elements, parts, strict=True):
            name = f"{statement.name}/{len(statement.operands)}"
            inner = Statement(name, statement.offset, CONSTANT, element, [], {}, None)
            self.constant(inner, part, offset)
            statement.inner += [*inner.inner, inner]
            statement.operands.append((name, statement.offset))

    def operands(self, statement: Statement) -> None:
        lexer = self.lexer
        lexer.expect("(")
        while not lexer.accept(")"):
            shape = None
            if lexer.at("(") or lexer.peek().text == "[":
                shape = read_shape(lexer)
            offset = lexer.token.offset
            name = lexer.word("the name of an operand")
            if lexer.at("("):
                name = self.written_inside(statement, name, shape, offset)
            elif shape is not None:
                statement.declared[len(statement.operands)] = shape
            statement.operands.append((name, offset))
            if not lexer.at(")"):
                lexer.expect(",")

    def no_opcode(self, word: str, offset: int) -> HloParseError:
        is_buffer = word == BUFFER and self.lexer.at("(")
        return self.lexer.error(NO_BUFFERS if is_buffer else f"opcode {word} is not known", offset)

    def written_inside(
        self, statement: Statement, opcode: str, shape: AnyShape | None, offset: int
    ) -> str:
        """The name of an operand that is written out where it is taken, without attributes."""
        op = self.opcodes.get(opcode)
        if op is None:
            raise self.no_opcode(opcode, offset)
        name = f"{statement.name}/{len(statement.operands)}"
        inner = Statement(name, offset, op, shape, [], {}, None)
        with self.nesting(offset):
            self.arguments(inner)
        self.complete(inner)
        statement.inner += [*inner.inner, inner]
        return name

    @contextmanager
    def nesting(self, offset: int) -> Iterator[None]:
        """One level deeper; refuses text that is nested too deeply."""
        if self.depth == _MOST_NESTED:
            raise self.lexer.error(f"the text is nested more than {_MOST_NESTED} deep", offset)
        self.depth += 1
        yield
        self.depth -= 1

    def attributes(self, statement: Statement, *more: Attribute) -> None:
        """The attributes as written, and those that are left out."""
        lexer = self.lexer
        values = statement.attributes
        known = {a.name: a for a in _written(statement.op, more)}
        while lexer.accept(","):
            offset = lexer.token.offset
            name = lexer.word("the name of an attribute")
            name = _OLD_NAMES.get(name, name)
            lexer.expect("=")
            if name == "metadata":
                statement.source = self.header.tables.source(read_fields(lexer))
            elif name == "sharding" and name not in known:
                statement.sharding = " ".join(lexer.bracketed().split())
            elif name == "frontend_attributes" and name not in known and lexer.at("{"):
                statement.frontend = lexer.bracketed()
            elif (name in ignored_syntax.INSTRUCTION and name not in known) or (
                name in ("calls", _THREAD.name) and statement.op in (ASYNC_DONE, ASYNC_UPDATE)
            ):
                lexer.skip_value()
            elif name not in known:
                raise lexer.error(f"attribute {name} of {statement.op.opcode} is not known", offset)
            elif name in values:
                raise lexer.error(f"attribute {name} is given twice", offset)
            else:
                values[name] = self.attribute(known[name].kind, f"{statement.name}.{name}")
        self.complete(statement, *more)

    def complete(self, statement: Statement, *more: Attribute) -> None:
        """Gives attributes that are not written their usual values, or None for `LEFT_OUT`."""
        lexer = self.lexer
        values = statement.attributes
        follows = LEFT_OUT.get(statement.op, {})
        for attribute in _written(statement.op, more):
            name = attribute.name
            usual = None if name in follows else attribute.default
            if values.setdefault(name, usual) is REQUIRED:
                raise lexer.error(
                    f"{statement.op.opcode} needs the attribute {name}", statement.offset
                )
        for attribute in statement.op.attributes:
            if attribute.kind is Kind.UNWRITTEN:
                values[attribute.name] = attribute.default
            elif attribute.kind is Kind.SHAPE:
                values[attribute.name] = statement.shape
                if statement.shape is None and attribute.name not in follows:
                    raise lexer.error(
                        f"{statement.op.opcode} needs the shape of its result", statement.offset
                    )

    def attribute(self, kind: Kind, name: str) -> Any:
        """The value here; ``name`` is for a computation that is written out here."""
        offset = self.lexer.token.offset
        if kind is Kind.COMPUTATION and self.lexer.at("{"):
            return self.computation_inside(name)
        if kind is Kind.COMPUTATIONS and self.lexer.at("{") and self.lexer.peek().text == "{":
            self.lexer.advance()
            computations = [self.computation_inside(name)]
            while self.lexer.accept(","):
                computations.append(self.computation_inside(name))
            self.lexer.expect("}")
            return tuple(computations)
        try:
            return read_attribute(kind, self.lexer)
        except HloParseError:
            raise
        except TracejitError as error:
            raise self.lexer.error(error.message, offset) from error

    def computation_inside(self, name: str) -> ComputationName:
        """A computation whose body stands where its name would."""
        offset = self.lexer.token.offset
        with self.nesting(offset):
            return self.hidden(name, self.body(name, offset))


def _written(op: Op, more: Sequence[Attribute]) -> list[Attribute]:
    """The attributes that text writes as ``name=value``."""
    return [a for a in (*op.attributes, *more) if a.kind not in ELSEWHERE]
