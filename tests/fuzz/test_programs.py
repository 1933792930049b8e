"""Random Python programs under ``jit(autograph=True)``: what Python answers, or a refusal."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fuzz import programs
from tests.fuzz.programs import judged, program

# In 3227 a loop's second recording used a condition of its first. The last two did not end:
# branches inside of branches in a loop.
SEEDS = (*range(16), 3227, 51362511, 122266942)


@pytest.mark.parametrize("seed", SEEDS)
def test_as_python(seed: int) -> None:
    judged(seed, check=True)


def test_compiled() -> None:
    found = Counter(judged(seed) for seed in (2, 3, 4))
    assert found["right"]


def test_programs_have_everything() -> None:
    text = "".join(map(program, range(900)))
    wanted = (
        "if ", "else:", "while ", "range(int(", "break", "continue", "return a", "try:", "raise ",
        "box.bump()", "Box.share(", "add(", "put(", "write(", "note(", "next(it", ".ravel()[0] =",
        "= w\n", "u, v = v, u", "+= ", "*= 0.5", "m = None", "if m is None", "m is not None and",
        "np.tanh(t)", "e is None",
    )  # fmt: skip
    assert [part for part in wanted if text.count(part) < 10] == []


def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = programs.built
    made: list[int] = []

    def other(seed: int) -> object:
        made.append(seed)
        return plain(seed if len(made) % 2 else seed + 1)

    monkeypatch.setattr(programs, "built", other)
    with pytest.raises(AssertionError, match="is right, not"):
        judged(2, check=True)
