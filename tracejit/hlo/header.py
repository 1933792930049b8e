"""The front of a module's text: its name, devices and layouts, and the tables of source lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tracejit.attributes import OutputAlias
from tracejit.hlo import ignored_syntax
from tracejit.hlo.calls import read_aliasing
from tracejit.hlo.entry_layout import EntryLayout, read_entry_layout
from tracejit.hlo.lexer import Lexer
from tracejit.hlo.metadata import SourceTables, read_tables
from tracejit.hlo.shardy import Mesh, read_meshes


@dataclass
class Header:
    """What stands before the first computation; ``name`` is empty where there is no header.

    ``meshes`` are Shardy's. A module that ``is_scheduled`` is what XLA has partitioned already.
    """

    name: str = ""
    devices: dict[str, int] = field(
        default_factory=lambda: {"replica_count": 1, "num_partitions": 1}
    )
    says_partitions: bool = False
    is_scheduled: bool = False
    meshes: Mapping[str, Mesh] = field(default_factory=dict)
    aliases: tuple[OutputAlias, ...] = ()
    layout: EntryLayout | None = None
    layout_offset: int = 0
    tables: SourceTables = field(default_factory=SourceTables)


def read_header(lexer: Lexer) -> Header:
    """The header at the lexer. XLA reads text without one as well. Raises `HloParseError`."""
    header = Header()
    if lexer.at("HloModule"):
        lexer.advance()
        header.name = lexer.word("the name of the module")
        lexer.accept(":")
        given: set[str] = set()
        while lexer.accept(","):
            offset = lexer.token.offset
            name = lexer.word("an attribute of the module")
            lexer.expect("=")
            if name in given:
                raise lexer.error(f"attribute {name} is given twice", offset)
            given.add(name)
            if name in header.devices:
                header.devices[name] = _count(lexer, name)
                header.says_partitions |= name == "num_partitions"
            elif name == "is_scheduled":
                header.is_scheduled = lexer.word("true or false") == "true"
            elif name == "frontend_attributes" and lexer.at("{"):
                header.meshes = read_meshes(lexer.bracketed())
            elif name == "entry_computation_layout":
                header.layout_offset = lexer.token.offset
                header.layout = read_entry_layout(lexer)
            elif name == "input_output_alias":
                header.aliases = read_aliasing(lexer)
            elif name in ignored_syntax.MODULE:
                lexer.skip_value()
            else:
                raise lexer.error(f"attribute {name} of the module is not known", offset)
    elif not (lexer.at("ENTRY") or lexer.peek().text in ("{", "(")):
        raise lexer.error("expected 'HloModule' or a computation")
    header.tables = read_tables(lexer)
    return header


def _count(lexer: Lexer, name: str) -> int:
    offset = lexer.token.offset
    count = lexer.integer(f"the {name}")
    if count < 1:
        raise lexer.error(f"{name} must be at least 1", offset)
    return count
