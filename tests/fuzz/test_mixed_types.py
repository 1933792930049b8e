"""Random expressions of arrays and numbers of all types: NumPy's values and element types."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import mixed_types
from tests.fuzz.mixed_types import TYPES, judged, program
from tests.fuzz.programs import made_of


def test_as_numpy() -> None:
    found = Counter(judged(seed, check=True) for seed in range(60))
    assert found["right"] >= 20, found


def test_compiled() -> None:
    assert "right" in [judged(seed) for seed in range(4)]


def test_programs_have_everything() -> None:
    text = "".join(map(program, range(4000)))
    wanted = (
        *(f"astype('{name}')" for name in TYPES), "np.where(", " @ ", "np.cumsum(", "np.full(3",
        "+= ", "[1:] = ", "out=", "1j", "np.float32(2)", " ** ", " // ", "np.concatenate(",
        "np.clip(",
    )  # fmt: skip
    assert [part for part in wanted if text.count(part) < 5] == []


@pytest.mark.parametrize("wrong", ["a.astype('float32')", "a + 1"])
def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    text = "def program(a, b, c, d):\n    return [{}, a, b, c, d]\n"
    made: list[int] = []

    def other(_: str, seed: int) -> object:
        made.append(seed)
        return made_of(text.format("a" if len(made) % 2 else wrong), seed)

    monkeypatch.setattr(mixed_types, "made_of", other)
    with pytest.raises(AssertionError, match="result 0 is"):
        judged(1, check=True)
