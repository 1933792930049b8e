"""Work divided among threads or ranges is done completely, and once."""

from __future__ import annotations

import itertools

import pytest
from tvm import sym

from tracejit.backends.tvm.cpu.kernels.sharing import share
from tracejit.backends.tvm.cpu.kernels.tile import pieces
from tracejit.backends.tvm.cpu.kernels.tiling import no_empty_share
from tracejit.backends.tvm.ir.tir import i32


def items(total: int, shares: int, *, is_static: bool) -> list[list[int]]:
    analyzer = sym.Analyzer()
    found = []
    for index in range(shares):
        bounds = share(i32(index), total if is_static else i32(total), shares)
        first, count = (int(analyzer.simplify(b)) for b in bounds)
        found.append([*range(first, first + count)])
    return found


@pytest.mark.parametrize("is_static", [True, False])
def test_shares_cover_everything_once(is_static: bool) -> None:
    for total, shares in itertools.product(range(20), range(1, 9)):
        found = items(total, shares, is_static=is_static)
        assert [*itertools.chain(*found)] == [*range(total)]
        assert max(map(len, found)) == -(-total // shares)


def test_no_share_is_empty() -> None:
    for total, wanted in itertools.product(range(1, 40), range(1, 17)):
        shares = no_empty_share(total, wanted)
        assert shares <= wanted
        assert all(items(total, shares, is_static=True))


def test_pieces_of_a_vector_loop() -> None:
    for extent, lanes in itertools.product(range(40), (1, 2, 8, 16)):
        cut = pieces(extent, lanes)
        assert [i for start, width in cut for i in range(start, start + width)] == [*range(extent)]
        assert all(width <= lanes and width & (width - 1) == 0 for _, width in cut)
