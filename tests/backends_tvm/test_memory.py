"""The workspace: arrays that live at one time never share bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracejit.backends.tvm.buffers.allocator import ALIGNMENT, Lifetime, pack

lifetimes = st.builds(
    lambda nbytes, first, length: Lifetime(nbytes, first, first + length),
    st.integers(0, 1000),
    st.integers(0, 40),
    st.one_of(st.integers(0, 6), st.integers(0, 40)),
)


@given(st.lists(lifetimes, max_size=30))
def test_nothing_overlaps(lives: list[Lifetime]) -> None:
    offsets, total = pack(lives)
    spans = list(zip(lives, offsets, strict=True))
    for life, offset in spans:
        assert offset % ALIGNMENT == 0
        assert offset + life.nbytes <= total
    for i, (life, offset) in enumerate(spans):
        for other, place in spans[:i]:
            at_once = life.first <= other.last and other.first <= life.last
            apart = offset + life.nbytes <= place or place + other.nbytes <= offset
            assert apart or not at_once or 0 in (life.nbytes, other.nbytes)


def test_memory_is_used_again() -> None:
    chain = [Lifetime(1 << 20, n, n + 1) for n in range(10)]
    assert pack(chain)[1] == 2 << 20
