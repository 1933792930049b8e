"""Common definitions for the functions of a product's routine.

`FIELDS` are the numbers that describe a product, `POINTERS` and `WORK_ITEM` the parameters of the
functions that divide work, and a `Variant` the element type and tile that all are written for. A
`ProductFunction` is such a function under construction, with helpers for shares and branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tracejit.backends.tvm.cpu.kernels.tiling import TileSize
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS, Kind
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure

POINTERS = ("left", "right", "result", "packed_right", "packed_left", "numbers")
"""The last pointer is that of the fields. Pointers of packed copies may be null if there are none.
"""

FIELDS = (
    *("n", "k", "batch"),
    # Bytes from the base to the first number, and strides of each index.
    *("left_0", "left_b", "left_i", "left_q"),
    *("right_0", "right_b", "right_q", "right_j"),
    *("result_0", "result_b", "result_i"),
    # As in `TiledPlan`, with the number of groups of ``panels`` column tiles.
    *("pack_left", "pack_right", "depth", "blocks", "block_rows", "panels", "groups"),
    *("row_tiles", "column_tiles"),
    # Threads that share columns, all that share a matrix, those that share the batch, or 0; the
    # most row and column tiles of one, and blocks of rows.
    *("by_columns", "workers", "sharers", "most_rows", "most_columns", "row_blocks"),
    # The first index of the last whole tile, which an incomplete tile is moved up to.
    *("last_row", "last_column"),
    # Whether a tile that was moved up skips the numbers of the one before, because it adds to
    # memory. Else it stores the same numbers again, for rows, and for columns that are not padded.
    *("parts_rows", "parts_columns"),
    # Strides in bytes as tiles read them: of the left operand within a tile, from row to row of
    # the matrix, and from step to step.
    *("left_tile", "left_row", "left_first", "left_step", "right_tile", "right_step"),
    # Bytes of a thread's copies, and of a panel; steps that are packed together, and how often;
    # column tiles that are packed together, and those that have all their columns.
    *("left_bytes", "right_bytes", "panel", "chunk", "chunks", "beside", "full"),
)
"""The numbers that describe a product to the routine, 64-bit integers in this order."""

WORK_ITEM = ("b", "matrices", "g", "copy", "w")
"""A unit of work: the first matrix, the number of matrices, the group of columns, the index of the
packed copy, and the thread. Only without copies of the right operand are there several matrices.
"""


class Variant(NamedTuple):
    """The parameters of a routine at compile time: element type and tile size.

    With ``edges`` some tiles are incomplete, with ``copies`` it packs operands.
    """

    dtype: str
    tile: TileSize
    edges: bool
    copies: bool

    @property
    def kind(self) -> Kind:
        return KINDS[self.dtype]

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return self.kind.bits // 8

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a tile."""
        return self.tile.columns * self.size

    @property
    def column(self) -> str:
        """The name of the function that multiplies a column of tiles."""
        return f"tracejit_column_{self._tile_name}{'_edges' * self.edges}"

    @property
    def edge(self) -> str:
        """The name of the function that copies rows, which routines of equal columns share."""
        return f"{self.column}_edge"

    @property
    def name(self) -> str:
        """The routine's name, a prefix of the names of its other functions."""
        edges, copies = "_edges" * self.edges, "_copies" * self.copies
        return f"tracejit_product_{self._tile_name}{edges}{copies}"

    @property
    def _tile_name(self) -> str:
        tile = self.tile
        return f"{self.kind.name}_{tile.rows}x{tile.vectors}x{tile.lanes}"


class ProductFunction(Procedure):
    """A function of the routine under construction."""

    def run(self, name: str, *typed: str) -> None:
        self.bits(f"call i32 @{name}({', '.join(typed)})")

    def repeated(self, count: str, body: Callable[[str], None]) -> None:
        """``body(i)`` for i in range(count); none if ``count`` is not positive."""
        self.when(self.holds("sgt", count, "0"), lambda: self.loop(count, body))

    def either(self, condition: str, a: str, b: str) -> str:
        """``a`` if the i1 ``condition`` holds, else ``b``."""
        return self.chosen(condition, "i64", a, b)

    def both(self, one: str, other: str) -> str:
        """The i1 of two conditions."""
        return self.bits(f"and i1 {one}, {other}")

    def positive(self, a: str) -> str:
        """``a``, or 0 if it is less."""
        return self.either(self.holds("sgt", a, "0"), a, "0")

    def ratio(self, a: str, b: str) -> str:
        """The quotient of non-negative numbers."""
        return self.bits(f"udiv i64 {a}, {b}")

    def parts(self, total: str, most: str) -> str:
        """``ceil(total / most)``."""
        return self.ratio(self.sum(total, self.difference(most, "1")), most)

    def share(self, index: str, total: str, most: str) -> tuple[str, str]:
        """The first item and the number of items of share ``index``; each share has at most
        ``most``.
        """
        first = self.product(index, most)
        count = self.lesser(most, self.difference(total, first))
        return first, self.positive(count)


class _Fields:
    """The fields by name; each access loads the field anew."""

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure

    def __getitem__(self, field: str) -> str:
        return self._procedure.number("%numbers", FIELDS.index(field))


class WorkFunction(ProductFunction):
    """A function of all pointers and a `WORK_ITEM`, which loads each field where it is used.

    Without optimisation, fields loaded at entry would be spilled to the stack and reloaded.
    """

    def __init__(self, name: str, tile: TileSize) -> None:
        super().__init__(name, POINTERS, WORK_ITEM, tile.lanes)
        self.fields = _Fields(self)

    def matrix(self, name: str, b: str) -> str:
        """The address of matrix ``b`` of an operand or of the result."""
        first, step = self.fields[f"{name}_0"], self.fields[f"{name}_b"]
        return self.address(f"%{name}", self.sum(first, self.product(b, step)))


def i64s(*numbers: str) -> list[str]:
    """Integers with their type, as arguments of a call."""
    return [f"i64 {number}" for number in numbers]
