"""Copies within a product's routine: rows, transposed rows, and edges of tiles.

For contiguous rows, `edge` copies a few of them, and `runs` copies whole column tiles, each into a
panel of its own. `copy` makes one zero-padded panel of any matrix; it transposes by squares.
"""

from __future__ import annotations

from collections.abc import Callable

from tracejit.backends.tvm.cpu.kernels.gemm.product_vocabulary import ProductFunction, Variant, i64s
from tracejit.backends.tvm.cpu.llvm.procedures import Procedure

_SQUARE = 4


def edge(variant: Variant) -> str:
    """Copy ``valid`` numbers of each of some rows, for a tile at the edge.

    The last vector is moved to end with the last number. Several routines may have the function.
    """
    integers = ["from_row", "to_row", "rows", "valid"]
    p = ProductFunction(variant.edge, ["from", "to"], integers, 1)
    lanes = max(variant.tile.lanes // 2, 1)
    fits = p.holds("sge", "%valid", str(lanes))

    def rows(width: int) -> Callable[[], None]:
        last = p.difference("%valid", str(width))
        count = p.parts("%valid", str(width))

        def row(a: str) -> None:
            source = p.address("%from", p.product(a, "%from_row"))
            target = p.address("%to", p.product(a, "%to_row"))

            def vector(u: str) -> None:
                x = p.lesser(p.product(u, str(width)), last)
                at = p.product(x, str(variant.size))
                _moved(variant, p, p.address(source, at), p.address(target, at), width)

            p.loop(count, vector)

        return lambda: p.loop("%rows", row)

    p.branches(fits, rows(lanes), rows(1))
    return p.whole().replace("define ", "define weak ", 1)


def runs(variant: Variant) -> str:
    """Copy rows of ``tiles`` adjacent tiles, each into a panel of its own."""
    integers = ["from_q", "panel", "steps", "tiles"]
    p = ProductFunction(f"{variant.name}_runs", ["from", "to"], integers, 1)
    step, lanes = str(variant.row_bytes), variant.tile.lanes

    def row(q: str) -> None:
        source = p.address("%from", p.product(q, "%from_q"))
        target = p.address("%to", p.product(q, step))

        def one(t: str) -> None:
            begin = p.address(source, p.product(t, step))
            end = p.address(target, p.product(t, "%panel"))
            for u in range(variant.tile.vectors):
                offset = str(u * lanes * variant.size)
                _moved(variant, p, p.address(begin, offset), p.address(end, offset), lanes)

        p.loop("%tiles", one)

    p.loop("%steps", row)
    return p.whole()


def copy(variant: Variant) -> str:
    """``to[q, x] = from[q, x]`` for x < valid, and zero up to ``width``."""
    integers = ["from_x", "from_q", "width", "valid", "steps"]
    p = ProductFunction(f"{variant.name}_copy", ["from", "to"], integers, 1)
    size = str(variant.size)
    step = p.product("%width", size)
    zeros = p.difference("%width", "%valid")

    def clear(q: str) -> None:
        row = p.address("%to", p.sum(p.product(q, step), p.product("%valid", size)))
        kind = variant.kind.llvm

        def one(x: str) -> None:
            at = p.address(row, p.product(x, size))
            p.act(f"store {kind} zeroinitializer, ptr {at}, align {size}")

        p.loop(zeros, one)

    p.when(p.holds("sgt", zeros, "0"), lambda: p.loop("%steps", clear))
    along, beside = p.holds("eq", "%from_x", size), p.holds("eq", "%from_q", size)
    memory = ("ptr %from", "ptr %to")
    p.branches(
        along,
        lambda: p.run(variant.edge, *memory, *i64s("%from_q", step, "%steps", "%valid")),
        lambda: _transpose(variant, p, step, beside),
    )
    return p.whole()


def _transpose(variant: Variant, p: ProductFunction, step: str, beside: str) -> None:
    """Transpose by squares of numbers that are ``beside`` each other along q; one by one if q is
    short.

    The last squares are moved to end with the last numbers.
    """
    size, side = str(variant.size), str(_SQUARE)
    last_x, last_q = p.difference("%valid", side), p.difference("%steps", side)
    fits = p.both(p.holds("sge", last_x, "0"), p.holds("sge", last_q, "0"))

    def squares(number: str) -> None:
        q = p.lesser(p.product(number, side), last_q)
        source = p.address("%from", p.product(q, size))
        target = p.address("%to", p.product(q, step))

        def square(number: str) -> None:
            x = p.lesser(p.product(number, side), last_x)
            source_x = p.address(source, p.product(x, "%from_x"))
            _square(variant, p, source_x, p.address(target, p.product(x, size)), step)

        p.loop(p.parts("%valid", side), square)

    def along(x: str) -> None:
        source = p.address("%from", p.product(x, "%from_x"))
        target = p.address("%to", p.product(x, size))

        def one(q: str) -> None:
            at = p.address(source, p.product(q, "%from_q"))
            _moved(variant, p, at, p.address(target, p.product(q, step)))

        p.loop("%steps", one)

    p.branches(
        p.both(beside, fits),
        lambda: p.loop(p.parts("%steps", side), squares),
        lambda: p.loop("%valid", along),
    )


def _square(variant: Variant, p: ProductFunction, source: str, target: str, step: str) -> None:
    """Transpose a square: exchange off-diagonal halves, then recurse into the halves."""
    kind = f"<{_SQUARE} x {variant.kind.llvm}>"
    rows = []
    for x in range(_SQUARE):
        at = p.address(source, p.product(str(x), "%from_x"))
        rows.append(p.bits(f"load {kind}, ptr {at}, align {variant.size}"))
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
        p.act(f"store {kind} {row}, ptr {at}, align {variant.size}")


def _moved(variant: Variant, p: Procedure, source: str, target: str, lanes: int = 1) -> None:
    """Copy contiguous numbers."""
    kind = variant.kind.llvm if lanes == 1 else f"<{lanes} x {variant.kind.llvm}>"
    value = p.bits(f"load {kind}, ptr {source}, align {variant.size}")
    p.act(f"store {kind} {value}, ptr {target}, align {variant.size}")
