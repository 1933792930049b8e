"""The work of one thread in a product's routine: packs panels, multiplies tiles.

`pack` and `work` are functions of all pointers and a `WORK_ITEM`. They find the thread's share and
the addresses of its operands and results, and call the copying and multiplying functions.
"""

from __future__ import annotations

from tracejit.backends.tvm.cpu.kernels.gemm.product_vocabulary import Variant, WorkFunction, i64s


def pack(variant: Variant) -> str:
    """A worker's share of the column tiles of a group, as long runs of memory."""
    p = WorkFunction(f"{variant.name}_pack", variant.tile)
    f, columns = p.fields, str(variant.tile.columns)
    step = str(variant.row_bytes)
    first = p.product("%g", f["panels"])
    count = p.lesser(f["panels"], p.difference(f["column_tiles"], first))
    panel, chunk, chunks, beside = (f[x] for x in ("panel", "chunk", "chunks", "beside"))
    target = p.address("%packed_right", p.product("%copy", f["right_bytes"]))
    source = p.matrix("right", "%b")
    # Tiles are packed one by one if their rows are not contiguous.
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
                f"{variant.name}_runs",
                *(f"ptr {here}", f"ptr {there}"),
                *i64s(f["right_q"], panel, steps, straight),
            ),
        )

        def slow(number: str) -> None:
            t = p.sum(straight, number)
            away = p.product(p.product(t, columns), f["right_j"])
            begin = p.product(p.sum(p.sum(first, tile), t), columns)
            valid = p.lesser(columns, p.difference(f["n"], begin))
            p.run(
                f"{variant.name}_copy",
                f"ptr {p.address(here, away)}",
                f"ptr {p.address(there, p.product(t, panel))}",
                *i64s(f["right_j"], f["right_q"], columns, valid, steps),
            )

        p.repeated(p.difference(p.difference(last, tile), straight), slow)

    p.repeated(units, unit)
    return p.whole()


def work(variant: Variant) -> str:
    """A worker's share of the tiles, in one group of columns."""
    p = WorkFunction(f"{variant.name}_work", variant.tile)
    f, tile, size = p.fields, variant.tile, variant.size
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
                f"{variant.name}_copy",
                f"ptr {p.address(left, p.product(i, f['left_i']))}",
                f"ptr {p.address(packed_left, p.product(r, f['left_tile']))}",
                *i64s(f["left_i"], f["left_q"], height, height, steps),
            )

        if variant.copies:
            p.when(copies_left, lambda: p.loop(here, pack))
        base = p.chosen(copies_left, "ptr", packed_left, left)

        def column(c: str) -> None:
            tiles = p.sum(c0, c)
            j = p.product(p.sum(first, tiles), columns)
            start_j = p.lesser(j, f["last_column"])
            # A tile that was moved up may still be complete.
            valid = p.lesser(columns, p.difference(f["n"], j))
            valid = p.either(parts_columns, valid, columns)
            skipped = p.product(p.difference(j, start_j), str(size))
            right_at = p.difference(p.product(tiles, f["right_tile"]), skipped)
            result_at = p.address(result, p.product(start_j, str(size)))
            memory = base, p.address(right, right_at), result_at
            told = ("left_tile", "left_first", "left_row", "left_step", "right_step")
            p.run(
                variant.column,
                *(f"ptr {a}" for a in memory),
                *i64s(*(f[x] for x in told), steps, block, f["result_i"]),
                *i64s(top, here, f["last_row"], f["parts_rows"], valid, skipped),
            )

        p.loop(wide, column)

    has_work = p.both(p.holds("sgt", rows, "0"), p.holds("sgt", wide, "0"))
    p.when(has_work, lambda: p.loop("%matrices", one))
    return p.whole()
