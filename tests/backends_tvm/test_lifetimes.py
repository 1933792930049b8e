"""Memory that is written in narrow vectors and read in wide ones, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tvm import tirx

from tests.backends_tvm.compiled import check, computation
from tests.backends_tvm.kernel_harness import HOST
from tracejit import ops
from tracejit.attributes import ConvDimensionNumbers
from tracejit.backends.tvm.cpu.kernels.tile import vector
from tracejit.backends.tvm.cpu.objects.tir_pipeline import c_function, compile_kernels, contents
from tracejit.backends.tvm.ir.tir import AllocBuffer, DeclBuffer, buffer, seq, store
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

PIECES = [(0, 4), (4, 2), (6, 2)]


def joined(pieces: Sequence[tuple[int, int]]) -> tirx.PrimFunc:
    """Eight numbers that pass through memory: pieces are (start, width), in the order written."""
    given, made = (tirx.decl_buffer((8,), "float64", name) for name in ("given", "made"))
    held = buffer("held", (8,), "float64")

    moves = [vector(width, lambda i: store(held, i, given[i]), start) for start, width in pieces]
    moves.append(vector(8, lambda i: store(made, i, held[i])))
    pointers = [tirx.Var(b.name, tirx.buffer_data_pointer_type(b)) for b in (given, made)]
    declared = [DeclBuffer(b, data=p) for b, p in zip((given, made), pointers, strict=True)]
    return c_function("kernel", pointers, seq(declared, AllocBuffer(held), moves))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
def test_pieces_written_in_any_order(order: Sequence[int]) -> None:
    function = joined([PIECES[n] for n in order])
    assert compile_kernels([function], HOST, contents(function.body)).inspect_source("ll")


def test_weights_of_six_features_and_two_more_lanes() -> None:
    """A convolution whose weights are packed into one vector of eight."""
    numbers = ConvDimensionNumbers(0, 1, (2, 3), 0, 2, (1, 3), 1, 2, (3, 0))

    def build(x: Instruction, w: Instruction) -> Instruction:
        return ops.conv_general_dilated(
            x, w, [2, 2], [(3, 3), (3, -2)], lhs_dilation=[2, 2], dimension_numbers=numbers,
            feature_group_count=2, preferred_element_type=ElementType.F64,
            window_reversal=[True, False],
        )  # fmt: skip

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((3, 2, 5, 4), (1, 3, 6, 2))]
    check(computation(build, *(Shape(ElementType.F32, a.shape) for a in arrays)), arrays)
