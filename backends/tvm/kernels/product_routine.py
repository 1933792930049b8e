"""The routine of a register tile: products of matrices of any sizes and strides, as LLVM's text.

It does what `tiled` writes for one product: packs columns of the right operand into panels, shares
row and column tiles among threads, and takes blocks of rows past all columns. What `tiled` knows
while it writes, the routine reads in `FIELDS`. It is as many instructions as a single kernel, and
serves all programs of a process. The sums of a tile are stored as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tracejit.backends.tvm.direct import Routine
from tracejit.backends.tvm.kernels.tiling import TileSize
from tracejit.backends.tvm.mathematics.kinds import KINDS
from tracejit.backends.tvm.mathematics.procedures import Procedure

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

_SQUARE = 4
_LAUNCHED = ("b", "matrices", "g", "kind", "workers")
_PACK, _WORK, _SHARE = "0", "1", "2"  # What threads do.


@dataclass(frozen=True)
class Variant:
    """What a routine is for: matrices of ``dtype``, by tiles of a size.

    With ``edges`` some tiles are not whole, with ``copies`` it packs operands.
    """

    dtype: str
    tile: TileSize
    edges: bool
    copies: bool


@functools.cache
def product_routine(variant: Variant) -> Routine:
    writer = _Writer(variant)
    return Routine(writer.name, *writer.texts())


@functools.cache
def product_parts(variant: Variant) -> str:
    """The text of ``pack`` and ``work`` alone, functions of all `POINTERS` and a `PLACE`."""
    return "\n".join(_Writer(variant).parts())


class _Part(Procedure):
    """A function of the routine."""

    def run(self, name: str, *typed: str) -> None:
        self.bits(f"call i32 @{name}({', '.join(typed)})")

    def repeated(self, count: str, body: Callable[[str], None]) -> None:
        """``body`` of 0 … count - 1; none if it is not positive."""
        self.when(self.holds("sgt", count, "0"), lambda: self.loop(count, body))

    def branches(self, condition: str, body: Callable[[], None], other: Callable[[], None]) -> None:
        """``body`` if the i1 ``condition`` holds, else ``other``."""
        then, otherwise, done = self.fresh("then", "else", "done")
        self.act(f"br i1 {condition}, label %{then}, label %{otherwise}")
        for label, run in ((then, body), (otherwise, other)):
            self.start(label)
            run()
            self.jump(done)
        self.start(done)

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


class _Placed(_Part):
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


class _Writer:
    def __init__(self, variant: Variant) -> None:
        self.kind, self.tile = KINDS[variant.dtype], variant.tile
        self.edges, self.copies = variant.edges, variant.copies
        self.size = self.kind.bits // 8
        self.row_bytes = self.tile.columns * self.size
        tile = f"{self.kind.name}_{self.tile.rows}x{self.tile.vectors}x{self.tile.lanes}"
        self.column = f"tracejit_column_{tile}{'_edges' * self.edges}"
        self.name = f"tracejit_product_{tile}{'_edges' * self.edges}{'_copies' * self.copies}"

    def texts(self) -> tuple[str, str]:
        """What multiplies numbers; and what moves them, and says which, and calls threads."""
        types = ", ".join(["ptr"] * 3 + ["i64"] * 14)
        driver = [
            "declare i32 @TVMBackendParallelLaunch(ptr, ptr, i32)",
            f"declare i32 @{self.column}({types})",
            *self._control(),
            *(self._threads(), self._launch(), self._share(), self._all()),
        ]
        return "\n".join([*self._columns(), ""]), "\n".join([*driver, ""])

    def parts(self) -> list[str]:
        """The functions that call no threads."""
        return [*self._columns(), *self._control()]

    def _columns(self) -> list[str]:
        edge = [self._edge(f"{self.column}_edge")] if self.edges else []
        return [*edge, self._column()]

    def _control(self) -> list[str]:
        if not self.copies:
            return [self._work()]
        moves = self._edge(f"{self.name}_edge"), self._copy(), self._runs()
        return [*moves, self._pack(), self._work()]

    # Memory

    def _multiply(self, p: _Part, left: str, result: str, result_row: str) -> None:
        """``result = left * right`` for one tile, to which it adds after the first block.

        Every third row of the left operand has an address of its own, from which two more rows are
        reached; the compiler is not to look for others.
        """
        tile, kind = self.tile, self.kind
        kind_text, size = p.type(kind), self.size
        vectors = [str(u * tile.lanes * size) for u in range(tile.vectors)]
        firsts = [p.address(left, p.product(str(a), "%left_row")) for a in range(0, tile.rows, 3)]
        offsets = "0", "%left_row", p.product("2", "%left_row")
        resume, begin, top, done = p.fresh("resume", "begin", "loop", "done")
        before = p.block
        p.act(f"br i1 {p.holds('eq', '%block', '0')}, label %{begin}, label %{resume}")
        p.start(resume)
        kept = [p.get(kind, place).text for place in self._places(p, result, result_row)]
        p.jump(begin)
        p.start(begin)
        starts = p.fresh(*["%s"] * len(kept))
        for start, old in zip(starts, kept, strict=True):
            zero = f"[ zeroinitializer, %{before} ]"
            p.act(f"{start} = phi {kind_text} {zero}, [ {old}, %{resume} ]")
        p.jump(top)
        p.start(top)
        (count, right), bases = p.fresh("%q", "%r"), p.fresh(*["%l"] * len(firsts))
        sums = p.fresh(*["%t"] * len(kept))
        heads = p.reserve(2 + len(bases) + len(sums))
        loaded = [p.get(kind, p.address(right, vector)) for vector in vectors]
        totals = []
        for number, old in enumerate(sums):
            a, u = divmod(number, tile.vectors)
            if u == 0:
                splat = self._splat(p, p.address(bases[a // 3], offsets[a % 3]))
            operands = f"{kind_text} {splat}, {loaded[u].typed}, {kind_text} {old}"
            intrinsic = f"@llvm.fmuladd.{p.suffix(kind)}"
            totals.append(p.bits(f"call {kind_text} {intrinsic}({operands})"))
        left_now = p.difference(count, "1")
        steps = [p.address(base, "%left_step") for base in bases]
        hidden = [p.bits(f'call ptr asm "", "=r,0"(ptr {step})') for step in steps]
        following = [
            (count, "i64", "%steps", left_now),
            (right, "ptr", "%right", p.address(right, "%right_step")),
            *((name, "ptr", *pair) for name, *pair in zip(bases, firsts, hidden, strict=True)),
            *((name, kind_text, *pair) for name, *pair in zip(sums, starts, totals, strict=True)),
        ]
        for head, (name, type_, first, after) in zip(heads, following, strict=True):
            p.fill(head, name, f"phi {type_} [ {first}, %{begin} ], [ {after}, %{top} ]")
        p.act(f"br i1 {p.holds('ne', left_now, '0')}, label %{top}, label %{done}")
        p.start(done)
        for total, place in zip(totals, self._places(p, result, result_row), strict=True):
            p.act(f"store {kind_text} {total}, ptr {place}, align {size}")

    def _places(self, p: _Part, result: str, row: str) -> Iterator[str]:
        """The addresses of a tile's vectors, each row's after that of the row before."""
        for a in range(self.tile.rows):
            for u in range(self.tile.vectors):
                yield p.address(result, str(u * self.tile.lanes * self.size))
            if a + 1 < self.tile.rows:
                result = p.address(result, row)

    def _splat(self, p: _Part, address: str) -> str:
        """A number in memory, in all lanes."""
        kind, lanes = self.kind.llvm, self.tile.lanes
        value = p.bits(f"load {kind}, ptr {address}, align {self.size}")
        if lanes == 1:
            return value
        vector = p.type(self.kind)
        single = p.bits(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return p.bits(
            f"shufflevector {vector} {single}, {vector} poison, <{lanes} x i32> zeroinitializer"
        )

    def _moved(self, p: Procedure, source: str, target: str, lanes: int = 1) -> None:
        """Copy neighbours in memory."""
        kind = self.kind.llvm if lanes == 1 else f"<{lanes} x {self.kind.llvm}>"
        value = p.bits(f"load {kind}, ptr {source}, align {self.size}")
        p.act(f"store {kind} {value}, ptr {target}, align {self.size}")

    def _column(self) -> str:
        """Tiles one below the other; those that are not whole by way of a panel."""
        integers = ["left_tile", "left_first", "left_row", "left_step", "right_step", "steps"]
        integers += ["block", "result_row", "top", "tiles", "last_row", "parts_rows"]
        integers += ["valid", "skipped"]
        lanes, height, panel_row = self.tile.lanes, str(self.tile.rows), str(self.row_bytes)
        p = _Part(self.column, ["left", "right", "result"], integers, lanes)
        if self.edges:
            p.make_room(f"%panel = alloca [{self.tile.rows * self.row_bytes} x i8], align 64")
        is_wide = p.holds("eq", "%valid", str(self.tile.columns))

        def one(r: str) -> None:
            i = p.product(p.sum("%top", r), height)
            start = p.lesser(i, "%last_row")
            begin = p.sum(p.product(r, "%left_tile"), p.product(start, "%left_first"))
            left = p.address("%left", begin)
            out = p.address("%result", p.product(start, "%result_row"))
            if not self.edges:
                self._multiply(p, left, out, "%result_row")
                return
            above = p.difference(i, start)
            apart = p.product(above, "%parts_rows")
            is_part = p.holds("ne", p.either(is_wide, apart, "1"), "0")
            # What of the panel is the result's, and where.
            kept = p.sum(p.product(above, panel_row), "%skipped")
            inner = p.address("%panel", kept)
            outer = p.address(out, p.sum(p.product(above, "%result_row"), "%skipped"))
            rows = p.difference(height, above)

            def move(source: str, target: str, *steps: str) -> None:
                memory = (f"ptr {source}", f"ptr {target}")
                p.run(f"{self.column}_edge", *memory, *_i64(*steps, rows, "%valid"))

            resumes = p.both(is_part, p.holds("ne", "%block", "0"))
            p.when(resumes, lambda: move(outer, inner, "%result_row", panel_row))
            target = p.chosen(is_part, "ptr", "%panel", out)
            target_row = p.either(is_part, panel_row, "%result_row")
            self._multiply(p, left, target, target_row)
            p.when(is_part, lambda: move(inner, outer, panel_row, "%result_row"))

        p.loop("%tiles", one)
        return p.whole()

    def _copy(self) -> str:
        """``to[q, x] = from[q, x]`` for x < valid, and zero up to ``width``."""
        integers = ["from_x", "from_q", "width", "valid", "steps"]
        p = _Part(f"{self.name}_copy", ["from", "to"], integers, 1)
        size = str(self.size)
        step = p.product("%width", size)
        zeros = p.difference("%width", "%valid")

        def clear(q: str) -> None:
            row = p.address("%to", p.sum(p.product(q, step), p.product("%valid", size)))
            kind = self.kind.llvm

            def one(x: str) -> None:
                at = p.address(row, p.product(x, size))
                p.act(f"store {kind} zeroinitializer, ptr {at}, align {size}")

            p.loop(zeros, one)

        p.when(p.holds("sgt", zeros, "0"), lambda: p.loop("%steps", clear))
        along, beside = p.holds("eq", "%from_x", size), p.holds("eq", "%from_q", size)
        memory = ("ptr %from", "ptr %to")
        p.branches(
            along,
            lambda: p.run(f"{self.name}_edge", *memory, *_i64("%from_q", step, "%steps", "%valid")),
            lambda: self._transpose(p, step, beside),
        )
        return p.whole()

    def _transpose(self, p: _Part, step: str, beside: str) -> None:
        """Squares of numbers that lie ``beside`` each other along q; one by one if there is none.

        The last squares are moved to end with the last numbers.
        """
        size, side = str(self.size), str(_SQUARE)
        last_x, last_q = p.difference("%valid", side), p.difference("%steps", side)
        fits = p.both(p.holds("sge", last_x, "0"), p.holds("sge", last_q, "0"))

        def squares(number: str) -> None:
            q = p.lesser(p.product(number, side), last_q)
            source = p.address("%from", p.product(q, size))
            target = p.address("%to", p.product(q, step))

            def square(number: str) -> None:
                x = p.lesser(p.product(number, side), last_x)
                source_x = p.address(source, p.product(x, "%from_x"))
                self._square(p, source_x, p.address(target, p.product(x, size)), step)

            p.loop(p.parts("%valid", side), square)

        def along(x: str) -> None:
            source = p.address("%from", p.product(x, "%from_x"))
            target = p.address("%to", p.product(x, size))

            def one(q: str) -> None:
                at = p.address(source, p.product(q, "%from_q"))
                self._moved(p, at, p.address(target, p.product(q, step)))

            p.loop("%steps", one)

        p.branches(
            p.both(beside, fits),
            lambda: p.loop(p.parts("%steps", side), squares),
            lambda: p.loop("%valid", along),
        )

    def _square(self, p: _Part, source: str, target: str, step: str) -> None:
        """A square of numbers with rows for columns: halves change places, then their halves."""
        kind = f"<{_SQUARE} x {self.kind.llvm}>"
        rows = []
        for x in range(_SQUARE):
            at = p.address(source, p.product(str(x), "%from_x"))
            rows.append(p.bits(f"load {kind}, ptr {at}, align {self.size}"))
        distance = _SQUARE // 2
        while distance:
            made = list(rows)
            for x in range(_SQUARE):
                if x & distance:
                    continue
                low, high = rows[x], rows[x + distance]
                for place, shift in ((x, 0), (x + distance, distance)):
                    lanes = [
                        lane + shift if not lane & distance else _SQUARE + lane - distance + shift
                        for lane in range(_SQUARE)
                    ]
                    mask = ", ".join(f"i32 {lane}" for lane in lanes)
                    made[place] = p.bits(
                        f"shufflevector {kind} {low}, {kind} {high}, <{_SQUARE} x i32> <{mask}>"
                    )
            rows = made
            distance //= 2
        for q, row in enumerate(rows):
            at = p.address(target, p.product(str(q), step))
            p.act(f"store {kind} {row}, ptr {at}, align {self.size}")

    def _runs(self) -> str:
        """Rows of ``tiles`` tiles side by side, each into a panel of its own."""
        integers = ["from_q", "panel", "steps", "tiles"]
        p = _Part(f"{self.name}_runs", ["from", "to"], integers, 1)
        step, lanes = str(self.row_bytes), self.tile.lanes

        def row(q: str) -> None:
            source = p.address("%from", p.product(q, "%from_q"))
            target = p.address("%to", p.product(q, step))

            def one(t: str) -> None:
                begin = p.address(source, p.product(t, step))
                end = p.address(target, p.product(t, "%panel"))
                for u in range(self.tile.vectors):
                    offset = str(u * lanes * self.size)
                    self._moved(p, p.address(begin, offset), p.address(end, offset), lanes)

            p.loop("%tiles", one)

        p.loop("%steps", row)
        return p.whole()

    def _edge(self, name: str) -> str:
        """Copy ``valid`` numbers of each of some rows, as those of a tile that is not whole.

        The last vector is moved to end with the last number.
        """
        integers = ["from_row", "to_row", "rows", "valid"]
        p = _Part(name, ["from", "to"], integers, 1)
        lanes = max(self.tile.lanes // 2, 1)
        fits = p.holds("sge", "%valid", str(lanes))

        def rows(width: int) -> Callable[[], None]:
            last = p.difference("%valid", str(width))
            count = p.parts("%valid", str(width))

            def row(a: str) -> None:
                source = p.address("%from", p.product(a, "%from_row"))
                target = p.address("%to", p.product(a, "%to_row"))

                def vector(u: str) -> None:
                    x = p.lesser(p.product(u, str(width)), last)
                    at = p.product(x, str(self.size))
                    self._moved(p, p.address(source, at), p.address(target, at), width)

                p.loop(count, vector)

            return lambda: p.loop("%rows", row)

        p.branches(fits, rows(lanes), rows(1))
        return p.whole()

    # Work

    def _pack(self) -> str:
        """A worker's share of the column tiles of a group, as long runs of memory."""
        p = _Placed(f"{self.name}_pack", self.tile)
        f, columns = p.fields, str(self.tile.columns)
        step = str(self.row_bytes)
        first = p.product("%g", f["panels"])
        count = p.lesser(f["panels"], p.difference(f["column_tiles"], first))
        panel, chunk, chunks, beside = (f[x] for x in ("panel", "chunk", "chunks", "beside"))
        target = p.address("%packed_right", p.product("%copy", f["right_bytes"]))
        source = p.matrix("right", "%b")
        # Single tiles are those whose rows are no runs of memory.
        runs = p.holds("ne", beside, "1")
        units = p.product(p.parts(count, beside), chunks)
        begin, units = p.share("%w", units, p.parts(units, f["workers"]))
        full = p.difference(f["full"], first)

        def unit(number: str) -> None:
            piece, part = p.quotient(p.sum(begin, number), chunks)
            tile, q = p.product(piece, beside), p.product(part, chunk)
            steps = p.lesser(chunk, p.difference(f["k"], q))
            last = p.lesser(p.sum(tile, beside), count)
            straight = p.difference(p.lesser(last, full), tile)
            straight = p.either(runs, straight, "0")
            straight = p.positive(straight)
            j = p.product(p.sum(first, tile), columns)
            offset = p.sum(p.product(q, f["right_q"]), p.product(j, f["right_j"]))
            here = p.address(source, offset)
            there = p.address(target, p.sum(p.product(tile, panel), p.product(q, step)))

            p.when(
                p.holds("sgt", straight, "0"),
                lambda: p.run(
                    f"{self.name}_runs",
                    *(f"ptr {here}", f"ptr {there}"),
                    *_i64(f["right_q"], panel, steps, straight),
                ),
            )

            def slow(number: str) -> None:
                t = p.sum(straight, number)
                away = p.product(p.product(t, columns), f["right_j"])
                begin = p.product(p.sum(p.sum(first, tile), t), columns)
                valid = p.lesser(columns, p.difference(f["n"], begin))
                p.run(
                    f"{self.name}_copy",
                    f"ptr {p.address(here, away)}",
                    f"ptr {p.address(there, p.product(t, panel))}",
                    *_i64(f["right_j"], f["right_q"], columns, valid, steps),
                )

            p.repeated(p.difference(p.difference(last, tile), straight), slow)

        p.repeated(units, unit)
        return p.whole()

    def _work(self) -> str:
        """A worker's share of the tiles, in one group of columns."""
        p = _Placed(f"{self.name}_work", self.tile)
        f, tile, size = p.fields, self.tile, self.size
        height, columns = str(tile.rows), str(tile.columns)
        first = p.product("%g", f["panels"])
        count = p.lesser(f["panels"], p.difference(f["column_tiles"], first))
        share = p.quotient("%w", f["by_columns"])
        r0, rows = p.share(share[0], f["row_tiles"], f["most_rows"])
        c0, wide = p.share(share[1], count, f["most_columns"])
        private = p.sum(p.product("%copy", f["workers"]), "%w")
        packed_left = p.address("%packed_left", p.product(private, f["left_bytes"]))
        packed_right = p.address("%packed_right", p.product("%copy", f["right_bytes"]))
        copies_left = p.holds("ne", f["pack_left"], "0")
        copies_right = p.holds("ne", f["pack_right"], "0")
        parts_columns = p.holds("ne", f["parts_columns"], "0")

        def one(number: str) -> None:
            b = p.sum("%b", number)
            left, right, result = (p.matrix(name, b) for name in ("left", "right", "result"))
            base = p.chosen(copies_right, "ptr", packed_right, right)
            p.loop(f["row_blocks"], lambda number: block_of_rows(number, left, base, result))

        def block_of_rows(number: str, left: str, right: str, result: str) -> None:
            done = p.product(number, f["block_rows"])
            here = p.lesser(f["block_rows"], p.difference(rows, done))
            top = p.sum(r0, done)
            memory = left, right, result
            p.when(
                p.holds("sgt", here, "0"),
                lambda: p.loop(f["blocks"], lambda block: depth(here, top, block, *memory)),
            )

        def depth(here: str, top: str, block: str, left: str, right: str, result: str) -> None:
            q = p.product(block, f["depth"])
            steps = p.lesser(f["depth"], p.difference(f["k"], q))
            right = p.address(right, p.product(q, f["right_step"]))
            left = p.address(left, p.product(q, f["left_q"]))

            def pack(r: str) -> None:
                i = p.lesser(p.product(p.sum(top, r), height), f["last_row"])
                p.run(
                    f"{self.name}_copy",
                    f"ptr {p.address(left, p.product(i, f['left_i']))}",
                    f"ptr {p.address(packed_left, p.product(r, f['left_tile']))}",
                    *_i64(f["left_i"], f["left_q"], height, height, steps),
                )

            if self.copies:
                p.when(copies_left, lambda: p.loop(here, pack))
            base = p.chosen(copies_left, "ptr", packed_left, left)

            def column(c: str) -> None:
                tiles = p.sum(c0, c)
                j = p.product(p.sum(first, tiles), columns)
                start_j = p.lesser(j, f["last_column"])
                # What is moved may be whole all the same.
                valid = p.lesser(columns, p.difference(f["n"], j))
                valid = p.either(parts_columns, valid, columns)
                skipped = p.product(p.difference(j, start_j), str(size))
                right_at = p.difference(p.product(tiles, f["right_tile"]), skipped)
                result_at = p.address(result, p.product(start_j, str(size)))
                memory = base, p.address(right, right_at), result_at
                told = ("left_tile", "left_first", "left_row", "left_step", "right_step")
                p.run(
                    self.column,
                    *(f"ptr {a}" for a in memory),
                    *_i64(*(f[x] for x in told), steps, block, f["result_i"]),
                    *_i64(top, here, f["last_row"], f["parts_rows"], valid, skipped),
                )

            p.loop(wide, column)

        has_work = p.both(p.holds("sgt", rows, "0"), p.holds("sgt", wide, "0"))
        p.when(has_work, lambda: p.loop("%matrices", one))
        return p.whole()

    # Threads

    def _phases(
        self,
        p: _Placed,
        first: str,
        count: str,
        pack: Callable[[str, str], None],
        work: Callable[[str, str, str], None],
    ) -> None:
        """Some matrices: all at once without copies, else one by one, in groups of columns."""
        f = p.fields

        def each(number: str) -> None:
            b = p.sum(first, number)

            def group(g: str) -> None:
                pack(b, g)
                work(b, "1", g)

            p.loop(f["groups"], group)

        if not self.copies:
            work(first, count, "0")
            return
        copies = p.holds("ne", f["pack_right"], "0")
        p.branches(copies, lambda: p.repeated(count, each), lambda: work(first, count, "0"))

    def _share(self) -> str:
        """A worker's share of the batch."""
        p = _Placed(f"{self.name}_share", self.tile)
        batch, sharers = p.fields["batch"], p.fields["sharers"]
        first, count = p.share("%w", batch, p.parts(batch, sharers))
        pointers = [f"ptr %{pointer}" for pointer in POINTERS]

        def run(name: str, *place: str) -> None:
            p.run(f"{self.name}_{name}", *pointers, *_i64(*place, "%w", "0"))

        self._phases(
            p,
            first,
            count,
            lambda b, g: run("pack", b, "1", g),
            lambda b, matrices, g: run("work", b, matrices, g),
        )
        return p.whole()

    def _threads(self) -> str:
        """What each of some threads does: every so manieth part of the work."""
        p = _Part(f"{self.name}_threads", ["pool", "closure"], [], 1)
        p._parameters.insert(0, "i32 %thread")
        own = p.bits("sext i32 %thread to i64")
        threads = p.bits(f"load i32, ptr {p.address('%pool', '8')}, align 8")
        threads = p.bits(f"sext i32 {threads} to i64")
        pointers = [_pointer(p, n) for n in range(len(POINTERS))]
        b, matrices, g, kind, workers = (
            p.number("%closure", len(POINTERS) + n) for n in range(len(_LAUNCHED))
        )
        left = p.difference(p.sum(workers, p.difference(threads, "1")), own)
        count = p.ratio(left, threads)

        def one(number: str) -> None:
            w = p.sum(own, p.product(number, threads))
            typed = [*(f"ptr {pointer}" for pointer in pointers), *_i64(b, matrices, g, "0", w)]
            kinds = [(_WORK, "work"), (_SHARE, "share")]
            for which, name in [(_PACK, "pack"), *kinds] if self.copies else kinds:
                function = f"{self.name}_{name}"
                p.when(p.holds("eq", kind, which), partial(p.run, function, *typed))

        p.repeated(count, one)
        return p.whole()

    def _launch(self) -> str:
        """One kind of work by all workers."""
        p = _Part(f"{self.name}_launch", ["closure"], _LAUNCHED, 1)
        for number, name in enumerate(_LAUNCHED, len(POINTERS)):
            p.act(f"store i64 %{name}, ptr {p.address('%closure', str(8 * number))}")
        threads = f"ptr @{self.name}_threads"
        p.run("TVMBackendParallelLaunch", threads, "ptr %closure", "i32 0")
        return p.whole()

    def _all(self) -> str:
        """The routine itself."""
        p = _Placed(self.name, self.tile)
        del p._parameters[len(POINTERS) :]
        p.make_room(f"%closure = alloca [{len(POINTERS) + len(_LAUNCHED)} x i64]")
        for number, name in enumerate(POINTERS):
            p.act(f"store ptr %{name}, ptr {p.address('%closure', str(8 * number))}")
        sharers = p.fields["sharers"]
        workers = p.fields["workers"]

        pointers = [f"ptr %{pointer}" for pointer in POINTERS]
        is_alone = p.holds("eq", workers, "1")

        def launched(kind: str, count: str, *place: str) -> None:
            p.run(f"{self.name}_launch", "ptr %closure", *_i64(*place, kind, count))

        def run(name: str, kind: str, *place: str) -> None:
            p.branches(
                is_alone,
                lambda: p.run(f"{self.name}_{name}", *pointers, *_i64(*place, "0", "0")),
                lambda: launched(kind, workers, *place),
            )

        def matrices() -> None:
            self._phases(
                p,
                "0",
                p.fields["batch"],
                lambda b, g: run("pack", _PACK, b, "1", g),
                lambda b, matrices, g: run("work", _WORK, b, matrices, g),
            )

        is_shared = p.holds("ne", sharers, "0")
        p.branches(is_shared, lambda: launched(_SHARE, sharers, "0", "0", "0"), matrices)
        return p.whole()


def _i64(*numbers: str) -> list[str]:
    return [f"i64 {number}" for number in numbers]


def _pointer(p: Procedure, number: int) -> str:
    return p.bits(f"load ptr, ptr {p.address('%closure', str(8 * number))}")
