"""The GEMM microkernel, as LLVM text: multiplies a column of register tiles in a precompiled
product.

A tile's sums stay in registers through a block of steps, and are stored directly. For a tile at
the edge they go to a panel in memory, and only those inside the result go on from there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracejit.backends.tvm.cpu.kernels.gemm.product_vocabulary import ProductFunction, Variant, i64s


def column(variant: Variant) -> str:
    """A column of tiles; those at the edge are stored through a panel."""
    integers = ["left_tile", "left_first", "left_row", "left_step", "right_step", "steps"]
    integers += ["block", "result_row", "top", "tiles", "last_row", "parts_rows"]
    integers += ["valid", "skipped"]
    lanes, height, panel_row = variant.tile.lanes, str(variant.tile.rows), str(variant.row_bytes)
    p = ProductFunction(variant.column, ["left", "right", "result"], integers, lanes)
    if variant.edges:
        p.make_room(f"%panel = alloca [{variant.tile.rows * variant.row_bytes} x i8], align 64")
    is_wide = p.holds("eq", "%valid", str(variant.tile.columns))

    def one(r: str) -> None:
        i = p.product(p.sum("%top", r), height)
        start = p.lesser(i, "%last_row")
        begin = p.sum(p.product(r, "%left_tile"), p.product(start, "%left_first"))
        left = p.address("%left", begin)
        out = p.address("%result", p.product(start, "%result_row"))
        if not variant.edges:
            _multiply(variant, p, left, out, "%result_row")
            return
        above = p.difference(i, start)
        apart = p.product(above, "%parts_rows")
        is_part = p.holds("ne", p.either(is_wide, apart, "1"), "0")
        # The rows and columns of the panel that are inside the result, and their address.
        kept = p.sum(p.product(above, panel_row), "%skipped")
        inner = p.address("%panel", kept)
        outer = p.address(out, p.sum(p.product(above, "%result_row"), "%skipped"))
        rows = p.difference(height, above)

        def move(source: str, target: str, *steps: str) -> None:
            memory = (f"ptr {source}", f"ptr {target}")
            p.run(variant.edge, *memory, *i64s(*steps, rows, "%valid"))

        resumes = p.both(is_part, p.holds("ne", "%block", "0"))
        p.when(resumes, lambda: move(outer, inner, "%result_row", panel_row))
        target = p.chosen(is_part, "ptr", "%panel", out)
        target_row = p.either(is_part, panel_row, "%result_row")
        _multiply(variant, p, left, target, target_row)
        p.when(is_part, lambda: move(inner, outer, panel_row, "%result_row"))

    p.loop("%tiles", one)
    return p.whole()


def _multiply(
    variant: Variant, p: ProductFunction, left: str, result: str, result_row: str
) -> None:
    """``result = left * right`` for one tile, ``+=`` after the first block.

    Every third row of the left operand has an address of its own, from which two more rows are
    reached; the compiler is not to look for others.
    """
    tile, kind = variant.tile, variant.kind
    kind_text, size = p.type(kind), variant.size
    vectors = [str(u * tile.lanes * size) for u in range(tile.vectors)]
    firsts = [p.address(left, p.product(str(a), "%left_row")) for a in range(0, tile.rows, 3)]
    offsets = "0", "%left_row", p.product("2", "%left_row")
    resume, begin, top, done = p.fresh("resume", "begin", "loop", "done")
    before = p.block
    p.act(f"br i1 {p.holds('eq', '%block', '0')}, label %{begin}, label %{resume}")
    p.start(resume)
    kept = [p.get(kind, place).text for place in _places(variant, p, result, result_row)]
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
            at = p.address(bases[a // 3], offsets[a % 3])
            splat = p.everywhere(kind, at).typed
        operands = f"{splat}, {loaded[u].typed}, {kind_text} {old}"
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
    for total, place in zip(totals, _places(variant, p, result, result_row), strict=True):
        p.act(f"store {kind_text} {total}, ptr {place}, align {size}")


def _places(variant: Variant, p: ProductFunction, result: str, row: str) -> Iterator[str]:
    """The addresses of a tile's vectors, row by row."""
    for a in range(variant.tile.rows):
        for u in range(variant.tile.vectors):
            yield p.address(result, str(u * variant.tile.lanes * variant.size))
        if a + 1 < variant.tile.rows:
            result = p.address(result, row)
