"""Where an instruction came from, as XLA's text says it: the user's file and line.

Older text has them in each instruction, ``metadata={source_file="f.py" source_line=3}``; newer text
has a number there, ``stack_frame_id=5``, and tables of frames, locations and files at its front.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracejit.hlo.lexer import Lexer
from tracejit.sources import Source

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
Fields = dict[str, str | int]


@dataclass
class SourceTables:
    """The tables at the front of a text; each row has a number."""

    files: dict[int, str] = field(default_factory=dict)
    locations: dict[int, Fields] = field(default_factory=dict)
    frames: dict[int, Fields] = field(default_factory=dict)

    def source(self, metadata: Fields) -> Source | None:
        """The innermost line that the metadata names, if it names one."""
        frame = self.frames.get(_number(metadata, "stack_frame_id"), {})
        location = self.locations.get(_number(frame, "file_location_id"), {})
        file = self.files.get(_number(location, "file_name_id"))
        if file is not None:
            return Source(file, _number(location, "line"))
        given = metadata.get("source_file")
        return Source(given, _number(metadata, "source_line")) if isinstance(given, str) else None


def _number(fields: Fields, name: str) -> int:
    value = fields.get(name, 0)
    return value if isinstance(value, int) else 0


def read_tables(lexer: Lexer) -> SourceTables:
    """The tables that stand at the lexer, which may be none. Raises `HloParseError`."""
    tables = SourceTables()
    while lexer.token.text in _TABLES:
        title = lexer.advance().text
        while lexer.token.kind == "word" and lexer.token.text.isdecimal():
            number = lexer.integer("the number of a row")
            if title == "FileNames":
                tables.files[number] = lexer.string("a file name")
            elif title == "FunctionNames":
                lexer.string("the name of a function")
            else:
                rows = tables.locations if title == "FileLocations" else tables.frames
                rows[number] = read_fields(lexer)
    return tables


def read_fields(lexer: Lexer) -> Fields:
    """What ``{name="text" other=3}`` says; values of any other form are left out.

    Commas between the fields are read past.
    """
    fields: Fields = {}
    lexer.expect("{")
    while not lexer.accept("}"):
        name = lexer.word("the name of a field")
        lexer.expect("=")
        if lexer.token.kind == "string":
            fields[name] = lexer.string("a text")
        elif lexer.token.kind == "word" and lexer.token.text.isdecimal():
            fields[name] = lexer.integer("a number")
        else:
            lexer.skip_value()
        lexer.accept(",")
    return fields
