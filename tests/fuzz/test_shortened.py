"""Random programs whose arrays masks shorten: what Python answers, or a refusal."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import shortened
from tests.fuzz.programs import made_of
from tests.fuzz.shortened import judged, program


def test_as_python() -> None:
    found = Counter(judged(seed, check=True) for seed in range(12))
    assert found["right"] >= 6, found


def test_compiled() -> None:
    assert "right" in [judged(seed) for seed in (1, 2, 3)]


def test_programs_have_everything() -> None:
    text = "".join(map(program, range(400)))
    wanted = (
        "z = z[k]", "x, y, z = x[k]", "y *= ", "z = y\n", "np.add(x, 1, x)", "for i in range(n)",
        "if n > 1:", "if s > 3:", "while w0 < n and len(", "t[j[:len(t)]", "= s\n",
    )  # fmt: skip
    assert [part for part in wanted if text.count(part) < 5] == []


def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = made_of
    made: list[int] = []

    def other(text: str, seed: int) -> object:
        made.append(seed)
        return plain(text if len(made) % 2 else program(seed + 1), seed)

    monkeypatch.setattr(shortened, "made_of", other)
    with pytest.raises(AssertionError, match="is right, not"):
        judged(1, check=True)
