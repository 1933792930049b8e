"""Random Python programs with arrays in containers: what Python answers, or a refusal."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import containers
from tests.fuzz.containers import judged, program
from tests.fuzz.programs import made_of

# In 90 a branch binds a list anew, in which a lent array is.
SEEDS = (*range(12), 90)


def test_as_python() -> None:
    found = Counter(judged(seed, check=True) for seed in SEEDS)
    assert found["right"] >= 8, found


def test_compiled() -> None:
    assert "right" in [judged(seed) for seed in (0, 1, 2)]


def test_programs_have_everything() -> None:
    text = "".join(map(program, range(600)))
    wanted = (
        "if ", "else:", "while ", "in range(n)", "in range(20)", "l[0][", "d['p'][", "t[0][",
        "p.a[", "e[1][1][0][", "box.buf[", "state.inner.buf[", "first(", "put(", "box.write(",
        "scale(", "swap()", "m = l", "l[0], l[1] = l[1]", "box.keep(", "lax.fori_loop", "lax.cond",
        "lax.scan", "lax.while_loop", "out=",
    )  # fmt: skip
    assert [part for part in wanted if text.count(part) < 10] == []


def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = made_of
    made: list[int] = []

    def other(text: str, seed: int) -> object:
        made.append(seed)
        return plain(text if len(made) % 2 else text.replace("x * 1", "x * 2"), seed)

    monkeypatch.setattr(containers, "made_of", other)
    with pytest.raises(AssertionError, match="is right, not"):
        judged(0, check=True)
