"""Transposition by tiles: blocks in registers, or through memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import tracejit as tj
from tests.backends_tvm.compiled import check, computation
from tracejit import ops
from tracejit.graph import Instruction
from tracejit.shapes import ElementType, Shape

KINDS = [t for t in ElementType if not t.is_complex]
Turning = Callable[[Instruction, tuple[int, ...]], Instruction]

# What is done with an array's transpose; the last reads a second one across memory.
USES: dict[str, Turning] = {
    "as it is": ops.transpose,
    "with itself": lambda x, p: ops.max(ops.transpose(x, p), ops.transpose(x, p)),
    "in f32": lambda x, p: ops.convert_element_type(ops.transpose(x, p), ElementType.F32),
    "dear": lambda x, p: ops.exp(
        ops.convert_element_type(ops.transpose(ops.max(x, x), p), ElementType.F32)
    ),
    "two": lambda x, p: ops.max(ops.transpose(x, p), ops.transpose(ops.min(x, x), p)),
}


def bits(kind: ElementType, dimensions: tuple[int, ...]) -> np.ndarray:
    """Any bit patterns of a kind: NaN, infinities, denormals and zeros of both signs among them."""
    rng = np.random.default_rng(len(dimensions))
    if kind is ElementType.PRED or kind.bits < 8:
        return rng.integers(0, 2, dimensions).astype(kind.dtype)
    nbytes = kind.dtype.itemsize
    raw = rng.integers(0, 256, (*dimensions, nbytes), np.uint8)
    raw[rng.integers(0, 8, dimensions) == 0] = 0
    if kind.is_floating and nbytes > 1:
        raw[rng.integers(0, 8, dimensions) == 1, -2:] = [0x80, 0x7F]
    return np.ascontiguousarray(raw).view(kind.dtype)[..., 0]


@settings(max_examples=40)
@given(
    kind=st.sampled_from(KINDS),
    dimensions=st.tuples(st.integers(4, 150), st.integers(4, 150))
    | st.tuples(st.integers(1, 6), st.integers(4, 60), st.integers(4, 60)),
    data=st.data(),
    use=st.sampled_from(sorted(USES)),
)
def test_every_shape(
    kind: ElementType, dimensions: tuple[int, ...], data: st.DataObject, use: str
) -> None:
    order = tuple(data.draw(st.permutations(range(len(dimensions)))))
    if use != "as it is" and kind is ElementType.PRED:
        use = "in f32"
    entry = computation(lambda x: USES[use](x, order), Shape(kind, dimensions))
    (made,) = check(entry, [bits(kind, dimensions)])
    if use == "as it is":
        expected = np.ascontiguousarray(bits(kind, dimensions).transpose(order))
        assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize("n", [64, 96, 127, 130, 256, 512])
def test_squares_at_the_edges_of_tiles(n: int) -> None:
    array = np.arange(n * (n + 3), dtype=np.float32).reshape(n, n + 3)
    check(
        computation(lambda x: ops.transpose(x, (1, 0)), Shape(ElementType.F32, array.shape)),
        [array],
    )


@pytest.mark.parametrize("permutation", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("last", [64, 65])
def test_rows_that_keep_their_order_are_read_as_they_lie(
    permutation: tuple[int, int, int], last: int
) -> None:
    """Also beside an operand that is the same everywhere, and one in the order of the result."""
    sizes = (5, 7, 3)
    places = (*permutation, 3)
    shape = (*(sizes[d] for d in permutation), last)
    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(s).astype(np.float32) for s in ((*sizes, last), (last,), shape))
    moved = tj.jit(lambda x, y: np.transpose(x, places) * y)
    assert_array_equal(moved(x, y), x.transpose(places) * y)
    both = tj.jit(lambda x, z: np.transpose(x, places) + z)
    assert_array_equal(both(x, z), x.transpose(places) + z)
