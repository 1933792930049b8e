"""Schedule knobs: the cost model takes its own candidate, measurements another one."""

from __future__ import annotations

from collections.abc import Iterator

from tracejit.backends.tvm.tune.knobs import (
    MODEL,
    MOST_CANDIDATES,
    RecordedKnobs,
    counts,
    either,
    ranked,
)


def test_the_model_takes_the_first_and_looks_no_further() -> None:
    def candidates() -> Iterator[tuple[str, int]]:
        yield "pick", 1
        raise AssertionError("the others are not needed")

    assert MODEL.of("question", candidates()) == 1


def test_answers_take_what_they_are_told() -> None:
    answers = RecordedKnobs({"size": "3 rows", "elsewhere": "x"})
    assert answers.of("size", counts(2, [1, 3], "rows")) == 3
    assert answers.of("packed", either(True, "yes", "no")) is True
    assert answers.asked == {"size": ("2 rows", "1 rows", "3 rows"), "packed": ("yes", "no")}
    assert answers.taken == {"size": "3 rows", "packed": "yes"}


def test_answers_that_are_no_candidates_leave_it_to_the_model() -> None:
    answers = RecordedKnobs({"size": "17 rows"})
    assert answers.of("size", counts(2, [1], "rows")) == 2
    assert answers.taken == {"size": "2 rows"}


def test_a_question_with_one_candidate_is_none() -> None:
    answers = RecordedKnobs()
    assert answers.of("size", counts(2, [2], "rows")) == 2
    assert answers.open == {}
    assert answers.taken == {}


def test_a_question_that_comes_up_again_has_one_answer() -> None:
    answers = RecordedKnobs({"vectors": "8"})
    assert answers.of("vectors", [("4", 4), ("8", 8)]) == 8
    # Here the answer is no candidate.
    assert answers.of("vectors", [("4", 4), ("2", 2)]) == 4
    assert answers.open == {"vectors": ("4", "8", "2")}
    assert answers.taken == {"vectors": "8"}


def test_only_so_many_candidates_are_looked_at() -> None:
    answers = RecordedKnobs()
    answers.of("size", ((str(n), n) for n in range(100)))
    assert len(answers.asked["size"]) == MOST_CANDIDATES


def test_ranked_has_the_first_of_the_cheapest_in_front() -> None:
    found = list(ranked([3, 1, 2, 1], lambda n: n, str))
    assert [name for name, _ in found] == ["1", "1", "1", "2", "3"]
    assert next(ranked(["b", "a"], lambda _: 0, str)) == ("b", "b")
