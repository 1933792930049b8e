"""What the functions of a product's routine have in common: what each is told, and how it says it.

`FIELDS` are what the routine reads of a product, `POINTERS` and `PLACE` the parameters of those of
its functions that share work, and a `Variant` the tile for which all are written. A `Part` is such
a function as LLVM's text, in the words that products are computed in: parts, shares, branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tracejit.backends.tvm.cpu.kernels.tiling import TileSize
from tracejit.backends.tvm.cpu.llvm.kinds import KINDS, Kind
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure

POINTERS = ("left", "right", "result", "packed_right", "packed_left", "numbers")
"""The last one is that of the fields. The memory of copies may be null where there are none."""

FIELDS = (
    *("n", "k", "batch"),
    # Bytes from the beginning to the first number, and to the next one of each index.
    *("left_0", "left_b", "left_i", "left_q"),
    *("right_0", "right_b", "right_q", "right_j"),
    *("result_0", "result_b", "result_i"),
    # As in `TiledPlan`, with the number of groups of ``panels`` column tiles.
    *("pack_left", "pack_right", "depth", "blocks", "block_rows", "panels", "groups"),
    *("row_tiles", "column_tiles"),
    # Threads that share columns, all that share a matrix, those that share the batch, or 0; the
    # most row and column tiles of one, and blocks of rows.
    *("by_columns", "workers", "sharers", "most_rows", "most_columns", "row_blocks"),
    # Where the last tile begins that is whole, which another one may be moved to.
    *("last_row", "last_column"),
    # Whether a tile that was moved stores no number of the one before: where it adds to what is
    # there. Else it stores the same numbers again, of rows, and of columns that are not padded.
    *("parts_rows", "parts_columns"),
    # Bytes from one tile to the next as tiles read them: of the left operand from one number of a
    # tile, and from one row of the matrix, and from one step to the next.
    *("left_tile", "left_row", "left_first", "left_step", "right_tile", "right_step"),
    # Bytes of a worker's copies, and of a panel; steps that are packed at once, and how often;
    # column tiles that are packed side by side, and those that have all their columns.
    *("left_bytes", "right_bytes", "panel", "chunk", "chunks", "beside", "full"),
)
"""What the routine is told of a product, 64-bit integers in this order."""

PLACE = ("b", "matrices", "g", "copy", "w")
"""Of a part of the work: the first matrix, how many, the group of columns, whose copies, and the
worker. Only matrices without copies of the right operand come several at a time."""


class Variant(NamedTuple):
    """What a routine is for: matrices of ``dtype``, by tiles of a size.

    With ``edges`` some tiles are not whole, with ``copies`` it packs operands.
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
        """The name of the function that copies rows, which routines of one column share."""
        return f"{self.column}_edge"

    @property
    def name(self) -> str:
        """The routine's name, with which those of its other functions begin."""
        edges, copies = "_edges" * self.edges, "_copies" * self.copies
        return f"tracejit_product_{self._tile_name}{edges}{copies}"

    @property
    def _tile_name(self) -> str:
        tile = self.tile
        return f"{self.kind.name}_{tile.rows}x{tile.vectors}x{tile.lanes}"


class Part(Procedure):
    """A function of the routine."""

    def run(self, name: str, *typed: str) -> None:
        self.bits(f"call i32 @{name}({', '.join(typed)})")

    def repeated(self, count: str, body: Callable[[str], None]) -> None:
        """``body`` of 0 … count - 1; none if it is not positive."""
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
        """The quotient of numbers that are not negative."""
        return self.bits(f"udiv i64 {a}, {b}")

    def parts(self, total: str, most: str) -> str:
        """How many parts there are of ``most`` each."""
        return self.ratio(self.sum(total, self.difference(most, "1")), most)

    def share(self, index: str, total: str, most: str) -> tuple[str, str]:
        """First item and number of items of share ``index``, each of ``most`` at most."""
        first = self.product(index, most)
        count = self.lesser(most, self.difference(total, first))
        return first, self.positive(count)


class _Fields:
    """The fields by their names: the text of a value that was just read."""

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure

    def __getitem__(self, field: str) -> str:
        return self._procedure.number("%numbers", FIELDS.index(field))


class Placed(Part):
    """A function of all pointers and a place, which reads a field where it needs it.

    Without optimisation what is read once for all is put on the stack, to be read from there.
    """

    def __init__(self, name: str, tile: TileSize) -> None:
        super().__init__(name, POINTERS, PLACE, tile.lanes)
        self.fields = _Fields(self)

    def matrix(self, name: str, b: str) -> str:
        """Where matrix number ``b`` of an operand or of the result begins."""
        first, step = self.fields[f"{name}_0"], self.fields[f"{name}_b"]
        return self.address(f"%{name}", self.sum(first, self.product(b, step)))


def i64s(*numbers: str) -> list[str]:
    """Integers with their type, as a call has them."""
    return [f"i64 {number}" for number in numbers]
