"""Leaving out a pass or a way to write a kernel changes programs, which the command notices."""

from __future__ import annotations

import numpy as np
import pytest

import tracejit as tj
from tests.benchmarks.ablations import __main__ as ablations
from tests.benchmarks.ablations.programs import Program
from tests.benchmarks.ablations.ways import WAYS, Way

ARRAY = np.random.default_rng(0).normal(size=(4, 4096)).astype(np.float32)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_ways_are_asked_and_left_out(way: Way) -> None:
    taken: set[str] = set()
    with way.watched(taken), way.left_out():
        pass
    assert all((ablations.FOLDER / file).exists() for file in way.files)


def test_what_changes_a_program_is_found() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.sort(np.transpose(x * 2 + 1, (1, 0)), axis=0)[:3]

    module = tj.jit(function).lower(ARRAY).module
    names = ("sort-to-topk", "fuse-scans", "sort: selection")
    found = {name: ablations.Found() for name in names}
    for target in ablations.TARGETS:
        ablations.ablate(Program("sorted", module, [ARRAY]), target, found, most=0.001)
        assert found["sort-to-topk"].changed[target] == {"sorted"}
        assert found["sort-to-topk"].run[target]["sorted"] > 0
    assert not found["fuse-scans"].fired
    header, _, first, *_ = ablations.table(found)
    assert first.count("|") == header.count("|")
    assert first.startswith("| sort-to-topk | ")
